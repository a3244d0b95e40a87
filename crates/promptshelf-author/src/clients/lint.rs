//! Finds the prompts that a client hides, changes, cuts or breaks.

use super::{
    CLIENTS, Client, Fact, Quirk,
    shape::{Kind, Shape},
};
use crate::review::body_of;
use promptshelf_core::{ArgumentType, Catalog, Code, Diagnostic, Location, Prompt, SourceText};

/// Returns a warning for every part of a library that is incompatible with a client, ordered by file and position.
///
/// ```
/// use promptshelf_author::clients;
/// use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};
///
/// let two = PromptDefinition::template("two", "{{ a }} {{ b }}")
///     .argument(ArgumentDefinition::new("a"))
///     .argument(ArgumentDefinition::new("b"));
/// let catalog = check(Definitions::from_iter([two]), None).catalog;
/// let zed = clients::find("zed").expect("it is in the table");
/// assert_eq!(clients::lint(&catalog, zed)[0].code.as_str(), "client-hides");
/// ```
#[must_use]
pub fn lint(catalog: &Catalog, client: &Client) -> Vec<Diagnostic> {
    let mut lint = Lint { client, found: Vec::new() };
    for fact in client.facts {
        lint.library(catalog, fact);
    }
    if client.shows_prompts() {
        for prompt in catalog.prompts().iter() {
            let shape = Shape::of(prompt);
            for fact in client.facts {
                lint.prompt(prompt, &shape, fact);
            }
        }
    }
    lint.found.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    lint.found
}

/// A client's behaviour and the prompts that are incompatible with it.
#[derive(Debug)]
pub struct Incompatibility<'p> {
    /// The client.
    pub client: &'static Client,
    /// The behaviour.
    pub fact: &'static Fact,
    /// The affected prompts, in list order; empty if the client uses no prompts at all.
    pub prompts: Vec<&'p Prompt>,
}

/// Returns the incompatibilities of some prompts with all known clients. `prompts` are in list order, with
/// `page_size` of them on the first page.
#[must_use]
pub fn incompatibilities<'p>(prompts: &[&'p Prompt], page_size: usize) -> Vec<Incompatibility<'p>> {
    let shapes: Vec<Shape> = prompts.iter().map(|prompt| Shape::of(prompt)).collect();
    let mut found = Vec::new();
    for client in CLIENTS {
        if let Some(fact) = client.facts.iter().find(|fact| !fact.quirk.uses_prompts()) {
            found.push(Incompatibility { client, fact, prompts: Vec::new() });
            continue;
        }
        for fact in client.facts {
            let mut lint = Lint { client, found: Vec::new() };
            let mut is_affected = |(prompt, shape): &(&&Prompt, &Shape)| {
                lint.found.clear();
                lint.prompt(prompt, shape, fact);
                !lint.found.is_empty()
            };
            let prompts: Vec<&Prompt> = match fact.quirk {
                Quirk::FirstPage => prompts.iter().skip(page_size).copied().collect(),
                _ => {
                    let both = prompts.iter().zip(&shapes);
                    both.filter(&mut is_affected).map(|(prompt, _)| *prompt).collect()
                }
            };
            if !prompts.is_empty() {
                found.push(Incompatibility { client, fact, prompts });
            }
        }
    }
    found
}

struct Lint<'c> {
    client: &'c Client,
    found: Vec<Diagnostic>,
}

impl Lint<'_> {
    fn find(&mut self, code: Code, place: Location, fact: &Fact, what: impl AsRef<str>, help: &str) {
        let message = format!("{} {}: {}", self.client.name, fact.quirk, what.as_ref());
        let help = format!("{help} (source: {}, read {})", fact.source, fact.read);
        self.found.push(Diagnostic::warning(code, place, message).help(help));
    }

    fn library(&mut self, catalog: &Catalog, fact: &Fact) {
        let library = || Location::file(&SourceText::new(".", ""));
        match fact.quirk {
            Quirk::NoPrompts | Quirk::NeverGets => {
                let help = "use `promptshelf get` with this client";
                self.find(Code::ClientHides, library(), fact, "no prompt can be used", help);
            }
            Quirk::FirstPage if catalog.prompts().len() > catalog.policy().page_size => {
                let others = catalog.prompts().len() - catalog.policy().page_size;
                let help = "raise `page-size` under [list] in promptshelf.toml";
                self.find(Code::ClientHides, library(), fact, format!("{others} prompts are hidden"), help);
            }
            _ => {}
        }
    }

    fn prompt(&mut self, prompt: &Prompt, shape: &Shape, fact: &Fact) {
        let origin = &prompt.definition().origin;
        let name = || origin.locate("name");
        let argument = |index: usize| origin.locate(&format!("arguments.{index}.name"));
        let arguments = prompt.arguments();
        match fact.quirk {
            Quirk::MostArguments(most) if arguments.len() > most => {
                let what = format!("the prompt `{}` with {} arguments is hidden", prompt.name(), arguments.len());
                let help = "offer a variant with fewer arguments";
                self.find(Code::ClientHides, argument(most), fact, what, help);
            }
            Quirk::ReplacesInNames if prompt.name().as_str().contains(|c: char| !is_portable(c)) => {
                let changed: String =
                    prompt.name().as_str().chars().map(|c| if is_portable(c) { c } else { '_' }).collect();
                let what = format!("the prompt `{}` appears as `{changed}`", prompt.name());
                self.find(Code::ClientMangles, name(), fact, what, "use lower-case letters, digits, `-` and `_`");
            }
            Quirk::SplitsNames if prompt.name().as_str().contains('/') => {
                let what = format!("the prompt `{}` cannot be requested by its name", prompt.name());
                self.find(Code::ClientBreaks, name(), fact, what, "use `-` instead of `/`");
            }
            Quirk::SplitsValues if arguments.len() > 1 => {
                let what = "a value of several words is split among several arguments";
                self.find(Code::ClientBreaks, argument(1), fact, what, "use one argument, or values of a single word");
            }
            Quirk::FillsRequiredOnly => self.required_only(prompt, fact),
            Quirk::OneLineValues => {
                for (index, known) in
                    arguments.iter().enumerate().filter(|(_, known)| known.kind() == ArgumentType::Text)
                {
                    let what = format!("`{}` cannot have several lines", known.name());
                    let help = "mention in its description that a file can be chosen, or attach a file";
                    self.find(Code::ClientBreaks, argument(index), fact, what, help);
                }
            }
            Quirk::EmptyValues => {
                for (index, known) in arguments.iter().enumerate().filter(|(_, known)| known.required()) {
                    let what = format!("the required argument `{}` is always empty", known.name());
                    let help = "give it a default, and let the prompt ask for missing information";
                    self.find(Code::ClientBreaks, argument(index), fact, what, help);
                }
            }
            Quirk::Placeholders => {
                let is_plain = |kind| matches!(kind, ArgumentType::String | ArgumentType::Text);
                for (index, known) in arguments.iter().enumerate() {
                    if !is_plain(known.kind()) || !known.choices().is_empty() {
                        let what = format!("the prompt depends on `{}` before its value is known", known.name());
                        let help = "insert the value into the text without a condition";
                        self.find(Code::ClientBreaks, argument(index), fact, what, help);
                    }
                }
            }
            Quirk::TextAsJson => {
                if let Some(place) = escaped(prompt) {
                    let what = format!("the text of `{}` has line breaks or quotation marks", prompt.name());
                    let help = "models still understand it; keep texts short whose layout matters";
                    self.find(Code::ClientMangles, place, fact, what, help);
                }
            }
            _ => self.messages(shape, fact),
        }
    }

    fn required_only(&mut self, prompt: &Prompt, fact: &Fact) {
        let required = prompt.arguments().iter().filter(|argument| argument.required()).count();
        let optional = prompt.arguments().iter().position(|argument| !argument.required());
        if let (1.., Some(index)) = (required, optional) {
            let place = prompt.definition().origin.locate(&format!("arguments.{index}.name"));
            let name = prompt.arguments()[index].name();
            let what = format!("`{name}` can only be set as --{name}=\"…\"");
            self.find(Code::ClientBreaks, place, fact, what, "choose a default that suits most users");
        }
    }

    fn messages(&mut self, shape: &Shape, fact: &Fact) {
        let one_message = "use a single message";
        match (fact.quirk, &shape.second, &shape.assistant) {
            (Quirk::FirstMessage, Some(place), _) => {
                self.find(Code::ClientDrops, place.clone(), fact, "the messages from here on are omitted", one_message);
            }
            (Quirk::LastUserMessage, Some(place), _) => {
                self.find(
                    Code::ClientDrops,
                    place.clone(),
                    fact,
                    "the messages before this one may be omitted",
                    one_message,
                );
            }
            (Quirk::JoinsMessages | Quirk::LabelsRoles | Quirk::OneUserTurn, _, Some(place)) => {
                let help = "use messages of the user only";
                self.find(Code::ClientFlattens, place.clone(), fact, "this message becomes text of the user", help);
            }
            (Quirk::EndsWithUser, ..) => {
                if let Some(place) = &shape.ends_with_assistant {
                    let help = "end with role(\"user\")";
                    self.find(Code::ClientBreaks, place.clone(), fact, "the prompt cannot be used", help);
                }
            }
            _ => {}
        }
        for (kind, place) in &shape.blocks {
            let code = match (fact.quirk, kind) {
                (Quirk::TextOnly, _) | (Quirk::NoAudio, Kind::Audio) | (Quirk::NoLinks, Kind::Link) => {
                    Code::ClientDrops
                }
                (Quirk::ImagesAsText, Kind::Image)
                | (Quirk::LinksAsText, Kind::Link)
                | (Quirk::AudioAsName, Kind::Audio) => Code::ClientMangles,
                _ => continue,
            };
            let end = if code == Code::ClientDrops { "is omitted" } else { "is not shown" };
            let what = format!("{} {end}", kind.as_str());
            let help = match kind {
                Kind::Image | Kind::Audio => "describe it in words",
                Kind::Resource | Kind::Link => "insert its text with {% include %} or an argument",
            };
            self.find(code, place.clone(), fact, what, help);
        }
    }
}

fn escaped(prompt: &Prompt) -> Option<Location> {
    let source = prompt.source();
    let range = body_of(prompt)?;
    let text = source.text.get(range.clone())?;
    let begin = text.len() - text.trim_start().len();
    let at = range.start + begin + text.trim().find(['\n', '"', '\\'])?;
    Some(Location::new(source, at..at + 1))
}

fn is_portable(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-')
}

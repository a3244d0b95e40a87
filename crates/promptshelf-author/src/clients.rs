//! Known behaviour of MCP clients, and the prompts that are affected by it.
//!
//! All facts are in one table. Each names its source and the month of reading, because clients change and every fact
//! must be checkable. Working around a client is not decided here; that is up to the server.

mod configuration;
mod table;

use std::fmt;

use promptshelf_core::{
    ArgumentType, Body, Catalog, Code, Diagnostic, Location, MimeType, Prompt, SourceText, TemplateAnalysis,
    TemplateUse,
};

use crate::{ExportFormat, review::body_of};

pub use configuration::{
    CONFIGURATIONS, Configuration, ConfigurationFormat, ConfiguredEndpoint, Part, TokenReference, UserFiles,
};
pub use table::CLIENTS;

/// An MCP client and its known behaviour.
#[derive(Debug)]
pub struct Client {
    /// The name to use on a command line, such as `zed`.
    pub id: &'static str,
    /// The product's name.
    pub name: &'static str,
    /// How it shows a prompt to people; empty if unknown.
    pub shown_as: &'static str,
    /// The state of the product, such as its replacement; empty if there is nothing to note.
    pub note: &'static str,
    /// Behaviour that authors should know.
    pub facts: &'static [Fact],
}

/// One observed behaviour of a client.
#[derive(Debug)]
pub struct Fact {
    /// The behaviour.
    pub quirk: Quirk,
    /// The file, issue or page that shows it.
    pub source: &'static str,
    /// The month in which the source was read, as `2026-11`.
    pub read: &'static str,
}

/// Behaviour of clients that some prompts are incompatible with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quirk {
    /// Shows no prompts.
    NoPrompts,
    /// Hides prompts with more arguments than this.
    MostArguments(usize),
    /// Lists prompts and never sends `prompts/get`.
    NeverGets,
    /// Reads only the first page of a list.
    FirstPage,
    /// Replaces all characters of a name except `a-z`, `0-9`, `_`, `.` and `-`.
    ReplacesInNames,
    /// Reads the part of a name before `/` as the name of a server.
    SplitsNames,
    /// Splits input at every space, even inside quotation marks.
    SplitsValues,
    /// Assigns input to required arguments only; a single required argument gets all of it.
    FillsRequiredOnly,
    /// Accepts one line of input for each value.
    OneLineValues,
    /// Sends an empty string for every argument.
    EmptyValues,
    /// Requests the prompt with `$1`, `$2` … as values and substitutes them afterwards.
    Placeholders,
    /// Uses only the first message.
    FirstMessage,
    /// Uses only the last message with role `user`.
    LastUserMessage,
    /// Rejects a prompt that ends with a message of the assistant.
    EndsWithUser,
    /// Joins all messages into one text without roles.
    JoinsMessages,
    /// Joins all messages into one text with the roles as words in it.
    LabelsRoles,
    /// Uses text only.
    TextOnly,
    /// Omits audio.
    NoAudio,
    /// Omits resource links.
    NoLinks,
    /// Inserts images as Base64 text.
    ImagesAsText,
    /// Sends all messages as one turn of the user.
    OneUserTurn,
    /// Inserts `[Resource link: …]` in place of a link.
    LinksAsText,
    /// Inserts the name of a file in place of audio.
    AudioAsName,
    /// Sends text as a JSON string, with quotation marks and escapes.
    TextAsJson,
}

impl Quirk {
    fn uses_prompts(self) -> bool {
        !matches!(self, Quirk::NoPrompts | Quirk::NeverGets)
    }

    /// Returns a stable identifier, such as `no-prompts`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Quirk::NoPrompts => "no-prompts",
            Quirk::MostArguments(_) => "most-arguments",
            Quirk::NeverGets => "never-gets",
            Quirk::FirstPage => "first-page",
            Quirk::ReplacesInNames => "replaces-in-names",
            Quirk::SplitsNames => "splits-names",
            Quirk::SplitsValues => "splits-values",
            Quirk::FillsRequiredOnly => "fills-required-only",
            Quirk::OneLineValues => "one-line-values",
            Quirk::EmptyValues => "empty-values",
            Quirk::Placeholders => "placeholders",
            Quirk::FirstMessage => "first-message",
            Quirk::LastUserMessage => "last-user-message",
            Quirk::EndsWithUser => "ends-with-user",
            Quirk::JoinsMessages => "joins-messages",
            Quirk::LabelsRoles => "labels-roles",
            Quirk::TextOnly => "text-only",
            Quirk::NoAudio => "no-audio",
            Quirk::NoLinks => "no-links",
            Quirk::ImagesAsText => "images-as-text",
            Quirk::OneUserTurn => "one-user-turn",
            Quirk::LinksAsText => "links-as-text",
            Quirk::AudioAsName => "audio-as-name",
            Quirk::TextAsJson => "text-as-json",
        }
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Quirk::NoPrompts => "shows no prompts",
            Quirk::MostArguments(most) => {
                let thing = if *most == 1 { "argument" } else { "arguments" };
                return write!(f, "hides prompts with more than {most} {thing}");
            }
            Quirk::NeverGets => "lists prompts and never requests one",
            Quirk::FirstPage => "reads only the first page of the list",
            Quirk::ReplacesInNames => "replaces all characters of a name except a-z, 0-9, `_`, `.` and `-`",
            Quirk::SplitsNames => "reads the part of a name before `/` as the server's name",
            Quirk::SplitsValues => "splits input at every space, even inside quotation marks",
            Quirk::FillsRequiredOnly => "assigns input to required arguments only; a single one gets all of it",
            Quirk::OneLineValues => "accepts only one line of input for a value",
            Quirk::EmptyValues => "sends an empty string for every argument",
            Quirk::Placeholders => "requests the prompt with `$1`, `$2` … as values and substitutes them afterwards",
            Quirk::FirstMessage => "uses only the first message",
            Quirk::LastUserMessage => "uses only the user's last message",
            Quirk::EndsWithUser => "rejects a prompt that ends with a message of the assistant",
            Quirk::JoinsMessages => "joins all messages into one text without roles",
            Quirk::LabelsRoles => "joins all messages into one text, with the roles as words in it",
            Quirk::TextOnly => "uses only text",
            Quirk::NoAudio => "omits audio",
            Quirk::NoLinks => "omits resource links",
            Quirk::ImagesAsText => "inserts images as Base64 text",
            Quirk::OneUserTurn => "sends all messages as one turn of the user",
            Quirk::LinksAsText => "inserts `[Resource link: …]` in place of a link",
            Quirk::AudioAsName => "inserts the name of a file in place of audio",
            Quirk::TextAsJson => "sends text as a JSON string, with quotation marks and escapes such as `\\n`",
        };
        f.write_str(text)
    }
}

/// Returns the client with this [`id`](Client::id) or product name; letter case is ignored.
///
/// ```
/// use promptshelf_author::clients::find;
///
/// assert_eq!(find("zed").map(|client| client.name), Some("Zed"));
/// assert_eq!(find("Gemini CLI").map(|client| client.id), Some("gemini-cli"));
/// assert!(find("pencil").is_none());
/// ```
#[must_use]
pub fn find(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.id.eq_ignore_ascii_case(name) || client.name.eq_ignore_ascii_case(name))
}

impl Client {
    /// Returns whether it uses prompts at all.
    #[must_use]
    pub fn shows_prompts(&self) -> bool {
        self.facts.iter().all(|fact| fact.quirk.uses_prompts())
    }
}

/// The native files of a client in a project, which `sync` writes.
#[derive(Debug)]
#[non_exhaustive]
pub struct NativeFiles {
    /// The [`Client::id`].
    pub client: &'static str,
    /// The format of a file.
    pub format: ExportFormat,
    /// The folder of the files, below that of the project.
    pub folder: &'static str,
    /// The folder of skills, below that of the project. Source: vercel-labs/skills, src/agents.ts.
    pub skills: &'static str,
    /// The largest number of characters that the client reads of a file, if it has a limit.
    pub max_chars: Option<usize>,
    /// The page or file that shows the place and the format.
    pub source: &'static str,
    /// The month in which the source was read, as `2026-11`.
    pub read: &'static str,
}

const fn files(client: &'static str, format: ExportFormat, folder: &'static str, source: &'static str) -> NativeFiles {
    let skills = match format {
        ExportFormat::Skill => folder,
        ExportFormat::Claude => ".claude/skills",
        ExportFormat::Windsurf => ".windsurf/skills",
        _ => SKILLS,
    };
    NativeFiles { client, format, folder, skills, max_chars: None, source, read: "2026-11" }
}

const SKILLS: &str = ".agents/skills";

const SKILLS_SOURCE: &str = "vercel-labs/skills, src/agents.ts";

/// All clients that read files of a known format.
pub const NATIVE_FILES: &[NativeFiles] = &[
    files("claude-code", ExportFormat::Claude, ".claude/commands", "code.claude.com/docs/en/skills, commands"),
    files("vscode", ExportFormat::Vscode, ".github/prompts", "code.visualstudio.com/docs, prompt files"),
    files("gemini-cli", ExportFormat::Gemini, ".gemini/commands", "google-gemini/gemini-cli, custom commands"),
    files("cursor", ExportFormat::Cursor, ".cursor/commands", "cursor.com/docs, commands"),
    files("opencode", ExportFormat::Opencode, ".opencode/commands", "opencode.ai/docs, commands"),
    NativeFiles {
        max_chars: Some(12_000),
        ..files("windsurf", ExportFormat::Windsurf, ".windsurf/workflows", "docs.windsurf.com, Cascade workflows")
    },
    files("codex", ExportFormat::Skill, SKILLS, "developers.openai.com/codex/skills"),
    files("copilot-cli", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("antigravity", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("amp", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("zed", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("cline", ExportFormat::Skill, SKILLS, SKILLS_SOURCE),
    files("goose", ExportFormat::Skill, ".goose/skills", SKILLS_SOURCE),
    files("kiro", ExportFormat::Skill, ".kiro/skills", SKILLS_SOURCE),
    files("jetbrains", ExportFormat::Skill, ".junie/skills", SKILLS_SOURCE),
    files("crush", ExportFormat::Skill, ".crush/skills", SKILLS_SOURCE),
    files("continue", ExportFormat::Skill, ".continue/skills", SKILLS_SOURCE),
    files("roo", ExportFormat::Skill, ".roo/skills", SKILLS_SOURCE),
];

impl Client {
    /// Returns the files that the client reads in a project; `None` if none are known.
    #[must_use]
    pub fn native_files(&self) -> Option<&'static NativeFiles> {
        NATIVE_FILES.iter().find(|files| files.client == self.id)
    }
}

// Names of the commands that clients have themselves. A file with such a name would stand next to the command, or take
// its place: Claude Code 2.1.332 runs the file.

#[derive(Debug)]
struct BuiltIn {
    client: &'static str,
    source: &'static str,
    names: &'static str,
}

const BUILT_IN: &[BuiltIn] = &[
    // The bundled skills, such as `code-review`, can be replaced by design, and are not here.
    BuiltIn {
        client: "claude-code",
        source: "Claude Code 2.1.332",
        names: "access add-dir advisor agents alias allowed-tools android app artifacts auto-mode-setup autocompact \
                autofix-pr background bashes bg branch brief btw bug cd chat checkpoint checkup chrome clear \
                cloud-plugins color compact config context continue copy cost daemon desktop diff doctor effort exit \
                export extra-usage fast feedback focus fork goal heapdump help hooks ide import init insights install \
                install-github-app install-slack-app ios keybindings list-agents login logout mcp memory mobile model \
                new output-style passes pause-memory permissions plan plugin plugins powerup privacy-settings project \
                quit radio rate-limit-options recap release-notes reload-plugins reload-skills remote-control \
                remote-env rename reset restart resume rewind scroll-speed security-review session settings \
                setup-bedrock setup-vertex skill-doctor skills stats status statusline stickers stop subtask tasks \
                team-onboarding teleport terminal-setup theme tui ultraplan ultrareview undo upgrade usage \
                usage-credits use-case version vim voice web-setup wellbeing workflows",
    },
    BuiltIn {
        client: "opencode",
        source: "OpenCode 1.18.33",
        names: "agent agents clear compact connect continue copy debug diff editor exit export fork help init mcp mcps \
                mo model models move new open org orgs q quit redo rename resume review sessions share skills status \
                summarize switch-org terminal themes thinking timeline timestamps toggle-thinking toggle-timestamps \
                undo unshare variants warp workspace workspaces",
    },
    BuiltIn {
        client: "gemini-cli",
        source: "Gemini CLI 0.61.0",
        names: "? about agents auth background bg bug bug-memory chat checkpoint clear commands compact compress config \
                copy corgi dir directory docs editor exit explore extensions footer gemma help hooks ide init mcp \
                memory model new oncall permissions plan policies privacy profile quit restore resume rewind settings \
                setup-github shells shortcuts skills stats statusline summarize tasks terminal-setup theme tools \
                upgrade usage vim voice",
    },
    BuiltIn {
        client: "vscode",
        source: "microsoft/vscode at 0870c2a, and code.visualstudio.com/docs, 2026-11",
        names: "agents autoApprove clear compact create-agent create-instruction create-prompt create-skill debug \
                disableAutoApprove disableYolo doc edit explain fix fixTestFailure fork generate help hooks init \
                instructions models new newNotebook plan prompts rename search setupTests skills startDebugging tests \
                tools yolo",
    },
    BuiltIn {
        client: "cursor",
        source: "cursor.com/docs/cli/reference/slash-commands, 2026-11",
        names: "about ask auto-run clear commands compress config copy-conversation-id copy-request-id debug feedback \
                goal help logout logs max-mode mcp model new-chat plan quit resume rewind rules run-everything sandbox \
                setup-terminal summarize usage vim",
    },
    BuiltIn {
        client: "codex",
        source: "Codex 0.169.0",
        names: "imagegen openai-docs review-agent skill-creator skill-installer",
    },
];

/// Returns the version or page of a client that has a command of this name itself, in any letter case.
///
/// ```
/// use promptshelf_author::clients::built_in;
///
/// assert!(built_in("claude-code", "Clear").is_some() && built_in("opencode", "review").is_some());
/// assert!(built_in("claude-code", "code-review").is_none());
/// ```
#[must_use]
pub fn built_in(client: &str, name: &str) -> Option<&'static str> {
    let commands = BUILT_IN.iter().find(|commands| commands.client == client)?;
    let is_known = commands.names.split_whitespace().any(|known| known.eq_ignore_ascii_case(name));
    is_known.then_some(commands.source)
}

#[cfg(test)]
mod built_in_tests {
    use super::*;
    use crate::clients::NATIVE_FILES;

    #[test]
    fn commands_belong_to_clients_with_files() {
        for commands in BUILT_IN {
            assert!(NATIVE_FILES.iter().any(|files| files.client == commands.client), "{}", commands.client);
            assert!(commands.source.contains(char::is_numeric) && !commands.names.is_empty(), "{}", commands.client);
        }
    }
}

/// The structure of a prompt's messages, with locations in its file. Both branches of a condition count: a client
/// that cannot handle one of them is incompatible with the prompt.
#[derive(Debug, Default)]
struct Shape {
    /// The call that starts a second message.
    second: Option<Location>,
    assistant: Option<Location>,
    /// The call that starts the last message, if that is one of the assistant.
    ends_with_assistant: Option<Location>,
    /// Blocks that are not text.
    blocks: Vec<(Kind, Location)>,
}

/// The kind of a block that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Image,
    Audio,
    Resource,
    Link,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Image => "an image",
            Kind::Audio => "audio",
            Kind::Resource => "a resource",
            Kind::Link => "a link",
        }
    }
}

impl Shape {
    fn of(prompt: &Prompt) -> Shape {
        let mut shape = Shape::default();
        if let Body::Template { range } = &prompt.definition().body {
            let source = prompt.source();
            shape.take(prompt, source, range.clone(), true);
            for partial in prompt.includes() {
                shape.take(prompt, partial, 0..partial.text.len(), false);
            }
        }
        shape
    }

    fn take(
        &mut self,
        prompt: &Prompt,
        source: &std::sync::Arc<SourceText>,
        range: std::ops::Range<usize>,
        is_body: bool,
    ) {
        let text = source.text.get(range.clone()).unwrap_or_default();
        let template = TemplateAnalysis::of(text);
        let mut is_first = is_body;
        for call in &template.calls {
            let place = Location::new(source, range.start + call.span.start..range.start + call.span.end);
            let written = text.get(call.span.clone()).unwrap_or_default();
            let inside = |used: &&TemplateUse| call.span.contains(&used.span.start);
            match &*call.name {
                "role" => {
                    let opens = is_first && is_blank(&text[..call.span.start]);
                    let is_assistant = written.contains("assistant");
                    if is_assistant {
                        self.assistant.get_or_insert_with(|| place.clone());
                    }
                    if is_body {
                        self.ends_with_assistant = is_assistant.then(|| place.clone());
                    }
                    if !opens {
                        self.second.get_or_insert(place);
                    }
                }
                "link" => {
                    self.second.get_or_insert_with(|| place.clone());
                    self.blocks.push((Kind::Link, place));
                }
                _ => {
                    let target = template.attached.iter().find(inside);
                    let file = target.and_then(|target| prompt.attachment(&target.name));
                    let kind = file.map_or(Kind::Resource, |file| kind_of(&file.mime_type));
                    self.second.get_or_insert_with(|| place.clone());
                    self.blocks.push((kind, place));
                }
            }
            is_first = false;
        }
    }
}

fn kind_of(mime_type: &MimeType) -> Kind {
    if mime_type.is_image() {
        Kind::Image
    } else if mime_type.is_audio() {
        Kind::Audio
    } else {
        Kind::Resource
    }
}

/// Returns whether the text before a call produces no output: it is empty, or the braces of the call.
fn is_blank(before: &str) -> bool {
    before.trim().trim_end_matches("{{-").trim_end_matches("{{").trim().is_empty()
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::find;

    #[test]
    fn native_files_belong_to_known_clients() {
        for (index, files) in NATIVE_FILES.iter().enumerate() {
            assert!(find(files.client).is_some(), "{}", files.client);
            assert!(!NATIVE_FILES[..index].iter().any(|other| other.client == files.client), "{}", files.client);
            assert!(!files.folder.starts_with('/') && files.source.len() > 8, "{}", files.client);
        }
    }
}

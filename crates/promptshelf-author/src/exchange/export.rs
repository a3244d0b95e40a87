//! Exports a prompt as a file of another program.
//!
//! These programs support text with placeholders and nothing else. Everything in a prompt that exceeds this is
//! reported as lost. To keep all of it, callers render the prompt with arguments and export the result.
//!
//! Text that the program would run, read or obey is found by [`active_parts`](super::active_parts).

use std::{fmt, ops::Range};

use promptshelf_core::{Argument, ArgumentType, BodyPiece, Outline, Prompt, Role, Words};
use promptshelf_source::syntax::{CLAUDE_CODE, CommandRules, OPENCODE, Placeholder};

use super::{
    active::{ActivePart, active_parts},
    scalar,
};

/// A format to export prompts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A command of Claude Code: `.claude/commands/NAME.md`.
    Claude,
    /// A command of Gemini CLI: `.gemini/commands/NAME.toml`.
    Gemini,
    /// An Agent Skill: `NAME/SKILL.md`.
    Skill,
    /// A prompt file of VS Code: `.github/prompts/NAME.prompt.md`.
    Vscode,
    /// A command of Cursor: `.cursor/commands/NAME.md`.
    Cursor,
    /// A command of OpenCode: `.opencode/commands/NAME.md`.
    Opencode,
    /// A workflow of Windsurf: `.windsurf/workflows/NAME.md`.
    Windsurf,
}

impl ExportFormat {
    fn thing(self) -> &'static str {
        match self {
            ExportFormat::Claude => "commands of Claude Code",
            ExportFormat::Gemini => "commands of Gemini CLI",
            ExportFormat::Skill => "skills",
            ExportFormat::Vscode => "prompt files of VS Code",
            ExportFormat::Cursor => "commands of Cursor",
            ExportFormat::Opencode => "commands of OpenCode",
            ExportFormat::Windsurf => "workflows of Windsurf",
        }
    }

    fn rules(self) -> Option<&'static CommandRules> {
        match self {
            ExportFormat::Claude => Some(&CLAUDE_CODE),
            ExportFormat::Opencode => Some(&OPENCODE),
            _ => None,
        }
    }

    /// Placeholders of this format in a text that cannot be escaped; each gets a space after its first character.
    fn unescapable(self) -> &'static [&'static str] {
        match self {
            ExportFormat::Gemini => &["{{args}}"],
            ExportFormat::Vscode => &["${"],
            _ => &[],
        }
    }
}

/// A part of a prompt that a file of another program lacks, or has in another way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// The kind, a sentence that is true of any prompt.
    pub what: String,
    /// The part: names of arguments or keys, or a place in the file.
    pub subject: Option<String>,
}

impl Loss {
    /// Creates a loss.
    pub fn new(what: impl Into<String>, subject: impl Into<Option<String>>) -> Loss {
        Loss { what: what.into(), subject: subject.into() }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Some(subject) => write!(f, "{}: {subject}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The result of an export.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The path inside a project.
    pub path: String,
    /// The content.
    pub text: String,
    /// Everything that was lost or changed.
    pub losses: Vec<Loss>,
    /// The reasons why the file does not do what the prompt does, such as questions that it cannot ask.
    pub incomplete: Vec<String>,
    /// The parts of the text that the program would run or read. Files that the prompt attaches are not among them.
    pub active: Vec<ActivePart>,
    /// The paths of attached files, which the text refers to.
    pub attached: Vec<String>,
}

const EDITOR: &[&str] = &[
    "selection",
    "selectedText",
    "file",
    "fileBasename",
    "fileDirname",
    "fileBasenameNoExtension",
    "workspaceFolder",
    "workspaceFolderBasename",
];

/// Converts a prompt to another format. With `rendered`, that is the text, and the file has no arguments.
///
/// ```
/// use promptshelf_author::{ExportFormat, export};
/// use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};
///
/// let hello = PromptDefinition::template("hello", "Hello, {{ name }}!").argument(ArgumentDefinition::new("name"));
/// let catalog = check(Definitions { prompts: vec![hello.into()], ..Definitions::default() }, None).catalog;
/// let exported = export(catalog.find("hello").unwrap(), ExportFormat::Gemini, None);
/// assert_eq!(exported.path, ".gemini/commands/hello.toml");
/// assert!(exported.text.contains("Hello, {{args}}!"));
/// ```
#[must_use]
pub fn export(prompt: &Prompt, format: ExportFormat, rendered: Option<Vec<BodyPiece>>) -> Exported {
    let is_rendered = rendered.is_some();
    let outline = match rendered {
        Some(pieces) => Outline { pieces, losses: Vec::new() },
        None => prompt.outline(),
    };
    let used = |argument: &&Argument| outline.pieces.iter().any(|it| it.argument() == Some(argument.name()));
    let arguments: Vec<&Argument> = prompt.arguments().iter().filter(used).collect();
    let mut work = Work { format, input: Input::of(format, &arguments), arguments, losses: Vec::new() };
    for loss in &outline.losses {
        work.lose(loss.message.clone(), loss.location.to_string());
    }
    let body = work.body(&outline.pieces);
    work.lose_details(prompt, is_rendered);
    let incomplete = if prompt.definition().steps.is_empty() || is_rendered {
        Vec::new()
    } else {
        vec![format!("it asks questions in steps, and {} cannot ask", format.thing())]
    };
    let name = prompt.name().as_str();
    let description = prompt.description().or(prompt.title()).unwrap_or(name);
    let (path, text) = match format {
        ExportFormat::Claude => {
            let keys = work.argument_keys();
            let text = format!("---\ndescription: {}\n{keys}---\n\n{body}\n", scalar(description));
            (format!(".claude/commands/{name}.md"), text)
        }
        ExportFormat::Vscode => {
            let text = format!("---\ndescription: {}\n---\n\n{body}\n", scalar(description));
            (format!(".github/prompts/{name}.prompt.md"), text)
        }
        ExportFormat::Opencode | ExportFormat::Windsurf => {
            let folder = if format == ExportFormat::Opencode { ".opencode/commands" } else { ".windsurf/workflows" };
            (format!("{folder}/{name}.md"), format!("---\ndescription: {}\n---\n\n{body}\n", scalar(description)))
        }
        // The whole file is the text: Cursor has no front matter.
        ExportFormat::Cursor => (format!(".cursor/commands/{name}.md"), format!("{body}\n")),
        ExportFormat::Skill => {
            // A skill's name contains no `_`, and equals the name of its folder (Agent Skills specification).
            let name = name.replace('_', "-").to_lowercase();
            let text = format!("---\nname: {}\ndescription: {}\n---\n\n{body}\n", scalar(&name), scalar(description));
            (format!("{name}/SKILL.md"), text)
        }
        ExportFormat::Gemini => {
            let string = |text: &str| toml::Value::from(text).to_string();
            let text =
                format!("description = {}\nprompt = {}\n", string(description), multi_line(&format!("{body}\n")));
            (format!(".gemini/commands/{name}.toml"), text)
        }
    };
    let mut active = active_parts(format, &body);
    let attached: Vec<String> = outline.pieces.iter().filter_map(attached).collect();
    active.retain(|part| !attached.iter().any(|path| part.text == format!("@{path}") || part.text == *path));
    Exported { path, text, losses: work.losses, incomplete, active, attached }
}

fn attached(piece: &BodyPiece) -> Option<String> {
    match piece {
        BodyPiece::Attach { path, .. } => Some(path.clone()),
        _ => None,
    }
}

/// Returns a multi-line TOML string, in which only quotation marks and backslashes need escapes.
fn multi_line(text: &str) -> String {
    let mut out = String::from("\"\"\"\n");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\"\"\""
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Each argument becomes a word in brackets, and nobody fills it in.
    Words,
    /// The argument with this index gets the whole text after the command; others become words in brackets.
    Text(usize),
    Positions,
    Names,
    Asked,
}

impl Input {
    fn of(format: ExportFormat, arguments: &[&Argument]) -> Input {
        let mut required = arguments.iter().enumerate().filter(|(_, argument)| argument.required());
        let only_required = required.next().filter(|_| required.next().is_none());
        match format {
            ExportFormat::Vscode => Input::Asked,
            ExportFormat::Skill | ExportFormat::Cursor | ExportFormat::Windsurf => Input::Words,
            _ if arguments.len() == 1 => Input::Text(0),
            ExportFormat::Gemini => Input::Words,
            ExportFormat::Claude | ExportFormat::Opencode => match only_required {
                // Its words would be taken for the optional arguments.
                Some((index, argument)) if is_free_text(argument) => Input::Text(index),
                _ if format == ExportFormat::Claude && arguments.iter().all(|it| can_be_placeholder(it.name())) => {
                    Input::Names
                }
                _ => Input::Positions,
            },
        }
    }
}

fn is_free_text(argument: &Argument) -> bool {
    let has_blank = |text: &str| text.contains(char::is_whitespace);
    match argument.choices() {
        [] => argument.kind() == ArgumentType::String,
        choices => choices.iter().any(|choice| has_blank(&choice.value)),
    }
}

fn can_be_placeholder(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with("ARGUMENTS")
}

/// The text of a file under construction, with the bytes of its placeholders.
#[derive(Default)]
struct Body {
    text: String,
    placeholders: Vec<Range<usize>>,
}

impl Body {
    fn place(&mut self, placeholder: &str) {
        let start = self.text.len();
        self.text.push_str(placeholder);
        self.placeholders.push(start..self.text.len());
    }

    fn replace(&mut self, index: usize, placeholder: &str) {
        let span = self.placeholders[index].clone();
        self.text.replace_range(span.clone(), placeholder);
        self.placeholders[index].end = span.start + placeholder.len();
        for other in self.placeholders.iter_mut().filter(|other| other.start >= span.end) {
            *other = other.start - span.len() + placeholder.len()..other.end - span.len() + placeholder.len();
        }
    }

    fn insert(&mut self, at: usize, text: &str) {
        self.text.insert_str(at, text);
        for span in self.placeholders.iter_mut().filter(|span| span.start >= at) {
            *span = span.start + text.len()..span.end + text.len();
        }
    }

    fn paragraph(&mut self) {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
    }
}

struct Work<'p> {
    format: ExportFormat,
    input: Input,
    arguments: Vec<&'p Argument>,
    losses: Vec<Loss>,
}

impl Work<'_> {
    fn lose(&mut self, what: impl Into<String>, subject: impl Into<Option<String>>) {
        let loss = Loss::new(what, subject);
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    fn body(&mut self, pieces: &[BodyPiece]) -> String {
        let has_dialogue = pieces.iter().any(|piece| matches!(piece, BodyPiece::Role(Role::Assistant)));
        if has_dialogue {
            self.lose("all messages become one text; their roles become lines in it", None);
        }
        let mut out = Body::default();
        let mut speaker = Role::User;
        let mut said = Role::User;
        for piece in pieces {
            let is_blank = matches!(piece, BodyPiece::Text(text) if text.trim().is_empty());
            if speaker != said && !is_blank && !matches!(piece, BodyPiece::Role(_)) {
                out.text.push_str(if speaker == Role::User { "User:\n\n" } else { "Assistant:\n\n" });
                said = speaker;
            }
            match piece {
                BodyPiece::Text(text) => {
                    let is_new = out.text.is_empty() || out.text.ends_with("\n\n");
                    out.text.push_str(if is_new { text.trim_start_matches('\n') } else { text });
                }
                BodyPiece::Argument(name) | BodyPiece::Words(Words { argument: name, .. }) => {
                    self.argument(name, &mut out);
                }
                BodyPiece::Role(role) => {
                    out.paragraph();
                    speaker = *role;
                }
                BodyPiece::Attach { path, .. } => {
                    self.lose("files become references, and must exist in the project", format!("`{path}`"));
                    out.text.push_str(if out.text.is_empty() || out.text.ends_with(char::is_whitespace) {
                        ""
                    } else {
                        "\n"
                    });
                    out.place(&match self.format {
                        ExportFormat::Claude | ExportFormat::Opencode | ExportFormat::Cursor => format!("@{path}"),
                        ExportFormat::Gemini => format!("@{{{path}}}"),
                        ExportFormat::Vscode | ExportFormat::Skill | ExportFormat::Windsurf => {
                            format!("[{path}]({path})")
                        }
                    });
                    out.text.push('\n');
                }
            }
        }
        self.escape(&mut out);
        let mut body = out.text.trim().to_owned();
        if self.format == ExportFormat::Gemini && self.arguments.len() > 1 {
            let names: Vec<String> = self.arguments.iter().map(|it| in_brackets(it.name())).collect();
            body.push_str(&format!("\n\n{}: {{{{args}}}}", names.join(" ")));
        }
        body
    }

    fn argument(&mut self, name: &str, out: &mut Body) {
        let Some(index) = self.arguments.iter().position(|argument| argument.name() == name) else { return };
        let argument = self.arguments[index];
        let shown = format!("`{name}`");
        match (self.input, self.format) {
            (Input::Text(only), _) if only == index && self.format == ExportFormat::Gemini => out.place("{{args}}"),
            (Input::Text(only), _) if only == index => out.place("$ARGUMENTS"),
            (Input::Text(only), _) => {
                let text = self.arguments[only].name();
                match argument.default_value().map(str::to_owned) {
                    Some(default) => {
                        self.lose(
                            format!("optional arguments have their default, because the whole text is `{text}`"),
                            shown,
                        );
                        out.text.push_str(&default);
                    }
                    None => {
                        self.lose(
                            format!("optional arguments become words in brackets, because the whole text is `{text}`"),
                            shown,
                        );
                        out.text.push_str(&in_brackets(name));
                    }
                }
            }
            (Input::Positions | Input::Names, _) => {
                let is_last = index + 1 == self.arguments.len();
                let takes_rest = is_last && self.format.rules().is_some_and(|rules| rules.last_takes_rest);
                if is_free_text(argument) && !takes_rest {
                    let what = format!("values of several words need quotation marks in {}", self.format.thing());
                    self.lose(what, shown);
                }
                match self.input {
                    Input::Names => out.place(&format!("${name}")),
                    _ => match self.format.rules().and_then(|rules| rules.word(index)) {
                        Some(word) => out.place(&word),
                        None => out.text.push_str(&in_brackets(name)),
                    },
                }
            }
            (Input::Asked, _) if EDITOR.contains(&name) => out.place(&format!("${{{name}}}")),
            (Input::Asked, _) => {
                let about = argument.description().or(argument.title()).unwrap_or_default();
                let about: String = about.chars().filter(|c| !matches!(c, '{' | '}' | '\n' | '\r')).collect();
                if about.is_empty() {
                    out.place(&format!("${{input:{name}}}"));
                } else {
                    out.place(&format!("${{input:{name}:{about}}}"));
                }
            }
            (Input::Words, ExportFormat::Gemini) => {
                self.lose(
                    "arguments become words in brackets, and all values are entered together: commands of Gemini CLI have one argument",
                    shown,
                );
                out.text.push_str(&in_brackets(name));
            }
            (Input::Words, format) => {
                self.lose(format!("arguments become words in brackets, because {} have none", format.thing()), shown);
                out.text.push_str(&in_brackets(name));
            }
        }
    }

    /// Changes the text so that the program finds the meant placeholders and no others.
    fn escape(&mut self, body: &mut Body) {
        for word in self.format.unescapable() {
            let mut at = 0;
            while let Some(start) = body.text[at..].find(word).map(|offset| at + offset) {
                at = start + 1;
                if !body.placeholders.iter().any(|span| span.contains(&start)) {
                    body.insert(at, " ");
                    self.lose(
                        format!("`{word}` in the text is written with a space, because it has a meaning there"),
                        None,
                    );
                }
            }
        }
        let Some(rules) = self.format.rules() else { return };
        let names: Vec<&str> = match self.input {
            Input::Names => self.arguments.iter().map(|argument| argument.name()).collect(),
            _ => Vec::new(),
        };
        for (span, _) in dollars(rules, &body.text, &names).iter().filter(|(_, is_escaped)| *is_escaped) {
            if !body.placeholders.iter().any(|meant| meant.end == span.end) {
                self.lose("a backslash before a placeholder is lost", format!("`{}`", &body.text[span.clone()]));
            }
        }
        // Each round mends one place, from left to right; what is before it stays as it is.
        let mut done = 0;
        let mut tried = vec![0_u8; body.placeholders.len()];
        loop {
            let found = dollars(rules, &body.text, &names);
            let is_meant = |span: &Range<usize>| body.placeholders.contains(span);
            let stray = found.iter().find(|(span, is_escaped)| !is_meant(span) && !is_escaped && span.end > done);
            let missing = body.placeholders.iter().enumerate().position(|(index, span)| {
                let is_found = || found.iter().any(|(it, _)| it == span);
                body.text[span.clone()].starts_with('$') && tried[index] < 2 && !is_found()
            });
            match (stray.map(|(span, _)| span.clone()), missing) {
                (Some(span), missing) if missing.is_none_or(|it| span.end <= body.placeholders[it].start) => {
                    done = self.disarm(body, &span, rules);
                }
                (_, Some(missing)) => {
                    tried[missing] += 1;
                    self.separate(body, missing, rules);
                }
                (Some(span), None) => done = self.disarm(body, &span, rules),
                (None, None) => break,
            }
        }
    }

    /// Makes text that looks like a placeholder to text; returns the end of the changed part.
    fn disarm(&mut self, body: &mut Body, span: &Range<usize>, rules: &CommandRules) -> usize {
        let has_backslash = body.text[..span.start].ends_with('\\');
        if rules.has_escapes && !has_backslash {
            body.insert(span.start, "\\");
            return span.end + 1;
        }
        let word = body.text[span.clone()].to_owned();
        self.lose(
            format!(
                "placeholders in the text are written with a space, because {} would replace them",
                self.format.thing()
            ),
            format!("`{word}`"),
        );
        body.insert(span.start + 1, " ");
        span.end + 1
    }

    fn separate(&mut self, body: &mut Body, index: usize, rules: &CommandRules) {
        let span = body.placeholders[index].clone();
        let word = body.text[span.clone()].to_owned();
        let is_escaped = body.text[..span.start].bytes().rev().take_while(|byte| *byte == b'\\').count() == 1;
        let argument = self.arguments.iter().enumerate().position(|(index, argument)| match self.input {
            Input::Names => word[1..] == *argument.name(),
            _ => rules.word(index).as_ref() == Some(&word),
        });
        match argument.filter(|_| rules.has_indexes) {
            _ if is_escaped && rules.has_escapes => {
                let what =
                    format!("a backslash before an argument is doubled, because {} need it", self.format.thing());
                self.lose(what, format!("`{word}`"));
                body.insert(span.start, "\\");
            }
            // The text after it does not matter there.
            Some(argument) => body.replace(index, &format!("$ARGUMENTS[{argument}]")),
            None => {
                self.lose(
                    format!("a space is added after an argument, because {} need it", self.format.thing()),
                    format!("`{word}`"),
                );
                body.insert(span.end, " ");
            }
        }
    }

    fn argument_keys(&self) -> String {
        let hinted: Vec<String> = match self.input {
            Input::Text(only) => self.arguments.get(only).map(|it| hint(it)).into_iter().collect(),
            _ => self.arguments.iter().map(|it| hint(it)).collect(),
        };
        if hinted.is_empty() {
            return String::new();
        }
        let hint = format!("argument-hint: {}\n", scalar(&hinted.join(" ")));
        match self.input {
            Input::Names => {
                let names: Vec<&str> = self.arguments.iter().map(|argument| argument.name()).collect();
                format!("{hint}arguments: [{}]\n", names.join(", "))
            }
            _ => hint,
        }
    }

    fn lose_details(&mut self, prompt: &Prompt, is_rendered: bool) {
        for argument in self.arguments.clone() {
            let definition = argument.definition();
            let is_filled_in =
                matches!(self.input, Input::Text(only) if self.arguments[only].name() != argument.name());
            let details = [
                ("type", argument.kind() != ArgumentType::String),
                ("default", definition.default.is_some() && !is_filled_in),
                ("enum", !definition.choices.is_empty()),
                ("pattern", definition.constraints().pattern.is_some()),
                ("complete", definition.completion.is_some()),
            ];
            let lost: Vec<&str> = details.iter().filter(|(_, is_there)| *is_there).map(|(key, _)| *key).collect();
            if !lost.is_empty() {
                let subject = format!("`{}` ({})", argument.name(), lost.join(", "));
                self.lose("properties of arguments have no equivalent", subject);
            }
        }
        let definition = prompt.definition();
        if definition.access.is_some() {
            self.lose("`access` has no equivalent: everyone with the file can use the prompt", None);
        }
        let keys = [
            ("title", prompt.title().is_some() && prompt.description().is_some()),
            ("icons", !prompt.icons().is_empty()),
            ("deprecated", prompt.deprecation().is_some()),
            ("version", definition.version.is_some()),
            ("tags", !prompt.tags().is_empty()),
            ("_meta", !definition.meta.is_empty()),
            ("steps", !definition.steps.is_empty() && !is_rendered),
            ("tests", !definition.tests.is_empty()),
        ];
        let keys = keys.iter().filter(|(_, it)| *it).map(|(key, _)| *key);
        let labels = prompt.labels().iter().map(|(label, _)| label.key);
        let lost: Vec<String> = keys.chain(labels).map(|key| format!("`{key}`")).collect();
        if !lost.is_empty() {
            self.lose("keys have no equivalent", lost.join(", "));
        }
    }
}

/// Returns the placeholders that begin with `$`, and whether each is escaped; also those inside of commands and paths,
/// which are replaced first.
fn dollars(rules: &CommandRules, text: &str, names: &[&str]) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    for (span, placeholder) in rules.placeholders(text, names) {
        match placeholder {
            Placeholder::Shell | Placeholder::File(_) => {
                let start = span.start + 1;
                let inner = dollars(rules, &text[start..span.end], names);
                found.extend(inner.into_iter().map(|(it, is_escaped)| (it.start + start..it.end + start, is_escaped)));
            }
            placeholder => found.push((span, matches!(placeholder, Placeholder::Escaped(_)))),
        }
    }
    found
}

/// Returns the word for an argument that its reader fills in. Not in angle brackets, which are the tags of `xml`.
fn in_brackets(name: &str) -> String {
    format!("[{name}]")
}

fn hint(argument: &Argument) -> String {
    if argument.required() { format!("<{}>", argument.name()) } else { format!("[{}]", argument.name()) }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};
    use proptest::prelude::*;

    use super::*;

    /// Exports pieces with arguments, each of them required or not.
    fn exported(format: ExportFormat, arguments: &[(&str, bool)], pieces: Vec<BodyPiece>) -> Exported {
        let mut prompt = PromptDefinition::template("p", "-").description("d");
        for (name, required) in arguments {
            let argument = ArgumentDefinition { required: *required, ..ArgumentDefinition::new(*name) };
            prompt = prompt.argument(argument);
        }
        let catalog = check(Definitions { prompts: vec![prompt.into()], ..Definitions::default() }, None).catalog;
        export(catalog.find("p").expect("a prompt"), format, Some(pieces))
    }

    fn text(text: &str) -> BodyPiece {
        BodyPiece::Text(text.to_owned())
    }

    fn argument(name: &str) -> BodyPiece {
        BodyPiece::Argument(name.to_owned())
    }

    fn body(exported: &Exported) -> &str {
        exported.text.split_once("---\n\n").map_or("", |(_, body)| body)
    }

    fn sent(rules: &CommandRules, body: &str, names: &[&str], words: &[&str]) -> String {
        let mut out = String::new();
        let mut done = 0;
        for (span, placeholder) in rules.placeholders(body, names) {
            out.push_str(&body[done..span.start]);
            done = span.end;
            let word = match placeholder {
                Placeholder::All => Some(words.join(" ")),
                Placeholder::Word(index) => words.get(index).map(|word| (*word).to_owned()),
                Placeholder::Named(name) => {
                    names.iter().position(|known| *known == name).map(|index| words[index].to_owned())
                }
                Placeholder::Escaped(mark) => Some(body[span.clone()][mark..].to_owned()),
                _ => Some(body[span.clone()].to_owned()),
            };
            out.push_str(&word.unwrap_or_else(|| body[span].to_owned()));
        }
        out + &body[done..]
    }

    #[test]
    fn placeholders_are_those_of_the_client() {
        let three = [("pr", true), ("priority", true), ("who", false)];
        let pieces = || {
            let words = [
                text("Review PR #"),
                argument("pr"),
                text(" with "),
                argument("priority"),
                text(", "),
                argument("who"),
            ];
            words.to_vec()
        };
        let claude = exported(ExportFormat::Claude, &three, pieces());
        assert_eq!(body(&claude), "Review PR #$pr with $priority, $who\n");
        assert!(claude.text.contains("arguments: [pr, priority, who]\n"), "{}", claude.text);
        let names = ["pr", "priority", "who"];
        let words = ["456", "high", "alice"];
        assert_eq!(sent(&CLAUDE_CODE, body(&claude), &names, &words), "Review PR #456 with high, alice\n");
        assert!(claude.losses.iter().any(|loss| loss.what.contains("several words")), "{:?}", claude.losses);
        let opencode = exported(ExportFormat::Opencode, &three, pieces());
        assert_eq!(body(&opencode), "Review PR #$1 with $2, $3\n");
        assert_eq!(sent(&OPENCODE, body(&opencode), &[], &words), "Review PR #456 with high, alice\n");

        // One required text gets everything.
        let reply = [("message", true), ("tone", false)];
        let pieces = vec![text("Reply, "), argument("tone"), text(":\n\n"), argument("message")];
        let reply = exported(ExportFormat::Claude, &reply, pieces);
        assert_eq!(body(&reply), "Reply, [tone]:\n\n$ARGUMENTS\n");
        assert!(reply.text.contains("argument-hint: \"<message>\"\n") && !reply.text.contains("\narguments:"));
    }

    #[test]
    fn words_in_brackets_are_no_tags() {
        let pieces = || vec![text("<message>\n"), argument("message"), text("\n</message>")];
        for format in [ExportFormat::Cursor, ExportFormat::Skill, ExportFormat::Windsurf] {
            let file = exported(format, &[("message", true)], pieces());
            assert!(file.text.contains("<message>\n[message]\n</message>"), "{}", file.text);
        }
        let file = exported(ExportFormat::Gemini, &[("a", true), ("b", true)], vec![argument("a"), argument("b")]);
        assert!(file.text.contains("[a][b]\n\n[a] [b]: {{args}}"), "{}", file.text);
    }

    #[test]
    fn dollars_of_the_text_stay() {
        let written = |format, words: &str| {
            let file = exported(format, &[("x", true)], vec![text(words), argument("x")]);
            (body(&file).trim_end().to_owned(), file.losses.len())
        };
        for (words, claude) in [
            ("$5.00 ", r"\$5.00 $ARGUMENTS"),
            ("$2M {print $1} ", r"$2M {print \$1} $ARGUMENTS"),
            ("$ARGUMENTS[0] $HOME ", r"\$ARGUMENTS[0] $HOME $ARGUMENTS"),
            (r"\\$2M \$HOME \\\$b \\", r"\\$2M \$HOME \\\$b \\$ARGUMENTS"),
        ] {
            assert_eq!(written(ExportFormat::Claude, words), (claude.to_owned(), 0));
        }
        // Claude Code has no way to write these.
        for (words, claude) in [
            (r"\$5.00 ", r"\$5.00 $ARGUMENTS"),
            (r"\$2M ", r"\$2M $ARGUMENTS"),
            (r"\\$5.00 ", r"\\$ 5.00 $ARGUMENTS"),
            (r"\\\$5.00 ", r"\\\$ 5.00 $ARGUMENTS"),
            (r"C:\", r"C:\\$ARGUMENTS"),
        ] {
            assert_eq!(written(ExportFormat::Claude, words), (claude.to_owned(), 1));
        }
        assert_eq!(written(ExportFormat::Opencode, "$5.00 ").0, "$ 5.00 $ARGUMENTS");
        assert_eq!(written(ExportFormat::Gemini, "{{args}} ").1, 1);
        // Inside of a command.
        let file =
            exported(ExportFormat::Claude, &[("x", true)], vec![text("!`awk '{print $1}' "), argument("x"), text("`")]);
        assert_eq!(body(&file), "!`awk '{print \\$1}' $ARGUMENTS`\n");
        // A placeholder next to text that changes its meaning.
        let two = [("a", true), ("b", true)];
        let file = exported(
            ExportFormat::Claude,
            &two,
            vec![argument("a"), text("z"), argument("b"), text("[0] C:\\"), argument("a")],
        );
        assert_eq!(sent(&CLAUDE_CODE, body(&file), &["a", "b"], &["ONE", "TWO"]), "ONEzTWO[0] C:\\\\ONE\n");
    }

    proptest! {
        // req: S-245
        #[test]
        fn client_sends_what_the_prompt_says(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "$", "1", "0", "9", "ARGUMENTS", "[0]", "[", "]", "a", "b", "_", "$1", "$a", "$ARGUMENTS", "\\", " ", "x", ".", "\n", "{A}", "{B}",
                ]),
                1..12,
            ),
        ) {
            let mut pieces = vec![text("x ")];
            let mut expected = "x ".to_owned();
            for part in &parts {
                match *part {
                    "{A}" | "{B}" => {
                        let name = if *part == "{A}" { "a" } else { "b" };
                        pieces.push(argument(name));
                        expected.push_str(if name == "a" { "ONE" } else { "TWO" });
                    }
                    other => {
                        pieces.push(text(other));
                        expected.push_str(other);
                    }
                }
            }
            pieces.extend([text(" "), argument("a"), text(" "), argument("b"), text(" x")]);
            expected.push_str(" ONE TWO x");
            let two = [("a", true), ("b", true)];
            let claude = exported(ExportFormat::Claude, &two, pieces.clone());
            let said = sent(&CLAUDE_CODE, body(&claude), &["a", "b"], &["ONE", "TWO"]);
            let is_lossy = claude.losses.iter().any(|loss| !loss.what.contains("several words"));
            prop_assert!(!is_lossy || parts.contains(&"\\"), "{:?}", claude.losses);
            // A message begins without empty lines.
            let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert!(is_lossy || plain(&said) == plain(&expected), "{said}: {}", body(&claude));
            let opencode = exported(ExportFormat::Opencode, &two, pieces);
            let said = sent(&OPENCODE, body(&opencode), &[], &["ONE", "TWO"]);
            let plain = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(plain(&said), plain(&expected), "{}", body(&opencode));
        }
    }
}

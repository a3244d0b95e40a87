//! Exports a prompt as a file of another program.
//!
//! These programs support text with placeholders and nothing else. Everything in a prompt that exceeds this is
//! reported as lost. To keep all of it, callers render the prompt with arguments and export the result.

use std::sync::Arc;

use promptshelf_core::{Argument, BodyPiece, Code, Diagnostic, Location, Prompt, Role, SourceText, Words};

use super::write::scalar;
use promptshelf_source::syntax::{CLAUDE_CODE, OPENCODE};

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

/// The result of an export.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The path inside a project.
    pub path: String,
    /// The content.
    pub text: String,
    /// Everything that was lost or changed.
    pub losses: Vec<Diagnostic>,
}

/// The highest positional placeholder of a command: `$9`.
const MAX_POSITIONS: usize = 9;

/// Variables that VS Code substitutes by itself, under the same names.
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
    let outline = match rendered {
        Some(pieces) => promptshelf_core::Outline { pieces, losses: Vec::new() },
        None => prompt.outline(),
    };
    let used = |argument: &&Argument| outline.pieces.iter().any(|it| it.argument() == Some(argument.name()));
    let arguments: Vec<&Argument> = prompt.arguments().iter().filter(used).collect();
    let source = Arc::clone(prompt.source());
    let mut work = Work { format, source, arguments, losses: outline.losses };
    let body = work.body(&outline.pieces);
    work.lose_details(prompt);
    let name = prompt.name().as_str();
    let description = prompt.description().or(prompt.title()).unwrap_or(name);
    let (path, text) = match format {
        ExportFormat::Claude => {
            let hint = work.hint();
            let hint = if hint.is_empty() { String::new() } else { format!("argument-hint: {}\n", scalar(&hint)) };
            let text = format!("---\ndescription: {}\n{hint}---\n\n{body}\n", scalar(description));
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
    Exported { path, text, losses: work.losses }
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

struct Work<'p> {
    format: ExportFormat,
    source: Arc<SourceText>,
    /// The arguments that the text uses, in order.
    arguments: Vec<&'p Argument>,
    losses: Vec<Diagnostic>,
}

impl Work<'_> {
    fn lose(&mut self, message: impl Into<String>) {
        let loss = Diagnostic::warning(Code::NotSupported, Location::file(&self.source), message);
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    fn body(&mut self, pieces: &[BodyPiece]) -> String {
        let has_dialogue = pieces.iter().any(|piece| matches!(piece, BodyPiece::Role(Role::Assistant)));
        if has_dialogue {
            self.lose("all messages become one text; their roles become lines in it");
        }
        let mut out = String::new();
        let mut speaker = Role::User;
        let mut said = Role::User;
        for piece in pieces {
            let is_blank = matches!(piece, BodyPiece::Text(text) if text.trim().is_empty());
            if speaker != said && !is_blank && !matches!(piece, BodyPiece::Role(_)) {
                out.push_str(if speaker == Role::User { "User:\n\n" } else { "Assistant:\n\n" });
                said = speaker;
            }
            match piece {
                BodyPiece::Text(text) => {
                    for special in self.special(text) {
                        self.lose(format!(
                            "`{special}` in the text has a special meaning in the target format, and cannot be escaped"
                        ));
                    }
                    out.push_str(if out.ends_with("\n\n") { text.trim_start_matches('\n') } else { text });
                }
                BodyPiece::Argument(name) | BodyPiece::Words(Words { argument: name, .. }) => {
                    let place = self.place(name);
                    out.push_str(&place);
                }
                BodyPiece::Role(role) => {
                    paragraph(&mut out);
                    speaker = *role;
                }
                BodyPiece::Attach { path, .. } => {
                    self.lose(format!("the attached file becomes a reference: `{path}` must exist in the project"));
                    out.push_str(if out.is_empty() || out.ends_with(char::is_whitespace) { "" } else { "\n" });
                    out.push_str(&match self.format {
                        ExportFormat::Claude | ExportFormat::Opencode | ExportFormat::Cursor => format!("@{path}"),
                        ExportFormat::Gemini => format!("@{{{path}}}"),
                        ExportFormat::Vscode | ExportFormat::Skill | ExportFormat::Windsurf => {
                            format!("[{path}]({path})")
                        }
                    });
                    out.push('\n');
                }
            }
        }
        let mut body = out.trim().to_owned();
        if self.format == ExportFormat::Gemini && self.arguments.len() > 1 {
            let names: Vec<String> = self.arguments.iter().map(|it| format!("<{}>", it.name())).collect();
            body.push_str(&format!("\n\n{}: {{{{args}}}}", names.join(" ")));
        }
        body
    }

    /// Returns the placeholder for an argument.
    fn place(&mut self, name: &str) -> String {
        let index = self.arguments.iter().position(|argument| argument.name() == name).unwrap_or_default();
        match self.format {
            ExportFormat::Claude | ExportFormat::Opencode if self.arguments.len() == 1 => "$ARGUMENTS".to_owned(),
            ExportFormat::Claude if index < MAX_POSITIONS => CLAUDE_CODE.word(index).unwrap_or_default(),
            ExportFormat::Opencode if index < MAX_POSITIONS => OPENCODE.word(index).unwrap_or_default(),
            ExportFormat::Gemini if self.arguments.len() == 1 => "{{args}}".to_owned(),
            ExportFormat::Vscode if EDITOR.contains(&name) => format!("${{{name}}}"),
            ExportFormat::Vscode => {
                let about = self.arguments[index].description().or(self.arguments[index].title()).unwrap_or_default();
                let about: String = about.chars().filter(|c| !matches!(c, '{' | '}' | '\n' | '\r')).collect();
                match about.is_empty() {
                    true => format!("${{input:{name}}}"),
                    false => format!("${{input:{name}:{about}}}"),
                }
            }
            ExportFormat::Gemini => {
                self.lose("a command of Gemini CLI has a single argument: all values are entered together, in order");
                format!("<{name}>")
            }
            ExportFormat::Claude | ExportFormat::Opencode => {
                self.lose(format!("a command has at most {MAX_POSITIONS} positional arguments; `{name}` becomes a word in angle brackets"));
                format!("<{name}>")
            }
            ExportFormat::Skill | ExportFormat::Cursor | ExportFormat::Windsurf => {
                let thing = match self.format {
                    ExportFormat::Skill => "skill",
                    ExportFormat::Cursor => "command of Cursor",
                    _ => "workflow",
                };
                self.lose(format!("a {thing} has no arguments: `{name}` becomes a word in angle brackets"));
                format!("<{name}>")
            }
        }
    }

    fn hint(&self) -> String {
        let word = |argument: &&Argument| match argument.required() {
            true => format!("<{}>", argument.name()),
            false => format!("[{}]", argument.name()),
        };
        self.arguments.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Reports the properties of arguments that the other format lacks.
    fn lose_details(&mut self, prompt: &Prompt) {
        for argument in self.arguments.clone() {
            let definition = argument.definition();
            let details = [
                ("type", argument.kind() != promptshelf_core::ArgumentType::String),
                ("default", definition.default.is_some()),
                ("enum", !definition.choices.is_empty()),
                ("pattern", definition.constraints().pattern.is_some()),
                ("complete", definition.completion.is_some()),
            ];
            let lost: Vec<&str> = details.iter().filter(|(_, is_there)| *is_there).map(|(key, _)| *key).collect();
            if !lost.is_empty() {
                self.lose(format!("lost properties of the argument `{}`: {}", argument.name(), lost.join(", ")));
            }
        }
        let definition = prompt.definition();
        if definition.access.is_some() {
            self.lose("`access` has no equivalent: everyone with the file can use the prompt".to_owned());
        }
        for (key, is_there) in [
            ("title", prompt.title().is_some()),
            ("icons", !prompt.icons().is_empty()),
            ("deprecated", prompt.deprecation().is_some()),
            ("version", definition.version.is_some()),
            ("tags", !prompt.tags().is_empty()),
            ("owners", !prompt.owners().is_empty()),
            ("collections", !prompt.collections().is_empty()),
            ("_meta", !definition.meta.is_empty()),
            ("steps", !definition.steps.is_empty()),
            ("tests", !definition.tests.is_empty()),
        ] {
            if is_there {
                self.lose(format!("`{key}` has no equivalent in the target format"));
            }
        }
    }

    /// Returns the parts of a text that the other program would expand.
    fn special(&self, text: &str) -> Vec<String> {
        let of =
            |words: &[&str]| words.iter().filter(|word| text.contains(**word)).map(|word| (*word).to_owned()).collect();
        match self.format {
            ExportFormat::Claude => CLAUDE_CODE.special(text, &[]).into_iter().map(str::to_owned).collect(),
            ExportFormat::Opencode => OPENCODE.special(text, &[]).into_iter().map(str::to_owned).collect(),
            ExportFormat::Gemini => of(&["{{args}}", "!{", "@{"]),
            ExportFormat::Vscode => {
                let mut found: Vec<String> = of(&["${input:"]);
                found.extend(EDITOR.iter().map(|name| format!("${{{name}}}")).filter(|place| text.contains(&**place)));
                found
            }
            ExportFormat::Skill | ExportFormat::Cursor | ExportFormat::Windsurf => Vec::new(),
        }
    }
}

fn paragraph(out: &mut String) {
    let end = out.trim_end().len();
    out.truncate(end);
    if !out.is_empty() {
        out.push_str("\n\n");
    }
}

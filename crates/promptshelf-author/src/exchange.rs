//! Import of prompts from other programs' files, and export to them.
//!
//! An import converts a file to prompt files of our format, an export converts a prompt to a file of another program.
//! Both return a diagnostic, with its location, for everything that is lost or changed; nothing is dropped silently.
//! Reading and writing files is up to the caller.

mod active;
mod csv;
mod dotprompt;
mod export;
mod fabric;
mod goose;
mod handlebars;
mod langfuse;
mod native;
mod picoschema;
mod promptlayer;
mod prompty;
mod template;
mod write;

use std::{collections::BTreeMap, sync::Arc};

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Code, Diagnostic, SourceText, TemplateAnalysis, TestDefinition,
};

pub use self::{
    active::{ActiveKind, ActivePart, active_parts, active_parts_of_skill},
    export::{ExportFormat, Exported, Loss, export},
};
use promptshelf_source::syntax::{Entry, Node, Notes, ScalarKind, Value, argument_name};

macro_rules! formats {
    ($($variant:ident = $name:literal, $about:literal,)+) => {
        /// A format to import prompts from.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ImportFormat { $(#[doc = $about] $variant,)+ }

        impl ImportFormat {
            /// All formats.
            pub const ALL: &'static [ImportFormat] = &[$(ImportFormat::$variant),+];

            /// Returns the format's identifier, such as `prompts-chat`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(ImportFormat::$variant => $name,)+ }
            }

            /// Returns the format's description for people.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self { $(ImportFormat::$variant => $about,)+ }
            }
        }
    };
}

formats! {
    Claude = "claude", "Commands of Claude Code (.claude/commands/*.md)",
    Opencode = "opencode", "Commands of OpenCode (.opencode/commands/*.md)",
    Codex = "codex", "Prompts of Codex (.codex/prompts/*.md)",
    Cursor = "cursor", "Commands of Cursor (.cursor/commands/*.md)",
    Gemini = "gemini", "Commands of Gemini CLI (.gemini/commands/*.toml)",
    Vscode = "vscode", "Prompt files of VS Code (*.prompt.md)",
    Github = "github", "Prompts of GitHub Models (*.prompt.yml)",
    Skill = "skill", "Agent Skills (SKILL.md)",
    Dotprompt = "dotprompt", "Google's dotprompt (*.prompt)",
    Prompty = "prompty", "Microsoft's prompty (*.prompty)",
    Goose = "goose", "Recipes of goose (*.yaml, *.json)",
    Fabric = "fabric", "Patterns of Fabric (NAME/system.md)",
    Langfuse = "langfuse", "Responses of Langfuse's API (*.json)",
    Promptlayer = "promptlayer", "Responses of PromptLayer's API (*.json)",
    PromptsChat = "prompts-chat", "The table of prompts.chat (*.csv)",
}

/// The result of an import.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The prompt files; empty if the input could not be parsed.
    pub files: Vec<ImportedFile>,
    /// Everything that was lost or changed. An error means that a part of the input could not be parsed.
    pub losses: Vec<Diagnostic>,
}

/// A prompt file in our format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    /// The path inside a library.
    pub path: String,
    /// The content.
    pub text: String,
}

/// Names of Markdown files that are about a project and are no prompts, in lower case.
const DOCUMENTS: &[&str] =
    &["readme", "license", "changelog", "contributing", "security", "code_of_conduct", "agents", "claude", "gemini"];

impl ImportFormat {
    /// Checks that a file can have this format, wherever it lies.
    ///
    /// ```
    /// use promptshelf_author::ImportFormat;
    ///
    /// assert!(ImportFormat::Gemini.can_have("commands/plan.toml", "prompt = 'Plan'").is_ok());
    /// assert_eq!(ImportFormat::Gemini.can_have("extension.json", "{}"), Err("the format gemini has files *.toml".to_owned()));
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    pub fn can_have(self, path: &str, text: &str) -> Result<(), String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lower = name.to_ascii_lowercase();
        let (endings, keys): (&[&str], &[&str]) = match self {
            ImportFormat::Claude | ImportFormat::Opencode | ImportFormat::Codex | ImportFormat::Cursor => {
                (&[".md"], &[])
            }
            ImportFormat::Gemini => (&[".toml"], &["prompt"]),
            ImportFormat::Vscode => (&[".prompt.md"], &[]),
            ImportFormat::Github => (&[".prompt.yml", ".prompt.yaml"], &[]),
            ImportFormat::Skill => (&["skill.md"], &[]),
            ImportFormat::Dotprompt => (&[".prompt"], &[]),
            ImportFormat::Prompty => (&[".prompty"], &[]),
            ImportFormat::Goose => (&[".yaml", ".yml", ".json"], &["instructions", "prompt"]),
            ImportFormat::Fabric => (&["system.md"], &[]),
            ImportFormat::Langfuse => (&[".json"], &["prompt"]),
            ImportFormat::Promptlayer => (&[".json"], &["prompt_template"]),
            ImportFormat::PromptsChat => (&[".csv"], &["act"]),
        };
        if !endings.iter().any(|ending| lower.ends_with(ending)) {
            let endings = endings.iter().map(|ending| {
                if ending.starts_with('.') { format!("*{ending}") } else { ending.replace("skill.md", "SKILL.md") }
            });
            return Err(format!("the format {} has files {}", self.as_str(), endings.collect::<Vec<_>>().join(", ")));
        }
        let other = ImportFormat::of(path, text).filter(|other| *other != self);
        if let Some(other) = other
            && self.is_command()
            && !(other.is_command() || other == ImportFormat::Fabric)
        {
            return Err(format!("it has the format {}", other.as_str()));
        }
        let is_document = DOCUMENTS.iter().any(|document| lower.split('.').next() == Some(document));
        if is_document && ImportFormat::of(path, text).is_none() {
            return Err("it documents a project; name the file itself to import it".to_owned());
        }
        if !keys.is_empty() && !keys.iter().any(|key| text.contains(key)) {
            return Err(format!("it has no key `{}`", keys.join("` or `")));
        }
        Ok(())
    }

    /// Whether its files are Markdown like any other; only their folder tells whose they are.
    fn is_command(self) -> bool {
        use ImportFormat::{Claude, Codex, Cursor, Opencode};
        matches!(self, Claude | Opencode | Codex | Cursor)
    }

    /// Detects the format of a file by its path and, if that is ambiguous, by its text.
    ///
    /// ```
    /// use promptshelf_author::ImportFormat;
    ///
    /// assert_eq!(ImportFormat::of("greet.prompt", ""), Some(ImportFormat::Dotprompt));
    /// assert_eq!(ImportFormat::of("x/.gemini/commands/a.toml", ""), Some(ImportFormat::Gemini));
    /// assert_eq!(ImportFormat::of("notes.md", "hello"), None);
    /// ```
    #[must_use]
    pub fn of(path: &str, text: &str) -> Option<ImportFormat> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_in = |folder: &str| path.starts_with(&format!("{folder}/")) || path.contains(&format!("/{folder}/"));
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if name == "SKILL.md" {
            return Some(ImportFormat::Skill);
        }
        if ends(&[".prompt.md"]) {
            return Some(ImportFormat::Vscode);
        }
        if ends(&[".prompt.yml", ".prompt.yaml"]) {
            return Some(ImportFormat::Github);
        }
        if ends(&[".md"]) {
            let homes = [
                (".claude/commands", ImportFormat::Claude),
                (".opencode/command", ImportFormat::Opencode),
                (".opencode/commands", ImportFormat::Opencode),
                (".codex/prompts", ImportFormat::Codex),
                (".cursor/commands", ImportFormat::Cursor),
            ];
            let home = homes.iter().find(|(home, _)| is_in(home)).map(|(_, format)| *format);
            return home.or_else(|| (name == "system.md").then_some(ImportFormat::Fabric));
        }
        if ends(&[".toml"]) {
            return is_in(".gemini/commands").then_some(ImportFormat::Gemini);
        }
        if ends(&[".prompt"]) {
            return Some(ImportFormat::Dotprompt);
        }
        if ends(&[".prompty"]) {
            return Some(ImportFormat::Prompty);
        }
        if ends(&[".csv"]) {
            let header = text.lines().next().unwrap_or_default().replace('"', "").to_lowercase();
            let has = |column: &str| header.split(',').any(|it| it.trim_start_matches('\u{feff}').trim() == column);
            return (has("act") && has("prompt")).then_some(ImportFormat::PromptsChat);
        }
        if ends(&[".json"]) && text.contains("\"prompt_template\"") {
            return Some(ImportFormat::Promptlayer);
        }
        let has = |key: &str| {
            let quoted = format!("\"{key}\"");
            text.contains(&quoted) || text.lines().any(|line| line.starts_with(&format!("{key}:")))
        };
        if ends(&[".json", ".yaml", ".yml"]) && has("title") && (has("instructions") || has("prompt")) {
            return Some(ImportFormat::Goose);
        }
        (ends(&[".json"]) && has("name") && has("prompt")).then_some(ImportFormat::Langfuse)
    }
}

/// Converts a file to prompt files in our format.
///
/// ```
/// use promptshelf_author::{ImportFormat, import};
/// use promptshelf_core::SourceText;
///
/// let file = SourceText::new("hello.prompt", "---\ndescription: Greets\n---\nHello, {{name}}!\n");
/// let imported = import(&file, ImportFormat::Dotprompt);
/// assert_eq!(imported.files[0].path, "hello.md");
/// assert!(imported.files[0].text.ends_with("Hello, {{ name }}!\n"));
/// ```
#[must_use]
pub fn import(source: &Arc<SourceText>, format: ImportFormat) -> Imported {
    import_all(&[(Arc::clone(source), format)]).pop().unwrap_or_default()
}

/// Converts files that belong together, as [`import`] does. A prompt declares what its partials use, too.
#[must_use]
pub fn import_all(sources: &[(Arc<SourceText>, ImportFormat)]) -> Vec<Imported> {
    let mut all: Vec<(Vec<Foreign>, Vec<Diagnostic>)> = sources.iter().map(|(it, format)| read(it, *format)).collect();
    let partials: BTreeMap<String, String> = all
        .iter()
        .flat_map(|(prompts, _)| prompts)
        .filter(|prompt| prompt.is_partial)
        .map(|partial| (format!("{}.md", partial.path), partial.template.clone()))
        .collect();
    let imported = all.iter_mut().map(|(prompts, losses)| {
        prompts.iter_mut().for_each(|prompt| declare_used(prompt, &partials));
        Imported { files: prompts.iter().map(write::file).collect(), losses: std::mem::take(losses) }
    });
    imported.collect()
}

fn read(source: &Arc<SourceText>, format: ImportFormat) -> (Vec<Foreign>, Vec<Diagnostic>) {
    let mut notes = Notes::new(source);
    let prompts = match format {
        ImportFormat::Dotprompt => dotprompt::read(&mut notes),
        ImportFormat::Prompty => prompty::read(&mut notes),
        ImportFormat::Goose => goose::read(&mut notes),
        ImportFormat::Fabric => fabric::read(&mut notes),
        ImportFormat::Langfuse => langfuse::read(&mut notes),
        ImportFormat::Promptlayer => promptlayer::read(&mut notes),
        ImportFormat::PromptsChat => csv::read(&mut notes),
        other => native::read(other, &mut notes),
    };
    let mut losses = notes.diagnostics;
    losses.sort_by_key(|loss| loss.location.span().start);
    (prompts, losses)
}

#[derive(Debug, Default)]
struct Foreign {
    /// The path of the file without its extension.
    path: String,
    /// Whether it is a partial: a text without keys.
    is_partial: bool,
    title: Option<String>,
    description: Option<String>,
    version: Option<String>,
    tags: Vec<String>,
    arguments: Vec<ArgumentDefinition>,
    tests: Vec<TestDefinition>,
    template: String,
}

/// The most levels of partials in partials, and the largest text with all of them.
const MAX_INCLUDED: usize = 8;
const MAX_EXPANDED: usize = 1 << 20;

/// Returns a template with the texts of its partials, so that each name is seen in the scope of its include.
fn expanded(template: &str, partials: &BTreeMap<String, String>, depth: usize) -> String {
    let mut text = template.to_owned();
    for partial in TemplateAnalysis::of(template).partials.iter().rev() {
        let start = template[..partial.span.start].rfind("{%");
        let end = template[partial.span.end..].find("%}").map(|end| partial.span.end + end + "%}".len());
        if let (Some(start), Some(end), Some(inner)) = (start, end, partials.get(&partial.name)) {
            let inner = if depth < MAX_INCLUDED { expanded(inner, partials, depth + 1) } else { String::new() };
            if text.len() + inner.len() <= MAX_EXPANDED {
                text.replace_range(start..end, &inner);
            }
        }
    }
    text
}

/// Declares the names that a template and its partials use and its file does not declare. A name of a condition or a
/// loop can be left out.
fn declare_used(prompt: &mut Foreign, partials: &BTreeMap<String, String>) {
    if prompt.is_partial {
        return;
    }
    let known = prompt.arguments.len();
    let template = expanded(&prompt.template, partials, 0);
    for used in TemplateAnalysis::of(&template).variables {
        let (before, after) = template.split_at(used.span.start);
        let is_declared = prompt.arguments[..known].iter().any(|argument| argument.name == used.name);
        if is_declared || argument_name(&used.name).as_ref() != Some(&used.name) {
            continue;
        }
        let starts = |at: usize, word| before[at..].trim_start_matches(['{', '%', '-', ' ']).starts_with(word);
        let statement = before.rfind("{%").filter(|at| before.rfind("{{").is_none_or(|tag| tag < *at));
        // The value of a partial's name is used as it is.
        let statement = statement.filter(|at| !starts(*at, "with "));
        let is_list = statement.is_some_and(|at| starts(at, "for "));
        let has_parts = after[used.name.len()..].starts_with(['.', '[']);
        let kind = match (has_parts, is_list) {
            (true, _) => ArgumentType::Json,
            (false, true) => ArgumentType::List,
            (false, false) => ArgumentType::String,
        };
        let is_new = !prompt.arguments.iter().any(|argument| argument.name == used.name);
        if is_new {
            prompt.arguments.push(ArgumentDefinition::new(used.name.as_str()).required());
        }
        for argument in prompt.arguments[known..].iter_mut().filter(|argument| argument.name == used.name) {
            argument.required &= statement.is_none();
            if argument.kind != ArgumentType::Json && kind != ArgumentType::String {
                argument.kind = kind;
            }
        }
    }
}

fn typed(node: &Node) -> (ArgumentType, String) {
    let kind = match &node.value {
        Value::Scalar(scalar) => match scalar.kind {
            ScalarKind::Boolean => ArgumentType::Boolean,
            ScalarKind::Integer => ArgumentType::Integer,
            ScalarKind::Float => ArgumentType::Number,
            ScalarKind::Text | ScalarKind::Null => ArgumentType::String,
        },
        Value::List(_) | Value::Mapping(_) => ArgumentType::Json,
    };
    (kind, node.text().map_or_else(|| node.to_json().to_string(), str::to_owned))
}

/// Returns the entries of a mapping; empty for other values.
fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Mapping(entries) => entries,
        _ => &[],
    }
}

fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    entries(node).iter().find(|entry| entry.key == key).map(|entry| &entry.node).filter(|node| !node.is_null())
}

fn text_of(node: &Node, key: &str) -> Option<String> {
    get(node, key)?.text().map(|text| text.trim_end().to_owned())
}

/// Adds a warning for every key without an equivalent in MCP.
fn lose_others(node: &Node, known: &[&str], notes: &mut Notes<'_>) {
    for entry in entries(node).iter().filter(|entry| !known.contains(&&*entry.key) && !entry.node.is_null()) {
        let message = format!("`{}` has no equivalent in a prompt and is omitted", entry.key);
        notes.warning(Code::NotSupported, &entry.key_span, message);
    }
}

/// Converts a title to a file name: lower-case letters, digits and `-`.
fn slug(words: &str) -> String {
    let mut slug = String::new();
    for c in words.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            slug.push(c.to_ascii_lowercase());
        } else if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug: String = slug.trim_matches(['-', '_']).chars().take(60).collect();
    if slug.is_empty() { "prompt".to_owned() } else { slug.trim_end_matches('-').to_owned() }
}

/// Returns the file's name without folders and extension.
fn stem<'p>(path: &'p str, ending: &str) -> &'p str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(ending).unwrap_or(name)
}

/// Warns about a role that MCP does not have. Its text becomes one of the user.
fn lose_role(role: &str, span: &std::ops::Range<usize>, notes: &mut Notes<'_>) {
    let message = format!("MCP has no role `{role}`; the text becomes a message of the user");
    notes.warning(Code::NotSupported, span, message);
}

//! Import of prompts from other programs' files, and export to them.
//!
//! An import converts a file to prompt files of our format, an export converts a prompt to a file of another program.
//! Both return a diagnostic, with its location, for everything that is lost or changed; nothing is dropped silently.
//! Reading and writing files is up to the caller.

mod active;
mod export;
mod handlebars;
mod langfuse;
mod native;
mod promptlayer;
mod prompty;
mod template;

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    ops::Range,
    sync::Arc,
};

use promptshelf_core::{
    ArgumentDefinition, ArgumentType, Choice, Code, Constraints, Diagnostic, Role, SourceText, TemplateAnalysis,
    TestDefinition,
};
use promptshelf_source::syntax::{
    Entry, Node, Notes, Pieces, ScalarKind, Value, argument_name, front_matter, parse_markdown, parse_yaml,
    placeholders,
};

pub use self::{
    active::{ActiveKind, ActivePart, active_parts, active_parts_of_skill},
    export::{ExportFormat, Exported, Loss, export},
};

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
        Imported { files: prompts.iter().map(file_write).collect(), losses: std::mem::take(losses) }
    });
    imported.collect()
}

fn read(source: &Arc<SourceText>, format: ImportFormat) -> (Vec<Foreign>, Vec<Diagnostic>) {
    let mut notes = Notes::new(source);
    let prompts = match format {
        ImportFormat::Dotprompt => read_dotprompt(&mut notes),
        ImportFormat::Prompty => prompty::read(&mut notes),
        ImportFormat::Goose => read_goose(&mut notes),
        ImportFormat::Fabric => read_fabric(&mut notes),
        ImportFormat::Langfuse => langfuse::read(&mut notes),
        ImportFormat::Promptlayer => promptlayer::read(&mut notes),
        ImportFormat::PromptsChat => read_csv(&mut notes),
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

/// Returns the type that a value has to have for a comparison with a literal, from the text after its name.
fn compared_kind(after: &str) -> ArgumentType {
    let after = after.trim_start();
    let operator = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|operator| after.starts_with(operator));
    let Some(literal) = operator.map(|operator| after[operator.len()..].trim_start()) else {
        return ArgumentType::String;
    };
    let word = literal.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
    if matches!(word, "true" | "false" | "True" | "False") {
        return ArgumentType::Boolean;
    }
    let number = literal.strip_prefix('-').unwrap_or(literal);
    if number.starts_with(|c: char| c.is_ascii_digit()) { ArgumentType::Number } else { ArgumentType::String }
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
            (false, false) => compared_kind(&after[used.name.len()..]),
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

// Imports patterns of Fabric: `patterns/NAME/system.md`.
// Source: Fabric's documentation. A pattern is plain Markdown, named by its folder; `{{input}}` is the user's input,
// other `{{name}}` are variables, and `{{plugin:…}}` is expanded by the program. Without `{{input}}`, the input
// follows the text.

fn read_fabric(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let text = notes.source.text.trim_start_matches('\u{feff}').to_owned();
    let start = notes.source.text.len() - text.len();
    let mut pieces = Pieces::default();
    placeholders(&text, start..notes.source.text.len(), &mut pieces, notes);
    let folder = notes.source.path.rsplit('/').nth(1).unwrap_or("pattern");
    let (pieces, mut arguments) = pieces.into_parts();
    let mut template = template::of(&pieces);
    let described = |argument: promptshelf_core::ArgumentDefinition| {
        argument.description("The text that the pattern is applied to")
    };
    match arguments.iter().position(|argument| argument.name == "input") {
        Some(index) => arguments[index] = described(arguments[index].clone()),
        None => {
            template = format!("{}\n\n{{{{ input }}}}\n", template.trim_end());
            arguments.push(described(promptshelf_core::ArgumentDefinition::new("input").required()));
        }
    }
    for argument in arguments.iter_mut().filter(|argument| argument.name == "input") {
        argument.kind = promptshelf_core::ArgumentType::Text;
    }
    let path = slug(folder);
    let description = Some(format!("Fabric's pattern {}", path.replace(['_', '-'], " ")));
    vec![Foreign { path, description, arguments, template, tags: vec!["fabric".to_owned()], ..Foreign::default() }]
}

// Imports Google's dotprompt files: `*.prompt`.
// Source: dotprompt's documentation and `parse.ts` of its implementation. Lines of `#` and empty lines before the front
// matter, such as a licence, are skipped. YAML front matter with `input.schema` and `input.default`, a Handlebars body,
// partials in files that begin with `_`, and `name.variant.prompt` for variants.

fn read_dotprompt(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let (keys, body) = parts(notes);
    if notes.has_errors() {
        return Vec::new();
    }
    let stem = stem(&notes.source.path, ".prompt").to_owned();
    let mut prompt = Foreign { path: slug(&stem), is_partial: stem.starts_with('_'), ..Foreign::default() };
    if prompt.is_partial {
        prompt.path = format!("_{}", slug(&stem));
    }
    if let Some(keys) = &keys {
        lose_others(keys, &["name", "description", "input"], notes);
        if let Some(name) = text_of(keys, "name") {
            prompt.path = slug(&name);
        }
        prompt.description = text_of(keys, "description");
        if let Some(input) = get(keys, "input") {
            lose_others(input, &["schema", "default"], notes);
            if let Some(schema) = get(input, "schema") {
                prompt.arguments = arguments_picoschema(schema, notes);
            }
            for entry in get(input, "default").map(entries).unwrap_or_default() {
                let (kind, value) = typed(&entry.node);
                match prompt.arguments.iter_mut().find(|argument| argument.name == entry.key) {
                    Some(argument) => {
                        argument.default = Some(value);
                        argument.required = false;
                    }
                    None => prompt.arguments.push(ArgumentDefinition {
                        kind,
                        ..ArgumentDefinition::new(entry.key.clone()).default_value(value)
                    }),
                }
            }
        }
    }
    if prompt.is_partial && !prompt.arguments.is_empty() {
        notes.warning(
            Code::NotSupported,
            &(0..0),
            "a partial cannot declare arguments; it uses those of the including prompt",
        );
    }
    prompt.template = handlebars::translate(body, &prompt.arguments, notes);
    vec![prompt]
}

/// Returns the front matter and the text, without the comments before them.
fn parts(notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    let text = &notes.source.text;
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let is_skipped = |line: &&str| line.starts_with('#') || line.trim().is_empty();
    let header: usize = text[start..].split_inclusive('\n').take_while(is_skipped).map(str::len).sum();
    match front_matter(&text[start + header..]).filter(|_| header > 0) {
        Some((keys, body)) => {
            let shifted = |range: Range<usize>| start + header + range.start..start + header + range.end;
            (parse_yaml(shifted(keys), notes), shifted(body))
        }
        None => parse_markdown(notes),
    }
}

// Imports recipes of goose, in YAML or JSON.
// Source: goose's documentation, *Recipe Reference Guide*. `title`, `description`, `instructions` and `prompt` in
// Jinja syntax, and `parameters` with `key`, `input_type`, `requirement`, `default` and `options`.

const NUMBER: &str = r"^-?\d+(\.\d+)?$";

fn read_goose(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let Some(recipe) = parse_yaml(0..notes.source.text.len(), notes) else { return Vec::new() };
    lose_others(&recipe, &["title", "description", "instructions", "prompt", "parameters", "version"], notes);
    let instructions = text_of(&recipe, "instructions");
    let prompt = text_of(&recipe, "prompt");
    let template = match (&instructions, prompt) {
        (Some(instructions), Some(prompt)) => format!("{instructions}\n{}{prompt}\n", template::role(Role::User)),
        (Some(one), None) => one.clone(),
        (None, Some(one)) => one,
        (None, None) => {
            notes.error(Code::MissingKey, &(0..0), "a recipe needs `instructions` or `prompt`");
            return Vec::new();
        }
    };
    if let Some(node) = get(&recipe, "instructions") {
        lose_role("system", &node.span.clone(), notes);
    }
    let parameters = get(&recipe, "parameters").map(Node::items).unwrap_or_default();
    let mut arguments: Vec<ArgumentDefinition> =
        parameters.iter().filter_map(|parameter| argument(parameter, notes)).collect();
    arguments.iter_mut().for_each(|argument| keep_text(argument, &template));
    let path = stem(&notes.source.path, ".yaml").trim_end_matches(".yml").trim_end_matches(".json");
    vec![Foreign {
        path: slug(path),
        title: text_of(&recipe, "title"),
        description: text_of(&recipe, "description"),
        arguments,
        template,
        ..Foreign::default()
    }]
}

/// Keeps the meaning of conditions: all parameters of goose are text, so a condition compares them with texts.
fn keep_text(argument: &mut ArgumentDefinition, template: &str) {
    let is_plain =
        |before: &str, after: &str| before.trim_end().ends_with("{{") && after.trim_start().starts_with("}}");
    let analysis = TemplateAnalysis::of(template);
    let mut uses = analysis.variables.iter().filter(|used| used.name == argument.name);
    if uses.all(|used| is_plain(&template[..used.span.start], &template[used.span.end..])) {
        return;
    }
    match argument.kind {
        ArgumentType::Boolean => {
            let choice = |value: &str| Choice { value: value.to_owned(), title: None };
            argument.choices = vec![choice("true"), choice("false")];
        }
        ArgumentType::Number => {
            argument.constraints =
                Some(Box::new(Constraints { pattern: Some(NUMBER.to_owned()), ..Constraints::default() }));
        }
        _ => return,
    }
    argument.kind = ArgumentType::String;
}

fn argument(parameter: &Node, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let Some(key) = text_of(parameter, "key") else {
        notes.warning(Code::MissingKey, &parameter.span, "a parameter without `key` is omitted");
        return None;
    };
    let input = get(parameter, "input_type");
    let kind = match input.and_then(Node::text).unwrap_or("string") {
        "number" => ArgumentType::Number,
        "boolean" => ArgumentType::Boolean,
        "date" => ArgumentType::Date,
        "file" => {
            let span = input.map_or(parameter.span.clone(), |node| node.span.clone());
            let message = format!("`{key}` was the path of a file to read; now it is the text itself");
            notes.warning(Code::NotSupported, &span, message);
            ArgumentType::Text
        }
        _ => ArgumentType::String,
    };
    let options = get(parameter, "options").map(Node::items).unwrap_or_default();
    let choice = |node: &Node| node.text().map(|value| Choice { value: value.to_owned(), title: None });
    let default = text_of(parameter, "default").filter(|default| !default.is_empty());
    Some(ArgumentDefinition {
        description: text_of(parameter, "description"),
        required: text_of(parameter, "requirement").is_none_or(|it| it != "optional") && default.is_none(),
        kind,
        choices: options.iter().filter_map(choice).collect(),
        default,
        ..ArgumentDefinition::new(key)
    })
}

// Imports the table of prompts.chat: `act`, `prompt`, and optional columns.
// Source: the project's contribution guide. `act` is the title, `for_devs` is `TRUE` or `FALSE`, `type` is `TEXT` or
// `STRUCTURED`, and `contributor` a user name. `${name:default}` in a prompt is a variable.

const KNOWN_KEYS: &[&str] = &["act", "prompt", "for_devs", "type", "contributor"];

fn read_csv(notes: &mut Notes<'_>) -> Vec<Foreign> {
    let text = notes.source.text.clone();
    let mut reader = ::csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let columns: Vec<String> = match reader.headers() {
        Ok(headers) => headers.iter().map(|it| it.trim_start_matches('\u{feff}').trim().to_lowercase()).collect(),
        Err(error) => {
            notes.error(Code::Syntax, &(0..0), format!("cannot read the table: {error}"));
            return Vec::new();
        }
    };
    let column = |name: &str| columns.iter().position(|known| known == name);
    let (Some(act), Some(prompt)) = (column("act"), column("prompt")) else {
        notes.error(Code::MissingKey, &(0..0), "the table needs the columns `act` and `prompt`");
        return Vec::new();
    };
    for other in columns.iter().filter(|column| !KNOWN_KEYS.contains(&&***column)) {
        notes.warning(Code::NotSupported, &(0..0), format!("the column `{other}` has no equivalent and is omitted"));
    }
    let mut prompts = Vec::new();
    let mut taken: HashMap<String, usize> = HashMap::new();
    let is_cut = is_cut(&text);
    let mut records = reader.records().peekable();
    while let Some(record) = records.next() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let at = error.position().map_or(0, |at| usize::try_from(at.byte()).unwrap_or(0));
                notes.error(Code::Syntax, &(at..at), format!("cannot read this row: {error}"));
                break;
            }
        };
        let at = record.position().map_or(0, |at| usize::try_from(at.byte()).unwrap_or(0));
        if is_cut && records.peek().is_none() {
            let message = "the quotation mark of this row is not closed: the file was cut, or a `\"` is missing";
            notes.error(Code::Syntax, &(at..at), message);
            break;
        }
        let (title, text) = (record.get(act).unwrap_or_default().trim(), record.get(prompt).unwrap_or_default());
        if title.is_empty() || text.trim().is_empty() {
            notes.warning(Code::EmptyPrompt, &(at..at), "a row without a title or a prompt is omitted");
            continue;
        }
        let mut path = slug(title);
        let count = taken.entry(path.clone()).and_modify(|count| *count += 1).or_insert(1);
        if *count > 1 {
            path = format!("{path}-{count}");
            notes.warning(
                Code::DuplicateName,
                &(at..at),
                format!("duplicate title `{title}`: this row becomes `{path}`"),
            );
        }
        let value = |name: &str| column(name).and_then(|index| record.get(index)).unwrap_or_default();
        let mut tags = Vec::new();
        if value("for_devs").eq_ignore_ascii_case("true") {
            tags.push("for-developers".to_owned());
        }
        if value("type").eq_ignore_ascii_case("structured") {
            tags.push("structured".to_owned());
        }
        let by = Some(value("contributor")).filter(|by| !by.is_empty());
        let (pieces, arguments) = scan(text).into_parts();
        prompts.push(Foreign {
            path,
            title: Some(title.to_owned()),
            description: Some(by.map_or_else(|| format!("Acts as {title}"), |by| format!("Acts as {title} (by {by})"))),
            tags,
            arguments,
            template: template::of(&pieces),
            ..Foreign::default()
        });
    }
    prompts
}

/// Whether a table ends within quotation marks: a row that is added becomes a part of the last one.
fn is_cut(table: &str) -> bool {
    let rows =
        |table: &str| ::csv::ReaderBuilder::new().flexible(true).from_reader(table.as_bytes()).into_records().count();
    rows(&format!("{table}\nadded")) == rows(table)
}

fn scan(text: &str) -> Pieces {
    let mut pieces = Pieces::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let close = rest[start..].find('}').map(|length| start + length);
        let variable = close.and_then(|close| {
            let (name, default) = rest[start + 2..close].split_once(':').unwrap_or((&rest[start + 2..close], ""));
            Some((argument_name(name)?, default, close + 1))
        });
        let Some((name, default, end)) = variable else {
            pieces.text(&rest[..start + 2]);
            rest = &rest[start + 2..];
            continue;
        };
        pieces.text(&rest[..start]);
        pieces.argument(&name, |argument: ArgumentDefinition| match default.trim() {
            "" => argument.required(),
            default => argument.default_value(default),
        });
        rest = &rest[end..];
    }
    pieces.text(rest);
    pieces
}

// Converts Picoschema, or a JSON Schema in its place, to arguments.
// Source: dotprompt's documentation, *Picoschema*. `name?: type, description`; `name(array, description): type`, and
// likewise `enum` and `object`; `(*)` is a wildcard for further names.

fn arguments_picoschema(schema: &Node, notes: &mut Notes<'_>) -> Vec<ArgumentDefinition> {
    if let Some(properties) = get(schema, "properties") {
        let required = get(schema, "required").map(Node::items).unwrap_or_default();
        let required: Vec<&str> = required.iter().filter_map(Node::text).collect();
        let each = entries(properties).iter();
        return each.filter_map(|entry| json_schema(entry, required.contains(&&*entry.key), notes)).collect();
    }
    if !matches!(schema.value, Value::Mapping(_)) {
        notes.warning(
            Code::NotSupported,
            &schema.span,
            "a schema that is referenced by name is not resolved; declare the arguments",
        );
        return Vec::new();
    }
    entries(schema).iter().filter_map(|entry| pico(entry, notes)).collect()
}

fn pico(entry: &Entry, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let (name, detail) = match entry.key.split_once('(') {
        Some((name, detail)) => (name, Some(detail.trim_end_matches(')'))),
        None => (&*entry.key, None),
    };
    if name.is_empty() {
        notes.warning(Code::NotSupported, &entry.key_span, "wildcard arguments have no equivalent and are omitted");
        return None;
    }
    let (name, required) = name.strip_suffix('?').map_or((name, true), |name| (name, false));
    let mut argument = named(name, entry, notes)?;
    argument.required = required;
    let (kind, description) = match detail.or_else(|| entry.node.text()) {
        Some(words) => words.split_once(',').map_or((words, ""), |(kind, rest)| (kind, rest)),
        None => ("object", ""),
    };
    argument.description = Some(description.trim()).filter(|description| !description.is_empty()).map(Into::into);
    match kind.trim() {
        "enum" => argument.choices = choices(&entry.node),
        "array" => {
            let of = entry.node.text().map(|of| of.split(',').next().unwrap_or(of).trim());
            argument.kind = if of == Some("string") { ArgumentType::List } else { ArgumentType::Json };
        }
        kind => argument.kind = kind_of(kind, entry, notes),
    }
    Some(argument)
}

fn json_schema(entry: &Entry, required: bool, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let mut argument = named(&entry.key, entry, notes)?;
    argument.required = required;
    argument.title = text_of(&entry.node, "title");
    argument.description = text_of(&entry.node, "description");
    argument.default = text_of(&entry.node, "default");
    argument.choices = get(&entry.node, "enum").map(choices).unwrap_or_default();
    let kind = text_of(&entry.node, "type").unwrap_or_else(|| "string".to_owned());
    argument.kind = match &*kind {
        "array" if get(&entry.node, "items").and_then(|items| text_of(items, "type")).as_deref() == Some("string") => {
            ArgumentType::List
        }
        "array" => ArgumentType::Json,
        kind => kind_of(kind, entry, notes),
    };
    Some(argument)
}

fn named(name: &str, entry: &Entry, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let ours = argument_name(name);
    match &ours {
        None => {
            let message = format!("`{name}` is not a valid name of an argument and is omitted");
            notes.warning(Code::NotSupported, &entry.key_span, message);
        }
        Some(ours) if *ours != name => {
            let message = format!("the argument `{name}` is renamed to `{ours}`; the text still contains `{name}`");
            notes.warning(Code::NotSupported, &entry.key_span, message);
        }
        Some(_) => {}
    }
    ours.map(ArgumentDefinition::new)
}

fn kind_of(kind: &str, entry: &Entry, notes: &mut Notes<'_>) -> ArgumentType {
    match kind {
        "string" => ArgumentType::String,
        "integer" => ArgumentType::Integer,
        "number" => ArgumentType::Number,
        "boolean" => ArgumentType::Boolean,
        "object" | "any" | "null" => ArgumentType::Json,
        other => {
            let message = format!("unknown type `{other}`; any text is accepted");
            notes.warning(Code::NotSupported, &entry.node.span, message);
            ArgumentType::String
        }
    }
}

fn choices(node: &Node) -> Vec<Choice> {
    let texts = node.items().iter().filter_map(Node::text);
    texts.map(|text| Choice { value: text.to_owned(), title: None }).collect()
}

fn file_write(prompt: &Foreign) -> ImportedFile {
    let path = format!("{}.md", prompt.path);
    let body = prompt.template.trim_start_matches(['\n', '\r']).trim_end();
    if prompt.is_partial {
        return ImportedFile { path, text: format!("{body}\n") };
    }
    let mut text = "---\n".to_owned();
    let keys = [("title", &prompt.title), ("description", &prompt.description), ("version", &prompt.version)];
    for (key, value) in keys {
        if let Some(value) = value {
            line(&mut text, "", key, &scalar(value));
        }
    }
    if !prompt.tags.is_empty() {
        line(&mut text, "", "tags", &list(prompt.tags.iter().map(String::as_str)));
    }
    if !prompt.arguments.is_empty() {
        text.push_str("arguments:\n");
        prompt.arguments.iter().for_each(|argument| write_argument(&mut text, argument));
    }
    if !prompt.tests.is_empty() {
        text.push_str("tests:\n");
        prompt.tests.iter().for_each(|test| write_test(&mut text, test));
    }
    ImportedFile { path, text: format!("{text}---\n\n{body}\n") }
}

fn write_argument(text: &mut String, argument: &ArgumentDefinition) {
    line(text, "  - ", "name", &scalar(&argument.name));
    let mut put = |key: &str, value: &str| line(text, "    ", key, value);
    if let Some(title) = &argument.title {
        put("title", &scalar(title));
    }
    if let Some(description) = &argument.description {
        put("description", &scalar(description));
    }
    if argument.required {
        put("required", "true");
    }
    if argument.kind != ArgumentType::String {
        put("type", argument.kind.as_str());
    }
    if !argument.choices.is_empty() {
        put("enum", &list(argument.choices.iter().map(|choice| choice.value.as_str())));
    }
    if let Some(default) = &argument.default {
        put("default", &scalar(default));
    }
    if !argument.examples.is_empty() {
        put("examples", &list(argument.examples.iter().map(String::as_str)));
    }
    if let Some(pattern) = &argument.constraints().pattern {
        put("pattern", &scalar(pattern));
    }
    for (key, bound) in [("minimum", argument.constraints().minimum), ("maximum", argument.constraints().maximum)] {
        if let Some(bound) = bound {
            put(key, &bound.to_string());
        }
    }
}

/// Writes the parts of a test that other programs have, too: arguments and expected texts.
fn write_test(text: &mut String, test: &TestDefinition) {
    if test.arguments.is_empty() {
        line(text, "  - ", "arguments", "{}");
    } else {
        text.push_str("  - arguments:\n");
        for (name, value) in &test.arguments {
            line(text, "      ", name, &scalar(value));
        }
    }
    if !test.contains.is_empty() {
        line(text, "    ", "contains", &list(test.contains.iter().map(String::as_str)));
    }
}

fn line(text: &mut String, indent: &str, key: &str, value: &str) {
    // Writing to a string cannot fail.
    writeln!(text, "{indent}{key}: {value}").ok();
}

fn list<'v>(values: impl Iterator<Item = &'v str>) -> String {
    format!("[{}]", values.map(scalar).collect::<Vec<_>>().join(", "))
}

/// Returns a YAML scalar: plain if it is certainly read back as the same text, otherwise in double quotation marks.
/// Every JSON string is a YAML string.
fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '(' | ')' | ';' | '\'');
    let starts = text.starts_with(|c: char| c.is_alphabetic());
    let ends = text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | ')'));
    let lower = text.to_ascii_lowercase();
    let is_other = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*lower);
    if starts && ends && !is_other && text.chars().all(is_word) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_yaml_text_is_quoted() {
        for text in ["Fix it (now).", "a-b/c_d.e", "don't"] {
            assert_eq!(scalar(text), text);
        }
        for text in ["a: b", "true", "5", "#x", "", " a", "a ", "[x]", "a\nb", "{{ x }}", "\"", "x,y", "- a", "No"] {
            assert!(scalar(text).starts_with('"'), "{text}");
        }
    }
}

//! `promptshelf new`: creates a prompt file from a template. The new file passes `check` and `test`.

use std::{io::Write, path::Path};

use clap::{Args, ValueEnum};
use promptshelf_author::{portable, schema, starter};
use promptshelf_core::{PromptName, check};
use promptshelf_source::{EditError, EditableFolder, Files, Source as _, check_tree_path};
use serde_json::json;

use crate::{
    args::{LibraryOption, Words, words::NewPrompt},
    exit::{Exit, Failure},
    output::{Output, file_json},
};

const NEW_EXAMPLES: &str = "\
Examples:
  promptshelf new prompts code_review --from code
  promptshelf new prompts git/commit";

#[derive(Debug, Args)]
#[command(after_help = NEW_EXAMPLES)]
pub(crate) struct NewArguments {
    #[command(flatten)]
    pub(crate) words: Words<LibraryOption, NewPrompt>,

    /// The template
    #[arg(long = "from", value_name = "TEMPLATE", default_value = "text")]
    pub(crate) template: Template,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The template of a new prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// One message and one argument
    Text,
    /// A code review: choices, a default, and a value between fences
    Code,
    /// A conversation between user and assistant
    Conversation,
}

/// The path of the schema in a library. Files in folders that begin with a dot are never served.
const SCHEMA_PATH: &str = ".promptshelf/prompt.schema.json";

impl Template {
    fn name(self) -> &'static str {
        match self {
            Template::Text => "text",
            Template::Code => "code",
            Template::Conversation => "conversation",
        }
    }
}

pub(crate) fn run(arguments: &NewArguments) -> Result<(), Failure> {
    let folder = arguments.words.library.folder();
    crate::library::require_files(folder, "new")?;
    if !folder.is_dir() {
        return Err(Failure::new(Exit::Library, format!("the library {} is not a folder", folder.display()))
            .help("create the folder, or name another one before NAME"));
    }
    let name = arguments.words.name().strip_suffix(".md").unwrap_or(arguments.words.name());
    check_name(name)?;
    let file = format!("{name}.md");
    let path = folder.join(&file);
    let failed = |path: &Path, error: &EditError| {
        Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display()))
    };
    let called = name.replace('/', "-");
    if let Some(other) = present(folder, &called).filter(|other| *other != file) {
        let message = format!("the prompt of {} is called {called}", folder.join(other).display());
        return Err(Failure::new(Exit::Failed, message).help("choose another name, or edit the existing file"));
    }
    let to_root = "../".repeat(name.matches('/').count());
    let text = starter(arguments.template.name(), &title(name)).unwrap_or_default();
    let schema = format!("---\n# yaml-language-server: $schema={to_root}{SCHEMA_PATH}\n");
    let text = text.replacen("---\n", &schema, 1);
    let files = EditableFolder::local(folder).map_err(|error| failed(folder, &error.into()))?;
    files.create(&file, text.as_bytes()).map_err(|error| match error {
        EditError::Exists => Failure::new(Exit::Failed, format!("{} already exists", path.display()))
            .help("choose another name, or edit the existing file"),
        error => failed(&path, &error),
    })?;
    let schema = write_schema(&files);

    let mut output = Output::stdout();
    let shown = path.display().to_string();
    let shown = if arguments.json { json!({ "path": shown }).to_string() } else { output.line(&shown).into_owned() };
    writeln!(output.out, "{shown}")?;
    output.out.flush()?;
    schema.map_err(|error| {
        let schema = folder.join(SCHEMA_PATH);
        let message = format!(
            "{} was created, but the schema for editors was not: {} cannot be written: {error}",
            path.display(),
            schema.display()
        );
        let help = "the prompt works without it; editors use it to complete and explain keys";
        Failure::new(Exit::Failed, message).help(help)
    })
}

/// Returns the path of the prompt that has a name, or an alias of it.
fn present(folder: &Path, name: &str) -> Option<String> {
    let definitions = Files::folder(folder).lenient().read().ok()?.into_definitions();
    Some(check(definitions, None).catalog.find(name)?.source().path.clone())
}

/// Rejects names that the loader ignores, and names that some clients would change.
fn check_name(name: &str) -> Result<(), Failure> {
    let has_valid_parts = name.split('/').all(|part| !part.is_empty() && !part.starts_with(['_', '.']));
    let is_valid = PromptName::new(name.replace('/', "-")).is_ok_and(|name| name.is_portable())
        && has_valid_parts
        && !name.eq_ignore_ascii_case("readme")
        && !name.ends_with("/readme");
    if let (true, Err(reason)) = (is_valid, check_tree_path(&format!("{name}.md"))) {
        let message = format!("`{name}` cannot be the name of a file: {reason}");
        return Err(Failure::new(Exit::Usage, message).help("choose another name"));
    }
    if is_valid {
        Ok(())
    } else {
        let parts: Option<Vec<String>> = name.split('/').map(portable).collect();
        let near = parts.map(|parts| parts.join("/")).filter(|near| near != name && check_name(near).is_ok());
        let near = near.map(|near| format!("such as `{near}`: ")).unwrap_or_default();
        Err(Failure::new(Exit::Usage, format!("`{name}` is not a portable prompt name"))
            .help(format!("{near}use lower-case letters, digits, `-` and single `_`; `/` creates folders")))
    }
}

/// Returns the title for a name: `git/commit_message` becomes `Git commit message`.
fn title(name: &str) -> String {
    let words = name.replace(['/', '-', '_'], " ");
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Writes the schema that the first line of the file refers to, unless it is up to date.
fn write_schema(files: &EditableFolder) -> Result<(), EditError> {
    let schema = format!("{}\n", file_json(&schema::prompt()));
    if files.read(SCHEMA_PATH).is_ok_and(|current| current == schema.as_bytes()) {
        return Ok(());
    }
    files.write(SCHEMA_PATH, schema.as_bytes())
}

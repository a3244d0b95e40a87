//! `promptshelf new`: a prompt file to begin with, which passes `check` and `test`.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use promptshelf_author::schema;
use promptshelf_core::PromptName;

use crate::{
    args::author::{NewArguments, Template},
    exit::{Exit, Failure},
    output::{Output, pretty_json},
};

/// The schema's place in a library; what begins with a dot is never served.
const SCHEMA: &str = ".promptshelf/prompt.schema.json";

impl Template {
    fn text(self) -> &'static str {
        match self {
            Template::Text => include_str!("new/text.md"),
            Template::Code => include_str!("new/code.md"),
            Template::Conversation => include_str!("new/conversation.md"),
        }
    }
}

pub(crate) fn run(arguments: &NewArguments) -> Result<(), Failure> {
    let folder = arguments.library.folder();
    if !folder.is_dir() {
        return Err(Failure::new(Exit::Library, format!("{} is no folder", folder.display()))
            .help("name the library's folder with -l, or make it first"));
    }
    let name = arguments.name.strip_suffix(".md").unwrap_or(&arguments.name);
    check_name(name)?;
    let path = folder.join(format!("{name}.md"));
    let wrong = |error: io::Error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display()));
    if let Some(around) = path.parent() {
        fs::create_dir_all(around).map_err(wrong)?;
    }
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::new(Exit::Failed, format!("{} is there already", path.display()))
                .help("choose another name, or edit that file"),
            _ => wrong(error),
        })?;
    let up = "../".repeat(name.matches('/').count());
    let text = arguments.template.text().replace("SCHEMA", &format!("{up}{SCHEMA}")).replace("TITLE", &title(name));
    file.write_all(text.as_bytes()).map_err(wrong)?;
    write_schema(folder)?;

    let mut paper = Output::stdout();
    let shown = paper.line(&path.display().to_string()).into_owned();
    writeln!(paper.out, "{shown}")?;
    Ok(paper.out.flush()?)
}

/// Refuses names that would not become a prompt, or that clients would change.
fn check_name(name: &str) -> Result<(), Failure> {
    let parts_are_good = name.split('/').all(|part| !part.is_empty() && !part.starts_with(['_', '.']));
    let is_good = PromptName::new(name.replace('/', "-")).is_ok_and(|name| name.is_portable())
        && parts_are_good
        && !name.eq_ignore_ascii_case("readme")
        && !name.ends_with("/readme");
    match is_good {
        true => Ok(()),
        false => Err(Failure::new(Exit::Usage, format!("`{name}` is no name that every client takes"))
            .help("use lower-case letters, digits, `-` and single `_`; `/` makes folders")),
    }
}

/// `git/commit_message` becomes `Git commit message`.
fn title(name: &str) -> String {
    let words = name.replace(['/', '-', '_'], " ");
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Writes the schema that the file's first line names, where it is not there yet.
fn write_schema(folder: &Path) -> Result<(), Failure> {
    let path = folder.join(SCHEMA);
    let schema = format!("{}\n", pretty_json(&schema::prompt()));
    if fs::read_to_string(&path).is_ok_and(|before| before == schema) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, schema));
    written.map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be written: {error}", path.display())))
}

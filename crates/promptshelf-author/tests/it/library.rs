//! A library in a temporary folder, and the messages of its prompts.

use std::fs;

use promptshelf_core::{Argument, Catalog, ContentBlock, Diagnostic, Part, RawArguments, Role};
use promptshelf_source::{Files, Loader};
use tempfile::TempDir;

/// Loads a library of these files.
pub(crate) fn opened(files: &[(&str, &str)]) -> Loader {
    let folder = TempDir::new().expect("a folder");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder around it")).expect("folders");
        fs::write(path, text).expect("a file");
    }
    Loader::open(vec![Box::new(Files::folder(folder.path()))]).expect("it can be read")
}

pub(crate) fn lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

/// The messages of a prompt, a line each: the role, and the text or the file.
pub(crate) fn messages(catalog: &Catalog, name: &str, arguments: &[(&str, &str)]) -> Vec<String> {
    let prompt = catalog.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    let arguments = RawArguments::from_iter(arguments.iter().copied());
    let bound = prompt.bind(&arguments, 1 << 20).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    let parts = prompt.render(catalog.render_context(), &bound).expect("it renders");
    parts.iter().map(shown).collect()
}

fn shown(part: &Part) -> String {
    let Part::Message(message) = part else { return "a resource of the server".to_owned() };
    let role = if message.role == Role::User { "user" } else { "assistant" };
    match &message.content {
        ContentBlock::Text(text) => format!("{role}: {}", text.text),
        ContentBlock::Resource(resource) => format!("{role}: <{}>", resource.contents.uri),
        other => format!("{role}: [{}]", other.kind()),
    }
}

/// The arguments of a prompt, required ones with a `!`.
pub(crate) fn asks(catalog: &Catalog, name: &str) -> Vec<String> {
    let prompt = catalog.find(name).unwrap_or_else(|| panic!("there is no {name}"));
    let shown = |argument: &Argument| format!("{}{}", argument.name(), if argument.required() { "!" } else { "" });
    prompt.arguments().iter().map(shown).collect()
}

//! Opening a library for a command that prints a result and ends.
//!
//! `serve` builds its library itself: it adds settings, reloads and shutdown.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_core::nearest;
use promptshelf_server::Library;
use promptshelf_service::Rejection;
use promptshelf_source::Directory;

use crate::{
    exit::Failure,
    output::{Output, count},
    settings::ServerFileLocation,
};

/// Opens the library in `folder`.
pub(crate) fn open(folder: &Path) -> Result<Library, Failure> {
    let directory = Directory::new(folder);
    directory.grant_roots(granted_roots(None));
    Ok(Library::builder().source(directory).build()?)
}

/// The folders that the operator's `server.toml` grants to libraries. Mistakes in that file are reported by `serve` and
/// `check --config`, not by commands that only use a library; the valid entries of such a file still apply.
pub(crate) fn granted_roots(config: Option<&Path>) -> Vec<PathBuf> {
    let environment = |name: &str| std::env::var(name).ok();
    let file = ServerFileLocation::find(config, &environment).load();
    file.map(|mut file| file.granted_roots()).unwrap_or_default()
}

/// Notes on stderr that the library has errors, because the result then lacks some of its prompts.
pub(crate) fn note_errors(library: &Library, folder: &Path) {
    let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
    if errors > 0 {
        let mut stderr = Output::stderr();
        let folder = stderr.line(&folder.display().to_string()).into_owned();
        let found = count(errors, "error");
        writeln!(
            stderr.out,
            "note: {found} in the library, invalid prompts are left out; see `promptshelf check {folder}`"
        )
        .ok();
    }
}

/// Converts a rejection of a prompt, with a hint that can name any prompt, because the user owns the library.
pub(crate) fn rejected(rejection: Rejection, library: &Library, folder: &Path, name: &str) -> Failure {
    let catalog = library.catalog();
    let names = || catalog.prompts().iter().map(|prompt| prompt.name().as_str());
    let help = match &rejection {
        Rejection::UnknownPrompt { .. } => {
            note_errors(library, folder);
            Some(match nearest(name, names()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("`promptshelf list {}` lists the prompts", folder.display()),
            })
        }
        Rejection::InvalidArguments { .. } => catalog.find(name).map(|prompt| {
            let required = prompt.arguments().iter().filter(|argument| argument.required());
            let flags: String = required.map(|argument| format!(" --arg {}=…", argument.name())).collect();
            format!("promptshelf get {name}{flags}")
        }),
        _ => None,
    };
    let failure = Failure::from(rejection);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

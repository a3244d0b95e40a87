//! Opening a library for a command that prints a result and ends.
//!
//! `serve` builds its library itself: it adds settings, reloads and shutdown.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_author::add_samples;
use promptshelf_core::{Variables, nearest};
use promptshelf_server::Library;
use promptshelf_service::Rejection;
use promptshelf_source::Directory;

use crate::{
    command_line,
    exit::Failure,
    output::{Output, count},
    settings::ServerFileLocation,
    source::Source,
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
        let folder = stderr.line(&command_line::path(folder)).into_owned();
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
                None => format!("`{}` lists the prompts", Source::Folder(folder.to_owned()).command_line("list", &[])),
            })
        }
        Rejection::InvalidArguments { .. } => catalog.find(name).map(|prompt| {
            let mut samples = Variables::new();
            add_samples(prompt, &mut samples);
            let flags = samples.iter().flat_map(|(name, value)| ["--arg".to_owned(), format!("{name}={value}")]);
            let words: Vec<String> = std::iter::once(name.to_owned()).chain(flags).collect();
            Source::Folder(folder.to_owned()).command_line("get", &words)
        }),
        _ => None,
    };
    let failure = Failure::from(rejection);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

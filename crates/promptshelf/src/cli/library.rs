//! Opening a library for a command that prints a result and ends.
//!
//! `serve` builds its library itself: it adds settings, reloads and shutdown.

use std::{io::Write, path::Path};

use promptshelf_server::Library;

use crate::{
    exit::Failure,
    output::{Output, count},
};

/// Opens the library in `folder`.
pub(crate) fn open(folder: &Path) -> Result<Library, Failure> {
    Ok(Library::builder().folder(folder).build()?)
}

/// Notes on stderr that the library has errors, so that the result lacks some of its prompts.
pub(crate) fn note_errors(library: &Library, folder: &Path) {
    let errors = library.diagnostics().iter().filter(|diagnostic| diagnostic.is_error()).count();
    if errors > 0 {
        let mut stderr = Output::stderr();
        let folder = stderr.line(&folder.display().to_string()).into_owned();
        let found = count(errors, "error");
        writeln!(stderr.out, "note: {found} in the library; `promptshelf check {folder}` shows what is left out").ok();
    }
}

//! What keeps a whole source from being read: the operator's errors.
//!
//! An author's mistake in one file is a diagnostic and not here.

use std::{fmt, io, path::Path, sync::Arc};

use promptshelf_core::Diagnostic;

/// Why a source could not be read at all. Displays as one sentence that an
/// operator can act on.
#[derive(Clone)]
pub struct SourceError(Arc<Inner>);

struct Inner {
    kind: Kind,
    sentence: String,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotFound,
    PermissionDenied,
    InvalidManifest,
    Other,
}

impl SourceError {
    /// Something that has no predicate of its own. For sources outside this
    /// crate; `sentence` says what is wrong and what to do about it.
    pub fn new(sentence: impl Into<String>) -> SourceError {
        SourceError::of(Kind::Other, sentence, Vec::new())
    }

    /// The place that should hold the prompts is not there.
    pub fn not_found(sentence: impl Into<String>) -> SourceError {
        SourceError::of(Kind::NotFound, sentence, Vec::new())
    }

    /// The place that should hold the prompts may not be read.
    pub fn permission_denied(sentence: impl Into<String>) -> SourceError {
        SourceError::of(Kind::PermissionDenied, sentence, Vec::new())
    }

    /// A folder that cannot be opened.
    pub(crate) fn folder(path: &Path, error: &io::Error) -> SourceError {
        let shown = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                SourceError::not_found(format!("the folder {shown} does not exist: create it, or name another one"))
            }
            io::ErrorKind::PermissionDenied => {
                SourceError::permission_denied(format!("the folder {shown} may not be read by this user"))
            }
            io::ErrorKind::NotADirectory => {
                SourceError::new(format!("{shown} is not a folder: name the folder around it"))
            }
            _ => SourceError::new(format!("the folder {shown} cannot be read: {error}")),
        }
    }

    /// A manifest that cannot be understood. `diagnostics` holds at least one error.
    pub(crate) fn manifest(library: &Path, diagnostics: Vec<Diagnostic>) -> SourceError {
        let mut errors = diagnostics.iter().filter(|found| found.is_error());
        let sentence = errors.next().map_or_else(
            || format!("{} cannot be understood", library.display()),
            |first| {
                let place = library.join(first.location.to_string());
                let help = first.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
                let more = match errors.count() {
                    0 => String::new(),
                    1 => "; and one more mistake".to_owned(),
                    more => format!("; and {more} more mistakes"),
                };
                format!("{}: {}{help}{more}", place.display(), first.message)
            },
        );
        SourceError::of(Kind::InvalidManifest, sentence, diagnostics)
    }

    fn of(kind: Kind, sentence: impl Into<String>, diagnostics: Vec<Diagnostic>) -> SourceError {
        SourceError(Arc::new(Inner { kind, sentence: sentence.into(), diagnostics }))
    }

    /// Whether the place that should hold the prompts is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.0.kind == Kind::NotFound
    }

    /// Whether the place that should hold the prompts may not be read.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.0.kind == Kind::PermissionDenied
    }

    /// Whether `promptshelf.toml` cannot be understood.
    #[must_use]
    pub fn is_invalid_manifest(&self) -> bool {
        self.0.kind == Kind::InvalidManifest
    }

    /// What exactly is wrong with the manifest; empty for other errors.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.sentence)
    }
}

impl fmt::Debug for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceError({:?}: {})", self.0.kind, self.0.sentence)
    }
}

impl std::error::Error for SourceError {}

//! Errors that prevent a whole source from being read, for operators.
//!
//! A mistake of an author in a single file is a diagnostic among the definitions instead.

use std::{error::Error, fmt, io, path::Path, sync::Arc};

use promptshelf_core::Diagnostic;

/// The reason why a source could not be read at all. The message is one sentence with the cause and the remedy.
///
/// Cheap to clone.
///
/// ```
/// use promptshelf_source::{Files, Source};
///
/// let error = Files::folder("/does/not/exist").read().unwrap_err();
/// assert!(error.is_not_found());
/// assert!(error.to_string().contains("there is no folder"));
/// ```
#[derive(Clone)]
pub struct SourceError(Arc<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    diagnostics: Vec<Diagnostic>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotFound,
    PermissionDenied,
    InvalidManifest,
    Other,
}

impl SourceError {
    /// Creates an error of no specific kind, for sources outside this crate. `message` is a sentence with the cause
    /// and the remedy.
    pub fn new(message: impl Into<String>) -> SourceError {
        SourceError::of(Kind::Other, message, Vec::new())
    }

    /// Creates an error for a place that does not exist.
    pub fn not_found(message: impl Into<String>) -> SourceError {
        SourceError::of(Kind::NotFound, message, Vec::new())
    }

    /// Creates an error for a place without permission to read it.
    pub fn permission_denied(message: impl Into<String>) -> SourceError {
        SourceError::of(Kind::PermissionDenied, message, Vec::new())
    }

    /// Adds the underlying error, which [`source`](Error::source) returns. The message should describe it too: only the
    /// message is shown to operators.
    ///
    /// ```
    /// use std::error::Error;
    ///
    /// use promptshelf_source::SourceError;
    ///
    /// let cause = std::io::Error::from(std::io::ErrorKind::TimedOut);
    /// let error = SourceError::new(format!("cannot read prompts.example: {cause}; try again later")).with_source(cause);
    /// assert!(error.source().is_some());
    /// ```
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> SourceError {
        let Inner { kind, ref message, ref diagnostics, .. } = *self.0;
        let (message, diagnostics, source) = (message.clone(), diagnostics.clone(), Some(source.into()));
        SourceError(Arc::new(Inner { kind, message, diagnostics, source }))
    }

    /// Creates the error for a folder that cannot be opened.
    pub(crate) fn folder(path: &Path, error: io::Error) -> SourceError {
        let shown = path.display();
        let described = match error.kind() {
            io::ErrorKind::NotFound if path.starts_with("https:") || path.starts_with("http:") => {
                SourceError::not_found(format!(
                    "{shown} is an address, and a folder is needed here: `git+{shown}` names a repository, and \
                     `promptshelf list {shown}` asks a server"
                ))
            }
            io::ErrorKind::NotFound => SourceError::not_found(format!("there is no folder {shown}")),
            io::ErrorKind::PermissionDenied => SourceError::permission_denied(format!(
                "cannot read the folder {shown}: permission denied for this user"
            )),
            io::ErrorKind::NotADirectory => {
                SourceError::new(format!("{shown} is not a folder: use the folder that contains it"))
            }
            _ => SourceError::new(format!("cannot read the folder {shown}: {error}")),
        };
        described.with_source(error)
    }

    /// Creates the error for an invalid manifest. `diagnostics` contains at least one error.
    pub(crate) fn manifest(library: &Path, diagnostics: Vec<Diagnostic>) -> SourceError {
        let mut errors = diagnostics.iter().filter(|found| found.is_error());
        let message = errors.next().map_or_else(
            || format!("{} is invalid", library.display()),
            |first| {
                let place = library.join(first.location.to_string());
                let help = first.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
                let more = match errors.count() {
                    0 => String::new(),
                    1 => "; one further mistake".to_owned(),
                    more => format!("; {more} further mistakes"),
                };
                format!("{}: {}{help}{more}", place.display(), first.message)
            },
        );
        SourceError::of(Kind::InvalidManifest, message, diagnostics)
    }

    fn of(kind: Kind, message: impl Into<String>, diagnostics: Vec<Diagnostic>) -> SourceError {
        SourceError(Arc::new(Inner { kind, message: message.into(), diagnostics, source: None }))
    }

    /// Whether the place that should contain the prompts does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.0.kind == Kind::NotFound
    }

    /// Whether the permission to read the place that should contain the prompts is missing.
    #[must_use]
    pub fn is_permission_denied(&self) -> bool {
        self.0.kind == Kind::PermissionDenied
    }

    /// Whether `promptshelf.toml` is invalid.
    #[must_use]
    pub fn is_invalid_manifest(&self) -> bool {
        self.0.kind == Kind::InvalidManifest
    }

    /// Returns the mistakes in `promptshelf.toml`; empty for errors of other kinds.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceError({:?}: {})", self.0.kind, self.0.message)
    }
}

impl Error for SourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

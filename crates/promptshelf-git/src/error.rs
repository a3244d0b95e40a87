//! Errors of git sources.

use std::{error::Error, fmt, io, path::PathBuf, sync::Arc, time::Duration};

use promptshelf_source::SourceError;

/// Why a library cannot be read from a git repository. Messages contain no credentials.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GitError {
    /// The URL, the reference or the path is invalid.
    InvalidAddress {
        /// The problem and the expected form.
        reason: String,
    },
    /// The options contradict each other, or a file that they name cannot be used.
    InvalidOptions {
        /// The problem and the expected form.
        reason: String,
    },
    /// The program `git` cannot be started.
    Program {
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The repository cannot be reached, or it refused the request.
    Remote {
        /// What happened, and what to do.
        reason: String,
    },
    /// The repository has no such branch, tag, commit or folder.
    NotFound {
        /// What does not exist, with its name, and what to do.
        what: String,
    },
    /// git did not end in time.
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The commit is larger than a limit.
    TooLarge {
        /// The limit, and what exceeds it.
        reason: String,
    },
    /// The commit has no signature, or that of an unknown key.
    Signature {
        /// The id of the commit.
        commit: String,
        /// The problem.
        reason: String,
    },
    /// The library of the commit has errors.
    Refused {
        /// The id of the commit.
        commit: String,
        /// The number of errors, and the first ones.
        reason: String,
    },
    /// The library of the commit cannot be loaded.
    Load {
        /// The id of the commit.
        commit: String,
        /// The error of the library.
        source: SourceError,
    },
    /// The folder with the copies of repositories cannot be used.
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// git printed something unexpected.
    Protocol {
        /// The problem.
        reason: String,
    },
}

impl fmt::Display for GitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GitError::InvalidAddress { reason } | GitError::InvalidOptions { reason } => f.write_str(reason),
            GitError::Program { source } if source.kind() == io::ErrorKind::NotFound => {
                f.write_str("the program `git` was not found: install git 2.34 or newer, and add it to PATH")
            }
            GitError::Program { source } => write!(f, "the program `git` cannot be started: {source}"),
            GitError::Remote { reason } => write!(f, "the repository cannot be read: {reason}"),
            GitError::NotFound { what } => write!(f, "the repository has no {what}"),
            GitError::TimedOut { after } => {
                write!(f, "git did not end within {} s: the server is slow or away", after.as_secs())
            }
            GitError::TooLarge { reason } => f.write_str(reason),
            GitError::Signature { commit, reason } => write!(f, "commit {} is refused: {reason}", short(commit)),
            GitError::Refused { commit, reason } => write!(f, "commit {} is refused: {reason}", short(commit)),
            GitError::Load { commit, source } => write!(f, "commit {} cannot be loaded: {source}", short(commit)),
            GitError::Cache { path, source } => write!(f, "cannot use {}: {source}", path.display()),
            GitError::Protocol { reason } => write!(f, "git printed something unexpected: {reason}"),
        }
    }
}

impl Error for GitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            GitError::Program { source } | GitError::Cache { source, .. } => Some(&**source),
            GitError::Load { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Returns the first 12 digits of a commit's id.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

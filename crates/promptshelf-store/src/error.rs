//! Errors of stores.

use std::{fmt, sync::Arc};

use crate::reason::Reason;

/// Why an operation on a store failed. Messages never contain a password.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL of the store is invalid.
    InvalidUrl {
        /// The problem and the expected form.
        reason: String,
    },
    /// A name is not that of a channel.
    InvalidChannel {
        /// The name.
        name: String,
    },
    /// A text is not the number of a revision.
    InvalidRevision {
        /// The text.
        revision: String,
    },
    /// A path, a message, a name or the size of a file is not accepted.
    InvalidInput {
        /// The problem and the expected form.
        reason: String,
    },
    /// The store, channel, revision, proposal or prompt does not exist.
    NotFound {
        /// What does not exist, with its name.
        what: String,
    },
    /// Someone else changed these files since the base.
    Conflict {
        /// The files.
        paths: Vec<String>,
        /// The revision that stands now.
        revision: u64,
    },
    /// Nothing has to be changed.
    Unchanged {
        /// The reason.
        reason: String,
    },
    /// A proposal or a policy is not the one that the operation was meant for: it has changed since it was read.
    Changed {
        /// The changed object, with its name.
        what: String,
    },
    /// The state of the proposal does not permit the operation.
    State {
        /// The problem.
        reason: String,
    },
    /// The policy of the channel does not permit it.
    Policy {
        /// The unmet conditions, one sentence each.
        lacks: Vec<String>,
        /// The same conditions with stable codes; empty if they are unknown.
        reasons: Vec<Reason>,
    },
    /// The store cannot be reached, or did not answer in time.
    Unreachable {
        /// What happened.
        reason: String,
        /// The error of the driver.
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// The store was made by a newer release.
    NewerSchema {
        /// The version in the store.
        found: u64,
        /// The newest version that this release knows.
        known: u64,
    },
    /// The content of a file does not fit its digest.
    Corrupt {
        /// Which content.
        what: String,
    },
    /// A caller has stored too much in a day that is not published.
    Quota {
        /// The bytes that the caller may store.
        limit: u64,
        /// The bytes with those of this request.
        used: u64,
    },
    /// The disk of the database is full.
    Full {
        /// What happened.
        reason: String,
        /// The error of the driver.
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// The database refused a statement: no permission, read-only.
    Database {
        /// What happened.
        reason: String,
        /// The error of the driver.
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    pub(crate) fn invalid(reason: impl Into<String>) -> StoreError {
        StoreError::InvalidInput { reason: reason.into() }
    }

    /// A policy whose conditions are not met, for these reasons.
    #[must_use]
    pub fn policy(reasons: Vec<Reason>) -> StoreError {
        StoreError::Policy { lacks: Reason::texts(&reasons), reasons }
    }

    pub(crate) fn state(reason: impl Into<String>) -> StoreError {
        StoreError::State { reason: reason.into() }
    }

    pub(crate) fn not_found(what: impl Into<String>) -> StoreError {
        StoreError::NotFound { what: what.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::InvalidUrl { reason }
            | StoreError::InvalidInput { reason }
            | StoreError::State { reason }
            | StoreError::Unchanged { reason } => f.write_str(reason),
            StoreError::InvalidChannel { name } => write!(
                f,
                "`{name}` is not the name of a channel: expected 1 to 64 lower-case letters, digits, `-`, `_` and `.`, starting with a letter or digit"
            ),
            StoreError::InvalidRevision { revision } => {
                write!(f, "`{revision}` is not the number of a revision: expected digits")
            }
            StoreError::NotFound { what } => write!(f, "{what} does not exist"),
            StoreError::Conflict { paths, revision } => {
                write!(f, "changed by someone else, now at revision {revision}: {}", paths.join(", "))
            }
            StoreError::Changed { what } => write!(f, "{what} has changed since it was read: read it again"),
            StoreError::Policy { lacks, .. } => write!(f, "the policy of the channel is not met: {}", lacks.join("; ")),
            StoreError::Quota { limit, used } => write!(
                f,
                "uploads and proposals of a day that are not published may have {limit} bytes for each caller, and with these \
                 you have {used}: publish or wait, or ask an operator to raise `unpublished-bytes`"
            ),
            StoreError::Unreachable { reason, .. } => write!(f, "the store cannot be reached: {reason}"),
            StoreError::NewerSchema { found, known } => {
                write!(f, "the store has schema {found}, and this release knows {known} at most: use a newer release")
            }
            StoreError::Corrupt { what } => write!(f, "{what} is corrupt: its content does not fit its digest"),
            StoreError::Full { reason, .. } => write!(
                f,
                "the disk of the store is full ({reason}): make space, or remove old revisions with `promptshelf store prune`"
            ),
            StoreError::Database { reason, .. } => write!(f, "the database refused the operation: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Unreachable { source, .. }
            | StoreError::Full { source, .. }
            | StoreError::Database { source, .. } => {
                source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
            }
            _ => None,
        }
    }
}

//! The state of a source among several, for operators.

use std::fmt;

use promptshelf_core::Timestamp;

/// The state of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// It has not been read yet.
    Starting,
    /// Its newest state is served.
    Current,
    /// Its newest state cannot be read or is not accepted, and the last good one is served.
    Behind,
    /// It could not be read so far, and nothing of it is served.
    Failed,
}

impl SourceState {
    /// Returns the state as a word: `starting`, `current`, `behind` or `failed`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SourceState::Starting => "starting",
            SourceState::Current => "current",
            SourceState::Behind => "behind",
            SourceState::Failed => "failed",
        }
    }
}

impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a source that follows something else than files, as its opener reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The number of the served state, such as the revision of a channel.
    pub revision: Option<u64>,
    /// The served commit.
    pub commit: Option<String>,
    /// The reason why the newest state is not served, without secrets.
    pub problem: Option<String>,
    /// The beginning of the problem.
    pub behind_since: Option<Timestamp>,
    /// What the place has and the source does not, each with the reason.
    pub left_out: Vec<String>,
}

/// A source and its state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceStatus {
    /// The configured name.
    pub name: String,
    /// The kind of source, such as `folder`.
    pub kind: &'static str,
    /// The state.
    pub state: SourceState,
    /// The number of the served state, if the source has one.
    pub revision: Option<u64>,
    /// The served commit, if the source has one.
    pub commit: Option<String>,
    /// The number of its prompts that are served.
    pub prompts: usize,
    /// The time since which the newest state is not served.
    pub behind_since: Option<Timestamp>,
    /// The reason, without secrets.
    pub problem: Option<String>,
    /// What is not served of the newest state, each with the reason: the first ones, and the number of the others.
    pub left_out: Vec<String>,
}

/// The most entries of [`SourceStatus::left_out`].
const MAX_LEFT_OUT: usize = 20;

pub(super) fn shortened(mut left_out: Vec<String>) -> Vec<String> {
    if let Some(more @ 1..) = left_out.len().checked_sub(MAX_LEFT_OUT) {
        left_out.truncate(MAX_LEFT_OUT);
        left_out.push(format!("and {more} more"));
    }
    left_out
}

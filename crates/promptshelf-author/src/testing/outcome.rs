//! The result of one test.

use std::{io, path::PathBuf, time::Duration};

use promptshelf_core::Location;

/// The result of one test.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestOutcome {
    /// The prompt's name.
    pub prompt: String,
    /// The test's name, or its number counted from one.
    pub test: String,
    /// The test in its prompt file.
    pub location: Location,
    /// Everything that differs from the expectation; empty if the test passed.
    pub mismatches: Vec<Mismatch>,
    /// The golden file that was created or changed.
    pub updated: Option<PathBuf>,
    /// The time that the test took.
    pub duration: Duration,
}

impl TestOutcome {
    /// Returns whether the test passed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.mismatches.is_empty()
    }
}

/// One difference between a test's expectation and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The difference as one sentence.
    pub message: String,
    /// The actual result, line by line; a diff where both sides are known.
    pub details: String,
}

impl Mismatch {
    pub(super) fn new(message: impl Into<String>, details: impl Into<String>) -> Mismatch {
        Mismatch { message: message.into(), details: details.into() }
    }
}

/// A test could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// A golden file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    GoldenFile {
        /// The golden file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

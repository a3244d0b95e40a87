//! The interface to the check and the tests of a tree.

use std::{pin::Pin, sync::Arc};

use promptshelf_source::MemoryTree;
use serde::{Deserialize, Serialize};

use crate::{StoreError, effect::Effect, model::Digest};

/// The result of work in another thread.
pub type Checking<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Checks a tree and runs its tests. Implemented by the crate that serves libraries.
pub trait Checker: Send + Sync + 'static {
    /// Checks a tree. May block for seconds.
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport;

    /// Checks a tree like [`check`](Checker::check), and returns what it breaks and opens for the callers of the one that
    /// it replaces, and what it opens that is closed where it comes from. The openings come first.
    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>);

    /// Checks a tree in another thread. A server bounds the checks of its callers here, and stops a check whose future is
    /// dropped.
    fn start(self: Arc<Self>, trees: Trees, run_tests: bool) -> Checking<(CheckReport, Vec<Effect>)> {
        Box::pin(async move {
            let work = move || check_now(&*self, &trees, run_tests);
            let done = tokio::task::spawn_blocking(work).await;
            done.map_err(|error| StoreError::state(format!("the check of the files has failed: {error}")))
        })
    }
}

/// The tree of a check, and those that it is compared with.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    /// The tree that is replaced; `None` if nobody calls it.
    pub before: Option<MemoryTree>,
    /// The tree.
    pub after: MemoryTree,
    /// The tree that the changed files are copied from.
    pub source: Option<MemoryTree>,
}

/// Checks a tree in this thread.
pub fn check_now(checker: &(impl Checker + ?Sized), trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
    if trees.before.is_some() || trees.source.is_some() {
        checker.check_replacement(trees, run_tests)
    } else {
        (checker.check(&trees.after, run_tests), Vec::new())
    }
}

/// The result of a [`Checker`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Counts for the policy and for history.
    pub summary: CheckSummary,
    /// The findings, formatted with file and line, errors first; at most 100.
    pub findings: Vec<String>,
    /// All prompts of the tree.
    pub prompts: Vec<PromptFile>,
    /// Whether no server could load the tree, because its settings are invalid. Such a tree is never published.
    pub is_unloadable: bool,
}

/// Counts of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckSummary {
    /// The number of errors.
    pub errors: u64,
    /// The number of warnings.
    pub warnings: u64,
    /// The number of tests that passed and failed; `None` if they were not run.
    #[serde(default, with = "test_counts")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TestCounts>))]
    pub tests: Option<(u64, u64)>,
}

/// The serialized form of the counts of tests.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct TestCounts {
    /// The number of tests that passed.
    passed: u64,
    /// The number of tests that failed.
    failed: u64,
}

mod test_counts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::TestCounts;

    pub(super) fn serialize<S: Serializer>(counts: &Option<(u64, u64)>, serializer: S) -> Result<S::Ok, S::Error> {
        counts.map(|(passed, failed)| TestCounts { passed, failed }).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(u64, u64)>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|TestCounts { passed, failed }| (passed, failed)))
    }
}

/// A prompt of a tree, with all it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptFile {
    /// The name of the prompt.
    pub name: String,
    /// The file that defines it.
    pub path: String,
    /// The other files that it brings in: partials, attachments, included prompts, embedded resources. Sorted.
    pub brings: Vec<String>,
    /// The digest of the paths and contents of all these files.
    pub digest: Digest,
}

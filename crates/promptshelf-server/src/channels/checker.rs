//! The check of a tree before it is published.

use std::sync::Arc;

use promptshelf_author::{
    findings,
    testing::{TestOutcome, TestSuite},
};
use promptshelf_core::{AccessRule, Catalog, CatalogHandle, Checked, Code, Diagnostic, Interrupt, Severity, check};
use promptshelf_service::{
    Caller, Service,
    pool::{self, Amount},
};
use promptshelf_source::{Files, Fixed, MemoryTree, Source as _, SourceError};
use promptshelf_store::{CheckReport, CheckSummary, Checker, Checking, Effect, StoreError, Trees, check_now};

use super::{effects::effects, prompt_files::prompt_files};
use crate::test_target::ServiceTarget;

const MAX_FINDINGS: usize = 100;

/// Checks a tree as `promptshelf check` checks a folder, and runs its tests as `promptshelf test` does.
///
/// Nothing is read from a disk: roots outside of the tree are errors, unless they are granted.
///
/// ```
/// use promptshelf_server::channels::LibraryChecker;
/// use promptshelf_source::MemoryTree;
/// use promptshelf_store::Checker as _;
///
/// let tree: MemoryTree = [("hello.md", "---\ndescription: Greets\n---\nSay hello.\n")].into_iter().collect();
/// let report = LibraryChecker::new().check(&tree, true);
/// assert_eq!(report.findings, [""; 0]);
/// assert_eq!(report.prompts[0].path, "hello.md");
/// assert_eq!(report.summary.tests, Some((0, 0)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LibraryChecker {
    granted_roots: Vec<std::path::PathBuf>,
    rules: Fixed,
}

impl LibraryChecker {
    /// Creates a checker that grants no roots.
    #[must_use]
    pub fn new() -> LibraryChecker {
        LibraryChecker::default()
    }

    /// Grants folders on disk, as the operator of the servers grants them: `[roots]` with absolute paths may point there.
    #[must_use]
    pub fn grant_roots(mut self, folders: impl IntoIterator<Item = std::path::PathBuf>) -> LibraryChecker {
        self.granted_roots = folders.into_iter().collect();
        self
    }

    /// Sets the source of the operator's access rules, which bind every library: what leaves them is an opening. Findings say
    /// nothing of them.
    #[must_use]
    pub fn rules(mut self, rules: Fixed) -> LibraryChecker {
        self.rules = rules;
        self
    }

    /// Reads and checks a tree. It has bounds of its own: what a tree may cost does not depend on the one before it.
    fn open(&self, tree: &MemoryTree, rules: &[AccessRule]) -> Result<Opened, SourceError> {
        Interrupt::of_part().scope(|| {
            let source = Files::tree(tree.clone()).lenient();
            source.grant_roots(self.granted_roots.iter().cloned());
            let mut definitions = source.read()?.into_definitions();
            let has_invalid_manifest = definitions.diagnostics.iter().any(is_of_manifest);
            definitions.access.extend(rules.iter().cloned());
            Ok(Opened { checked: check(definitions, None), has_invalid_manifest })
        })
    }
}

struct Opened {
    checked: Checked,
    has_invalid_manifest: bool,
}

impl Opened {
    fn report(self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        let Opened { checked: Checked { catalog, diagnostics }, has_invalid_manifest } = self;
        let mut found = findings(&catalog, &diagnostics);
        if has_invalid_manifest {
            // The resource may be declared in the part of the manifest that is invalid.
            found.retain(|finding| finding.code != Code::UnknownResource);
        }
        found.retain(|finding| finding.severity >= Severity::Warning);
        found.sort_by(|a, b| (b.severity, place(a)).cmp(&(a.severity, place(b))));
        let prompts = prompt_files(&catalog, tree);
        let count = |severity| found.iter().filter(|finding| finding.severity == severity).count() as u64;
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let first_warning = usize::try_from(errors).unwrap_or(usize::MAX).min(MAX_FINDINGS);
        // A sentence needs the line of its finding, which takes time in proportion to the file.
        let mut sentences: Vec<String> = found.iter().take(MAX_FINDINGS).map(ToString::to_string).collect();
        let tests = run_tests.then(|| {
            let outcomes = outcomes(catalog, tree);
            let failed: Vec<String> = outcomes.iter().filter(|outcome| !outcome.is_passed()).map(failure).collect();
            let counts = ((outcomes.len() - failed.len()) as u64, failed.len() as u64);
            sentences.splice(first_warning..first_warning, failed);
            counts
        });
        sentences.truncate(MAX_FINDINGS);
        let is_unloadable = has_invalid_manifest && Files::tree(tree.clone()).read().is_err();
        CheckReport { summary: CheckSummary { errors, warnings, tests }, findings: sentences, prompts, is_unloadable }
    }
}

impl Checker for LibraryChecker {
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        match self.open(tree, &[]) {
            Ok(opened) => opened.report(tree, run_tests),
            Err(error) => unreadable(&error),
        }
    }

    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
        let Trees { before, after, source } = trees;
        let opened = match self.open(after, &[]) {
            Ok(opened) => opened,
            // A tree that cannot be read is never served.
            Err(error) => return (unreadable(&error), Vec::new()),
        };
        let rules = self.rules.read().map(|read| read.into_definitions().access).unwrap_or_default();
        let bound = (!rules.is_empty()).then(|| self.open(after, &rules).ok()).flatten();
        let new = &bound.as_ref().unwrap_or(&opened).checked.catalog;
        let other = |tree: &Option<MemoryTree>| {
            let tree = tree.as_ref()?;
            Some((tree.clone(), self.open(tree, &rules).ok()?.checked.catalog))
        };
        let (before, source) = (other(before), other(source));
        let effects = effects(before.as_ref(), source.as_ref(), (after, new));
        (opened.report(after, run_tests), effects)
    }
}

/// A checker whose checks are work of a caller: they wait for a place in the pool, and end with the request.
pub(crate) struct CallerChecker {
    pub(crate) checker: Arc<dyn Checker>,
    pub(crate) caller: Caller,
}

impl Checker for CallerChecker {
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        self.checker.check(tree, run_tests)
    }

    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
        self.checker.check_replacement(trees, run_tests)
    }

    fn start(self: Arc<Self>, trees: Trees, run_tests: bool) -> Checking<(CheckReport, Vec<Effect>)> {
        Box::pin(async move {
            let checker = Arc::clone(&self.checker);
            let work = move |_: &Interrupt| check_now(&*checker, &trees, run_tests);
            let done = pool::run(&self.caller, Amount::Large, work).await;
            done.map_err(|error| StoreError::State { reason: format!("the check of the files has failed: {error}") })
        })
    }
}

/// The report on a tree that cannot be read at all.
fn unreadable(error: &SourceError) -> CheckReport {
    let summary = CheckSummary { errors: 1, ..CheckSummary::default() };
    CheckReport { summary, findings: vec![error.to_string()], prompts: Vec::new(), is_unloadable: true }
}

fn is_of_manifest(finding: &Diagnostic) -> bool {
    finding.is_error() && finding.location.source.path == "promptshelf.toml"
}

fn place(finding: &Diagnostic) -> (&str, usize) {
    (&finding.location.source.path, finding.location.span().start)
}

/// Runs all tests on a thread of its own, because the caller may be inside a runtime.
fn outcomes(catalog: Catalog, tree: &MemoryTree) -> Vec<TestOutcome> {
    let bounds = Interrupt::current().unwrap_or_default();
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system has the resources for a runtime");
        let service = Service::new(CatalogHandle::new(catalog));
        let catalog = service.catalog();
        let suite = TestSuite::of_tree(&catalog, tree.clone());
        runtime.block_on(suite.run_all(&ServiceTarget::new(&service)))
    };
    std::thread::scope(|scope| match scope.spawn(|| bounds.scope(run)).join() {
        Ok(outcomes) => outcomes,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn failure(outcome: &TestOutcome) -> String {
    // Without the text that stands below in other outputs.
    let reason = |message: &'_ str| message.trim_end_matches(':').trim_end_matches(" in").to_owned();
    let reasons: Vec<String> = outcome.mismatches.iter().map(|mismatch| reason(&mismatch.message)).collect();
    let TestOutcome { prompt, test, location, .. } = outcome;
    format!("{location}: error: the test {prompt} / {test} failed: {}", reasons.join("; "))
}

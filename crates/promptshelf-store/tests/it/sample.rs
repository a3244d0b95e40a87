//! A check for tests, and short ways to publish.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{
    Actor, Change, ChannelName, CheckReport, CheckSummary, Checker, Digest, Effect, EffectImpact, NewReview, Policy,
    Promotion, PromptFile, Publish, Published, RevisionKind, Rollback, Store, StoreError, Trees, Verdict,
};
use promptshelf_testkit::database::Postgres;

/// A check of small files: each `NAME.md` outside of `partials/` is a prompt; a line `use PATH` brings in a file, and
/// lines `error`, `warning` and `failing test` count as such.
#[derive(Debug, Default)]
pub(crate) struct SampleChecker {
    runs: AtomicUsize,
}

impl SampleChecker {
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Checker for SampleChecker {
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let mut report = CheckReport::default();
        let (mut tests, mut failed) = (0, 0);
        for (path, file) in tree.iter() {
            let text = String::from_utf8_lossy(file.bytes()).into_owned();
            let Some(name) = path.strip_suffix(".md").filter(|_| !path.starts_with("partials/")) else { continue };
            let mut brings = BTreeSet::new();
            let mut waiting = vec![text.clone()];
            while let Some(text) = waiting.pop() {
                for used in text.lines().filter_map(|line| line.strip_prefix("use ")) {
                    if brings.insert(used.to_owned())
                        && let Some(file) = tree.get(used)
                    {
                        waiting.push(String::from_utf8_lossy(file.bytes()).into_owned());
                    }
                }
            }
            for (number, line) in text.lines().enumerate() {
                match line {
                    "error" => {
                        report.summary.errors += 1;
                        report.findings.push(format!("{path}:{}: error", number + 1));
                    }
                    "unloadable" => report.is_unloadable = true,
                    "warning" => report.summary.warnings += 1,
                    "failing test" => failed += 1,
                    _ => {}
                }
            }
            tests += 1;
            let mut parts = format!("{path}\n{text}");
            for used in &brings {
                let content =
                    tree.get(used).map_or_else(String::new, |file| String::from_utf8_lossy(file.bytes()).into_owned());
                parts += &format!("\0{used}\n{content}");
            }
            let name = name.rsplit('/').next().unwrap_or(name).to_owned();
            let (path, brings, digest) = (path.to_owned(), brings.into_iter().collect(), Digest::of(parts.as_bytes()));
            report.prompts.push(PromptFile { name, path, brings, digest });
        }
        report.summary.tests = run_tests.then_some((tests - failed, failed));
        report
    }

    /// A line `closed` that is gone opens a file, for those that the file `rule` names, and so does a promotion of a file
    /// without its line in `rules`; a file that is gone breaks calls.
    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
        let Trees { before, after, source } = trees;
        let closed = |file: &MemoryFile| String::from_utf8_lossy(file.bytes()).lines().any(|line| line == "closed");
        let effect = |impact, code: &str, path: &str| Effect {
            impact,
            name: format!("{code}:{path}"),
            text: match after.get("rule") {
                Some(rule) => format!("{path}: {code}, for {}", String::from_utf8_lossy(rule.bytes())),
                None => format!("{path}: {code}"),
            },
            prompt: None,
            calls: None,
        };
        let mut effects = Vec::new();
        for (path, file) in before.iter().flat_map(MemoryTree::iter) {
            if closed(file) && after.get(path).is_some_and(|it| !closed(it)) {
                effects.push(effect(EffectImpact::Opening, "access-opened", path));
            }
        }
        let rules = |tree: &MemoryTree| {
            tree.get("rules").map(|file| String::from_utf8_lossy(file.bytes()).into_owned()).unwrap_or_default()
        };
        for path in source.iter().flat_map(|source| rules(source).lines().map(str::to_owned).collect::<Vec<_>>()) {
            if after.get(&path).is_some() && !rules(after).lines().any(|line| line == path) {
                effects.push(effect(EffectImpact::Opening, "source-opened", &path));
            }
        }
        for (path, _) in before.iter().flat_map(MemoryTree::iter).filter(|(path, _)| after.get(path).is_none()) {
            effects.push(effect(EffectImpact::Breaking, "prompt-gone", path));
        }
        (self.check(after, run_tests), effects)
    }
}

/// Reviews the present changes of a proposal, or those with a digest.
pub(crate) async fn review(
    store: &Store,
    id: u64,
    verdict: Verdict,
    note: &str,
    digest: Option<Digest>,
    name: &str,
) -> Result<Published, StoreError> {
    let digest = match digest {
        Some(digest) => digest,
        None => store.proposal(id).await?.digest,
    };
    let new = NewReview { verdict, digest, note: note.to_owned(), confirmed: Vec::new() };
    store.review(id, &new, &actor(name), checker()).await
}

/// Promotes everything, or some prompts, from one channel to another as ada.
pub(crate) fn promotion(from: &str, to: &str, prompts: &[&str]) -> Promotion {
    Promotion {
        from: channel(from),
        to: channel(to),
        prompts: prompts.iter().map(|name| (*name).to_owned()).collect(),
        all: false,
        message: String::new(),
        dry_run: false,
        ends_rollout: false,
    }
}

pub(crate) fn rollback(of: &str, to: u64, prompt: Option<&str>) -> Rollback {
    Rollback { channel: channel(of), to, prompt: prompt.map(str::to_owned), message: String::new(), dry_run: false }
}

pub(crate) fn checker() -> Arc<dyn Checker> {
    Arc::new(SampleChecker::default())
}

pub(crate) fn channel(name: &str) -> ChannelName {
    name.parse().unwrap()
}

pub(crate) fn actor(name: &str) -> Actor {
    Actor { name: name.to_owned(), may_publish: true, may_administer: true, review_roles: None }
}

/// A change from one text to another; an empty text stands for a missing file.
pub(crate) fn change(path: &str, before: &str, after: &str) -> Change {
    let some = |text: &str| (!text.is_empty()).then(|| std::sync::Arc::<[u8]>::from(text.as_bytes()));
    Change { path: path.to_owned(), before: some(before).map(|bytes| Digest::of(&bytes)), after: some(after) }
}

pub(crate) fn request(to: &str, base: u64, changes: Vec<Change>) -> Publish {
    Publish {
        channel: channel(to),
        base,
        kind: RevisionKind::Publish,
        message: "a change".to_owned(),
        proposal: None,
        expected: None,
        emergency: None,
        changes,
        dry_run: false,
    }
}

/// Publishes changes of (path, before, after) as ada.
pub(crate) async fn publish(
    store: &Store,
    to: &str,
    base: u64,
    changes: &[(&str, &str, &str)],
) -> Result<Published, StoreError> {
    let changes = changes.iter().map(|(path, before, after)| change(path, before, after)).collect();
    store.publish(request(to, base, changes), &actor("ada"), checker()).await
}

/// Returns the files of a channel as text, by path.
pub(crate) async fn texts(store: &Store, of: &str, revision: Option<u64>) -> Vec<(String, String)> {
    let (_, tree) = store.tree(&channel(of), revision).await.unwrap();
    tree.iter().map(|(path, file)| (path.to_owned(), String::from_utf8(file.bytes().to_vec()).unwrap())).collect()
}

/// Returns the names and versions that a publish changed.
pub(crate) fn prompts(published: &Published) -> Vec<(&str, u64, &'static str)> {
    let name = |change| match change {
        promptshelf_store::PromptChangeKind::Added => "added",
        promptshelf_store::PromptChangeKind::Changed => "changed",
        promptshelf_store::PromptChangeKind::Removed => "removed",
    };
    published.prompts.iter().map(|it| (it.name.as_str(), it.version, name(it.change))).collect()
}

pub(crate) fn policy(approvals: u32, four_eyes: bool) -> Policy {
    Policy { approvals, four_eyes, ..Policy::default() }
}

pub(crate) fn summary(errors: u64, warnings: u64) -> CheckSummary {
    CheckSummary { errors, warnings, tests: None }
}

/// Runs a statement on a store, past the interface.
pub(crate) async fn tamper(url: &str, statement: &str) {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    } else {
        Postgres::shared().sql(url.rsplit('/').next().unwrap(), statement);
    }
}

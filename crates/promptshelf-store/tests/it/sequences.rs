//! Random sequences of operations on a store and on the reference model: every answer and, after each step, every read
//! has to be the same.
//!
//! A failure is shrunk and printed as a test. `MODEL_SEQUENCES`, `MODEL_SEED` and `MODEL_MINUTES` choose others.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Debug,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use promptshelf_core::usage::{UsageFigures, UsageKey};
use promptshelf_source::MemoryTree;
use promptshelf_store::{
    Actor, Change, CheckLevel, CheckReport, Checker, Checking, CommentLine, CommentSide, DeliveryAttempt, Digest,
    Effect, EvaluationQuery, Head, HistoryQuery, NewComment, NewEvaluation, NewReview, NewToken, Policy, PolicyGuard,
    PolicyOutcome, PolicyRoles, Promotion, Proposal, ProposalQuery, Publish, Published, RevisionKind, Rollback,
    RolloutEdit, RolloutPhase, RolloutPlan, StandingQuery, Store, StoreError, StoreUrl, Trees, UsageQuery, Verdict,
    Webhook, WebhookEvent, check_now,
};
use promptshelf_testkit::{amount, database::Postgres, figure};
use proptest::{
    prelude::{Just, Strategy, any},
    prop_oneof,
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::Value;

use crate::{
    model::{Model, Outcome, Refusal, Subject, View, digest},
    sample::{SampleChecker, channel, rollback, tamper},
};

/// The check of small files, at once. A second file with the name of a prompt is an error.
#[derive(Default)]
pub(crate) struct SequenceChecker(SampleChecker);

impl SequenceChecker {
    fn distinct(mut report: CheckReport) -> CheckReport {
        let mut names = BTreeSet::new();
        let all = report.prompts.len();
        report.prompts.retain(|prompt| names.insert(prompt.name.clone()));
        report.summary.errors += (all - report.prompts.len()) as u64;
        report
    }
}

impl Checker for SequenceChecker {
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        Self::distinct(self.0.check(tree, run_tests))
    }

    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
        let (report, effects) = self.0.check_replacement(trees, run_tests);
        (Self::distinct(report), effects)
    }

    fn start(self: Arc<Self>, trees: Trees, run_tests: bool) -> Checking<(CheckReport, Vec<Effect>)> {
        Box::pin(std::future::ready(Ok(check_now(&*self, &trees, run_tests))))
    }
}

fn checker() -> Arc<dyn Checker> {
    Arc::new(SequenceChecker::default())
}

const NAMES: [&str; 6] = ["ada", "ADA", "ben", "cleo", "token/robot", "token/helper"];
const CHANNELS: [&str; 3] = ["production", "staging", "next"];
const PATHS: [&str; 6] = ["a.md", "b.md", "c.md", "moved/a.md", "partials/p.md", "partials/q.md"];
const PROMPTS: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 14] = [
    "one",
    "two",
    "three",
    "use partials/p.md",
    "use partials/p.md\nmore",
    "use partials/q.md",
    "error",
    "warning",
    "failing test",
    "closed\nA",
    "A",
    "unloadable",
    "",
    "four\nlines\nof\ntext",
];

/// An actor and its rights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) name: u8,
    pub(crate) may_publish: bool,
    pub(crate) may_administer: bool,
}

/// A path gets a text, or `None`: it is deleted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit {
    pub(crate) path: u8,
    pub(crate) text: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) approvals: u8,
    pub(crate) four_eyes: bool,
    pub(crate) checks: u8,
    pub(crate) tests: bool,
    pub(crate) evaluations: u8,
    pub(crate) no_regression: bool,
    pub(crate) no_breaking: bool,
    pub(crate) role: u8,
    pub(crate) reviewers: u8,
}

/// A step of a sequence. Numbers choose among what there is at that moment, so that each part of a sequence is one too.
#[derive(Clone, Copy, Debug)]
#[rustfmt::skip]
pub(crate) enum Step {
    Publish { who: Who, to: u8, back: u8, edits: [Option<Edit>; 3], replace: Option<u8>, expected: u8, urgent: bool, dry: bool },
    Rename { who: Who, to: u8, from: u8, path: u8 },
    Review { who: Who, proposal: u8, reject: bool, stale: bool, confirm: u8 },
    PublishProposal { who: Who, proposal: u8, stale: bool, urgent: bool },
    Withdraw { who: Who, proposal: u8 },
    Comment { who: Who, proposal: u8, path: Option<u8>, line: Option<u8>, after: bool, stale: bool },
    Promote { who: Who, from: u8, to: u8, prompts: [Option<u8>; 2], all: bool, dry: bool },
    RollBack { who: Who, channel: u8, back: u8, prompt: Option<u8>, dry: bool },
    SetPolicy { who: Who, channel: u8, rules: Rules, guard: u8, by_operator: bool },
    Evaluate { who: Who, channel: u8, prompt: u8, proposal: Option<u8>, back: u8, score: u8, threshold: bool },
    Register { webhook: u8 },
    Deliver { fails: bool },
    Redeliver { letter: u8 },
    ReportBroken { channel: u8, back: u8 },
    BeginRollout { from: u8, to: u8, percent: u8 },
    SetRollout { who: Who, from: u8, to: u8, percent: Option<u8> },
    CreateToken { who: Who, helper: bool },
    RevokeToken { who: Who, token: u8 },
    AddUsage { batch: u8, prompt: u8, count: u8 },
    Signal { source: u8 },
    Upload { text: u8 },
    Collect,
    /// Removes what is older than so many of the newest revisions.
    Prune { keep: u8 },
    NewEpoch,
    Reopen,
    BackUp,
    Restore,
}

fn who() -> impl Strategy<Value = Who> {
    let right = || proptest::bool::weighted(0.7);
    (0..6u8, right(), right()).prop_map(|(name, may_publish, may_administer)| Who { name, may_publish, may_administer })
}

fn rules() -> impl Strategy<Value = Rules> {
    let rare = || proptest::bool::weighted(0.2);
    (0..3u8, rare(), 0..3u8, rare(), 0..4u8, rare(), rare(), 0..3u8, 0..3u8).prop_map(
        |(approvals, four_eyes, checks, tests, evaluations, no_regression, no_breaking, role, reviewers)| Rules {
            approvals: approvals.min(evaluations),
            four_eyes,
            checks,
            tests,
            evaluations: evaluations / 3,
            no_regression,
            no_breaking,
            role,
            reviewers,
        },
    )
}

/// Mostly the newest.
fn back() -> impl Strategy<Value = u8> {
    prop_oneof![6 => Just(0u8), 3 => 1..4u8, 1 => Just(99u8)]
}

fn rare() -> proptest::bool::Weighted {
    proptest::bool::weighted(0.08)
}

fn edit() -> impl Strategy<Value = Edit> {
    (0..6u8, proptest::option::weighted(0.85, 0..14u8)).prop_map(|(path, text)| Edit { path, text })
}

#[rustfmt::skip]
fn step() -> impl Strategy<Value = Step> {
    let some = |share| move || proptest::option::weighted(share, any::<u8>());
    let channel = || prop_oneof![3 => Just(0u8), 1 => 1..3u8];
    let edits = [proptest::option::weighted(0.97, edit()), proptest::option::weighted(0.5, edit()), proptest::option::weighted(0.3, edit())];
    prop_oneof![
        14 => (who(), channel(), back(), edits, some(0.15)(), 0..4u8, rare(), rare())
            .prop_map(|(who, to, back, edits, replace, expected, urgent, dry)| Step::Publish { who, to, back, edits, replace, expected, urgent, dry }),
        2 => (who(), channel(), 0..6u8, 0..6u8).prop_map(|(who, to, from, path)| Step::Rename { who, to, from, path }),
        8 => (who(), any::<u8>(), rare(), rare(), 0..4u8)
            .prop_map(|(who, proposal, reject, stale, confirm)| Step::Review { who, proposal, reject, stale, confirm }),
        4 => (who(), any::<u8>(), rare(), rare()).prop_map(|(who, proposal, stale, urgent)| Step::PublishProposal { who, proposal, stale, urgent }),
        1 => (who(), any::<u8>()).prop_map(|(who, proposal)| Step::Withdraw { who, proposal }),
        2 => (who(), any::<u8>(), some(0.6)(), proptest::option::weighted(0.6, 0..4u8), any::<bool>(), rare())
            .prop_map(|(who, proposal, path, line, after, stale)| Step::Comment { who, proposal, path, line, after, stale }),
        5 => (who(), 0..3u8, 0..3u8, [proptest::option::weighted(0.3, 0..3u8), proptest::option::weighted(0.1, 0..3u8)], rare(), rare())
            .prop_map(|(who, from, to, prompts, all, dry)| Step::Promote { who, from, to, prompts, all, dry }),
        4 => (who(), channel(), prop_oneof![9 => 1..4u8, 1 => Just(99u8)], proptest::option::weighted(0.4, 0..3u8), rare())
            .prop_map(|(who, channel, back, prompt, dry)| Step::RollBack { who, channel, back, prompt, dry }),
        3 => (who(), channel(), rules(), 0..8u8, any::<bool>())
            .prop_map(|(who, channel, rules, guard, by_operator)| Step::SetPolicy { who, channel, rules, guard, by_operator }),
        3 => (who(), channel(), 0..3u8, some(0.6)(), 0..3u8, 0..3u8, any::<bool>())
            .prop_map(|(who, channel, prompt, proposal, back, score, threshold)| Step::Evaluate { who, channel, prompt, proposal, back, score, threshold }),
        1 => (0..2u8).prop_map(|webhook| Step::Register { webhook }),
        2 => any::<bool>().prop_map(|fails| Step::Deliver { fails }),
        1 => any::<u8>().prop_map(|letter| Step::Redeliver { letter }),
        1 => (channel(), back()).prop_map(|(channel, back)| Step::ReportBroken { channel, back }),
        1 => (0..3u8, 0..3u8, 0..100u8).prop_map(|(from, to, percent)| Step::BeginRollout { from, to, percent }),
        1 => (who(), 0..3u8, 0..3u8, proptest::option::weighted(0.7, 0..110u8))
            .prop_map(|(who, from, to, percent)| Step::SetRollout { who, from, to, percent }),
        1 => (who(), any::<bool>()).prop_map(|(who, helper)| Step::CreateToken { who, helper }),
        1 => (who(), any::<u8>()).prop_map(|(who, token)| Step::RevokeToken { who, token }),
        1 => (0..8u8, 0..3u8, 1..9u8).prop_map(|(batch, prompt, count)| Step::AddUsage { batch, prompt, count }),
        1 => (0..3u8).prop_map(|source| Step::Signal { source }),
        1 => (0..14u8).prop_map(|text| Step::Upload { text }),
        1 => Just(Step::Collect),
        1 => (0..3u8).prop_map(|keep| Step::Prune { keep }),
        1 => Just(Step::NewEpoch),
        1 => Just(Step::Reopen),
        1 => Just(Step::BackUp),
        1 => Just(Step::Restore),
    ]
}

/// Where the store of a sequence is.
pub(crate) enum Place {
    Sqlite { folder: tempfile::TempDir },
    Postgres { url: StoreUrl },
}

impl Place {
    pub(crate) fn sqlite() -> Place {
        // The disk would only make it slower.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Place::Sqlite { folder: tempfile::tempdir_in(parent).unwrap() }
    }

    pub(crate) fn postgres() -> Place {
        Place::Postgres { url: Postgres::shared().database().parse().unwrap() }
    }

    fn url(&self) -> StoreUrl {
        match self {
            Place::Sqlite { folder } => format!("sqlite:{}", folder.path().join("team.db").display()).parse().unwrap(),
            Place::Postgres { url } => url.clone(),
        }
    }
}

pub(crate) struct Run {
    place: Place,
    store: Store,
    /// The handle of the operations; `store` reads.
    pub(crate) writer: Store,
    pub(crate) model: Model,
    /// The model of the backup.
    backup: Option<Model>,
    /// All heads that were ever read.
    heads: Vec<(String, Head)>,
    /// The oldest revision and the digest of the newest one, as they were when the files of a channel were read.
    read: HashMap<String, (u64, Option<Digest>)>,
    /// What the digests of proposals stand for.
    subjects: HashMap<Digest, (RevisionKind, String, Subject)>,
    tokens: u64,
}

type Outcomes = Result<(), String>;

/// The largest number of proposals that a store lists.
const ALL: usize = 1_000;

/// Fails with what differs.
fn same<T: PartialEq + Debug>(what: &str, store: &T, model: &T) -> Outcomes {
    if store == model { Ok(()) } else { Err(format!("{what}\n  store: {store:?}\n  model: {model:?}")) }
}

fn refusal(error: StoreError) -> Refusal {
    match error {
        StoreError::NotFound { .. } => Refusal::NotFound,
        StoreError::State { .. } => Refusal::State,
        StoreError::Changed { .. } => Refusal::Changed,
        StoreError::Conflict { paths, revision } => Refusal::Conflict(paths, revision),
        StoreError::Unchanged { .. } => Refusal::Unchanged,
        StoreError::InvalidInput { .. } => Refusal::Invalid,
        StoreError::Policy { reasons, .. } => Refusal::Policy(codes(&reasons)),
        StoreError::Unreachable { .. } => Refusal::Unreachable,
        StoreError::Database { .. } => Refusal::Database,
        other => Refusal::Other(other.to_string()),
    }
}

/// An error of an operation that never fails without a fault.
fn told(error: StoreError) -> String {
    let text = error.to_string();
    format!("store: Err({:?}) {text}", refusal(error))
}

fn texts(tree: &promptshelf_source::MemoryTree) -> BTreeMap<String, String> {
    tree.iter().map(|(path, file)| (path.to_owned(), String::from_utf8_lossy(file.bytes()).into_owned())).collect()
}

fn codes(reasons: &[promptshelf_store::Reason]) -> Vec<String> {
    const SHOWN: [&str; 5] = ["n", "failed", "paths", "prompt", "evaluation"];
    let code = |reason: &promptshelf_store::Reason| {
        let is_shown = |name: &str| SHOWN.contains(&name) || (name == "name" && reason.code != "similar-names");
        let values = reason.values.iter().filter(|(name, _)| is_shown(name));
        values.fold(reason.code.to_string(), |text, (name, value)| format!("{text} {name}={value}"))
    };
    reasons.iter().map(code).collect()
}

fn view(proposal: &Proposal) -> View {
    let review = |it: &promptshelf_store::Review| {
        (
            it.reviewer.clone(),
            it.verdict,
            it.note.clone(),
            it.confirmed.clone(),
            it.digest == proposal.digest,
            it.lapsed,
        )
    };
    View {
        channel: proposal.channel.to_string(),
        base: proposal.base,
        kind: proposal.kind,
        message: proposal.message.clone(),
        author: proposal.author.clone(),
        creators: proposal.creators.clone(),
        state: proposal.state,
        changes: proposal.changes.clone(),
        reviews: proposal.reviews.iter().map(review).collect(),
        checks: proposal.checks,
        effects: proposal.effects.clone(),
        policy: proposal.policy.clone(),
        source: proposal.source.as_ref().map(|it| (it.channel.to_string(), it.revision, it.is_whole)),
        revision: proposal.revision,
        reasons: codes(&proposal.reasons),
    }
}

fn outcome(published: &Published) -> Outcome {
    Outcome {
        view: view(&published.proposal),
        prompts: published.prompts.clone(),
        findings: published.findings.clone(),
        kept: published.kept.clone(),
    }
}

pub(crate) fn actor(who: Who) -> Actor {
    let Who { name, may_publish, may_administer } = who;
    Actor { name: NAMES[name as usize].to_owned(), may_publish, may_administer, review_roles: None }
}

fn policy(rules: Rules) -> Policy {
    let roles = |number: u8| -> Vec<String> {
        ["editor", "chief"][..number as usize].iter().map(|it| (*it).to_owned()).collect()
    };
    Policy {
        approvals: rules.approvals.into(),
        four_eyes: rules.four_eyes,
        checks: [CheckLevel::Errors, CheckLevel::Off, CheckLevel::Warnings][rules.checks as usize],
        tests: rules.tests,
        evaluations: (0..rules.evaluations).map(|_| "quality".to_owned()).collect(),
        no_regression: rules.no_regression,
        no_breaking: rules.no_breaking,
        roles: PolicyRoles { publish: roles(rules.role), review: roles(rules.reviewers), ..PolicyRoles::default() },
    }
}

impl Run {
    pub(crate) async fn new(place: Place) -> Run {
        let store = Store::create(&place.url()).await.unwrap();
        let mut run = Run {
            place,
            writer: store.clone(),
            store,
            model: Model::default(),
            backup: None,
            heads: Vec::new(),
            read: HashMap::new(),
            subjects: HashMap::new(),
            tokens: 0,
        };
        // The epoch is only told with a head.
        run.model.epoch = run.store.new_epoch().await.unwrap().to_string();
        run
    }

    async fn open(&mut self) -> Outcomes {
        self.store = Store::open(&self.place.url()).await.map_err(told)?;
        self.writer = self.store.clone();
        Ok(())
    }

    /// The digest of the present changes of a proposal, or another one.
    async fn digest(&self, id: u64, stale: bool) -> Digest {
        match self.store.proposal(id).await {
            Ok(proposal) if !stale => proposal.digest,
            _ => Digest::of(b"other changes"),
        }
    }

    async fn compare(
        &mut self,
        result: Result<Published, StoreError>,
        expected: impl FnOnce(&mut Model, u64) -> Result<Outcome, Refusal>,
    ) -> Outcomes {
        let id = result.as_ref().map_or(0, |published| published.proposal.id);
        let expected = expected(&mut self.model, id);
        same("answer", &result.as_ref().map(outcome).map_err(|error| refusal(error.clone())), &expected)?;
        let Ok(Published { proposal, .. }) = result else { return Ok(()) };
        if let Some(number) = proposal.revision.filter(|_| proposal.kind != RevisionKind::Policy) {
            self.see(proposal.channel.as_str(), number).await?;
        }
        Ok(())
    }

    /// Remembers the digest of a new revision.
    async fn see(&mut self, name: &str, number: u64) -> Outcomes {
        let head = self.store.head(&channel(name)).await.map_err(told)?;
        if head.revision == number {
            let found = self.model.channels.get_mut(name).and_then(|it| it.revisions.last_mut());
            if let Some(revision) = found {
                revision.digest = head.digest;
            }
            self.heads.push((name.to_owned(), head));
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    pub(crate) async fn step(&mut self, step: Step) -> Outcomes {
        let store = self.writer.clone();
        match step {
            Step::Publish { who, to, back, edits, replace, expected, urgent, dry } => {
                let (mut name, mut author) = (CHANNELS[to as usize].to_owned(), actor(who));
                let replaced = replace.map(|choice| self.model.choose(choice));
                // Mostly by its author: others are refused.
                if let Some(proposal) = replaced.filter(|_| expected > 1).and_then(|id| self.model.proposals.get(&id)) {
                    name.clone_from(&proposal.channel);
                    author.name.clone_from(&proposal.author);
                }
                let name = name.as_str();
                let head = self.model.head(name);
                let base = if back == 99 { head + 5 } else { head.saturating_sub(back.into()) };
                let tree = self.model.channels.get(name).map(|it| it.tree(base)).unwrap_or_default();
                let change = |edit: &Edit| {
                    let path = PATHS[edit.path as usize];
                    let after = edit.text.map(|text| TEXTS[text as usize].as_bytes().into());
                    Change { path: path.to_owned(), before: tree.get(path).map(|text| digest(text)), after }
                };
                let present = match replaced {
                    Some(id) => self.digest(id, false).await,
                    None => Digest::of(b""),
                };
                let publish = Publish {
                    channel: channel(name),
                    base,
                    kind: RevisionKind::Publish,
                    message: "a change".to_owned(),
                    proposal: replaced,
                    expected: match expected {
                        0 => Some(Digest::of(b"other changes")),
                        1 => Some(present),
                        _ => None,
                    },
                    emergency: urgent.then(|| "now".to_owned()),
                    changes: edits.iter().flatten().map(change).collect(),
                    dry_run: dry,
                };
                let result = store.publish(publish.clone(), &author, checker()).await;
                self.compare(result, |model, id| model.publish(&publish, expected != 0, &author, id)).await
            }
            Step::Rename { who, to, from, path } => {
                let name = CHANNELS[to as usize];
                let base = self.model.head(name);
                let tree = self.model.channels.get(name).map(|it| it.tree(base)).unwrap_or_default();
                let (old, new) = (PATHS[from as usize], PATHS[path as usize]);
                let before = |path: &str| tree.get(path).map(|text| digest(text));
                let after = tree.get(old).map(|text| text.as_bytes().into());
                let changes = vec![
                    Change { path: old.to_owned(), before: before(old), after: None },
                    Change { path: new.to_owned(), before: before(new), after },
                ];
                let publish = Publish {
                    changes,
                    message: "a new name".to_owned(),
                    ..crate::sample::request(name, base, Vec::new())
                };
                let result = store.publish(publish.clone(), &actor(who), checker()).await;
                self.compare(result, |model, id| model.publish(&publish, true, &actor(who), id)).await
            }
            Step::Review { who, proposal, reject, stale, confirm } => {
                let id = self.model.choose(proposal);
                let effects = self.model.proposals.get(&id).map(|it| it.effects.clone()).unwrap_or_default();
                let new = NewReview {
                    verdict: if reject { Verdict::Reject } else { Verdict::Approve },
                    digest: self.digest(id, stale).await,
                    note: "read".to_owned(),
                    confirmed: match confirm {
                        0 => Vec::new(),
                        1 => vec!["unknown".to_owned()],
                        _ => effects.into_iter().map(|effect| effect.name).collect(),
                    },
                };
                let result = store.review(id, &new, &actor(who), checker()).await;
                self.compare(result, |model, _| model.review(id, &new, !stale, &actor(who))).await
            }
            Step::PublishProposal { who, proposal, stale, urgent } => {
                let id = self.model.choose(proposal);
                let (digest, emergency) = (self.digest(id, stale).await, urgent.then(|| "now".to_owned()));
                let result = store.publish_proposal(id, Some(digest), emergency.clone(), &actor(who), checker()).await;
                self.compare(result, |model, _| model.publish_proposal(id, !stale, emergency, &actor(who))).await
            }
            Step::Withdraw { who, proposal } => {
                let id = self.model.choose(proposal);
                let result = store.withdraw(id, &actor(who)).await.map(|it| view(&it)).map_err(refusal);
                same("answer", &result, &self.model.withdraw(id, &actor(who)))
            }
            Step::Comment { who, proposal, path, line, after, stale } => {
                let id = self.model.choose(proposal);
                let side = if after { CommentSide::After } else { CommentSide::Before };
                let new = NewComment {
                    digest: self.digest(id, stale).await,
                    path: path.map(|path| PATHS[path as usize % PATHS.len()].to_owned()),
                    line: line.map(|number| CommentLine { side, number: number.into() }),
                    text: "why?".to_owned(),
                };
                let result = store.comment(id, &new, &actor(who)).await.map(|_| ()).map_err(refusal);
                same("answer", &result, &self.model.comment(id, &new, !stale, &actor(who)))
            }
            Step::Promote { who, from, to, prompts, all, dry } => {
                let promotion = Promotion {
                    from: channel(CHANNELS[from as usize]),
                    to: channel(CHANNELS[to as usize]),
                    prompts: prompts.iter().flatten().map(|it| PROMPTS[*it as usize].to_owned()).collect(),
                    all,
                    message: String::new(),
                    dry_run: dry,
                    ends_rollout: false,
                };
                let result = store.promote(&promotion, &actor(who), checker()).await;
                self.compare(result, |model, id| model.promote(&promotion, &actor(who), id)).await
            }
            Step::RollBack { who, channel: name, back, prompt, dry } => {
                let name = CHANNELS[name as usize];
                let to = self.model.head(name).saturating_sub(back.into());
                let prompt = prompt.map(|it| PROMPTS[it as usize]);
                let result = store
                    .rollback(&Rollback { dry_run: dry, ..rollback(name, to, prompt) }, &actor(who), checker())
                    .await;
                self.compare(result, |model, id| model.rollback(name, to, prompt, dry, &actor(who), id)).await
            }
            Step::SetPolicy { who, channel: name, rules, guard, by_operator } => {
                let (name, policy, actor) = (CHANNELS[name as usize], policy(rules), actor(who));
                let present = self.model.channels.get(name).map(|it| it.policy.clone()).unwrap_or_default();
                let guard = match guard {
                    0 => PolicyGuard::Absent,
                    1 => PolicyGuard::Is(Policy { approvals: 9, ..present }),
                    2 | 3 => PolicyGuard::Is(present),
                    _ => PolicyGuard::Any,
                };
                let result = if by_operator {
                    store.set_policy(&channel(name), &policy, &guard, "rules", &actor).await.map(|_| (0, None))
                } else {
                    let result = store.propose_policy(&channel(name), &policy, &guard, "rules", &actor).await;
                    result.map(|outcome| match outcome {
                        PolicyOutcome::Changed(_) => (0, None),
                        PolicyOutcome::Proposed(proposal) => (proposal.id, Some(view(&proposal))),
                    })
                };
                let id = result.as_ref().map_or(0, |(id, _)| *id);
                let expected = self.model.change_policy(name, &policy, &guard, by_operator, &actor, id);
                same("answer", &result.map(|(_, view)| view).map_err(refusal), &expected)
            }
            Step::Evaluate { who, channel: name, prompt, proposal, back, score, threshold } => {
                let (name, prompt) = (CHANNELS[name as usize], PROMPTS[prompt as usize]);
                // The version that a proposal has, or one that was served.
                let proposed = proposal.map(|choice| self.model.choose(choice));
                let proposed = proposed.and_then(|id| self.model.proposals.get(&id)?.prompt(prompt));
                let served = self.model.channels.get(name).and_then(|it| {
                    let number = it.head().saturating_sub(back.into());
                    it.live(number).get(prompt).map(|(_, digest)| *digest)
                });
                let new = NewEvaluation {
                    evaluation: "quality".to_owned(),
                    prompt: prompt.to_owned(),
                    digest: proposed.or(served).unwrap_or(Digest::of(b"unknown")),
                    proposal: None,
                    scores: [("score".to_owned(), f64::from(score) / 2.0)].into(),
                    thresholds: threshold.then(|| ("score".to_owned(), 0.5)).into_iter().collect(),
                    tolerance: 0.0,
                    cases: Vec::new(),
                    model: None,
                    cost: None,
                    seconds: 1.0,
                };
                let result = store.add_evaluation(&channel(name), &new, &actor(who), checker()).await;
                let expected = self.model.add_evaluation(name, &new, &actor(who));
                same("answer", &result.map(|it| it.passed).map_err(refusal), &expected)
            }
            Step::Register { webhook } => {
                let id = ["all", "some"][webhook as usize];
                let events: BTreeSet<WebhookEvent> = match webhook {
                    0 => WebhookEvent::ALL.into(),
                    _ => [WebhookEvent::Reviewed, WebhookEvent::Broken].into(),
                };
                let names = events.iter().map(|event| event.as_str().to_owned()).collect();
                self.model.webhooks.insert(id.to_owned(), names);
                let webhook = Webhook { id: id.to_owned(), label: id.to_owned(), events };
                store.register_webhooks(&[webhook]).await.map_err(told)
            }
            Step::Deliver { fails } => {
                let due = self.due().await?;
                let Some((at, id)) = due.first().copied() else { return Ok(()) };
                if !fails {
                    self.model.deliveries.remove(at);
                    return store.delivered(id).await.map_err(told);
                }
                let none = Duration::ZERO;
                let attempt =
                    DeliveryAttempt { problem: "no".to_owned(), retry_in: none, retry_for: none, min_attempts: 2 };
                let delivery = &mut self.model.deliveries[at];
                delivery.attempts += 1;
                delivery.is_dead = delivery.attempts >= 2;
                let is_dead = delivery.is_dead;
                let result = store.delivery_failed(id, &attempt).await.map_err(told)?;
                same("answer", &result, &is_dead)
            }
            Step::Redeliver { letter } => {
                let letters = store.dead_letters().await.map_err(told)?;
                let dead: Vec<usize> = self.dead();
                same("dead letters", &letters.len(), &dead.len())?;
                if dead.is_empty() {
                    return same("answer", &store.redeliver(9_999).await.map_err(refusal), &Err(Refusal::NotFound));
                }
                let choice = letter as usize % dead.len();
                let delivery = &mut self.model.deliveries[dead[choice]];
                (delivery.is_dead, delivery.attempts) = (false, 0);
                store.redeliver(letters[choice].id).await.map_err(told)
            }
            Step::ReportBroken { channel: name, back } => {
                let name = CHANNELS[name as usize];
                let revision = self.model.head(name).saturating_sub(back.into());
                let result = store.report_broken(&channel(name), revision, "a problem").await.map_err(refusal);
                same("answer", &result, &self.model.report_broken(name, revision))
            }
            Step::BeginRollout { from, to, percent } => {
                let (from, to) = (CHANNELS[from as usize], CHANNELS[to as usize]);
                let (plan, ada) = (RolloutPlan::new(percent), crate::sample::actor("ada"));
                let result = store.start_rollout(&channel(from), &channel(to), &plan, "", &ada).await;
                let expected = self.model.start_rollout(from, to, percent, &ada);
                same("answer", &result.map(|_| ()).map_err(refusal), &expected)
            }
            Step::SetRollout { who, from, to, percent } => {
                let (from, to) = (CHANNELS[from as usize], CHANNELS[to as usize]);
                let target = channel(to);
                let phase = percent.is_none().then_some(RolloutPhase::Stopped);
                let edit = RolloutEdit { percent, phase, ..RolloutEdit::default() };
                let result = store.change_rollout(&channel(from), Some(&target), &edit, &actor(who)).await;
                let expected = self.model.set_rollout(from, to, percent, &actor(who));
                same("answer", &result.map(|_| ()).map_err(refusal), &expected)
            }
            Step::CreateToken { who, helper } => {
                let name = if helper { "helper" } else { "robot" };
                self.tokens += 1;
                let new = NewToken { name: name.to_owned(), ..NewToken::default() };
                let digest = Digest::of(&self.tokens.to_le_bytes());
                store.create_token(&new, digest, &actor(who), true).await.map_err(told)?;
                let creator = actor(who).name;
                self.model.tokens.push(crate::model::Token { name: name.to_owned(), creator, revoker: None });
                Ok(())
            }
            Step::RevokeToken { who, token } => {
                let tokens = store.tokens().await.map_err(told)?;
                if tokens.is_empty() {
                    let result = store.revoke_token(9_999, &actor(who)).await.map(|_| ()).map_err(refusal);
                    return same("answer", &result, &Err(Refusal::NotFound));
                }
                let choice = token as usize % tokens.len();
                store.revoke_token(tokens[choice].id, &actor(who)).await.map_err(told)?;
                // The newest is the first.
                let at = self.model.tokens.len() - 1 - choice;
                self.model.tokens[at].revoker.get_or_insert(actor(who).name);
                Ok(())
            }
            Step::AddUsage { batch, prompt, count } => {
                let key = UsageKey {
                    channel: "production".to_owned(),
                    prompt: PROMPTS[prompt as usize].to_owned(),
                    version: 1,
                    client: String::new(),
                    client_version: String::new(),
                    protocol: String::new(),
                    method: String::new(),
                    outcome: String::new(),
                };
                let figures = UsageFigures { count: count.into(), ..UsageFigures::default() };
                let batch = format!("batch {batch}");
                self.model.add_usage(&batch, &key.prompt, count.into());
                store.add_usage(&batch, Timestamp::now(), &[(key, figures)].into()).await.map_err(told)
            }
            Step::Signal { source } => {
                let source = format!("source {source}");
                *self.model.signals.entry(source.clone()).or_default() += 1;
                store.signal_sources(&[source]).await.map_err(told)
            }
            Step::Upload { text } => {
                let text = TEXTS[text as usize];
                self.model.upload(text);
                let result = store.add_contents(vec![text.as_bytes().to_vec()], "ada").await.map_err(refusal);
                same("answer", &result, &Ok(vec![digest(text)]))
            }
            Step::Collect => same("garbage", &store.gc().await.map_err(refusal), &Ok(self.model.gc())),
            Step::Prune { keep } => {
                // What is kept is from the future meanwhile. Digests cover the times, so they have to come back.
                let year: i64 = 365 * 24 * 60 * 60 * 1_000_000;
                let shift = async |by: i64| {
                    let newest = "SELECT c.revision FROM ps_channel c WHERE c.id = ps_revision.channel";
                    let sql = format!("UPDATE ps_revision SET at = at + {by} WHERE number > ({newest}) - {keep}");
                    tamper(&self.place.url().to_string(), &sql).await;
                };
                if keep > 0 {
                    shift(year).await;
                }
                let result = store.prune(Duration::ZERO).await.map_err(refusal);
                if keep > 0 {
                    shift(-year).await;
                }
                same("pruned", &result, &Ok(self.model.prune(keep.into())))?;
                // The oldest revision that is left is whole.
                for (name, of) in self.model.channels.iter().filter(|(_, of)| of.oldest > 0) {
                    let (_, tree) = store.tree(&channel(name), Some(of.oldest)).await.map_err(told)?;
                    same("tree of the oldest revision", &texts(&tree), &of.tree(of.oldest))?;
                }
                Ok(())
            }
            Step::NewEpoch => {
                self.model.epoch = store.new_epoch().await.map_err(told)?.to_string();
                Ok(())
            }
            Step::Reopen => {
                store.close().await;
                self.open().await?;
                Ok(())
            }
            Step::BackUp | Step::Restore => {
                let Place::Sqlite { folder } = &self.place else { return Ok(()) };
                let (file, copy) = (folder.path().join("team.db"), folder.path().join("copy.db"));
                store.close().await;
                let is_backup = matches!(step, Step::BackUp);
                if is_backup {
                    std::fs::copy(&file, &copy).map_err(|error| error.to_string())?;
                    self.backup = Some(self.model.clone());
                } else if let Some(backup) = &self.backup {
                    std::fs::copy(&copy, &file).map_err(|error| error.to_string())?;
                    self.model = backup.clone();
                }
                self.open().await?;
                if !is_backup {
                    self.model.epoch = self.store.new_epoch().await.map_err(told)?.to_string();
                }
                Ok(())
            }
        }
    }

    /// The deliveries whose turn it is: their indexes in the model, and their numbers in the store.
    async fn due(&self) -> Result<Vec<(usize, u64)>, String> {
        let ids: Vec<String> = self.model.webhooks.keys().cloned().collect();
        let found = self.store.due_deliveries(&ids).await.map_err(told)?;
        let due = self.model.due();
        let shown = |it: &promptshelf_store::Delivery| {
            let body: Value = serde_json::from_str(&it.body).unwrap_or_default();
            let prompts = body["prompts"].as_array().into_iter().flatten();
            let prompts = prompts.map(|it| {
                (it["name"].as_str().unwrap_or_default().to_owned(), it["version"].as_u64().unwrap_or_default())
            });
            crate::model::Delivery {
                webhook: it.webhook.clone(),
                event: it.event,
                channel: it.channel.clone(),
                revision: body["revision"].as_u64(),
                proposal: body["proposal"].as_u64(),
                author: body["author"].as_str().map(str::to_owned),
                prompts: prompts.collect(),
                attempts: it.attempts,
                is_dead: false,
            }
        };
        let expected: Vec<_> = due.iter().map(|at| self.model.deliveries[*at].clone()).collect();
        same("due deliveries", &found.iter().map(shown).collect(), &expected)?;
        Ok(due.into_iter().zip(found).map(|(at, delivery)| (at, delivery.id)).collect())
    }

    /// The indexes of the dead letters, the newest first.
    fn dead(&self) -> Vec<usize> {
        (0..self.model.deliveries.len()).rev().filter(|at| self.model.deliveries[*at].is_dead).collect()
    }

    /// Compares what every step may change: all heads and policies, the newest proposals, the deliveries whose turn it is, and
    /// the files and prompts of the channels whose head or oldest revision is another one.
    async fn read(&mut self, proposals: usize) -> Outcomes {
        let (store, model) = (self.store.clone(), &self.model);
        let channels = store.channels().await.map_err(told)?;
        let found: Vec<_> = channels
            .iter()
            .map(|it| {
                (it.name.to_string(), it.head.revision, it.head.digest, it.policy.clone(), it.head.epoch.to_string())
            })
            .collect();
        let expected = model.channels.iter().map(|(name, it)| {
            let digest = it.at(it.head()).and_then(|revision| revision.digest);
            (name.clone(), it.head(), digest, it.policy.clone(), model.epoch.clone())
        });
        same("channels", &found, &expected.collect())?;
        let query = ProposalQuery { limit: proposals, ..ProposalQuery::default() };
        let found = store.proposals(&query).await.map_err(told)?;
        let expected = model.proposals.keys().rev().take(proposals).map(|id| (*id, model.view(*id)));
        same("proposals", &found.iter().map(|it| (it.id, Some(view(it)))).collect::<Vec<_>>(), &expected.collect())?;
        for proposal in &found {
            let Some(known) = model.proposals.get(&proposal.id) else { continue };
            if let Some(subject) = self.subjects.get(&proposal.digest) {
                same("what a digest is of", subject, &known.about())?;
            } else {
                let is_new = self.subjects.values().all(|subject| *subject != known.about());
                same("the same changes have one digest", &is_new, &true)?;
                self.subjects.insert(proposal.digest, known.about());
            }
        }
        for (name, of) in &model.channels {
            let place = (of.oldest, of.at(of.head()).and_then(|revision| revision.digest));
            if proposals < ALL && self.read.insert(name.clone(), place) == Some(place) {
                continue;
            }
            let (head, files) = store.files(&channel(name), None).await.map_err(told)?;
            let files: Vec<_> = files.into_iter().map(|file| (file.path, file.digest, file.size)).collect();
            let expected = of.tree(of.head()).into_iter().map(|(path, text)| (path, digest(&text), text.len() as u64));
            same("files", &files, &expected.collect())?;
            let served = store.served(&channel(name), head.revision).await.map_err(told)?;
            let served: Vec<_> =
                served.into_iter().map(|it| (it.name, it.version, it.digest, it.since, it.until)).collect();
            let expected = of.live(of.head()).iter().map(|(name, (version, digest))| {
                let since = of.since(name, of.head());
                (name.clone(), *version, *digest, since, None)
            });
            same("served", &served, &expected.collect())?;
            let query = HistoryQuery { limit: 1, ..HistoryQuery::default() };
            let newest = store.history(&channel(name), &query).await.map_err(told)?;
            let newest: Vec<u64> = newest.iter().map(|it| it.number).collect();
            let head = of.head();
            same("newest revision", &newest, &(head..=head).filter(|number| *number > 0).collect())?;
        }
        self.due().await?;
        Ok(())
    }

    /// Compares everything.
    pub(crate) async fn read_all(&mut self, turn: usize) -> Outcomes {
        self.read(ALL).await?;
        let (store, model) = (self.store.clone(), &self.model);
        for verified in store.verify().await.map_err(told)? {
            same("verified", &verified.misfit, &None)?;
        }
        for (name, of) in &model.channels {
            let place = channel(name);
            let query = HistoryQuery { limit: 1_000, ..HistoryQuery::default() };
            let history = store.history(&place, &query).await.map_err(told)?;
            let numbers: Vec<u64> = (of.oldest.max(1)..=of.head()).rev().collect();
            same("history", &history.iter().map(|it| it.number).collect(), &numbers)?;
            for found in &history {
                let Some(known) = of.at(found.number) else { continue };
                let shown = (
                    (found.kind, found.author.clone(), found.message.clone(), found.proposal),
                    (found.approved_by.clone(), found.emergency.clone(), found.checks, found.policy.clone()),
                    (found.digest, found.prompts.clone()),
                );
                let expected = (
                    (known.kind, known.author.clone(), known.message.clone(), known.proposal),
                    (known.approved_by.clone(), known.emergency.clone(), known.checks, Some(known.policy.clone())),
                    (known.digest, of.changes(found.number)),
                );
                same(&format!("revision {} of {name}", found.number), &shown, &expected)?;
            }
            let is_in_time = history.windows(2).all(|pair| pair[0].at >= pair[1].at);
            same("times are in order", &is_in_time, &true)?;
            // An older revision, each time another one.
            let number = of.oldest + turn as u64 % (of.head() - of.oldest + 1);
            let (_, tree) = store.tree(&place, Some(number)).await.map_err(told)?;
            same("tree", &texts(&tree), &of.tree(number))?;
            if number > 0 {
                let served = store.served(&place, number).await.map_err(told)?;
                let served: Vec<_> = served.into_iter().map(|it| (it.name, it.version, it.since, it.until)).collect();
                let expected = of.live(number).iter().map(|(name, (version, _))| {
                    let (since, until) = (of.since(name, number), of.until(name, number));
                    (name.clone(), *version, since, until)
                });
                same("served earlier", &served, &expected.collect())?;
            }
            let prompt = PROMPTS[turn % PROMPTS.len()];
            let query = HistoryQuery { prompt: Some(prompt.to_owned()), limit: 1_000, ..HistoryQuery::default() };
            let history = store.history(&place, &query).await.map_err(told)?;
            let expected =
                numbers.iter().filter(|number| of.changes(**number).iter().any(|it| it.name == prompt)).copied();
            same("history of a prompt", &history.iter().map(|it| it.number).collect::<Vec<_>>(), &expected.collect())?;
            let policies = store.policy_history(&place, None, 1_000).await.map_err(told)?;
            let entry = |it: promptshelf_store::PolicyChange| crate::model::PolicyEntry {
                actor: it.actor,
                before: it.before,
                after: it.after,
                proposal: it.proposal,
                approved_by: it.approved_by,
                emergency: it.emergency,
                by_operator: it.by_operator,
            };
            let expected: Vec<_> = of.policies.iter().rev().cloned().collect();
            same("policies", &policies.into_iter().map(entry).collect(), &expected)?;
            let evaluations = store.evaluations(&place, &EvaluationQuery::default()).await.map_err(told)?;
            let found: Vec<_> =
                evaluations.into_iter().map(|it| (it.evaluation, it.prompt, it.digest, it.passed, it.author)).collect();
            let expected = model
                .evaluations(name)
                .into_iter()
                .map(|it| (it.evaluation.clone(), it.prompt.clone(), it.digest, it.passed, it.author.clone()));
            same("evaluations", &found, &expected.collect())?;
        }
        self.read_deltas(turn).await?;
        self.read_rest().await
    }

    async fn read_deltas(&self, turn: usize) -> Outcomes {
        let Some((name, head)) = self.heads.get(turn % self.heads.len().max(1)) else { return Ok(()) };
        let Some(of) = self.model.channels.get(name) else { return Ok(()) };
        let delta = self.store.delta(&channel(name), Some(head)).await.map_err(told)?;
        let is_known = head.epoch.to_string() == self.model.epoch
            && of.has(head.revision)
            && of.at(head.revision).is_some_and(|revision| revision.digest == head.digest);
        same("the delta is complete", &delta.is_complete, &!is_known)?;
        let mut tree: BTreeMap<String, Digest> = if is_known {
            of.tree(head.revision).into_iter().map(|(path, text)| (path, digest(&text))).collect()
        } else {
            BTreeMap::new()
        };
        for path in &delta.removed {
            same("a removed file is not a changed one", &delta.files.iter().any(|file| file.path == *path), &false)?;
            same("a removed file was there", &tree.remove(path).is_some(), &true)?;
        }
        tree.extend(delta.files.into_iter().map(|file| (file.path, file.digest)));
        let expected: BTreeMap<String, Digest> =
            of.tree(of.head()).into_iter().map(|(path, text)| (path, digest(&text))).collect();
        same("the delta leads to the head", &tree, &expected)?;
        same("digest of the tree", &delta.tree, &(of.head() > 0).then(|| Digest::of_tree(&expected)))
    }

    async fn read_rest(&self) -> Outcomes {
        let (store, model) = (&self.store, &self.model);
        let query = StandingQuery { limit: 100, ..StandingQuery::default() };
        let standings = store.standings(&query, |_| true).await.map_err(told)?;
        let found: BTreeSet<_> = standings
            .prompts
            .iter()
            .flat_map(|it| it.channels.iter().map(|of| (it.name.clone(), of.channel.to_string(), of.version, of.since)))
            .collect();
        let expected = model.channels.iter().flat_map(|(channel, of)| {
            let live = of.live(of.head()).iter();
            live.map(move |(name, (version, _))| {
                let since = of.since(name, of.head());
                (name.clone(), channel.clone(), *version, since)
            })
        });
        same("standings", &found, &expected.collect())?;
        for (id, proposal) in &model.proposals {
            let comments = store.comments(*id).await.map_err(told)?;
            let found = comments.into_iter().map(|it| (it.author, it.text, it.path)).collect();
            same("comments", &found, &proposal.comments)?;
            let Subject::Files(changes) = &proposal.subject else { continue };
            let are_there = changes
                .values()
                .flat_map(|(before, after)| [*before, *after])
                .flatten()
                .all(|it| model.has_content(it));
            let contents = store.proposal_contents(*id).await;
            same("the contents of a proposal are there", &contents.is_ok(), &are_there)?;
            let found: Vec<_> = contents
                .into_iter()
                .flatten()
                .map(|(path, before, after)| {
                    let text =
                        |bytes: Option<Arc<[u8]>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                    (path, text(before), text(after))
                })
                .collect();
            let text = |of: &Option<Digest>| of.map(|of| model.text(of));
            let expected = changes.iter().map(|(path, (before, after))| (path.clone(), text(before), text(after)));
            same("contents of a proposal", &found, &expected.filter(|_| are_there).collect())?;
        }
        let queues = store.webhooks().await.map_err(told)?;
        let found: Vec<_> = queues.into_iter().map(|it| (it.id, it.pending, it.dead)).collect();
        let expected = model.webhooks.keys().map(|id| {
            let count = |is_dead: bool| {
                let of = model.deliveries.iter().filter(|it| it.webhook == *id && it.is_dead == is_dead);
                of.count() as u64
            };
            (id.clone(), count(false), count(true))
        });
        same("webhooks", &found, &expected.collect())?;
        let rollouts = store.rollouts().await.map_err(told)?;
        let found: BTreeMap<_, _> = rollouts
            .into_iter()
            .map(|it| {
                let changes = it.history.first().map_or(0, |change| change.number);
                let rollout =
                    crate::model::Rollout { percent: it.percent, phase: it.phase, changed_by: it.changed_by, changes };
                ((it.channel.to_string(), it.target.to_string()), rollout)
            })
            .collect();
        same("rollouts", &found, &model.rollouts)?;
        let tokens = store.tokens().await.map_err(told)?;
        let found: Vec<_> = tokens
            .into_iter()
            .rev()
            .map(|it| crate::model::Token { name: it.name, creator: it.creator, revoker: it.revoker })
            .collect();
        same("tokens", &found, &model.tokens)?;
        let usage = store.usage(&UsageQuery::default()).await.map_err(told)?;
        let usage = usage.into_iter().map(|(key, figures)| (key.prompt, figures.count)).collect();
        same("usage", &usage, &model.usage)?;
        same("signals", &store.source_signals().await.map_err(told)?, &model.signals)
    }
}

/// A store that others are copies of.
pub(crate) struct Template {
    place: Place,
    model: Model,
}

impl Template {
    /// A copy of the store, with handles of its own.
    pub(crate) async fn again(&self) -> Run {
        let place = match &self.place {
            Place::Sqlite { folder } => {
                let copy = Place::sqlite();
                if let Place::Sqlite { folder: to } = &copy {
                    std::fs::copy(folder.path().join("team.db"), to.path().join("team.db")).unwrap();
                }
                copy
            }
            Place::Postgres { url } => {
                let (original, url) = (url.to_string(), Place::postgres().url());
                let (from, to) = (database(&original), url.to_string());
                let to = database(&to);
                Postgres::shared().sql("postgres", &format!("DROP DATABASE {to}"));
                Postgres::shared().sql("postgres", &format!("CREATE DATABASE {to} TEMPLATE {from}"));
                Place::Postgres { url }
            }
        };
        let store = Store::open(&place.url()).await.unwrap();
        let writer = Store::open(&place.url()).await.unwrap();
        let (read, subjects) = (HashMap::new(), HashMap::new());
        let model = self.model.clone();
        Run { place, store, writer, model, backup: None, heads: Vec::new(), read, subjects, tokens: 100 }
    }
}

fn database(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}

impl Run {
    /// Closes the store, and keeps it for copies.
    pub(crate) async fn into_template(self) -> Template {
        self.store.close().await;
        self.writer.close().await;
        Template { place: self.place, model: self.model }
    }

    pub(crate) async fn end(self) {
        let url = self.place.url().to_string();
        self.store.close().await;
        self.writer.close().await;
        if let Place::Postgres { .. } = &self.place {
            Postgres::shared().sql("postgres", &format!("DROP DATABASE {}", database(&url)));
        }
    }

    /// Takes what differs between two runs of one operation from the store: digests of revisions, which cover times, and the epoch.
    pub(crate) async fn see_again(&mut self) -> Outcomes {
        for info in self.store.channels().await.map_err(told)? {
            self.model.epoch = info.head.epoch.to_string();
            let found = self.model.channels.get_mut(info.name.as_str()).and_then(|it| it.revisions.last_mut());
            if let Some(revision) = found {
                revision.digest = info.head.digest;
            }
        }
        Ok(())
    }

    /// The model with an approval whose publish did not happen: an operation of two transactions was cut between them.
    pub(crate) fn only_reviewed(&self, before: &Model, step: Step) -> Option<Model> {
        let Step::Review { who, proposal, reject: false, confirm, .. } = step else { return None };
        let mut between = before.clone();
        let id = between.choose(proposal);
        let effects = between.proposals.get(&id).map(|it| it.effects.clone()).unwrap_or_default();
        let confirmed = effects.into_iter().map(|effect| effect.name).filter(|_| confirm > 1).collect();
        let note = "read".to_owned();
        let new = NewReview { verdict: Verdict::Approve, digest: Digest::of(b""), note, confirmed };
        between.add_review(id, &new, true, &actor(who)).ok()?;
        Some(between)
    }
}

/// Runs a sequence on a new store and on the model. Returns the number of the step that differs, and how.
async fn compare(place: Place, steps: &[Step]) -> Result<(), (usize, String)> {
    let mut run = Run::new(place).await;
    for (number, step) in steps.iter().enumerate() {
        let at = |problem: String| (number, format!("step {}, {step:?}: {problem}", number + 1));
        run.step(*step).await.map_err(at)?;
        let is_whole = number % 20 == 19 || number + 1 == steps.len();
        if is_whole { run.read_all(number).await } else { run.read(6).await }.map_err(at)?;
    }
    run.end().await;
    Ok(())
}

/// Leaves out steps as long as the sequence still fails. Returns how it fails then.
fn shrink(
    steps: &mut Vec<Step>,
    first: (usize, String),
    run: impl Fn(&[Step]) -> Result<(), (usize, String)>,
) -> String {
    let (last, mut problem) = first;
    steps.truncate(last + 1);
    let mut size = steps.len() / 2;
    let end = Instant::now() + Duration::from_secs(120);
    while size > 0 && Instant::now() < end {
        let mut from = 0;
        while from + size < steps.len() {
            let fewer = [&steps[..from], &steps[from + size..]].concat();
            match run(&fewer) {
                Err((last, found)) => {
                    *steps = fewer;
                    steps.truncate(last + 1);
                    problem = found;
                }
                Ok(()) => from += size,
            }
        }
        size /= 2;
    }
    problem
}

/// Runs sequences, and prints the shortest one that fails as a test.
fn sequences(backend: &'static str, seed: u64, normally: u64) {
    let count = amount("MODEL_SEQUENCES").unwrap_or(normally);
    let seed = seed + amount("MODEL_SEED").unwrap_or_default() * 1_000;
    let (started, minutes) = (Instant::now(), amount("MODEL_MINUTES").unwrap_or(u64::MAX / 60));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut random = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = proptest::collection::vec(step(), 60..=64);
    let run = |steps: &[Step]| {
        runtime.block_on(async {
            let place = if backend == "sqlite" { Place::sqlite() } else { Place::postgres() };
            compare(place, steps).await
        })
    };
    let (mut done, mut all) = (0, 0);
    while done < count && started.elapsed().as_secs() < minutes * 60 {
        let mut steps = strategy.new_tree(&mut random).unwrap().current();
        if let Err(first) = run(&steps) {
            let problem = if amount("MODEL_SHRINK") == Some(0) { first.1 } else { shrink(&mut steps, first, run) };
            let steps: String = steps.iter().map(|step| format!("        Step::{step:?},\n")).collect();
            panic!(
                "sequence {done} of seed {seed}: {problem}\n\n#[tokio::test]\nasync fn sequence_{done}_of_seed_{seed}() {{\n    \
                 let steps = [\n{steps}    ];\n    compare(Place::{backend}(), &steps).await.unwrap();\n}}\n"
            );
        }
        (done, all) = (done + 1, all + steps.len());
    }
    let seconds = started.elapsed().as_secs();
    figure(&format!("model on {backend}: {done} sequences, {all} steps, seed {seed}, {seconds} s"));
}

// req: S-450
#[test]
fn sequences_on_sqlite_are_those_of_the_model() {
    sequences("sqlite", 1, 100);
}

// req: S-450
#[test]
fn other_sequences_on_sqlite_are_those_of_the_model() {
    sequences("sqlite", 2, 100);
}

// req: S-450
#[test]
fn sequences_on_postgres_are_those_of_the_model() {
    sequences("postgres", 3, 10);
}

/// A file that only the oldest of the kept revisions still has.
// req: S-450
#[tokio::test]
async fn kept_revisions_are_whole() {
    let who = Who { name: 0, may_publish: true, may_administer: true };
    let publish =
        |edits| Step::Publish { who, to: 0, back: 0, edits, replace: None, expected: 2, urgent: false, dry: false };
    let write = |path, text| Some(Edit { path, text });
    let steps = [
        publish([write(0, Some(0)), write(1, Some(1)), None]),
        publish([write(0, Some(1)), None, None]),
        publish([write(1, None), None, None]),
        publish([write(0, Some(2)), None, None]),
        Step::Prune { keep: 2 },
        Step::Collect,
    ];
    compare(Place::sqlite(), &steps).await.unwrap();
}

// req: S-450
#[tokio::test]
async fn contents_that_an_open_proposal_replaces_stay() {
    let who = Who { name: 0, may_publish: true, may_administer: true };
    let writer = Who { may_publish: false, ..who };
    let publish = |who, text| Step::Publish {
        who,
        to: 0,
        back: 0,
        edits: [Some(Edit { path: 0, text: Some(text) }), None, None],
        replace: None,
        expected: 2,
        urgent: false,
        dry: false,
    };
    let steps = [publish(who, 0), publish(writer, 1), publish(who, 2), Step::Prune { keep: 0 }, Step::Collect];
    compare(Place::sqlite(), &steps).await.unwrap();
    // What the last revision replaces belongs to the one before.
    let steps = [publish(who, 0), publish(who, 1), publish(who, 2), Step::Prune { keep: 1 }, Step::Collect];
    compare(Place::sqlite(), &steps).await.unwrap();
}

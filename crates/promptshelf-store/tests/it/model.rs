//! A reference model of a store: plain maps and lists, without SQL, transactions or caches. It says what every operation
//! answers and what every read shows afterwards.
//!
//! Times, sentences and digests of proposals are not part of it. Numbers of proposals are taken from the store, because
//! PostgreSQL skips some.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{
    Actor, CheckLevel, CheckReport, CheckSummary, Checker, CommentSide, Digest, Effect, EffectImpact, FileChange,
    NewComment, NewEvaluation, NewReview, Policy, PolicyGuard, Promotion, PromptChange, PromptChangeKind,
    ProposalState, ProposedPolicy, Publish, RevisionKind, RolloutPhase, Trees, Verdict, WebhookEvent, check_now,
};

use crate::sequences::SequenceChecker;

/// The texts of files, by path.
pub(crate) type Tree = BTreeMap<String, String>;

/// The served prompts, by name: the version and its digest.
type Live = BTreeMap<String, (u64, Digest)>;

/// Why an operation is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotFound,
    State,
    Changed,
    Conflict(Vec<String>, u64),
    Unchanged,
    Invalid,
    /// With the codes of the reasons.
    Policy(Vec<String>),
    Unreachable,
    Database,
    Other(String),
}

/// What a review is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a model has few of them")]
pub(crate) enum Subject {
    Files(BTreeMap<String, (Option<Digest>, Option<Digest>)>),
    Policy(ProposedPolicy),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Review {
    pub(crate) reviewer: String,
    pub(crate) verdict: Verdict,
    of: (RevisionKind, String, Subject),
    note: String,
    confirmed: Vec<String>,
    lapsed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) channel: String,
    base: u64,
    kind: RevisionKind,
    message: String,
    pub(crate) author: String,
    pub(crate) state: ProposalState,
    pub(crate) subject: Subject,
    reviews: Vec<Review>,
    checks: CheckSummary,
    pub(crate) effects: Vec<Effect>,
    source: Option<(String, u64, bool)>,
    revision: Option<u64>,
    /// The prompts that it adds or changes, as far as evaluations need them.
    prompts: Vec<(String, Digest)>,
    pub(crate) comments: Vec<(String, String, Option<String>)>,
    /// Whether a rollout to its source was stopped since.
    was_stopped: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) kind: RevisionKind,
    pub(crate) author: String,
    pub(crate) message: String,
    pub(crate) proposal: u64,
    pub(crate) approved_by: Vec<String>,
    pub(crate) emergency: Option<String>,
    pub(crate) checks: CheckSummary,
    pub(crate) policy: Policy,
    pub(crate) tree: Tree,
    pub(crate) live: Live,
    /// As the store has told it when the revision was new.
    pub(crate) digest: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyEntry {
    pub(crate) actor: String,
    pub(crate) before: Option<Policy>,
    pub(crate) after: Policy,
    pub(crate) proposal: Option<u64>,
    pub(crate) approved_by: Vec<String>,
    pub(crate) emergency: Option<String>,
    pub(crate) by_operator: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    /// All revisions that ever were; the first has the number 1.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) oldest: u64,
    pub(crate) policy: Policy,
    /// The oldest first.
    pub(crate) policies: Vec<PolicyEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) webhook: String,
    pub(crate) event: WebhookEvent,
    pub(crate) channel: String,
    pub(crate) revision: Option<u64>,
    pub(crate) proposal: Option<u64>,
    pub(crate) author: Option<String>,
    pub(crate) prompts: Vec<(String, u64)>,
    pub(crate) attempts: u64,
    pub(crate) is_dead: bool,
}

impl Proposal {
    /// What a review is of. The message of a change of the policy stays as it is.
    pub(crate) fn about(&self) -> (RevisionKind, String, Subject) {
        let is_of_files = matches!(self.subject, Subject::Files(_));
        let message = if is_of_files { self.message.clone() } else { String::new() };
        (self.kind, message, self.subject.clone())
    }

    /// The effects that a review confirms as they are at present. Their texts follow from their names here.
    fn confirmed<'a>(&'a self, review: &'a Review) -> impl Iterator<Item = &'a String> {
        let is_present = |name: &&String| self.effects.iter().any(|effect| effect.name == **name);
        review.confirmed.iter().filter(move |name| review.verdict == Verdict::Reject || is_present(name))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Result_ {
    pub(crate) evaluation: String,
    pub(crate) prompt: String,
    pub(crate) digest: Digest,
    pub(crate) passed: bool,
    score: f64,
    pub(crate) author: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rollout {
    pub(crate) percent: u8,
    pub(crate) phase: RolloutPhase,
    pub(crate) changed_by: String,
    pub(crate) changes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) name: String,
    pub(crate) creator: String,
    pub(crate) revoker: Option<String>,
}

/// A proposal as a read shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) channel: String,
    pub(crate) base: u64,
    pub(crate) kind: RevisionKind,
    pub(crate) message: String,
    pub(crate) author: String,
    pub(crate) creators: Vec<String>,
    pub(crate) state: ProposalState,
    pub(crate) changes: Vec<FileChange>,
    /// Reviewer, verdict, note, confirmed effects, whether it is of the present changes, and whether it has lapsed.
    pub(crate) reviews: Vec<(String, Verdict, String, Vec<String>, bool, bool)>,
    pub(crate) checks: CheckSummary,
    pub(crate) effects: Vec<Effect>,
    pub(crate) policy: Option<ProposedPolicy>,
    pub(crate) source: Option<(String, u64, bool)>,
    pub(crate) revision: Option<u64>,
    pub(crate) reasons: Vec<String>,
}

/// What an operation on a proposal answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) view: View,
    pub(crate) prompts: Vec<PromptChange>,
    pub(crate) findings: Vec<String>,
    pub(crate) kept: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) proposals: BTreeMap<u64, Proposal>,
    /// The digests that each channel has served, by channel and prompt; the first is version 1.
    versions: BTreeMap<(String, String), Vec<Digest>>,
    /// Sizes of contents that are stored.
    contents: BTreeMap<Digest, u64>,
    /// The texts of all contents that ever were.
    texts: BTreeMap<Digest, String>,
    pub(crate) webhooks: BTreeMap<String, BTreeSet<String>>,
    pub(crate) deliveries: Vec<Delivery>,
    /// The newest revision of each channel that was announced as broken.
    broken: BTreeMap<String, u64>,
    pub(crate) evaluations: Vec<Result_>,
    pub(crate) rollouts: BTreeMap<(String, String), Rollout>,
    pub(crate) tokens: Vec<Token>,
    batches: BTreeSet<String>,
    pub(crate) usage: BTreeMap<String, u64>,
    pub(crate) signals: BTreeMap<String, u64>,
    pub(crate) epoch: String,
}

/// What is to become a proposal or a revision.
struct Draft {
    channel: String,
    base: u64,
    kind: RevisionKind,
    message: String,
    author: String,
    may_publish: bool,
    may_administer: bool,
    target: Target,
    emergency: Option<String>,
    /// By path: the content before, the text from then on.
    changes: BTreeMap<String, (Option<Digest>, Option<String>)>,
    source: Option<(String, u64, bool)>,
    dry_run: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    New,
    /// With whether the replaced proposal still has the expected changes.
    Replace(u64, bool),
    Existing(u64),
}

/// A checked draft on the newest revision of its channel.
struct Basis {
    before: Live,
    /// The changes that make a difference.
    changes: BTreeMap<String, (Option<Digest>, Option<String>)>,
    tree: Tree,
    report: CheckReport,
    effects: Vec<Effect>,
    found: BTreeMap<String, Digest>,
}

pub(crate) fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn memory(tree: &Tree) -> MemoryTree {
    tree.iter().map(|(path, text)| (path.clone(), MemoryFile::new(Arc::<[u8]>::from(text.as_bytes())))).collect()
}

fn same_person(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

impl Proposal {
    /// The version of a prompt that it asks for.
    pub(crate) fn prompt(&self, prompt: &str) -> Option<Digest> {
        self.prompts.iter().find(|(name, _)| name == prompt).map(|(_, digest)| *digest)
    }
}

impl Channel {
    pub(crate) fn head(&self) -> u64 {
        self.revisions.len() as u64
    }

    /// The revision with a number; `None` for 0.
    pub(crate) fn at(&self, number: u64) -> Option<&Revision> {
        self.revisions.get(usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1))
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        (self.oldest..=self.head()).contains(&number)
    }

    pub(crate) fn tree(&self, number: u64) -> Tree {
        self.at(number).map(|revision| revision.tree.clone()).unwrap_or_default()
    }

    pub(crate) fn live(&self, number: u64) -> &Live {
        const NONE: &Live = &Live::new();
        self.at(number).map_or(NONE, |revision| &revision.live)
    }

    /// The first revision from which on a prompt had the version that it has at a revision.
    pub(crate) fn since(&self, name: &str, number: u64) -> u64 {
        let version = self.live(number).get(name).map(|(version, _)| *version);
        let is_same = |number: &u64| self.live(*number).get(name).map(|(version, _)| *version) == version;
        (1..=number).rev().take_while(is_same).last().unwrap_or(number)
    }

    /// The first revision after a number in which a prompt has another version or is gone.
    pub(crate) fn until(&self, name: &str, number: u64) -> Option<u64> {
        let version = self.live(number).get(name).map(|(version, _)| *version);
        (number + 1..=self.head()).find(|later| self.live(*later).get(name).map(|(version, _)| *version) != version)
    }

    /// What a revision did to prompts.
    pub(crate) fn changes(&self, number: u64) -> Vec<PromptChange> {
        differences(self.live(number - 1), self.live(number))
    }

    /// Whether a version of a prompt is, or was in revisions that are still told of, served.
    fn has_served(&self, name: &str, of: Digest) -> bool {
        let told = self.oldest.saturating_sub(1).max(1)..=self.head();
        told.into_iter().any(|number| self.live(number).get(name).is_some_and(|(_, digest)| *digest == of))
    }
}

fn differences(before: &Live, after: &Live) -> Vec<PromptChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let version = |live: &Live, name: &String| live.get(name).map(|(version, _)| *version);
    let change = |name: &&String| {
        let (old, new) = (version(before, name), version(after, name));
        let change = match (old, new) {
            (old, new) if old == new => return None,
            (_, None) => PromptChangeKind::Removed,
            (None, _) => PromptChangeKind::Added,
            _ => PromptChangeKind::Changed,
        };
        Some(PromptChange { name: (*name).clone(), version: new.or(old)?, previous: old, change })
    };
    names.iter().filter_map(change).collect()
}

fn asks(policy: &Policy) -> bool {
    policy.approvals > 0 || policy.four_eyes
}

/// Whether a policy demands less than another one.
fn is_looser(before: &Policy, after: &Policy) -> bool {
    let level = |policy: &Policy| {
        [CheckLevel::Off, CheckLevel::Errors, CheckLevel::Warnings].iter().position(|level| *level == policy.checks)
    };
    let widened = |old: &[String], new: &[String]| {
        !old.is_empty() && (new.is_empty() || !new.iter().all(|role| old.contains(role)))
    };
    after.approvals < before.approvals
        || (before.four_eyes && !after.four_eyes)
        || level(after) < level(before)
        || (before.tests && !after.tests)
        || !before.evaluations.iter().all(|name| after.evaluations.contains(name))
        || (before.no_regression && !after.no_regression)
        || (before.no_breaking && !after.no_breaking)
        || widened(&before.roles.propose, &after.roles.propose)
        || widened(&before.roles.review, &after.roles.review)
        || widened(&before.roles.publish, &after.roles.publish)
        || widened(&before.roles.administer, &after.roles.administer)
}

impl Model {
    pub(crate) fn head(&self, channel: &str) -> u64 {
        self.channels.get(channel).map_or(0, Channel::head)
    }

    pub(crate) fn text(&self, of: Digest) -> String {
        self.texts.get(&of).cloned().unwrap_or_default()
    }

    fn known(&self, channel: &str) -> Result<&Channel, Refusal> {
        self.channels.get(channel).ok_or(Refusal::NotFound)
    }

    fn open(&self, id: u64) -> Result<&Proposal, Refusal> {
        let proposal = self.proposals.get(&id).ok_or(Refusal::NotFound)?;
        if proposal.state == ProposalState::Open { Ok(proposal) } else { Err(Refusal::State) }
    }

    /// Who created the token of a caller, and the token of that one, and so on.
    fn creators(&self, caller: &str) -> Vec<String> {
        let mut found: BTreeSet<String> = BTreeSet::new();
        let mut waiting = vec![caller.to_owned()];
        while let Some(caller) = waiting.pop() {
            let Some(name) = caller.strip_prefix("token/") else { continue };
            for token in self.tokens.iter().filter(|token| token.name == name) {
                if found.insert(token.creator.clone()) {
                    waiting.push(token.creator.clone());
                }
            }
        }
        found.remove(caller);
        found.into_iter().collect()
    }

    fn is_by(&self, proposal: &Proposal, name: &str) -> bool {
        same_person(&proposal.author, name)
            || self.creators(&proposal.author).iter().any(|creator| same_person(creator, name))
    }

    fn counting<'p>(&self, policy: &Policy, proposal: &'p Proposal) -> Vec<&'p Review> {
        let counts = |review: &&Review| {
            review.verdict == Verdict::Approve
                && review.of == proposal.about()
                && !review.lapsed
                && !(policy.four_eyes && self.is_by(proposal, &review.reviewer))
        };
        proposal.reviews.iter().filter(counts).collect()
    }

    fn approvers(&self, policy: &Policy, proposal: &Proposal) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for review in self.counting(policy, proposal) {
            if !names.iter().any(|name| same_person(name, &review.reviewer)) {
                names.push(review.reviewer.clone());
            }
        }
        names
    }

    /// The missing conditions of an open proposal: their codes with their values.
    fn reasons(&self, proposal: &Proposal) -> Vec<String> {
        let policy = self.channels.get(&proposal.channel).map(|channel| channel.policy.clone()).unwrap_or_default();
        if proposal.state != ProposalState::Open {
            return Vec::new();
        }
        let mut reasons = Vec::new();
        match &proposal.subject {
            Subject::Files(changes) => {
                let tree = self.channels.get(&proposal.channel).map(|it| it.tree(it.head())).unwrap_or_default();
                let present = |path: &String| tree.get(path).map(|text| digest(text));
                let outdated = changes
                    .iter()
                    .filter(|(path, (before, after))| present(path) != *before && present(path) != *after);
                let outdated: Vec<String> = outdated.map(|(path, _)| format!("`{path}`")).collect();
                if !outdated.is_empty() {
                    reasons.push(format!("changed-since paths={}", outdated.join(", ")));
                }
                let CheckSummary { errors, warnings, tests } = proposal.checks;
                if policy.checks != CheckLevel::Off && errors > 0 {
                    reasons.push(format!("check-errors n={errors}"));
                }
                if policy.checks == CheckLevel::Warnings && warnings > 0 {
                    reasons.push(format!("check-warnings n={warnings}"));
                }
                match tests {
                    Some((passed, failed)) if policy.tests && failed > 0 => {
                        reasons.push(format!("tests-failed failed={failed} n={}", passed + failed));
                    }
                    None if policy.tests => reasons.push("tests-not-run".to_owned()),
                    _ => {}
                }
            }
            Subject::Policy(proposed) if proposed.before != policy => reasons.push("policy-changed-since".to_owned()),
            Subject::Policy(_) => {}
        }
        let needed = policy.approvals.max(u32::from(policy.four_eyes)) as usize;
        let needed = needed.saturating_sub(self.approvers(&policy, proposal).len());
        if needed > 0 {
            let code = if policy.four_eyes { "approvals-by-others" } else { "approvals" };
            reasons.push(format!("{code} n={needed}"));
            let is_lapsed = |it: &&Review| it.lapsed && it.verdict == Verdict::Approve && it.of == proposal.about();
            if proposal.reviews.iter().any(|it| is_lapsed(&it)) {
                reasons.push("approvals-lapsed".to_owned());
            }
        }
        let confirmed: BTreeSet<&String> =
            self.counting(&policy, proposal).into_iter().flat_map(|review| &review.confirmed).collect();
        for effect in proposal.effects.iter().filter(|effect| !confirmed.contains(&effect.name)) {
            match effect.impact {
                EffectImpact::Opening => reasons.push(format!("opening name={}", effect.name)),
                EffectImpact::Breaking if policy.no_breaking => reasons.push(format!("breaking name={}", effect.name)),
                EffectImpact::Breaking => {}
            }
        }
        let none = Live::new();
        let live = self.channels.get(&proposal.channel).map_or(&none, |it| it.live(it.head()));
        for (name, new) in &proposal.prompts {
            let old = live.get(name).map(|(_, digest)| *digest);
            for evaluation in policy.evaluations.iter().filter(|_| old != Some(*new)) {
                let newest = |of: Digest| {
                    self.evaluations
                        .iter()
                        .rev()
                        .find(|it| (&it.evaluation, &it.prompt, it.digest) == (evaluation, name, of))
                };
                let code = match (newest(*new), old.filter(|_| policy.no_regression)) {
                    (None, _) => "missing",
                    (Some(result), _) if !result.passed => "failed",
                    (Some(_), None) => continue,
                    (Some(result), Some(old)) => match newest(old) {
                        None => "not-compared",
                        Some(before) if result.score < before.score => "worse",
                        Some(_) => continue,
                    },
                };
                reasons.push(format!("evaluation-{code} evaluation={evaluation} prompt={name}"));
            }
        }
        if let Some((target, _, true)) = &proposal.source {
            let key = (proposal.channel.clone(), target.clone());
            let phase = self.rollouts.get(&key).map(|found| found.phase);
            if phase == Some(RolloutPhase::Stopped) && proposal.was_stopped {
                reasons.push(format!("rollout-stopped channel={}", proposal.channel));
            }
        }
        reasons
    }

    pub(crate) fn view(&self, id: u64) -> Option<View> {
        self.proposals.get(&id).map(|proposal| self.view_of(proposal))
    }

    fn view_of(&self, proposal: &Proposal) -> View {
        let changes = match &proposal.subject {
            Subject::Files(changes) => changes
                .iter()
                .map(|(path, (before, after))| FileChange { path: path.clone(), before: *before, after: *after })
                .collect(),
            Subject::Policy(_) => Vec::new(),
        };
        let review = |it: &Review| {
            let confirmed = proposal.confirmed(it).cloned().collect();
            (it.reviewer.clone(), it.verdict, it.note.clone(), confirmed, it.of == proposal.about(), it.lapsed)
        };
        View {
            channel: proposal.channel.clone(),
            base: proposal.base,
            kind: proposal.kind,
            message: proposal.message.clone(),
            author: proposal.author.clone(),
            creators: self.creators(&proposal.author),
            state: proposal.state,
            changes,
            reviews: proposal.reviews.iter().map(review).collect(),
            checks: proposal.checks,
            effects: proposal.effects.clone(),
            policy: match &proposal.subject {
                Subject::Policy(proposed) => Some(proposed.clone()),
                Subject::Files(_) => None,
            },
            source: proposal.source.clone(),
            revision: proposal.revision,
            reasons: self.reasons(proposal),
        }
    }

    fn as_it_is(&self, id: u64) -> Result<Outcome, Refusal> {
        let view = self.view(id).ok_or(Refusal::NotFound)?;
        Ok(Outcome { view, prompts: Vec::new(), findings: Vec::new(), kept: Vec::new() })
    }

    fn announce(&mut self, event: WebhookEvent, about: &Delivery) {
        for (webhook, events) in &self.webhooks {
            if events.contains(event.as_str()) {
                self.deliveries.push(Delivery { webhook: webhook.clone(), event, ..about.clone() });
            }
        }
    }

    fn about(channel: &str) -> Delivery {
        Delivery {
            webhook: String::new(),
            event: WebhookEvent::Published,
            channel: channel.to_owned(),
            revision: None,
            proposal: None,
            author: None,
            prompts: Vec::new(),
            attempts: 0,
            is_dead: false,
        }
    }

    pub(crate) fn publish(
        &mut self,
        publish: &Publish,
        is_expected: bool,
        actor: &Actor,
        id: u64,
    ) -> Result<Outcome, Refusal> {
        let mut changes = BTreeMap::new();
        for change in &publish.changes {
            let after = change.after.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            if changes.insert(change.path.clone(), (change.before, after)).is_some() {
                return Err(Refusal::Invalid);
            }
        }
        let target = publish.proposal.map_or(Target::New, |replaced| Target::Replace(replaced, is_expected));
        self.submit(
            Draft {
                channel: publish.channel.to_string(),
                base: publish.base,
                kind: publish.kind,
                message: publish.message.clone(),
                author: actor.name.clone(),
                may_publish: actor.may_publish,
                may_administer: actor.may_administer,
                target,
                emergency: publish.emergency.clone(),
                changes,
                source: None,
                dry_run: publish.dry_run,
            },
            id,
        )
    }

    fn basis(&self, draft: &Draft) -> Result<Basis, Refusal> {
        let channel = self.channels.get(&draft.channel).cloned().unwrap_or_default();
        let head = channel.head();
        if draft.base > head {
            return Err(Refusal::NotFound);
        }
        let present = channel.tree(head);
        let (mut tree, mut changes, mut conflicts) = (present.clone(), BTreeMap::new(), Vec::new());
        for (path, (before, after)) in &draft.changes {
            let found = present.get(path);
            if found == after.as_ref() {
                continue;
            }
            if found.map(|text| digest(text)) != *before {
                conflicts.push(path.clone());
            }
            changes.insert(path.clone(), (*before, after.clone()));
            match after {
                Some(text) => tree.insert(path.clone(), text.clone()),
                None => tree.remove(path),
            };
        }
        if !conflicts.is_empty() {
            return Err(Refusal::Conflict(conflicts, head));
        }
        if changes.is_empty() {
            return Err(Refusal::Unchanged);
        }
        let (checker, tests) = (SequenceChecker::default(), channel.policy.tests);
        let source = match &draft.source {
            Some((from, revision, _)) => {
                let from = self.known(from)?;
                if *revision < from.oldest {
                    return Err(Refusal::State);
                }
                Some(from.tree(*revision)).filter(|source| *source != tree).map(|source| memory(&source))
            }
            None => None,
        };
        let before = (head > 0).then(|| memory(&present));
        let (report, effects) = check_now(&checker, &Trees { before, after: memory(&tree), source }, tests);
        let found = report.prompts.iter().map(|prompt| (prompt.name.clone(), prompt.digest)).collect();
        Ok(Basis { before: channel.live(head).clone(), changes, tree, report, effects, found })
    }

    /// The prompts that evaluations are about.
    fn evaluated(basis: &Basis) -> Vec<(String, Digest)> {
        let is_new = |(name, new): &(&String, &Digest)| basis.before.get(*name).is_none_or(|(_, old)| old != *new);
        basis.found.iter().filter(is_new).map(|(name, new)| (name.clone(), *new)).collect()
    }

    /// What a publish does to prompts, with the numbers that its author may see.
    fn shown(&self, draft: &Draft, basis: &Basis) -> Vec<PromptChange> {
        let number = |name: &String, digest: Digest| {
            let versions = self.versions.get(&(draft.channel.clone(), name.clone()));
            versions.and_then(|all| all.iter().position(|it| *it == digest)).map_or(0, |at| at as u64 + 1)
        };
        let names: BTreeSet<&String> = basis.before.keys().chain(basis.found.keys()).collect();
        let change = |name: &&String| {
            let (old, new) = (basis.before.get(*name), basis.found.get(*name));
            let previous = old.map(|(version, _)| *version);
            let (version, change) = match (old, new) {
                (Some((_, old)), Some(new)) if old == new => return None,
                (Some(_), Some(new)) => (number(name, *new), PromptChangeKind::Changed),
                (None, Some(new)) => (number(name, *new), PromptChangeKind::Added),
                (Some((version, _)), None) => (*version, PromptChangeKind::Removed),
                (None, None) => return None,
            };
            Some(PromptChange { name: (*name).clone(), version, previous, change })
        };
        names.iter().filter_map(change).collect()
    }

    fn submit(&mut self, draft: Draft, id: u64) -> Result<Outcome, Refusal> {
        let basis = self.basis(&draft)?;
        let stored = |(path, (before, after)): (&String, &(Option<Digest>, Option<String>))| {
            (path.clone(), (*before, after.as_ref().map(|text| digest(text))))
        };
        let subject = Subject::Files(basis.changes.iter().map(stored).collect());
        let new = Proposal {
            channel: draft.channel.clone(),
            base: draft.base,
            kind: draft.kind,
            message: draft.message.clone(),
            author: draft.author.clone(),
            state: ProposalState::Open,
            subject,
            reviews: Vec::new(),
            checks: basis.report.summary,
            effects: basis.effects.clone(),
            source: draft.source.clone(),
            revision: None,
            prompts: Self::evaluated(&basis),
            comments: Vec::new(),
            was_stopped: false,
        };
        let policy = self.channels.get(&draft.channel).map(|it| it.policy.clone()).unwrap_or_default();
        let is_trusted = draft.may_administer && !asks(&policy);
        let is_unmet = |reason: &String| !(is_trusted && reason.starts_with("opening "));
        if draft.dry_run {
            let mut view = self.view_of(&new);
            view.reasons.retain(is_unmet);
            view.source = None;
            let (prompts, findings) = (self.shown(&draft, &basis), basis.report.findings);
            return Ok(Outcome { view, prompts, findings, kept: Vec::new() });
        }
        let (id, proposal) = match draft.target {
            Target::New => (id, new),
            Target::Replace(id, is_expected) => {
                let present = self.open(id)?;
                let is_of_files = matches!(present.subject, Subject::Files(_));
                if !is_of_files || present.channel != draft.channel || !same_person(&present.author, &draft.author) {
                    return Err(Refusal::State);
                }
                if !is_expected {
                    return Err(Refusal::Changed);
                }
                let Proposal { reviews, comments, author, .. } = present.clone();
                (id, Proposal { reviews, comments, author, source: None, ..new })
            }
            Target::Existing(id) => {
                let Proposal { checks, effects, prompts, .. } = new;
                (id, Proposal { checks, effects, prompts, ..self.open(id)?.clone() })
            }
        };
        let reasons = self.reasons(&proposal);
        let is_met = !reasons.iter().any(is_unmet);
        let is_published = draft.may_publish && (is_met || draft.emergency.is_some());
        if is_published && basis.report.is_unloadable {
            return Err(Refusal::Invalid);
        }
        // From here on it happens.
        self.channels.entry(draft.channel.clone()).or_default();
        for (_, after) in draft.changes.values() {
            if let Some(text) = after {
                self.store(text);
            }
        }
        let is_old = matches!(draft.target, Target::Existing(_));
        let at_once = draft.target == Target::New && reasons.is_empty() && draft.may_publish;
        let mut proposal = proposal;
        if at_once {
            proposal.prompts = Vec::new();
        }
        let mut prompts = self.shown(&draft, &basis);
        let about =
            Delivery { proposal: Some(id), author: Some(proposal.author.clone()), ..Self::about(&draft.channel) };
        if !is_published {
            self.proposals.insert(id, proposal);
            if !is_old {
                let prompts = prompts.iter().map(|it| (it.name.clone(), it.version)).collect();
                self.announce(WebhookEvent::Proposed, &Delivery { prompts, ..about });
            }
        } else {
            let mut live = Live::new();
            for (name, new) in &basis.found {
                let versions = self.versions.entry((draft.channel.clone(), name.clone())).or_default();
                let at = versions.iter().position(|it| it == new).unwrap_or_else(|| {
                    versions.push(*new);
                    versions.len() - 1
                });
                live.insert(name.clone(), (at as u64 + 1, *new));
            }
            prompts = differences(&basis.before, &live);
            let revision = Revision {
                kind: proposal.kind,
                author: proposal.author.clone(),
                message: proposal.message.clone(),
                proposal: id,
                approved_by: self.approvers(&policy, &proposal),
                emergency: draft.emergency.clone().filter(|_| !is_met),
                checks: proposal.checks,
                policy,
                tree: basis.tree,
                live,
                digest: None,
            };
            let channel = self.channels.entry(draft.channel.clone()).or_default();
            channel.revisions.push(revision);
            let number = channel.head();
            proposal.state = ProposalState::Published;
            proposal.revision = Some(number);
            let event = match proposal.kind {
                RevisionKind::Rollback => WebhookEvent::RolledBack,
                _ => WebhookEvent::Published,
            };
            let errors = proposal.checks.errors;
            self.finish_rollout(&draft.channel, &proposal);
            self.stop_opened(&draft.channel, &proposal.author);
            self.proposals.insert(id, proposal);
            let about = Delivery { revision: Some(number), ..about };
            let named = prompts.iter().map(|it| (it.name.clone(), it.version)).collect();
            self.announce(event, &Delivery { prompts: named, ..about.clone() });
            if errors > 0 {
                self.broken.insert(draft.channel.clone(), number);
                self.announce(WebhookEvent::Broken, &about);
            }
        }
        let view = self.view(id).ok_or(Refusal::NotFound)?;
        Ok(Outcome { view, prompts, findings: basis.report.findings, kept: Vec::new() })
    }

    fn store(&mut self, text: &str) {
        self.contents.insert(digest(text), text.len() as u64);
        self.texts.insert(digest(text), text.to_owned());
    }

    /// Chooses a proposal: an open one in most cases. Returns a number that does not exist, if there is none.
    pub(crate) fn choose(&self, choice: u8) -> u64 {
        let is_open = |id: &u64| self.proposals[id].state == ProposalState::Open;
        let all: Vec<u64> = self.proposals.keys().copied().collect();
        let open: Vec<u64> = all.iter().copied().filter(is_open).collect();
        let from = if choice % 8 == 7 || open.is_empty() { all } else { open };
        if from.is_empty() || choice == 255 { 9_999 } else { from[choice as usize % from.len()] }
    }

    pub(crate) fn review(
        &mut self,
        id: u64,
        new: &NewReview,
        is_present: bool,
        actor: &Actor,
    ) -> Result<Outcome, Refusal> {
        self.add_review(id, new, is_present, actor)?;
        if new.verdict == Verdict::Reject {
            return self.as_it_is(id);
        }
        match self.submit_open(id, None, actor) {
            Err(Refusal::Conflict(..)) => self.as_it_is(id),
            result => result,
        }
    }

    /// The first half of a review: it is stored.
    pub(crate) fn add_review(
        &mut self,
        id: u64,
        new: &NewReview,
        is_present: bool,
        actor: &Actor,
    ) -> Result<(), Refusal> {
        let proposal = self.open(id)?.clone();
        if !is_present {
            return Err(Refusal::Changed);
        }
        let policy = self.known(&proposal.channel)?.policy.clone();
        if new.verdict == Verdict::Approve {
            let is_own = self.is_by(&proposal, &actor.name);
            if is_own && policy.four_eyes {
                return Err(Refusal::Policy(vec!["own-proposal".to_owned()]));
            }
            for name in &new.confirmed {
                let effect = proposal.effects.iter().find(|effect| effect.name == *name).ok_or(Refusal::Invalid)?;
                if effect.impact == EffectImpact::Opening && is_own && !actor.may_administer {
                    return Err(Refusal::Policy(vec![format!("own-opening name={name}")]));
                }
            }
        }
        let is_repeated = proposal.reviews.iter().any(|it| {
            (it.verdict, &it.of, &it.reviewer) == (new.verdict, &proposal.about(), &actor.name)
                && !it.lapsed
                && new.confirmed.iter().all(|name| proposal.confirmed(it).any(|known| known == name))
        });
        let stored = self.proposals.get_mut(&id).ok_or(Refusal::NotFound)?;
        if !is_repeated {
            stored.reviews.push(Review {
                reviewer: actor.name.clone(),
                verdict: new.verdict,
                of: proposal.about(),
                note: new.note.clone(),
                confirmed: new.confirmed.clone(),
                lapsed: false,
            });
        }
        if new.verdict == Verdict::Reject {
            stored.state = ProposalState::Rejected;
        }
        if !is_repeated {
            let author = Some(proposal.author.clone());
            let about = Delivery { proposal: Some(id), author, ..Self::about(&proposal.channel) };
            self.announce(WebhookEvent::Reviewed, &about);
        }
        Ok(())
    }

    fn submit_open(&mut self, id: u64, emergency: Option<String>, actor: &Actor) -> Result<Outcome, Refusal> {
        let proposal = self.open(id)?.clone();
        let changes = match &proposal.subject {
            Subject::Policy(proposed) => return self.carry_out(id, proposed, emergency, actor),
            Subject::Files(changes) => changes,
        };
        let change = |(path, (before, after)): (&String, &(Option<Digest>, Option<Digest>))| {
            (path.clone(), (*before, after.map(|after| self.text(after))))
        };
        let changes = changes.iter().map(change).collect();
        self.submit(
            Draft {
                channel: proposal.channel,
                base: proposal.base,
                kind: proposal.kind,
                message: proposal.message,
                author: proposal.author,
                may_publish: actor.may_publish,
                may_administer: actor.may_administer,
                target: Target::Existing(id),
                emergency,
                changes,
                source: proposal.source,
                dry_run: false,
            },
            id,
        )
    }

    fn carry_out(
        &mut self,
        id: u64,
        proposed: &ProposedPolicy,
        emergency: Option<String>,
        actor: &Actor,
    ) -> Result<Outcome, Refusal> {
        let proposal = self.open(id)?.clone();
        let policy = self.known(&proposal.channel)?.policy.clone();
        let is_met = self.reasons(&proposal).is_empty();
        if proposed.before != policy || !(is_met || emergency.is_some()) {
            return self.as_it_is(id);
        }
        let emergency = emergency.filter(|_| !is_met);
        let entry = PolicyEntry {
            actor: if emergency.is_some() { actor.name.clone() } else { proposal.author.clone() },
            before: Some(policy.clone()),
            after: proposed.after.clone(),
            proposal: Some(id),
            approved_by: self.approvers(&policy, &proposal),
            emergency,
            by_operator: false,
        };
        if let Some(stored) = self.proposals.get_mut(&id) {
            stored.state = ProposalState::Published;
        }
        self.set_policy(&proposal.channel, entry);
        self.as_it_is(id)
    }

    fn set_policy(&mut self, name: &str, entry: PolicyEntry) {
        let (author, proposal) = (Some(entry.actor.clone()), entry.proposal);
        let channel = self.channels.entry(name.to_owned()).or_default();
        let may = |policy: &Policy, role: &String| policy.roles.review.is_empty() || policy.roles.review.contains(role);
        // `reader` stands for the roles that no policy of a sequence names.
        let roles = ["editor", "chief", "reader"].map(str::to_owned);
        let is_narrowed = roles.iter().any(|role| may(&channel.policy, role) && !may(&entry.after, role));
        if is_narrowed {
            let of_channel = |it: &&mut Proposal| it.channel == name && it.state == ProposalState::Open;
            for review in self.proposals.values_mut().filter(of_channel).flat_map(|it| &mut it.reviews) {
                review.lapsed |= review.verdict == Verdict::Approve;
            }
        }
        channel.policy = entry.after.clone();
        channel.policies.push(entry);
        self.announce(WebhookEvent::PolicyChanged, &Delivery { proposal, author, ..Self::about(name) });
    }

    pub(crate) fn publish_proposal(
        &mut self,
        id: u64,
        is_present: bool,
        emergency: Option<String>,
        actor: &Actor,
    ) -> Result<Outcome, Refusal> {
        let proposal = self.proposals.get(&id).ok_or(Refusal::NotFound)?;
        self.open(id)?;
        let _ = proposal;
        if !is_present {
            return Err(Refusal::Changed);
        }
        let outcome = self.submit_open(id, emergency, actor)?;
        if outcome.view.state == ProposalState::Published {
            return Ok(outcome);
        }
        let mut reasons = outcome.view.reasons;
        if !actor.may_publish {
            reasons.push(format!("may-not-publish name={}", actor.name));
        }
        Err(Refusal::Policy(reasons))
    }

    pub(crate) fn withdraw(&mut self, id: u64, actor: &Actor) -> Result<View, Refusal> {
        if !same_person(&self.open(id)?.author, &actor.name) {
            return Err(Refusal::State);
        }
        if let Some(proposal) = self.proposals.get_mut(&id) {
            proposal.state = ProposalState::Withdrawn;
        }
        self.view(id).ok_or(Refusal::NotFound)
    }

    pub(crate) fn comment(
        &mut self,
        id: u64,
        new: &NewComment,
        is_present: bool,
        actor: &Actor,
    ) -> Result<(), Refusal> {
        let proposal = self.open(id)?;
        if !is_present {
            return Err(Refusal::Changed);
        }
        if let Some(path) = &new.path {
            let Subject::Files(changes) = &proposal.subject else { return Err(Refusal::Invalid) };
            let (before, after) = changes.get(path).ok_or(Refusal::Invalid)?;
            if let Some(line) = new.line {
                let side = if line.side == CommentSide::Before { before } else { after };
                let text = self.text(side.ok_or(Refusal::Invalid)?);
                if line.number == 0 || line.number > text.split('\n').count() as u64 {
                    return Err(Refusal::Invalid);
                }
            }
        } else if new.line.is_some() {
            return Err(Refusal::Invalid);
        }
        if let Some(proposal) = self.proposals.get_mut(&id) {
            proposal.comments.push((actor.name.clone(), new.text.clone(), new.path.clone()));
        }
        Ok(())
    }

    /// The changes that make files of one tree those of another one. With prompts, only their files.
    fn copied(
        &self,
        source: &Tree,
        target: &Tree,
        prompts: &[String],
    ) -> Result<BTreeMap<String, Option<String>>, Refusal> {
        let paths: BTreeSet<&String> = source.keys().chain(target.keys()).collect();
        let all = paths.into_iter().map(|path| (path.clone(), source.get(path).cloned()));
        if prompts.is_empty() {
            return Ok(all.collect());
        }
        let checker = SequenceChecker::default();
        let (new, old) = (checker.check(&memory(source), false), checker.check(&memory(target), false));
        let mut changes = BTreeMap::new();
        for name in prompts {
            let prompt = new.prompts.iter().find(|prompt| prompt.name == *name).ok_or(Refusal::NotFound)?;
            for path in std::iter::once(&prompt.path).chain(&prompt.brings) {
                changes.insert(path.clone(), Some(source.get(path).cloned().ok_or(Refusal::State)?));
            }
            // A file that the prompt has left is of no use, unless others need it.
            for before in old.prompts.iter().filter(|before| before.name == *name && before.path != prompt.path) {
                let others = old.prompts.iter().filter(|other| other.name != *name);
                let mut used = others.flat_map(|other| std::iter::once(&other.path).chain(&other.brings));
                if !used.any(|path| *path == before.path) {
                    changes.entry(before.path.clone()).or_insert(None);
                }
            }
        }
        Ok(changes)
    }

    pub(crate) fn promote(&mut self, promotion: &Promotion, actor: &Actor, id: u64) -> Result<Outcome, Refusal> {
        let (from, to) = (promotion.from.to_string(), promotion.to.to_string());
        if from == to {
            return Err(Refusal::Invalid);
        }
        let source = self.known(&from)?.clone();
        let existed = self.channels.get(&to).cloned();
        let target = existed.clone().unwrap_or_default();
        let (new, old) = (source.tree(source.head()), target.tree(target.head()));
        let copied = self.copied(&new, &old, &promotion.prompts)?;
        let is_whole = promotion.prompts.is_empty();
        let (mut changes, mut conflicts) = (BTreeMap::new(), Vec::new());
        for (path, after) in copied {
            let before = old.get(&path);
            let change = (before.map(|text| digest(text)), after.clone());
            if before == after.as_ref() {
                continue;
            }
            match if promotion.all { Choice::Take } else { self.choose_file(&from, &to, existed.is_some(), &path) } {
                Choice::Take => {
                    changes.insert(path, change);
                }
                Choice::Keep if is_whole => {}
                Choice::Keep | Choice::Conflict => conflicts.push(path),
            }
        }
        if !conflicts.is_empty() {
            return Err(Refusal::Conflict(conflicts, target.head()));
        }
        if changes.is_empty() {
            return Err(Refusal::Unchanged);
        }
        let named = if is_whole { "all files".to_owned() } else { promotion.prompts.join(", ") };
        let from_source = (from.clone(), source.head(), is_whole);
        let message = format!("Promote {named}");
        let mut outcome = self.submit(
            Draft {
                channel: to.clone(),
                base: target.head(),
                kind: RevisionKind::Promote,
                message,
                author: actor.name.clone(),
                may_publish: actor.may_publish,
                may_administer: actor.may_administer,
                target: Target::New,
                emergency: None,
                changes,
                source: Some(from_source.clone()),
                dry_run: promotion.dry_run,
            },
            id,
        )?;
        outcome.view.source = Some(from_source);
        if existed.is_some() {
            let present = self.known(&to)?;
            let (served, given) = (present.live(present.head()), source.live(source.head()));
            let is_kept = |name: &&String| {
                !outcome.prompts.iter().any(|prompt| prompt.name == **name)
                    && given.get(*name).map(|(_, digest)| digest) != served.get(*name).map(|(_, digest)| digest)
            };
            outcome.kept = served.keys().filter(is_kept).cloned().collect();
        }
        Ok(outcome)
    }

    /// Decides about a file that differs between a source and the target of a promotion.
    fn choose_file(&self, from: &str, to: &str, exists: bool, path: &str) -> Choice {
        if !exists {
            return Choice::Take;
        }
        let (Some(source), Some(target)) = (self.channels.get(from), self.channels.get(to)) else {
            return Choice::Take;
        };
        let (new, old) = (source.tree(source.head()).remove(path), target.tree(target.head()).remove(path));
        let contents = |channel: &Channel| -> BTreeSet<String> {
            (channel.oldest.max(1)..=channel.head()).filter_map(|number| channel.tree(number).remove(path)).collect()
        };
        let (of_source, of_target) = (contents(source), contents(target));
        let had =
            |side: &BTreeSet<String>, text: &Option<String>| text.as_ref().is_some_and(|text| side.contains(text));
        if let Some(base) = self.base(from, to) {
            let base = base.get(path);
            return match () {
                () if new.as_ref() == base => Choice::Keep,
                () if old.as_ref() == base || had(&of_source, &old) => Choice::Take,
                () => Choice::Conflict,
            };
        }
        match &old {
            None if of_target.is_empty() => Choice::Take,
            Some(_) if had(&of_source, &old) => Choice::Take,
            _ if had(&of_target, &new) => Choice::Keep,
            Some(_) if new.is_none() && of_source.is_empty() => Choice::Keep,
            _ => Choice::Conflict,
        }
    }

    /// The files of the source as the target last took them over; `None` if it never did, or they are not known any more.
    fn base(&self, from: &str, to: &str) -> Option<Tree> {
        let promoted = |wanted: bool| {
            let is_one = move |it: &&Proposal| {
                it.channel == to
                    && it.state == ProposalState::Published
                    && it.source.as_ref().is_some_and(|(source, _, is_whole)| source == from && *is_whole == wanted)
            };
            self.proposals.values().filter(is_one)
        };
        let last = promoted(true).max_by_key(|it| it.revision)?;
        let (_, revision, _) = last.source.as_ref()?;
        let source = self.channels.get(from)?;
        let mut base = Some(source.tree(*revision)).filter(|_| *revision >= source.oldest)?;
        let mut later: Vec<&Proposal> = promoted(false).filter(|it| it.revision > last.revision).collect();
        later.sort_by_key(|it| it.revision);
        for proposal in later {
            let Subject::Files(changes) = &proposal.subject else { continue };
            for (path, (_, after)) in changes {
                match after {
                    Some(after) => base.insert(path.clone(), self.text(*after)),
                    None => base.remove(path),
                };
            }
        }
        Some(base)
    }

    pub(crate) fn rollback(
        &mut self,
        name: &str,
        to: u64,
        prompt: Option<&str>,
        dry_run: bool,
        actor: &Actor,
        id: u64,
    ) -> Result<Outcome, Refusal> {
        let channel = self.known(name)?.clone();
        if to == 0 || !channel.has(to) {
            return Err(Refusal::NotFound);
        }
        let (source, target) = (channel.tree(to), channel.tree(channel.head()));
        let prompts: Vec<String> = prompt.iter().map(|prompt| (*prompt).to_owned()).collect();
        let copied = self.copied(&source, &target, &prompts)?;
        let change = |(path, after): (String, Option<String>)| {
            let before = target.get(&path).map(|text| digest(text));
            (path, (before, after))
        };
        let named = if prompts.is_empty() { "all files".to_owned() } else { prompts.join(", ") };
        self.submit(
            Draft {
                channel: name.to_owned(),
                base: channel.head(),
                kind: RevisionKind::Rollback,
                message: format!("Roll back {named} to revision {to}"),
                author: actor.name.clone(),
                may_publish: actor.may_publish,
                may_administer: actor.may_administer,
                target: Target::New,
                emergency: None,
                changes: copied.into_iter().map(change).collect(),
                source: None,
                dry_run,
            },
            id,
        )
    }

    /// Changes a policy. Returns the proposal, if the change became one.
    pub(crate) fn change_policy(
        &mut self,
        name: &str,
        after: &Policy,
        guard: &PolicyGuard,
        by_operator: bool,
        actor: &Actor,
        id: u64,
    ) -> Result<Option<View>, Refusal> {
        let exists = self.channels.contains_key(name);
        let before = self.channels.get(name).map(|channel| channel.policy.clone()).unwrap_or_default();
        let is_expected = match guard {
            PolicyGuard::Any => true,
            PolicyGuard::Absent => !exists,
            PolicyGuard::Is(expected) => exists && before == *expected,
        };
        if !is_expected {
            return Err(Refusal::Changed);
        }
        let head = self.channels.entry(name.to_owned()).or_default().head();
        if !by_operator && asks(&before) && is_looser(&before, after) {
            self.proposals.insert(
                id,
                Proposal {
                    channel: name.to_owned(),
                    base: head,
                    kind: RevisionKind::Policy,
                    message: "rules".to_owned(),
                    author: actor.name.clone(),
                    state: ProposalState::Open,
                    subject: Subject::Policy(ProposedPolicy { before, after: after.clone() }),
                    reviews: Vec::new(),
                    checks: CheckSummary::default(),
                    effects: Vec::new(),
                    source: None,
                    revision: None,
                    prompts: Vec::new(),
                    comments: Vec::new(),
                    was_stopped: false,
                },
            );
            let about = Delivery { proposal: Some(id), author: Some(actor.name.clone()), ..Self::about(name) };
            self.announce(WebhookEvent::Proposed, &about);
            return Ok(self.view(id));
        }
        if before != *after {
            self.set_policy(
                name,
                PolicyEntry {
                    actor: actor.name.clone(),
                    before: exists.then_some(before),
                    after: after.clone(),
                    proposal: None,
                    approved_by: Vec::new(),
                    emergency: None,
                    by_operator,
                },
            );
        }
        Ok(None)
    }

    /// Whether results about a version of a prompt are shown in a channel.
    fn is_shown(&self, name: &str, prompt: &str, of: Digest, only_open: bool) -> bool {
        let is_proposed = self.proposals.values().any(|it| {
            it.channel == name
                && (it.state == ProposalState::Open || !only_open)
                && it.prompts.iter().any(|(name, digest)| name == prompt && *digest == of)
        });
        is_proposed || self.channels.get(name).is_some_and(|channel| channel.has_served(prompt, of))
    }

    pub(crate) fn evaluations(&self, name: &str) -> Vec<&Result_> {
        self.evaluations.iter().rev().filter(|it| self.is_shown(name, &it.prompt, it.digest, false)).collect()
    }

    pub(crate) fn add_evaluation(&mut self, name: &str, new: &NewEvaluation, actor: &Actor) -> Result<bool, Refusal> {
        self.known(name)?;
        if !self.is_shown(name, &new.prompt, new.digest, true) {
            return Err(Refusal::Changed);
        }
        let score = new.scores.values().next().copied().unwrap_or_default();
        let passed = new.thresholds.values().all(|least| score >= *least);
        let is_same =
            |it: &Result_| (&it.evaluation, &it.prompt, it.digest) == (&new.evaluation, &new.prompt, new.digest);
        self.evaluations.push(Result_ {
            evaluation: new.evaluation.clone(),
            prompt: new.prompt.clone(),
            digest: new.digest,
            passed,
            score,
            author: actor.name.clone(),
        });
        while self.evaluations.iter().filter(|it| is_same(it)).count() > 20 {
            let oldest = self.evaluations.iter().position(is_same).unwrap_or_default();
            self.evaluations.remove(oldest);
        }
        Ok(passed)
    }

    /// Removes the revisions of each channel before the newest one, which stays with `keep` others. Returns their number.
    pub(crate) fn prune(&mut self, keep: u64) -> u64 {
        let mut removed = 0;
        for (name, channel) in &mut self.channels {
            let oldest = channel.head().saturating_sub(keep);
            if oldest <= channel.oldest {
                continue;
            }
            removed += oldest - channel.oldest.max(1);
            channel.oldest = oldest;
            self.proposals.retain(|_, it| {
                it.channel != *name || it.state == ProposalState::Open || it.revision.unwrap_or(it.base + 1) >= oldest
            });
        }
        let is_needed = |it: &Result_| {
            let is_live = |channel: &Channel| {
                channel.live(channel.head()).get(&it.prompt).is_some_and(|(_, digest)| *digest == it.digest)
            };
            let is_open = |proposal: &Proposal| {
                proposal.state == ProposalState::Open
                    && proposal.prompts.iter().any(|(name, digest)| (name, digest) == (&it.prompt, &it.digest))
            };
            self.channels.values().any(is_live) || self.proposals.values().any(is_open)
        };
        self.evaluations = self.evaluations.iter().filter(|it| is_needed(it)).cloned().collect();
        removed
    }

    /// Removes contents that nothing needs. Returns their number and size.
    pub(crate) fn gc(&mut self) -> (u64, u64) {
        let mut used: BTreeSet<Digest> = BTreeSet::new();
        for channel in self.channels.values() {
            for number in channel.oldest.max(1)..=channel.head() {
                used.extend(channel.tree(number).values().map(|text| digest(text)));
            }
        }
        for proposal in self.proposals.values().filter(|it| it.state == ProposalState::Open) {
            let Subject::Files(changes) = &proposal.subject else { continue };
            used.extend(changes.values().flat_map(|(before, after)| [*before, *after]).flatten());
        }
        let garbage: Vec<u64> =
            self.contents.iter().filter(|(digest, _)| !used.contains(digest)).map(|(_, size)| *size).collect();
        self.contents.retain(|digest, _| used.contains(digest));
        (garbage.len() as u64, garbage.iter().sum())
    }

    pub(crate) fn upload(&mut self, text: &str) {
        self.store(text);
    }

    pub(crate) fn has_content(&self, of: Digest) -> bool {
        self.contents.contains_key(&of)
    }

    pub(crate) fn report_broken(&mut self, name: &str, revision: u64) -> Result<(), Refusal> {
        let head = self.known(name)?.head();
        if head == revision && self.broken.insert(name.to_owned(), revision) != Some(revision) {
            self.announce(WebhookEvent::Broken, &Delivery { revision: Some(revision), ..Self::about(name) });
        }
        Ok(())
    }

    /// The indexes of the deliveries whose turn it is: the oldest of each webhook and channel.
    pub(crate) fn due(&self) -> Vec<usize> {
        let mut first: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (at, delivery) in self.deliveries.iter().enumerate().filter(|(_, it)| !it.is_dead) {
            first.entry((&delivery.webhook, &delivery.channel)).or_insert(at);
        }
        let mut due: Vec<usize> = first.into_values().collect();
        due.sort_unstable();
        due
    }

    pub(crate) fn start_rollout(&mut self, from: &str, to: &str, percent: u8, actor: &Actor) -> Result<(), Refusal> {
        if from == to || !(1..=100).contains(&percent) {
            return Err(Refusal::Invalid);
        }
        self.known(from)?;
        self.known(to)?;
        self.must_be_free(from, None)?;
        self.record_rollout((from, to), (percent, RolloutPhase::Running), &actor.name, WebhookEvent::RolloutStarted);
        Ok(())
    }

    /// Sets the share of a rollout; `None` stops it.
    pub(crate) fn set_rollout(
        &mut self,
        from: &str,
        to: &str,
        percent: Option<u8>,
        actor: &Actor,
    ) -> Result<(), Refusal> {
        if percent.is_some_and(|percent| percent > 100) {
            return Err(Refusal::Invalid);
        }
        let found = self.rollouts.get(&(from.to_owned(), to.to_owned())).ok_or(Refusal::NotFound)?;
        if found.phase == RolloutPhase::Finished {
            return Err(Refusal::State);
        }
        let Some(percent) = percent else {
            self.record_rollout((from, to), (0, RolloutPhase::Stopped), &actor.name, WebhookEvent::RolloutStopped);
            return Ok(());
        };
        if found.phase.is_over() {
            self.must_be_free(from, Some(to))?;
        }
        self.record_rollout((from, to), (percent, RolloutPhase::Running), &actor.name, WebhookEvent::RolloutStep);
        Ok(())
    }

    fn must_be_free(&self, from: &str, but: Option<&str>) -> Result<(), Refusal> {
        let is_other = |(channel, target): &(String, String)| channel == from && Some(target.as_str()) != but;
        let is_taken = self.rollouts.iter().any(|(key, one)| is_other(key) && !one.phase.is_over());
        if is_taken { Err(Refusal::State) } else { Ok(()) }
    }

    fn record_rollout(
        &mut self,
        (from, to): (&str, &str),
        (percent, phase): (u8, RolloutPhase),
        by: &str,
        event: WebhookEvent,
    ) {
        let key = (from.to_owned(), to.to_owned());
        let changes = self.rollouts.get(&key).map_or(0, |found| found.changes) + 1;
        if phase == RolloutPhase::Stopped {
            let of_rollout = |it: &&mut Proposal| {
                it.channel == from && it.source.as_ref().is_some_and(|(name, _, is_whole)| *is_whole && name == to)
            };
            self.proposals.values_mut().filter(of_rollout).for_each(|it| it.was_stopped = true);
        }
        self.rollouts.insert(key, Rollout { percent, phase, changed_by: by.to_owned(), changes });
        self.announce(event, &Delivery { author: Some(by.to_owned()), ..Self::about(from) });
    }

    /// Ends the rollout whose new version a proposal has promoted as a whole.
    fn finish_rollout(&mut self, from: &str, proposal: &Proposal) {
        let Some((to, _, true)) = &proposal.source else { return };
        let key = (from.to_owned(), to.clone());
        if self.rollouts.get(&key).is_some_and(|found| !found.phase.is_over()) {
            let (to, by) = (to.clone(), proposal.author.clone());
            self.record_rollout((from, &to), (0, RolloutPhase::Finished), &by, WebhookEvent::RolloutFinished);
        }
    }

    /// Stops the rollouts whose callers may read more since the newest revision of a channel than before.
    fn stop_opened(&mut self, changed: &str, by: &str) {
        let opened = |(from, to): &(String, String), back: usize| -> BTreeSet<String> {
            let tree = |name: &String| {
                let all = &self.channels[name].revisions;
                let at = all.len().checked_sub(if name == changed { 1 + back } else { 1 });
                at.map(|at| &all[at].tree)
            };
            let is_closed = |text: &str| text.lines().any(|line| line == "closed");
            let (Some(from), Some(to)) = (tree(from), tree(to)) else { return BTreeSet::new() };
            let open = |path: &String| to.get(path).is_some_and(|text| !is_closed(text));
            from.iter().filter(|(path, text)| is_closed(text) && open(path)).map(|(path, _)| path.clone()).collect()
        };
        let running = self
            .rollouts
            .iter()
            .filter(|(key, one)| !one.phase.is_over() && [&key.0, &key.1].into_iter().any(|name| name == changed));
        let stopped: Vec<(String, String)> =
            running.filter(|(key, _)| !opened(key, 0).is_subset(&opened(key, 1))).map(|(key, _)| key.clone()).collect();
        for (from, to) in stopped {
            self.record_rollout((&from, &to), (0, RolloutPhase::Stopped), by, WebhookEvent::RolloutStopped);
        }
    }

    pub(crate) fn add_usage(&mut self, batch: &str, prompt: &str, count: u64) {
        if self.batches.insert(batch.to_owned()) {
            *self.usage.entry(prompt.to_owned()).or_default() += count;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Take,
    Keep,
    Conflict,
}

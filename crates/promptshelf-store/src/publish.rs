//! Proposing and publishing: check outside of any lock, compare and commit under the lock on the channel's row.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use promptshelf_source::{MemoryFile, MemoryTree};
use tokio::time::timeout;

use crate::{
    StoreError, announce,
    check::{CheckReport, Checker, Trees},
    database::{Mode, Transaction},
    draft::{self, Draft, Target},
    effect::Effect,
    evaluation::EvaluatedPrompt,
    gate, input,
    model::{Actor, Digest, Head, Policy, PromptChange, Proposal, ProposalState, Publish, Published},
    policy::{self, Act, Decision, Permit},
    rollouts::{self, Divided, Division},
    snapshot::{self, Snapshot},
    store::Store,
    tables::{
        blob::{self, Contents},
        chain,
        channel::{self, Channel},
        entry::{self, Replacement},
        evaluation,
        prompt::{self, Live, PromptDifference},
        proposal::{self, NewProposal, Source},
        revision::{self, NewRevision},
        upload,
    },
    tokens,
    upload::within,
};

/// The number of checks without the lock before one is made with it.
const OPTIMISTIC: u32 = 6;

/// The time that a check may take while other publishers wait.
const CHECK_IN_TURN: Duration = Duration::from_secs(1);

struct Basis {
    /// The key of the channel, 0 before the first publish.
    channel: i64,
    head: Head,
    policy: Policy,
    snapshot: Arc<Snapshot>,
    changes: Vec<Replacement>,
    tree: MemoryTree,
    /// The files that a promotion copies, if the channel does not become equal to them.
    source: Option<MemoryTree>,
    /// The rollouts from the channel and to it.
    rollouts: Vec<Divided>,
}

impl Basis {
    fn tree_digest(&self) -> Digest {
        let present = self.snapshot.files.iter();
        let mut files: BTreeMap<&str, Digest> = present.map(|(path, file)| (path.as_str(), file.digest)).collect();
        for change in &self.changes {
            match change.after {
                Some((digest, _)) => files.insert(&change.path, digest),
                None => files.remove(change.path.as_str()),
            };
        }
        Digest::of_tree(&files)
    }
}

struct Checked {
    report: CheckReport,
    prompts: Vec<PromptDifference>,
    effects: Vec<Effect>,
    /// The rollouts that the changes stop, each with the names of what would be open.
    stopped: Vec<(Division, Vec<String>)>,
}

impl Checked {
    /// Returns the prompts that need evaluations: those that are added or changed, by name.
    fn evaluated(&self, live: &Live) -> Vec<EvaluatedPrompt> {
        let changed = self.prompts.iter().filter_map(|difference| Some((&difference.name, difference.new?)));
        let live = |name: &String| live.get(name).map(|(_, digest)| *digest);
        changed.map(|(name, new)| EvaluatedPrompt { name: name.clone(), new, live: live(name) }).collect()
    }

    /// Returns the served prompts after a publish, whose changes are in the order of the differences.
    fn live(&self, before: &Live, changes: &[PromptChange]) -> Live {
        let mut live = before.clone();
        for (difference, change) in self.prompts.iter().zip(changes) {
            match difference.new {
                Some(digest) => live.insert(difference.name.clone(), (change.version, digest)),
                None => live.remove(&difference.name),
            };
        }
        live
    }
}

impl Store {
    /// Proposes changes, and publishes them if the policy is met and the actor may publish.
    ///
    /// The whole resulting tree is checked. If the policy is not met, the changes are stored as an open proposal, and
    /// its `lacks` lists the reasons; with an `emergency` reason they are published in any case, if the actor may publish.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if a file has other content than the author started from, [`StoreError::State`] if there is nothing
    /// to change or the proposal to replace is not open or belongs to another author, [`StoreError::Changed`] if it does
    /// not have the expected changes, [`StoreError::InvalidInput`], even if no server could load the resulting tree,
    /// [`StoreError::NotFound`], and errors of the database. Nothing is stored then.
    pub async fn publish(
        &self,
        publish: Publish,
        actor: &Actor,
        checker: Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        input::actor(actor)?;
        input::text("the message", &publish.message)?;
        if let Some(reason) = &publish.emergency {
            input::text("the reason of the emergency", reason)?;
        }
        input::changes(&publish.changes)?;
        let (mut contents, mut digests) = (Contents::new(), HashMap::new());
        let mut changes = BTreeMap::new();
        for change in publish.changes {
            let after = change.after.map(|bytes| {
                // Many changes can share one content.
                let digest = *digests.entry((bytes.as_ptr().addr(), bytes.len())).or_insert_with(|| Digest::of(&bytes));
                let size = bytes.len() as u64;
                contents.entry(digest).or_insert(bytes);
                (digest, size)
            });
            let replacement = Replacement { path: change.path.clone(), before: change.before, after };
            if changes.insert(change.path, replacement).is_some() {
                return Err(StoreError::invalid("two changes have the same path"));
            }
        }
        let draft = Draft {
            channel: publish.channel,
            base: publish.base,
            kind: publish.kind,
            message: publish.message,
            author: actor.name.clone(),
            may_publish: actor.may_publish,
            may_administer: actor.may_administer,
            target: publish.proposal.map_or(Target::New, Target::Replace),
            expected: publish.expected,
            emergency: publish.emergency,
            changes: changes.into_values().collect(),
            contents,
            source: None,
            dry_run: publish.dry_run,
            ends_rollout: None,
        };
        self.submit(&draft, &checker).await
    }

    /// Checks a draft, stores it, and publishes it if the policy is met.
    pub(crate) async fn submit(&self, draft: &Draft, checker: &Arc<dyn Checker>) -> Result<Published, StoreError> {
        if draft.dry_run {
            return self.dry_run(draft, checker).await;
        }
        // The first check is made outside of the turn: nobody waits for a slow one. If the channel has moved meanwhile,
        // publishers of this process wait for each other instead of checking in vain, as long as their checks are fast.
        // Other processes are noticed by the comparison below.
        let turn = self.turn(&draft.channel);
        let mut is_slow = false;
        for attempt in 0..OPTIMISTIC {
            let held = if attempt == 0 || is_slow { None } else { Some(turn.lock().await) };
            let mut transaction = self.database().begin(Mode::Read).await?;
            let result = self.basis(&mut transaction, draft, None).await;
            let basis = transaction.finish(result).await?;
            let checked = match &held {
                None => check(&basis, checker).await?,
                Some(_) => match timeout(CHECK_IN_TURN, check(&basis, checker)).await {
                    Ok(checked) => checked?,
                    Err(_) => {
                        is_slow = true;
                        continue;
                    }
                },
            };
            let _turn = match held {
                Some(held) => held,
                None => turn.lock().await,
            };
            let mut transaction = self.database().begin(Mode::Write).await?;
            let result = self.store_unless_moved(&mut transaction, draft, &basis, &checked).await;
            let stored = transaction.finish(result).await.inspect_err(|_| self.snapshots().forget())?;
            if let Some((channel, published, digest)) = stored {
                if let Some(revision) = published.proposal.revision {
                    let revision = (revision, digest);
                    let live = checked.live(&basis.snapshot.live, &published.prompts);
                    let tree = basis.tree;
                    let snapshot = basis.snapshot.published(channel, revision, &basis.changes, tree, live);
                    self.snapshots().put(Arc::new(snapshot));
                }
                return Ok(published);
            }
        }
        let _turn = turn.lock().await;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = timeout(CHECK_IN_TURN, self.check_and_store(&mut transaction, draft, checker)).await;
        let moved = || {
            let channel = &draft.channel;
            StoreError::state(format!(
                "the channel `{channel}` has changed {OPTIMISTIC} times while these changes were checked; try again"
            ))
        };
        transaction.finish(result.unwrap_or_else(|_| Err(moved()))).await
    }

    /// Checks the changes of an open proposal again, and stores the prompts that they add or change on top of the present
    /// revision.
    pub(crate) async fn refresh_prompts(&self, id: u64, checker: &Arc<dyn Checker>) -> Result<(), StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            let draft = draft::of_proposal(&mut transaction, id, None).await?;
            let basis = self.basis(&mut transaction, &draft, None).await?;
            Ok((draft, basis))
        }
        .await;
        let (draft, basis) = transaction.finish(result).await?;
        let report = run_check(&basis.tree, checker).await?;
        let evaluated = checked(&basis, report, Vec::new()).evaluated(&basis.snapshot.live);
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = async {
            let present = proposal::lock(&mut transaction, id).await?;
            draft::must_be_open(&present)?;
            if draft.expected != Some(present.digest) {
                return Err(changed(id));
            }
            evaluation::set_prompts(&mut transaction, id, &evaluated).await
        }
        .await;
        transaction.finish(result).await
    }

    async fn check_and_store(
        &self,
        transaction: &mut Transaction,
        draft: &Draft,
        checker: &Arc<dyn Checker>,
    ) -> Result<Published, StoreError> {
        let channel = channel::lock(transaction, &draft.channel).await?;
        let basis = self.basis(transaction, draft, Some(channel.clone())).await?;
        let checked = check(&basis, checker).await?;
        Ok(self.store(transaction, &channel, draft, &basis, &checked).await?.0)
    }

    /// Stores a checked draft, unless the channel has moved since the check.
    async fn store_unless_moved(
        &self,
        transaction: &mut Transaction,
        draft: &Draft,
        basis: &Basis,
        checked: &Checked,
    ) -> Result<Option<(i64, Published, Option<Digest>)>, StoreError> {
        let channel = channel::lock(transaction, &draft.channel).await?;
        let mut has_moved = channel.head(channel::epoch(transaction).await?) != basis.head;
        if !has_moved {
            let running = rollouts::running(transaction, &draft.channel, true).await?;
            has_moved =
                !running.iter().map(|(division, _)| division).eq(basis.rollouts.iter().map(|one| &one.division));
        }
        // The tests run only if the policy wants them.
        if has_moved || (channel.policy.tests && checked.report.summary.tests.is_none()) {
            return Ok(None);
        }
        let (published, digest) = self.store(transaction, &channel, draft, basis, checked).await?;
        Ok(Some((channel.id, published, digest)))
    }

    /// Stores a checked draft, and publishes it if the policy permits. The channel's row is locked, and has the revision of
    /// the basis. Returns the digest of the new revision too.
    async fn store(
        &self,
        transaction: &mut Transaction,
        channel: &Channel,
        draft: &Draft,
        basis: &Basis,
        checked: &Checked,
    ) -> Result<(Published, Option<Digest>), StoreError> {
        if let Some(target) = &draft.ends_rollout {
            rollouts::must_run(transaction, &channel.name, target, true).await?;
        }
        blob::write(transaction, &draft.contents).await?;
        let mut proposal = write_proposal(transaction, channel, draft, basis, checked).await?;
        let act = act(draft);
        let decision = policy::decide(&channel.policy, &proposal, &act, &checked.report)?;
        let is_published = decision != Decision::Wait;
        let digest = match &decision {
            Decision::Publish(permit) => {
                Some(write_revision(transaction, channel, &mut proposal, basis, checked, permit).await?)
            }
            Decision::Wait => {
                if self.quota().is_some() && !matches!(draft.target, Target::Existing(_)) {
                    upload::add(transaction, &draft.author, &draft.contents).await?;
                    within(transaction, &draft.author, self.quota()).await?;
                }
                None
            }
        };
        let prompts = if is_published {
            prompt::publish(transaction, channel.id, channel.revision + 1, &checked.prompts).await?
        } else {
            prompt::expect(transaction, channel.id, &checked.prompts).await?
        };
        if let Decision::Publish(permit) = &decision {
            transaction.notify(channel.name.as_str()).await?;
            // Before the event: whoever advances a rollout locks its row first, too.
            rollouts::promoted(transaction, channel, &proposal).await?;
            rollouts::stop_opened(transaction, &proposal, &checked.stopped).await?;
            announce::published(transaction, &proposal, &prompts, permit, &checked.report).await?;
        } else if !matches!(draft.target, Target::Existing(_)) {
            announce::proposed(transaction, &proposal, &prompts).await?;
        }
        let published = Published { proposal, prompts, findings: checked.report.findings.clone(), kept: Vec::new() };
        Ok((published, digest))
    }

    async fn dry_run(&self, draft: &Draft, checker: &Arc<dyn Checker>) -> Result<Published, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = self.basis(&mut transaction, draft, None).await;
        let basis = transaction.finish(result).await?;
        let checked = check(&basis, checker).await?;
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = async {
            let proposal = proposed(&mut transaction, draft, &basis.changes, &checked).await?;
            let mut reasons = policy::lacks(&basis.policy, &proposal, &[]);
            let evaluated = checked.evaluated(&basis.snapshot.live);
            reasons.extend(gate::lacks(&mut transaction, &basis.policy, &proposal, &evaluated).await?);
            Ok((proposal, prompt::expect(&mut transaction, basis.channel, &checked.prompts).await?, reasons))
        }
        .await;
        let (mut proposal, prompts, reasons) = transaction.finish(result).await?;
        let act = act(draft);
        let unmet = policy::unmet(&basis.policy, &reasons, &act).cloned().collect();
        proposal.set_reasons(unmet);
        Ok(Published { proposal, prompts, findings: checked.report.findings, kept: Vec::new() })
    }

    async fn basis(
        &self,
        transaction: &mut Transaction,
        draft: &Draft,
        locked: Option<Channel>,
    ) -> Result<Basis, StoreError> {
        let epoch = channel::epoch(transaction).await?;
        let mut rollouts = Vec::new();
        for (division, other) in rollouts::running(transaction, &draft.channel, locked.is_some()).await? {
            let tree = self.snapshots().newest(transaction, &other, &epoch).await?.tree.clone();
            rollouts.push(Divided { division, tree });
        }
        let channel = match locked {
            Some(channel) => Some(channel),
            None => channel::find(transaction, &draft.channel).await?,
        };
        let (channel, head, policy, snapshot) = match channel {
            Some(channel) => {
                let snapshot = self.snapshots().newest(transaction, &channel, &epoch).await?;
                (channel.id, channel.head(epoch), channel.policy, snapshot)
            }
            None => {
                let snapshot = Arc::new(Snapshot::empty(epoch.clone()));
                (0, Head { epoch, revision: 0, digest: None }, Policy::default(), snapshot)
            }
        };
        if draft.base > head.revision {
            let what = format!("revision {} of the channel `{}`", draft.base, draft.channel);
            return Err(StoreError::not_found(what));
        }
        let changes = effective(draft, &snapshot, head.revision)?;
        let known = |digest: &Digest| draft.contents.contains_key(digest);
        let after = changes.iter().filter_map(|change| change.after);
        let missing: Vec<Digest> = after.map(|(digest, _)| digest).filter(|digest| !known(digest)).collect();
        let stored: Contents = blob::read(transaction, &missing).await?.into_iter().collect();
        let content = |digest: &Digest| draft.contents.get(digest).or_else(|| stored.get(digest));
        let tree = snapshot.tree.with(changes.iter().map(|change| {
            let bytes = change.after.and_then(|(digest, _)| content(&digest).cloned());
            (change.path.as_str(), bytes.map(MemoryFile::new))
        }));
        input::tree(tree.iter().map(|(path, _)| path))?;
        let mut basis = Basis { channel, head, policy, snapshot, changes, tree, source: None, rollouts };
        if let Some(source) = draft.source {
            basis.source = source_tree(transaction, source, basis.tree_digest()).await?;
        }
        Ok(basis)
    }
}

/// Returns the files that a promotion copies; `None` if those of the digest equal them.
async fn source_tree(
    transaction: &mut Transaction,
    source: Source,
    after: Digest,
) -> Result<Option<MemoryTree>, StoreError> {
    let channel = channel::with_id(transaction, source.channel).await?;
    if source.revision < channel.oldest {
        return Err(StoreError::state(
            "the revision that is promoted has been removed from its channel: promote again",
        ));
    }
    let files = entry::at(transaction, channel.id, source.revision).await?;
    if Digest::of_tree(&files.iter().map(|(path, file)| (path.as_str(), file.digest)).collect()) == after {
        return Ok(None);
    }
    Ok(Some(snapshot::tree(transaction, &files).await?))
}

/// Returns the changes that make a difference. A file that has the new content already is not one of them.
fn effective(draft: &Draft, snapshot: &Snapshot, revision: u64) -> Result<Vec<Replacement>, StoreError> {
    let mut changes = Vec::new();
    let mut conflicts = Vec::new();
    for change in &draft.changes {
        let present = snapshot.files.get(&change.path).map(|file| file.digest);
        if present == change.after.map(|(digest, _)| digest) {
            continue;
        }
        if present == change.before {
            changes.push(change.clone());
        } else {
            conflicts.push(change.path.clone());
        }
    }
    if !conflicts.is_empty() {
        return Err(StoreError::Conflict { paths: conflicts, revision });
    }
    if changes.is_empty() {
        let channel = &draft.channel;
        let reason = format!("nothing to publish: the channel `{channel}` has these files already");
        return Err(StoreError::Unchanged { reason });
    }
    Ok(changes)
}

/// Returns a new proposal, before the store has given it a number and a time.
async fn proposed(
    transaction: &mut Transaction,
    draft: &Draft,
    changes: &[Replacement],
    checked: &Checked,
) -> Result<Proposal, StoreError> {
    let creators = tokens::creators(transaction, [draft.author.clone()].into()).await?;
    Ok(Proposal {
        id: 0,
        channel: draft.channel.clone(),
        base: draft.base,
        kind: draft.kind,
        message: draft.message.clone(),
        author: draft.author.clone(),
        creators: tokens::behind(&creators, &draft.author),
        state: ProposalState::Open,
        digest: proposal::digest(draft.kind, &draft.message, changes),
        at: jiff::Timestamp::now(),
        changes: changes.iter().map(Replacement::file_change).collect(),
        reviews: Vec::new(),
        checks: checked.report.summary,
        findings: checked.report.findings.clone(),
        effects: checked.effects.clone(),
        policy: None,
        source: None,
        warnings: Vec::new(),
        revision: None,
        lacks: Vec::new(),
        reasons: Vec::new(),
    })
}

async fn check(basis: &Basis, checker: &Arc<dyn Checker>) -> Result<Checked, StoreError> {
    // Nobody calls an empty channel.
    let before = (basis.head.revision > 0).then(|| basis.snapshot.tree.clone());
    let trees = Trees { before, after: basis.tree.clone(), source: basis.source.clone() };
    let (report, effects) = Arc::clone(checker).start(trees, basis.policy.tests).await?;
    let mut checked = checked(basis, report, effects);
    for one in &basis.rollouts {
        let now = one.openings(&basis.tree, checker).await?;
        let known = if now.is_empty() { now.clone() } else { one.openings(&basis.snapshot.tree, checker).await? };
        let new: Vec<String> = now.difference(&known).cloned().collect();
        if !new.is_empty() {
            checked.stopped.push((one.division.clone(), new));
        }
    }
    Ok(checked)
}

fn checked(basis: &Basis, report: CheckReport, effects: Vec<Effect>) -> Checked {
    let found = report.prompts.iter().map(|prompt| (prompt.name.as_str(), prompt.digest)).collect();
    let prompts = prompt::compare(&basis.snapshot.live, &found);
    Checked { report, prompts, effects, stopped: Vec::new() }
}

pub(crate) async fn run_check(tree: &MemoryTree, checker: &Arc<dyn Checker>) -> Result<CheckReport, StoreError> {
    let trees = Trees { after: tree.clone(), ..Trees::default() };
    Ok(Arc::clone(checker).start(trees, false).await?.0)
}

fn act(draft: &Draft) -> Act<'_> {
    let Draft { may_publish, may_administer, .. } = *draft;
    Act { may_publish, may_administer, emergency: draft.emergency.as_deref() }
}

/// Writes the proposal of a draft, and returns it with the conditions that it lacks.
async fn write_proposal(
    transaction: &mut Transaction,
    channel: &Channel,
    draft: &Draft,
    basis: &Basis,
    checked: &Checked,
) -> Result<Proposal, StoreError> {
    let new = NewProposal {
        channel: channel.id,
        base: draft.base,
        kind: draft.kind,
        message: &draft.message,
        author: &draft.author,
        report: &checked.report,
        effects: &checked.effects,
        source: draft.source,
        changes: &basis.changes,
    };
    let evaluated = checked.evaluated(&basis.snapshot.live);
    match draft.target {
        Target::New => {
            let (id, at) = proposal::open(transaction, &new).await?;
            let proposed = proposed(transaction, draft, &basis.changes, checked).await?;
            let mut proposal = Proposal { id, at, ..proposed };
            let mut reasons = policy::lacks(&channel.policy, &proposal, &[]);
            reasons.extend(gate::lacks(transaction, &channel.policy, &proposal, &evaluated).await?);
            proposal.set_reasons(reasons);
            proposal.warnings = policy::warnings(&proposal);
            // A proposal that is published at once waits for no results.
            if !proposal.lacks.is_empty() || !draft.may_publish {
                evaluation::set_prompts(transaction, id, &evaluated).await?;
            }
            Ok(proposal)
        }
        Target::Replace(id) => {
            let present = proposal::lock(transaction, id).await?;
            policy::may_replace(&present, draft)?;
            proposal::replace(transaction, id, &new).await?;
            evaluation::set_prompts(transaction, id, &evaluated).await?;
            proposal::get(transaction, id).await
        }
        Target::Existing(id) => {
            let present = proposal::lock(transaction, id).await?;
            draft::must_be_open(&present)?;
            if draft.expected != Some(present.digest) {
                return Err(changed(id));
            }
            proposal::set_checks(transaction, id, new.report, new.effects).await?;
            evaluation::set_prompts(transaction, id, &evaluated).await?;
            proposal::get(transaction, id).await
        }
    }
}

/// Writes the next revision, up to its prompts: their numbers come last, because the lock for them is on all channels.
async fn write_revision(
    transaction: &mut Transaction,
    channel: &Channel,
    proposal: &mut Proposal,
    basis: &Basis,
    checked: &Checked,
    Permit { approved_by, emergency }: &Permit<'_>,
) -> Result<Digest, StoreError> {
    let number = channel.revision + 1;
    let parent = chain::complete(transaction, channel).await?;
    entry::apply(transaction, channel.id, number, &basis.changes).await?;
    let (checks, policy) = (&checked.report.summary, &channel.policy);
    let emergency = *emergency;
    let new = NewRevision { channel: channel.id, number, proposal, approved_by, emergency, checks, policy };
    revision::add(transaction, &new).await?;
    let digest = chain::seal(transaction, channel.id, number, parent, basis.tree_digest()).await?;
    proposal.at = proposal::set_state(transaction, proposal.id, ProposalState::Published, Some(number)).await?;
    proposal.state = ProposalState::Published;
    proposal.revision = Some(number);
    proposal.set_reasons(Vec::new());
    channel::set_revision(transaction, channel.id, number, digest).await?;
    channel::lock_library(transaction).await?;
    Ok(digest)
}

/// Returns the error for a proposal whose changes are not the expected ones.
pub(crate) fn changed(id: u64) -> StoreError {
    StoreError::Changed { what: format!("proposal {id}") }
}

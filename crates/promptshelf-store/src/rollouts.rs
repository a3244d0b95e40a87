//! Rollouts in the database.
//!
//! The state is one row, changed under its lock, with the clock of the database: replicas agree on it whatever their own
//! clocks show.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use promptshelf_source::MemoryTree;

use crate::{
    StoreError,
    address::ChannelName,
    announce,
    check::{Checker, Trees},
    database::{Mode, Transaction},
    effect::EffectImpact,
    input,
    model::{Actor, Proposal, ProposalSource, ProposalState},
    reason::Reason,
    rollout::{RolloutCounts, RolloutPhase, RolloutPlan, RolloutProgress, RolloutState, time},
    rollout_report::{RolloutChangeKind, RolloutReport},
    store::Store,
    tables::{
        channel::{self, Channel},
        proposal, rollout, rollout_change,
    },
};

const REPORTED: u64 = 100;

/// The most openings that a reason names.
const NAMED: usize = 12;

/// A change of a rollout by a person.
#[derive(Clone, Debug, Default)]
pub struct RolloutEdit {
    /// Another share, in per cent. A rollout that was stopped goes on with it, and its evidence begins again.
    pub percent: Option<u8>,
    /// Running, paused or stopped.
    pub phase: Option<RolloutPhase>,
    /// The reason.
    pub reason: String,
    /// The time of the last change that the caller has seen, so that a rollout that was stopped meanwhile is not continued
    /// by mistake.
    pub seen: Option<Timestamp>,
}

impl Store {
    /// Returns all rollouts with their histories, by channel and target.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn rollouts(&self) -> Result<Vec<RolloutReport>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = reports(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Returns the states of all rollouts, which servers apply.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn rollout_states(&self) -> Result<Vec<RolloutState>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = rollout::all(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Begins a rollout with the first share of its plan. An earlier one between the channels has to be over.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] if both channels are the same or the plan is impossible, [`StoreError::NotFound`] for a
    /// channel that does not exist, [`StoreError::State`] if the channel has a rollout that is not over, and errors of the
    /// database.
    pub async fn start_rollout(
        &self,
        channel: &ChannelName,
        target: &ChannelName,
        plan: &RolloutPlan,
        reason: &str,
        actor: &Actor,
    ) -> Result<RolloutReport, StoreError> {
        if channel == target {
            return Err(StoreError::invalid(format!("a rollout of {channel} needs another channel as its target")));
        }
        if !(1..=100).contains(&plan.percent) {
            let percent = plan.percent;
            return Err(StoreError::invalid(format!("expected a share from 1 to 100 per cent, got {percent}")));
        }
        for bound in [plan.errors, plan.declined, plan.latency].into_iter().flatten() {
            if !(bound.is_finite() && bound >= 1.0) {
                return Err(StoreError::invalid(format!("expected a factor of at least 1, got {bound}")));
            }
        }
        input::actor(actor)?;
        input::note("a reason", reason)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = start(&mut transaction, channel, target, plan, reason, actor).await;
        transaction.finish(result).await
    }

    /// Changes the share or the phase of a rollout. Without a target it is the one of the channel that is not over,
    /// otherwise the one that was changed last.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] for a share above 100 or no change, [`StoreError::NotFound`], [`StoreError::State`] for a
    /// change that the phase does not permit, [`StoreError::Changed`] if the last change is another one, and errors of the
    /// database.
    pub async fn change_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        edit: &RolloutEdit,
        actor: &Actor,
    ) -> Result<RolloutReport, StoreError> {
        if let Some(percent) = edit.percent.filter(|percent| *percent > 100) {
            return Err(StoreError::invalid(format!("expected a share from 0 to 100 per cent, got {percent}")));
        }
        input::actor(actor)?;
        input::note("a reason", &edit.reason)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = change(&mut transaction, channel, target, edit, actor).await;
        transaction.finish(result).await
    }

    /// Ends a rollout whose new version the channel has.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::State`] if it was stopped, and errors of the database.
    pub async fn finish_rollout(
        &self,
        channel: &ChannelName,
        target: &ChannelName,
        reason: &str,
        actor: &Actor,
    ) -> Result<RolloutReport, StoreError> {
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = async {
            let found = rollout::find(&mut transaction, channel, target, true).await?;
            let state = found.ok_or_else(|| missing(channel, Some(target)))?;
            // Another finish may have been first.
            let state = if state.phase == RolloutPhase::Finished {
                state
            } else {
                must_not_be_over(&state)?;
                finish(&mut transaction, state, &actor.name, reason.to_owned()).await?
            };
            report(&mut transaction, state).await
        }
        .await;
        transaction.finish(result).await
    }

    /// Adds counts of a replica to a rollout, and stops it or takes its next step if it is time. Returns the state that
    /// every replica applies, and whether this call has changed the share; `None` if the rollout does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the database. The counts may have been added or not; adding them again would count them twice.
    pub async fn advance_rollout(
        &self,
        channel: &ChannelName,
        target: &ChannelName,
        counts: RolloutCounts,
    ) -> Result<Option<(RolloutState, bool)>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = look(&mut transaction, channel, target).await;
        let Some((state, now, revision)) = transaction.finish(result).await? else { return Ok(None) };
        // Most looks change nothing, and need no lock.
        let mut next = state.clone();
        next.advance(counts, now, revision);
        if next == state {
            return Ok(Some((state, false)));
        }
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = advance(&mut transaction, channel, target, counts).await;
        transaction.finish(result).await
    }
}

async fn reports(transaction: &mut Transaction) -> Result<Vec<RolloutReport>, StoreError> {
    let mut reports = Vec::new();
    for state in rollout::all(transaction).await? {
        reports.push(report(transaction, state).await?);
    }
    Ok(reports)
}

async fn report(transaction: &mut Transaction, state: RolloutState) -> Result<RolloutReport, StoreError> {
    let history = rollout_change::of(transaction, &state.channel, &state.target, REPORTED).await?;
    Ok(RolloutReport::new(state, history, rollout::now(transaction).await?))
}

/// Writes a changed state with its history and its event. `counts_of` has the counts until the change.
async fn record(
    transaction: &mut Transaction,
    state: &RolloutState,
    kind: RolloutChangeKind,
    is_automatic: bool,
    counts_of: &RolloutState,
) -> Result<(), StoreError> {
    rollout::write(transaction, state).await?;
    rollout_change::append(transaction, state, kind, is_automatic, counts_of).await?;
    announce::rollout(transaction, state, kind, is_automatic, &counts_of.progress.counts).await
}

/// Fails if a channel has a rollout that is not over, apart from that to a target.
async fn must_be_free(
    transaction: &mut Transaction,
    channel: &ChannelName,
    but: Option<&ChannelName>,
) -> Result<(), StoreError> {
    let all = rollout::all(transaction).await?;
    let other = all.into_iter().find(|one| one.channel == *channel && !one.phase.is_over() && Some(&one.target) != but);
    match other {
        // Not which one: the caller may not see it.
        Some(_) => Err(StoreError::state(format!(
            "the channel `{channel}` has a rollout that is not over: set its share, or stop or finish it"
        ))),
        None => Ok(()),
    }
}

async fn start(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
    plan: &RolloutPlan,
    reason: &str,
    actor: &Actor,
) -> Result<RolloutReport, StoreError> {
    channel::get(transaction, channel).await?;
    let revision = channel::get(transaction, target).await?.revision;
    // Two people begin one at a time.
    channel::lock(transaction, channel).await?;
    must_be_free(transaction, channel, None).await?;
    let now = time(rollout::now(transaction).await?);
    let state = RolloutState {
        channel: channel.clone(),
        target: target.clone(),
        percent: plan.percent,
        phase: RolloutPhase::Running,
        changed_by: actor.name.clone(),
        reason: reason.to_owned(),
        changed_at: now,
        progress: RolloutProgress::of_revision(revision),
        plan: Some(*plan),
        applied_at: Some(now),
    };
    record(transaction, &state, RolloutChangeKind::Begin, false, &state).await?;
    report(transaction, state).await
}

async fn change(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: Option<&ChannelName>,
    edit: &RolloutEdit,
    actor: &Actor,
) -> Result<RolloutReport, StoreError> {
    channel::get(transaction, channel).await?;
    channel::lock(transaction, channel).await?;
    let of_channel = rollout::all(transaction).await?.into_iter().filter(|one| one.channel == *channel);
    let wanted = of_channel.filter(|one| target.is_none_or(|target| one.target == *target));
    let found =
        wanted.max_by_key(|one| (!one.phase.is_over(), one.changed_at)).ok_or_else(|| missing(channel, target))?;
    // Its counts can have changed before the lock.
    let found = rollout::find(transaction, channel, &found.target, true).await?;
    let before = found.ok_or_else(|| missing(channel, target))?;
    let target = &before.target;
    if edit.seen.is_some_and(|seen| seen != before.changed_at) {
        return Err(StoreError::Changed { what: format!("the rollout of {channel} to {target}") });
    }
    let is_over = before.phase.is_over();
    let refused = |what: &str| {
        let phase = before.phase.as_str();
        Err(StoreError::state(format!("the rollout of {channel} to {target} is {phase}: {what}")))
    };
    let (phase, kind) = match (edit.phase, edit.percent) {
        _ if before.phase == RolloutPhase::Finished => return refused("start a new one"),
        (Some(phase @ (RolloutPhase::Stopped | RolloutPhase::Paused)), None) if phase == before.phase => {
            return refused("nothing has to be changed");
        }
        (Some(RolloutPhase::Stopped), None) => (RolloutPhase::Stopped, RolloutChangeKind::Stop),
        (Some(RolloutPhase::Paused), percent) if !is_over || percent.is_some() => {
            (RolloutPhase::Paused, if percent.is_some() { RolloutChangeKind::Set } else { RolloutChangeKind::Pause })
        }
        (Some(RolloutPhase::Running), percent) if before.phase == RolloutPhase::Paused || percent.is_some() => {
            (RolloutPhase::Running, if percent.is_some() { RolloutChangeKind::Set } else { RolloutChangeKind::Resume })
        }
        (Some(RolloutPhase::Running), None) if !is_over => return refused("it takes steps already"),
        (Some(RolloutPhase::Running | RolloutPhase::Paused), None) => return refused("set a share to continue it"),
        (None, Some(_)) => (if is_over { RolloutPhase::Running } else { before.phase }, RolloutChangeKind::Set),
        (None, None) => return Err(StoreError::invalid("expected a share or a state")),
        (Some(_), _) => {
            return Err(StoreError::invalid("expected `running`, `paused`, or `stopped` without a share"));
        }
    };
    if is_over && !phase.is_over() {
        must_be_free(transaction, channel, Some(target)).await?;
    }
    let mut state = before.clone();
    let now = rollout::now(transaction).await?;
    let percent = if phase.is_over() { 0 } else { edit.percent.unwrap_or(before.percent) };
    state.set(percent, phase, &actor.name, edit.reason.clone(), now);
    if kind == RolloutChangeKind::Set || phase.is_over() {
        state.progress = RolloutProgress::of_revision(state.progress.revision);
    }
    record(transaction, &state, kind, false, &before).await?;
    report(transaction, state).await
}

/// Fails unless a rollout runs or is paused. Its row can be locked.
pub(crate) async fn must_run(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
    is_locking: bool,
) -> Result<(), StoreError> {
    let state = rollout::find(transaction, channel, target, is_locking).await?;
    must_not_be_over(&state.ok_or_else(|| missing(channel, Some(target)))?)
}

fn must_not_be_over(RolloutState { channel, target, phase, .. }: &RolloutState) -> Result<(), StoreError> {
    if phase.is_over() {
        return Err(StoreError::state(format!(
            "the rollout of {channel} to {target} is {}: set its share first, or promote {target} without it",
            phase.as_str()
        )));
    }
    Ok(())
}

/// Returns the reason why a promotion waits whose rollout was stopped after it was proposed: whoever approved it may have
/// seen the figures until then only.
pub(crate) async fn stopped_since(
    transaction: &mut Transaction,
    proposal: &Proposal,
) -> Result<Option<Reason>, StoreError> {
    let Some(ProposalSource { channel: target, is_whole: true, .. }) = &proposal.source else { return Ok(None) };
    if proposal.state != ProposalState::Open {
        return Ok(None);
    }
    let Some(state) = rollout::find(transaction, &proposal.channel, target, false).await? else { return Ok(None) };
    let is_stopped = matches!(state.phase, RolloutPhase::Stopped | RolloutPhase::Failed);
    if !is_stopped || state.changed_at <= proposal.at {
        return Ok(None);
    }
    let channel = &proposal.channel;
    let text = format!(
        "the rollout of {channel} that this ends was stopped after it was proposed: promote again, or continue the rollout with \
         `promptshelf rollout set`"
    );
    Ok(Some(Reason::new("rollout-stopped", text).with("channel", channel)))
}

/// Ends the rollout whose new version a proposal has promoted as a whole.
pub(crate) async fn promoted(
    transaction: &mut Transaction,
    channel: &Channel,
    proposal: &Proposal,
) -> Result<(), StoreError> {
    let Some(target) = proposal::whole_source(transaction, proposal.id).await? else { return Ok(()) };
    let Some(state) = rollout::find(transaction, &channel.name, &target, true).await? else { return Ok(()) };
    if !state.phase.is_over() {
        let reason = format!("promoted as revision {}", proposal.revision.unwrap_or_default());
        finish(transaction, state, &proposal.author, reason).await?;
    }
    Ok(())
}

/// A rollout that is not over, beside which one of its channels changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    channel: ChannelName,
    target: ChannelName,
    /// Whether the channel that changes is the target.
    is_target: bool,
    /// The revision of the other channel.
    revision: u64,
}

/// A rollout with the files of the channel that does not change.
pub(crate) struct Divided {
    pub(crate) division: Division,
    pub(crate) tree: MemoryTree,
}

impl Divided {
    /// Returns the names of what callers may read in the target, and not in the channel, if the other one has these files.
    pub(crate) async fn openings(
        &self,
        tree: &MemoryTree,
        checker: &Arc<dyn Checker>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let (own, other) = (tree.clone(), self.tree.clone());
        let (before, after) = if self.division.is_target { (other, own) } else { (own, other) };
        let trees = Trees { before: Some(before), after, source: None };
        let (_, effects) = Arc::clone(checker).start(trees, false).await?;
        let openings = effects.into_iter().filter(|effect| effect.impact == EffectImpact::Opening);
        Ok(openings.map(|effect| effect.name).collect())
    }
}

/// Returns the rollouts of a channel, and those to it, that are not over, each with the other channel. Their rows can be
/// locked, so that only one of the two channels changes at a time.
pub(crate) async fn running(
    transaction: &mut Transaction,
    name: &ChannelName,
    is_locking: bool,
) -> Result<Vec<(Division, Channel)>, StoreError> {
    let mut running = Vec::new();
    for one in rollout::all(transaction).await? {
        let is_target = one.target == *name;
        if !is_target && one.channel != *name {
            continue;
        }
        let present =
            if is_locking { rollout::find(transaction, &one.channel, &one.target, true).await? } else { Some(one) };
        let Some(state) = present.filter(|state| !state.phase.is_over()) else { continue };
        let RolloutState { channel, target, .. } = state;
        if let Some(other) = channel::find(transaction, if is_target { &channel } else { &target }).await? {
            running.push((Division { channel, target, is_target, revision: other.revision }, other));
        }
    }
    Ok(running)
}

/// Stops the rollouts whose callers may read more since a publish than before.
pub(crate) async fn stop_opened(
    transaction: &mut Transaction,
    proposal: &Proposal,
    stopped: &[(Division, Vec<String>)],
) -> Result<(), StoreError> {
    let revision = proposal.revision.unwrap_or_default();
    for (Division { channel, target, .. }, names) in stopped {
        let found = rollout::find(transaction, channel, target, true).await?;
        let Some(before) = found.filter(|state| !state.phase.is_over()) else { continue };
        let names = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let reason = format!("revision {revision} of {} opens more than {channel} does: {names}", proposal.channel);
        let mut state = before.clone();
        state.set(0, RolloutPhase::Stopped, &proposal.author, reason, rollout::now(transaction).await?);
        state.progress = RolloutProgress::of_revision(state.progress.revision);
        record(transaction, &state, RolloutChangeKind::Stop, false, &before).await?;
    }
    Ok(())
}

async fn finish(
    transaction: &mut Transaction,
    before: RolloutState,
    by: &str,
    reason: String,
) -> Result<RolloutState, StoreError> {
    let mut state = before.clone();
    state.set(0, RolloutPhase::Finished, by, reason, rollout::now(transaction).await?);
    record(transaction, &state, RolloutChangeKind::Finish, false, &before).await?;
    Ok(state)
}

/// Returns a rollout with the time of the database, in microseconds, and the revision of its target; `None` for a target
/// that does not exist any more.
async fn look(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
) -> Result<Option<(RolloutState, i64, Option<u64>)>, StoreError> {
    let Some(state) = rollout::find(transaction, channel, target, false).await? else { return Ok(None) };
    let revision = channel::find(transaction, target).await?.map(|found| found.revision);
    Ok(Some((state, rollout::now(transaction).await?, revision)))
}

async fn advance(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
    counts: RolloutCounts,
) -> Result<Option<(RolloutState, bool)>, StoreError> {
    let Some(before) = rollout::find(transaction, channel, target, true).await? else { return Ok(None) };
    let revision = channel::find(transaction, target).await?.map(|found| found.revision);
    let mut state = before.clone();
    state.advance(counts, rollout::now(transaction).await?, revision);
    let has_changed = (state.percent, state.phase) != (before.percent, before.phase);
    if has_changed {
        let kind = if state.phase.is_over() { RolloutChangeKind::Stop } else { RolloutChangeKind::Step };
        // With the counts that were the reason.
        record(transaction, &state, kind, true, &state).await?;
    } else if state != before {
        rollout::write(transaction, &state).await?;
    }
    Ok(Some((state, has_changed)))
}

fn missing(channel: &ChannelName, target: Option<&ChannelName>) -> StoreError {
    let to = target.map(|target| format!(" to {target}")).unwrap_or_default();
    StoreError::not_found(format!("a rollout of {channel}{to}"))
}

pub(crate) mod rows {
    //! Rows of rollouts.

    use crate::{
        StoreError,
        address::ChannelName,
        database::{Row, Transaction, Value, json},
        rollout::{RolloutPhase, RolloutState, time},
    };

    const COLUMNS: &str = "channel, target, percent, is_stopped, changed_by, reason, changed_at, progress, plan, \
                           applied_at, phase";

    pub(crate) async fn all(transaction: &mut Transaction) -> Result<Vec<RolloutState>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM ps_rollout ORDER BY channel, target");
        transaction.rows(sql, vec![]).await?.iter().map(state).collect()
    }

    pub(crate) async fn find(
        transaction: &mut Transaction,
        channel: &ChannelName,
        target: &ChannelName,
        is_writing: bool,
    ) -> Result<Option<RolloutState>, StoreError> {
        let lock = if is_writing { transaction.for_update() } else { "" };
        let sql = format!("SELECT {COLUMNS} FROM ps_rollout WHERE channel = $1 AND target = $2{lock}");
        let row = transaction.row(sql, vec![channel.as_str().into(), target.as_str().into()]).await?;
        row.as_ref().map(state).transpose()
    }

    pub(crate) async fn now(transaction: &mut Transaction) -> Result<i64, StoreError> {
        let sql = format!("SELECT {}", transaction.now());
        transaction.row(sql, vec![]).await?.map_or(Ok(0), |row| row.int(0))
    }

    pub(crate) async fn write(transaction: &mut Transaction, state: &RolloutState) -> Result<(), StoreError> {
        let sql = format!(
            "INSERT INTO ps_rollout ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             ON CONFLICT (channel, target) DO UPDATE SET percent = $3, is_stopped = $4, changed_by = $5, reason = $6, \
             changed_at = $7, progress = $8, plan = $9, applied_at = $10, phase = $11"
        );
        transaction.run(sql, values(state)?).await
    }

    fn values(state: &RolloutState) -> Result<Vec<Value>, StoreError> {
        Ok(vec![
            state.channel.as_str().into(),
            state.target.as_str().into(),
            u64::from(state.percent).into(),
            i64::from(state.phase.is_over()).into(),
            state.changed_by.as_str().into(),
            state.reason.as_str().into(),
            state.changed_at.into(),
            json(&state.progress)?.into(),
            state.plan.as_ref().map(json).transpose()?.as_deref().into(),
            state.applied_at.and_then(|at| u64::try_from(at.as_microsecond()).ok()).into(),
            state.phase.as_str().into(),
        ])
    }

    fn state(row: &Row) -> Result<RolloutState, StoreError> {
        // An earlier release that stops or continues a rollout leaves the phase as it is.
        let is_over = row.int("is_stopped")? != 0;
        let phase = row.optional_text("phase")?.and_then(|name| RolloutPhase::from_name(&name));
        let fallback = if is_over { RolloutPhase::Stopped } else { RolloutPhase::Running };
        Ok(RolloutState {
            channel: row.text("channel")?.parse()?,
            target: row.text("target")?.parse()?,
            // A row that was edited manually never serves more than all callers.
            percent: u8::try_from(row.number("percent")?).unwrap_or(100).min(100),
            phase: phase.filter(|phase| phase.is_over() == is_over).unwrap_or(fallback),
            changed_by: row.text("changed_by")?,
            reason: row.text("reason")?,
            changed_at: row.time("changed_at")?,
            progress: row.json("progress")?,
            plan: row.optional_text("plan")?.and_then(|plan| serde_json::from_str(&plan).ok()),
            applied_at: row.optional_number("applied_at")?.and_then(|at| i64::try_from(at).ok()).map(time),
        })
    }
}

pub(crate) mod change_rows {
    //! The history of guarded rollouts.

    use crate::{
        StoreError,
        address::ChannelName,
        database::{Row, Transaction, json, malformed},
        rollout::RolloutState,
        rollout_report::{RolloutChange, RolloutChangeKind},
    };

    const COLUMNS: &str = "number, kind, is_automatic, percent, changed_by, reason, at, revision, counts";

    /// The changes of a rollout that are stored. A publisher cannot fill the store with more.
    const MAX_CHANGES: u64 = 1_000;

    pub(crate) async fn of(
        transaction: &mut Transaction,
        channel: &ChannelName,
        target: &ChannelName,
        limit: u64,
    ) -> Result<Vec<RolloutChange>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM ps_rollout_change WHERE channel = $1 AND target = $2 ORDER BY number DESC LIMIT $3"
        );
        let values = vec![channel.as_str().into(), target.as_str().into(), limit.into()];
        transaction.rows(sql, values).await?.iter().map(change).collect()
    }

    /// Appends the last change of a rollout, under the lock of its row. `before` is its state until then.
    pub(crate) async fn append(
        transaction: &mut Transaction,
        state: &RolloutState,
        kind: RolloutChangeKind,
        is_automatic: bool,
        before: &RolloutState,
    ) -> Result<(), StoreError> {
        let (channel, target) = (state.channel.as_str(), state.target.as_str());
        let sql = "SELECT COALESCE(MAX(number), 0) FROM ps_rollout_change WHERE channel = $1 AND target = $2";
        let row = transaction.row(sql, vec![channel.into(), target.into()]).await?;
        let number = row.map_or(Ok(0), |row| row.number(0))? + 1;
        let sql = format!(
            "INSERT INTO ps_rollout_change (channel, target, {COLUMNS}) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        );
        let values = vec![
            channel.into(),
            target.into(),
            number.into(),
            kind.as_str().into(),
            i64::from(is_automatic).into(),
            u64::from(state.percent).into(),
            state.changed_by.as_str().into(),
            state.reason.as_str().into(),
            state.changed_at.into(),
            before.progress.revision.into(),
            json(&before.progress.counts)?.into(),
        ];
        transaction.run(sql, values).await?;
        let sql = "DELETE FROM ps_rollout_change WHERE channel = $1 AND target = $2 AND number <= $3";
        transaction.run(sql, vec![channel.into(), target.into(), number.saturating_sub(MAX_CHANGES).into()]).await
    }

    fn change(row: &Row) -> Result<RolloutChange, StoreError> {
        Ok(RolloutChange {
            number: row.number("number")?,
            kind: RolloutChangeKind::from_name(&row.text("kind")?).ok_or_else(|| malformed("a change of a rollout"))?,
            is_automatic: row.int("is_automatic")? != 0,
            percent: u8::try_from(row.number("percent")?).unwrap_or(100).min(100),
            changed_by: row.text("changed_by")?,
            reason: row.text("reason")?,
            at: row.time("at")?,
            revision: row.number("revision")?,
            counts: row.json("counts")?,
        })
    }
}

//! Rollouts in the database.
//!
//! The state is one row, changed under its lock, with the clock of the database: replicas agree on it whatever their own
//! clocks show.

use jiff::Timestamp;

use crate::{
    StoreError,
    address::ChannelName,
    database::{Mode, Transaction},
    input,
    model::Actor,
    rollout::{RolloutCounts, RolloutPlan, RolloutProgress, RolloutState, SERVER, time},
    rollout_report::{RolloutChangeKind, RolloutReport},
    store::Store,
    tables::{channel, rollout, rollout_change},
};

const REPORTED: u64 = 100;

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

    /// Begins a rollout with the first share of its plan. One that exists keeps its share, even if it was stopped.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] if both channels are the same, [`StoreError::NotFound`] for a channel that does not
    /// exist, and errors of the database.
    pub async fn begin_rollout(
        &self,
        channel: &ChannelName,
        target: &ChannelName,
        plan: &RolloutPlan,
    ) -> Result<RolloutState, StoreError> {
        if channel == target {
            return Err(StoreError::invalid(format!("a rollout of {channel} needs another channel as its target")));
        }
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = begin(&mut transaction, channel, target, plan).await;
        transaction.finish(result).await
    }

    /// Sets the share of a rollout manually, and restarts its evidence. A stopped rollout goes on. Without a target the
    /// channel must have one rollout only. `seen` is the time of the last change that the caller has seen, so that a
    /// rollout that was stopped meanwhile is not continued by mistake.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] for a share above 100 and for a channel with several rollouts,
    /// [`StoreError::NotFound`], [`StoreError::Changed`] if the last change is another one, and errors of the database.
    pub async fn set_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        percent: u8,
        reason: &str,
        seen: Option<Timestamp>,
        actor: &Actor,
    ) -> Result<RolloutReport, StoreError> {
        if percent > 100 {
            return Err(StoreError::invalid(format!("expected a share from 0 to 100 per cent, got {percent}")));
        }
        let new = NewShare { percent: Some(percent), reason, seen };
        self.change_rollout(channel, target, new, actor).await
    }

    /// Stops a rollout: all callers are served the channel itself.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidInput`] for a channel with several rollouts, [`StoreError::NotFound`], and errors of the
    /// database.
    pub async fn stop_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        reason: &str,
        actor: &Actor,
    ) -> Result<RolloutReport, StoreError> {
        self.change_rollout(channel, target, NewShare { percent: None, reason, seen: None }, actor).await
    }

    async fn change_rollout(
        &self,
        channel: &ChannelName,
        target: Option<&ChannelName>,
        new: NewShare<'_>,
        actor: &Actor,
    ) -> Result<RolloutReport, StoreError> {
        input::actor(actor)?;
        input::note("a reason", new.reason)?;
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = change(&mut transaction, channel, target, new, actor).await;
        transaction.finish(result).await
    }

    /// Adds counts of a replica to a rollout, and stops it or takes its next step if it is time. Returns the state that
    /// every replica applies; `None` if the rollout does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the database. The counts may have been added or not; adding them again would count them twice.
    pub async fn advance_rollout(
        &self,
        channel: &ChannelName,
        target: &ChannelName,
        plan: &RolloutPlan,
        counts: RolloutCounts,
    ) -> Result<Option<RolloutState>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = look(&mut transaction, channel, target).await;
        let Some((state, now, revision)) = transaction.finish(result).await? else { return Ok(None) };
        // Most looks change nothing, and need no lock.
        let mut next = state.clone();
        next.advance(plan, counts, now, revision);
        if next == state {
            return Ok(Some(state));
        }
        let mut transaction = self.database().begin(Mode::Write).await?;
        let result = advance(&mut transaction, channel, target, plan, counts).await;
        transaction.finish(result).await
    }
}

struct NewShare<'a> {
    /// `None` stops the rollout.
    percent: Option<u8>,
    reason: &'a str,
    seen: Option<Timestamp>,
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

async fn begin(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: &ChannelName,
    plan: &RolloutPlan,
) -> Result<RolloutState, StoreError> {
    channel::get(transaction, channel).await?;
    let revision = channel::get(transaction, target).await?.revision;
    let now = time(rollout::now(transaction).await?);
    let state = RolloutState {
        channel: channel.clone(),
        target: target.clone(),
        percent: plan.percent.min(100),
        is_stopped: false,
        changed_by: SERVER.to_owned(),
        reason: "begun".to_owned(),
        changed_at: now,
        progress: RolloutProgress::of_revision(revision),
        plan: Some(*plan),
        applied_at: Some(now),
    };
    if rollout::insert(transaction, &state).await? {
        rollout_change::append(transaction, &state, RolloutChangeKind::Begin, true, &state).await?;
        return Ok(state);
    }
    let found = rollout::find(transaction, channel, target, true).await?;
    let mut found = found.ok_or_else(|| missing(channel, Some(target)))?;
    if found.plan.replace(*plan) != Some(*plan) {
        rollout::update(transaction, &found).await?;
    }
    Ok(found)
}

async fn change(
    transaction: &mut Transaction,
    channel: &ChannelName,
    target: Option<&ChannelName>,
    NewShare { percent, reason, seen }: NewShare<'_>,
    actor: &Actor,
) -> Result<RolloutReport, StoreError> {
    let target = match target {
        Some(target) => target.clone(),
        None => {
            let all = rollout::all(transaction).await?;
            let mut targets = all.into_iter().filter(|one| one.channel == *channel).map(|one| one.target);
            match (targets.next(), targets.next()) {
                (Some(target), None) => target,
                (None, _) => return Err(missing(channel, None)),
                (Some(one), Some(other)) => {
                    let reason = format!("{channel} has several rollouts, such as to {one} and to {other}: name one");
                    return Err(StoreError::invalid(reason));
                }
            }
        }
    };
    let found = rollout::find(transaction, channel, &target, true).await?;
    let before = found.ok_or_else(|| missing(channel, Some(&target)))?;
    if seen.is_some_and(|seen| seen != before.changed_at) {
        return Err(StoreError::Changed { what: format!("the rollout of {channel} to {target}") });
    }
    let mut state = before.clone();
    let now = rollout::now(transaction).await?;
    state.set(percent.unwrap_or(0), percent.is_none(), &actor.name, reason.to_owned(), now);
    state.progress = RolloutProgress::of_revision(state.progress.revision);
    rollout::update(transaction, &state).await?;
    let kind = if state.is_stopped { RolloutChangeKind::Stop } else { RolloutChangeKind::Set };
    rollout_change::append(transaction, &state, kind, false, &before).await?;
    report(transaction, state).await
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
    plan: &RolloutPlan,
    counts: RolloutCounts,
) -> Result<Option<RolloutState>, StoreError> {
    let Some(before) = rollout::find(transaction, channel, target, true).await? else { return Ok(None) };
    let revision = channel::find(transaction, target).await?.map(|found| found.revision);
    let mut state = before.clone();
    state.advance(plan, counts, rollout::now(transaction).await?, revision);
    if state != before {
        rollout::update(transaction, &state).await?;
    }
    if (state.percent, state.is_stopped) != (before.percent, before.is_stopped) {
        let kind = if state.is_stopped { RolloutChangeKind::Stop } else { RolloutChangeKind::Step };
        // With the counts that were the reason.
        rollout_change::append(transaction, &state, kind, true, &state).await?;
    }
    Ok(Some(state))
}

fn missing(channel: &ChannelName, target: Option<&ChannelName>) -> StoreError {
    let to = target.map(|target| format!(" to {target}")).unwrap_or_default();
    StoreError::not_found(format!("a rollout of {channel}{to}"))
}

//! The rollouts that this server applies: it follows those of the store for its channels, sends the counts of its calls,
//! and applies the share that all replicas agree on.
//!
//! While the store is away the last share stays. Counts that could not be written are dropped: they are evidence only.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use promptshelf_core::Access;
use promptshelf_service::{GroupCalls, Method, Rollout};
use promptshelf_store::{ChannelName, GroupCounts, RolloutCounts, RolloutPhase, RolloutPlan, RolloutState, StoreError};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::served::{ChannelOpener, Target};
use crate::{channels::StoreHandle, library::Library, random};

/// The time between two exchanges, ±20 % so that replicas do not write in step.
const INTERVAL: Duration = Duration::from_secs(1);

const TIMEOUT: Duration = Duration::from_secs(10);

/// A rollout for the metrics.
#[derive(Clone, Debug)]
pub(super) struct RolloutStatus {
    pub(super) channel: String,
    pub(super) target: String,
    pub(super) percent: u8,
    /// Whether a server has stopped it by itself, and nobody has changed it since.
    pub(super) is_failed: bool,
    /// It counts calls of this server, or has done so until it ended.
    pub(super) rollout: Option<Rollout>,
}

/// The rollouts of the served channels that are not over, and those that servers have stopped.
pub(super) type RolloutMonitor = Arc<Mutex<Vec<RolloutStatus>>>;

pub(super) struct RolloutFollower {
    store: StoreHandle,
    opener: ChannelOpener,
    /// The libraries of the channels with addresses, by name.
    libraries: Vec<(String, Library)>,
    access: HashMap<String, Arc<Access>>,
    running: HashMap<String, Running>,
    /// The last rollout of each channel that ended, with its counts.
    ended: HashMap<String, (ChannelName, Rollout)>,
    monitor: RolloutMonitor,
    problem: Option<String>,
    signs_in: bool,
}

/// A rollout that is applied here.
struct Running {
    target: ChannelName,
    plan: Option<RolloutPlan>,
    rollout: Rollout,
    /// The last state, with the last counts that are not those after a stop.
    applied: Option<RolloutState>,
    /// Follows the target, if it has no address.
    _target: Option<Arc<Target>>,
}

impl Running {
    /// Logs a state unless it was before. Returns whether it is another one.
    fn note(&mut self, state: &RolloutState) -> bool {
        let mut state = state.clone();
        let Some(before) = &self.applied else {
            log(&state);
            self.applied = Some(state);
            return true;
        };
        let is_new = (before.percent, before.phase) != (state.percent, state.phase);
        if state.phase.is_over() && state.progress.counts == RolloutCounts::default() {
            // Who stops a rollout starts the comparison again.
            state.progress.counts = before.progress.counts;
        }
        if is_new && state.changed_at < before.changed_at {
            let RolloutState { channel, target, percent, phase, changed_at, .. } = &state;
            let phase = phase.as_str();
            tracing::warn!(
                "the rollout of {channel} to {target} is {phase} at {percent} %, as it was at {changed_at}: the store was \
                 restored from a backup"
            );
        } else if is_new {
            log(&state);
        }
        self.applied = Some(state);
        is_new
    }
}

impl RolloutFollower {
    pub(super) fn new(
        store: StoreHandle,
        opener: ChannelOpener,
        libraries: Vec<(String, Library)>,
        access: HashMap<String, Arc<Access>>,
        signs_in: bool,
    ) -> RolloutFollower {
        RolloutFollower {
            store,
            opener,
            libraries,
            access,
            running: HashMap::new(),
            ended: HashMap::new(),
            monitor: RolloutMonitor::default(),
            problem: None,
            signs_in,
        }
    }

    pub(super) fn monitor(&self) -> RolloutMonitor {
        Arc::clone(&self.monitor)
    }

    /// Follows rollouts, and never returns.
    pub(super) async fn run(mut self) {
        loop {
            sleep(random::share(INTERVAL, 80..=120)).await;
            self.exchange().await;
        }
    }

    /// Applies what the store has. A problem is logged once.
    pub(super) async fn exchange(&mut self) {
        match self.try_exchange().await {
            Ok(()) => self.problem = None,
            Err(error) => {
                let problem = error.to_string();
                let shares: Vec<String> = self
                    .running
                    .iter()
                    .map(|(channel, one)| format!("{} at {} % of {channel}", one.target, one.rollout.percent()))
                    .collect();
                if self.problem.as_ref() != Some(&problem) && !shares.is_empty() {
                    tracing::warn!("rollouts stay as they are ({}): {problem}", shares.join(", "));
                }
                self.problem = Some(problem);
            }
        }
    }

    async fn try_exchange(&mut self) -> Result<(), StoreError> {
        let states = in_time(async { self.store.get().await?.rollout_states().await }).await?;
        let mut statuses = Vec::new();
        for (channel, library) in self.libraries.clone() {
            let of_channel = || states.iter().filter(|state| state.channel.as_str() == channel);
            let present = of_channel().find(|state| !state.phase.is_over());
            if let Some(running) = self.running.get_mut(&channel)
                && let Some(state) = of_channel().find(|state| state.target == running.target && state.phase.is_over())
            {
                running.note(state);
            }
            self.prepare(&channel, &library, present).await?;
            for state in of_channel() {
                let state = if self.running.contains_key(&channel) && present == Some(state) {
                    self.advance(&channel, &library, state).await?
                } else {
                    state.clone()
                };
                let is_failed = state.phase == RolloutPhase::Failed;
                if !state.phase.is_over() || is_failed {
                    let running = self.running.get(&channel).map(|one| (&one.target, &one.rollout));
                    let ended = self.ended.get(&channel).map(|(target, rollout)| (target, rollout));
                    let counted = running.into_iter().chain(ended).find(|(target, _)| **target == state.target);
                    statuses.push(RolloutStatus {
                        channel: channel.clone(),
                        target: state.target.to_string(),
                        percent: state.percent,
                        is_failed,
                        rollout: counted.map(|(_, rollout)| rollout.clone()),
                    });
                }
            }
        }
        *self.monitor.lock() = statuses;
        Ok(())
    }

    /// Begins or ends what the channel has or does not have any more.
    async fn prepare(
        &mut self,
        channel: &str,
        library: &Library,
        state: Option<&RolloutState>,
    ) -> Result<(), StoreError> {
        let is_same = |one: &Running| state.is_some_and(|state| state.target == one.target && state.plan == one.plan);
        if self.running.get(channel).is_some_and(|one| !is_same(one)) {
            library.service().set_rollout(None);
            if let Some(Running { target, rollout, .. }) = self.running.remove(channel) {
                self.ended.insert(channel.to_owned(), (target, rollout));
            }
        }
        let Some(state) = state.filter(|_| !self.running.contains_key(channel)) else { return Ok(()) };
        let target = &state.target;
        let served = self.libraries.iter().find(|(name, _)| name == target.as_str());
        let (candidate, opened) = match served {
            Some((_, library)) => (library.clone(), None),
            None => match self.opener.target(target).await {
                Ok(opened) => (opened.library().clone(), Some(opened)),
                // The store ends a rollout without its target.
                Err(failure) if in_time(async { self.store.get().await?.head(target).await }).await.is_ok() => {
                    let reason = format!("the channel {target} cannot be served: {failure}");
                    return Err(StoreError::State { reason });
                }
                Err(_) => {
                    let counts = RolloutCounts::default();
                    in_time(async { self.store.get().await?.advance_rollout(&state.channel, target, counts).await })
                        .await?;
                    return Ok(());
                }
            },
        };
        let key = in_time(async { self.store.get().await?.usage_key().await }).await?;
        let access = self.access.get(target.as_str()).cloned();
        let rollout = Rollout::new(channel, target.as_str(), access, state.plan.and_then(|plan| plan.latency));
        rollout.set_key(key);
        library.service().set_rollout(Some((&rollout, candidate.service())));
        if !self.signs_in {
            tracing::warn!(
                "the rollout of {channel} to {target} has no effect here: only signed-in callers are divided"
            );
        }
        let running = Running { target: target.clone(), plan: state.plan, rollout, applied: None, _target: opened };
        self.running.insert(channel.to_owned(), running);
        Ok(())
    }

    async fn advance(
        &mut self,
        channel: &str,
        library: &Library,
        state: &RolloutState,
    ) -> Result<RolloutState, StoreError> {
        let Some(running) = self.running.get_mut(channel) else { return Ok(state.clone()) };
        let (stable, candidate) = running.rollout.take();
        let failing = [candidate.failing, candidate.declining, candidate.slowed];
        let counts = RolloutCounts::new(counts(stable), counts(candidate)).failing(failing);
        let advanced =
            in_time(async { self.store.get().await?.advance_rollout(&state.channel, &state.target, counts).await });
        // Without it another store is at this place, such as a restored backup.
        let Some((state, is_own)) = advanced.await? else { return Ok(state.clone()) };
        let service = library.service();
        service.set_rollout_percent(state.percent);
        if running.note(&state) {
            // Calls that were counted during the exchange had the share of before. A rollout that is set manually within
            // a second would be stopped by the errors that stopped it before.
            let _ = running.rollout.take();
        }
        if is_own {
            let method = if state.phase.is_over() { Method::RolloutStop } else { Method::RolloutStep };
            service.record_own(
                method,
                [
                    ("channel", json!(state.channel)),
                    ("to", json!(state.target)),
                    ("percent", json!(state.percent)),
                    ("reason", json!(state.reason)),
                    ("revision", json!(state.progress.revision)),
                    ("counts", json!(state.progress.counts)),
                ],
            );
        }
        Ok(state)
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(TIMEOUT, answer).await.unwrap_or_else(|_| {
        Err(StoreError::Unreachable { reason: "it did not answer in time".to_owned(), source: None })
    })
}

fn log(state: &RolloutState) {
    let RolloutState { channel, target, percent, reason, changed_by, .. } = state;
    if state.phase == RolloutPhase::Finished {
        tracing::info!("the rollout of {channel} to {target} is finished by {changed_by}: {reason}");
    } else if state.phase.is_over() {
        let counts = &state.progress.counts;
        tracing::warn!(
            calls = counts.candidate.calls,
            errors = counts.candidate.errors,
            other_calls = counts.stable.calls,
            other_errors = counts.stable.errors,
            "the rollout of {channel} to {target} is stopped by {changed_by}: {reason}"
        );
    } else {
        tracing::info!("{target} is served to {percent} % of the callers of {channel}: {reason} ({changed_by})");
    }
}

fn counts(calls: GroupCalls) -> GroupCounts {
    let mut counts = GroupCounts::default();
    (counts.calls, counts.errors) = (calls.calls, calls.errors);
    (counts.timed, counts.slow) = (calls.timed, calls.slow);
    (counts.forms, counts.declined) = (calls.forms, calls.declined);
    counts
}

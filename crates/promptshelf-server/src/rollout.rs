//! The exchange of a rollout with the store: sends the counts of this replica, and applies the share that all replicas
//! agree on.
//!
//! While the store is away the last share stays. Counts that could not be written are dropped: they are evidence only.

use std::time::Duration;

use promptshelf_service::{GroupCalls, Rollout, Service};
use promptshelf_store::{ChannelName, GroupCounts, RolloutCounts, RolloutPlan, RolloutState, StoreError};
use tokio::time::{sleep, timeout};

use crate::{channels::StoreHandle, random};

/// The time between two exchanges, ±20 % so that replicas do not write in step.
const INTERVAL: Duration = Duration::from_secs(1);

const TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps the rollout of a channel equal on all replicas.
#[derive(Debug)]
pub struct RolloutTask {
    store: StoreHandle,
    channel: ChannelName,
    target: ChannelName,
    plan: RolloutPlan,
    service: Service,
    rollout: Rollout,
    applied: Option<(u8, bool)>,
    is_begun: bool,
}

impl RolloutTask {
    /// Creates the task of a rollout whose share `service` serves.
    #[must_use]
    pub fn new(
        store: StoreHandle,
        channel: ChannelName,
        target: ChannelName,
        plan: RolloutPlan,
        service: &Service,
        rollout: &Rollout,
    ) -> RolloutTask {
        let (service, rollout) = (service.clone(), rollout.clone());
        RolloutTask { store, channel, target, plan, service, rollout, applied: None, is_begun: false }
    }

    /// Exchanges counts and shares every second, and never returns.
    pub async fn run(mut self) {
        let mut is_failing = false;
        loop {
            match timeout(TIMEOUT, self.exchange()).await.unwrap_or_else(|_| Err(silent())) {
                Ok(()) => is_failing = false,
                Err(error) if !is_failing => {
                    is_failing = true;
                    let (channel, target, percent) = (&self.channel, &self.target, self.rollout.percent());
                    tracing::warn!("the rollout of {channel} to {target} stays at {percent} %: {error}");
                }
                Err(_) => {}
            }
            sleep(random::share(INTERVAL, 80..=120)).await;
        }
    }

    async fn exchange(&mut self) -> Result<(), StoreError> {
        let (stable, candidate) = self.rollout.take();
        let failing = [candidate.failing, candidate.declining, candidate.slowed];
        let counts = RolloutCounts::new(counts(stable), counts(candidate)).failing(failing);
        let store = self.store.get().await?;
        if !self.is_begun {
            store.begin_rollout(&self.channel, &self.target, &self.plan).await?;
            self.rollout.set_key(store.usage_key().await?);
            self.is_begun = true;
        }
        let Some(state) = store.advance_rollout(&self.channel, &self.target, &self.plan, counts).await? else {
            // Another store is at this place, such as a restored backup.
            self.is_begun = false;
            self.service.set_rollout_percent(0);
            return Ok(());
        };
        self.service.set_rollout_percent(state.percent);
        if self.is_new(&state) {
            // Calls that were counted during the exchange had the share of before. A rollout that is set manually within
            // a second would be stopped by the errors that stopped it before.
            let _ = self.rollout.take();
            log(&state);
        }
        Ok(())
    }

    /// Returns whether the share differs from that of the last exchange, or was stopped since.
    fn is_new(&mut self, state: &RolloutState) -> bool {
        let share = (state.percent, state.is_stopped);
        self.applied.replace(share) != Some(share)
    }
}

fn log(state: &RolloutState) {
    let RolloutState { channel, target, percent, reason, changed_by, .. } = state;
    if state.is_stopped {
        tracing::warn!("the rollout of {channel} to {target} is stopped by {changed_by}: {reason}");
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

fn silent() -> StoreError {
    StoreError::Unreachable { reason: "it did not answer in time".to_owned(), source: None }
}

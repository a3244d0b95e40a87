//! Deliveries of events to webhooks: sends the outbox of a store, in order for each channel, at least once.
//!
//! A replica that finds a delivery due takes the lock of the store, sends until nothing is due, and releases it. So one
//! replica at a time delivers, any of them can be the next, and a killed one leaves nothing behind. An event is deleted
//! from the outbox after the webhook has accepted it; an event without a record is sent again, with the same idempotency key.
//!
//! - `target` is a webhook of the settings, `sender` sends one event, `addresses` checks where to, `slack` is the format
//!   for people.
//!
//! Queuing events is the task of the store.

mod addresses;
mod sender;
mod slack;
mod target;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use promptshelf_store::{ChannelName, Delivery, DeliveryAttempt, DeliveryLock, Store, StoreError};
use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};

pub use self::target::{InvalidWebhook, WebhookFormat, WebhookTarget};
use self::{addresses::Lookup, sender::Sender};
use crate::{ReplicaMonitor, channels::StoreHandle, random};

/// The time between two looks at the outbox, +20 % so that replicas do not query in step.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time after which a replica releases the lock for others, even if more is due: their webhooks may differ.
const ROUND: Duration = Duration::from_secs(30);

const REGISTERED: Duration = Duration::from_secs(60 * 60);

/// The time between two counts of what waits, for the metrics.
const COUNTED: Duration = Duration::from_secs(10);

/// The first and the longest wait before another attempt, +40 % at random.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60 * 60));

/// The least number of attempts, even for an event that is older than the time for attempts.
const MIN_ATTEMPTS: u64 = 2;

#[derive(Clone, Copy)]
struct Pace {
    interval: Duration,
    timeout: Duration,
    retry: (Duration, Duration),
}

/// The deliveries of a server. Clones share them.
#[derive(Clone)]
pub struct Deliveries(Arc<Inner>);

struct Inner {
    senders: BTreeMap<String, Sender>,
    store: StoreHandle,
    pace: Pace,
    stop: watch::Sender<bool>,
    state: Mutex<State>,
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    pending: AtomicU64,
    dead: AtomicU64,
}

#[derive(Default)]
struct State {
    registered: Option<Instant>,
    counted: Option<Instant>,
    broken: BTreeMap<String, u64>,
}

/// Counts of deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryCounts {
    /// The events that webhooks have accepted from this server.
    pub delivered: u64,
    /// The failed attempts of this server.
    pub failed: u64,
    /// The events that this server has given up.
    pub given_up: u64,
    /// The events that wait in the store, as of the last ten seconds.
    pub pending: u64,
    /// The dead letters in the store, as of the last ten seconds.
    pub dead: u64,
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deliveries")
    }
}

/// The HTTP client cannot be created: the system has no usable certificates.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeliveryError(reqwest::Error);

impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the HTTP client of webhooks cannot be created: the system has no usable certificates")
    }
}

impl std::error::Error for DeliveryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl Deliveries {
    /// Creates the deliveries to webhooks with different URLs, without connecting.
    ///
    /// # Errors
    ///
    /// [`DeliveryError`] if no HTTP client can be created.
    pub fn new(store: StoreHandle, targets: Vec<WebhookTarget>) -> Result<Deliveries, DeliveryError> {
        let pace = Pace { interval: INTERVAL, timeout: sender::TIMEOUT, retry: RETRY };
        Deliveries::with(store, targets, &addresses::system_lookup(), pace)
    }

    fn with(
        store: StoreHandle,
        targets: Vec<WebhookTarget>,
        lookup: &Lookup,
        pace: Pace,
    ) -> Result<Deliveries, DeliveryError> {
        let mut senders = BTreeMap::new();
        for target in targets {
            let sender = Sender::new(target, Arc::clone(lookup), pace.timeout).map_err(DeliveryError)?;
            senders.insert(sender.target.id().to_owned(), sender);
        }
        let counter = AtomicU64::default;
        Ok(Deliveries(Arc::new(Inner {
            senders,
            store,
            pace,
            stop: watch::Sender::new(false),
            state: Mutex::default(),
            delivered: counter(),
            failed: counter(),
            given_up: counter(),
            pending: counter(),
            dead: counter(),
        })))
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> DeliveryCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Inner { delivered, failed, given_up, pending, dead, .. } = &*self.0;
        DeliveryCounts {
            delivered: count(delivered),
            failed: count(failed),
            given_up: count(given_up),
            pending: count(pending),
            dead: count(dead),
        }
    }

    /// Delivers until [`stop`](Deliveries::stop). Also reports revisions that a replica cannot load.
    pub async fn run(&self, replicas: &[ReplicaMonitor]) {
        let mut stopped = self.0.stop.subscribe();
        let mut is_failing = false;
        while !*stopped.borrow() {
            match self.step(replicas).await {
                Ok(()) => is_failing = false,
                Err(error) => {
                    if matches!(error, StoreError::Unreachable { .. }) {
                        self.0.store.reset().await;
                    }
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!("events for webhooks wait, because the store cannot be used: {error}");
                    }
                }
            }
            tokio::select! {
                _ = stopped.changed() => {}
                () = sleep(random::share(self.0.pace.interval, 100..=120)) => {}
            }
        }
    }

    /// Ends [`run`](Deliveries::run) after the requests that have begun.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    async fn step(&self, replicas: &[ReplicaMonitor]) -> Result<(), StoreError> {
        let store = self.0.store.get().await?;
        let mut state = self.0.state.lock().await;
        let is_over = |since: Option<Instant>, time| since.is_none_or(|since| since.elapsed() >= time);
        if is_over(state.registered, REGISTERED) {
            let webhooks: Vec<_> = self.0.senders.values().map(|sender| sender.target.webhook.clone()).collect();
            store.register_webhooks(&webhooks).await?;
            state.registered = Some(Instant::now());
        }
        for status in replicas.iter().map(ReplicaMonitor::status) {
            let Some(revision) = status.refused else { continue };
            let Ok(channel) = status.channel.parse::<ChannelName>() else { continue };
            if state.broken.get(&status.channel) != Some(&revision) {
                store
                    .report_broken(&channel, revision, "A server cannot load the revision, and serves an older one")
                    .await?;
                state.broken.insert(status.channel, revision);
            }
        }
        let ids: Vec<String> = self.0.senders.keys().cloned().collect();
        let is_due = !store.due_deliveries(&ids).await?.is_empty();
        if is_due && let Some(mut lock) = store.lock_deliveries().await? {
            let result = self.round(&store, &mut lock).await;
            lock.release().await;
            result?;
            state.counted = None;
        }
        if is_over(state.counted, COUNTED) {
            let queues = store.webhooks().await?;
            self.0.pending.store(queues.iter().map(|queue| queue.pending).sum(), Ordering::Relaxed);
            self.0.dead.store(queues.iter().map(|queue| queue.dead).sum(), Ordering::Relaxed);
            state.counted = Some(Instant::now());
        }
        Ok(())
    }

    /// Sends until nothing is due. A webhook that does not answer does not delay the others.
    async fn round(&self, store: &Store, lock: &mut DeliveryLock) -> Result<(), StoreError> {
        let ends = Instant::now() + ROUND;
        let mut sending = FuturesUnordered::new();
        let mut busy: HashSet<String> = HashSet::new();
        loop {
            // Requests that are cut off here are repeated by the replica that has the lock now.
            if !lock.is_held().await {
                return Ok(());
            }
            if Instant::now() < ends && !*self.0.stop.borrow() {
                let idle: Vec<String> = self.0.senders.keys().filter(|id| !busy.contains(*id)).cloned().collect();
                let mut batches: BTreeMap<String, Vec<Delivery>> = BTreeMap::new();
                for delivery in store.due_deliveries(&idle).await? {
                    batches.entry(delivery.webhook.clone()).or_default().push(delivery);
                }
                for (id, batch) in batches {
                    busy.insert(id.clone());
                    sending.push(async move { (self.send_all(store, &id, batch).await, id) });
                }
            }
            if sending.is_empty() {
                return Ok(());
            }
            tokio::select! {
                Some((result, id)) = sending.next() => {
                    busy.remove(&id);
                    result?;
                }
                () = sleep(self.0.pace.interval) => {}
            }
        }
    }

    /// Sends the oldest events of several channels to one webhook, up to the first failure.
    async fn send_all(&self, store: &Store, id: &str, batch: Vec<Delivery>) -> Result<(), StoreError> {
        let Some(sender) = self.0.senders.get(id) else { return Ok(()) };
        for delivery in batch {
            let Err(problem) = sender.send(&delivery).await else {
                store.delivered(delivery.id).await?;
                self.0.delivered.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            self.0.failed.fetch_add(1, Ordering::Relaxed);
            let (first, longest) = self.0.pace.retry;
            let wait = first.saturating_mul(1 << delivery.attempts.min(20)).min(longest);
            let attempt = DeliveryAttempt {
                problem: problem.to_string(),
                retry_in: random::share(wait, 100..=140),
                retry_for: sender.target.retry_for,
                min_attempts: MIN_ATTEMPTS,
            };
            let is_dead = store.delivery_failed(delivery.id, &attempt).await?;
            let (label, event, channel) = (sender.target.label(), delivery.event.as_str(), &delivery.channel);
            if is_dead {
                self.0.given_up.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    "webhook {label}: the event `{event}` of channel {channel} is a dead letter now: {problem}"
                );
            } else if delivery.attempts == 0 {
                tracing::warn!(
                    "webhook {label}: the event `{event}` of channel {channel} is sent again later: {problem}"
                );
            }
            return Ok(());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

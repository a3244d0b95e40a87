//! The log of usage: drains the counters of requests, and writes them to a store behind the requests, or keeps them in
//! memory.
//!
//! While the store is away, figures wait, bounded; what does not fit is counted as lost. A clean stop writes the rest, so
//! that only a crash loses the figures of a few seconds.

mod clock;
mod impact;
mod overview;
mod report;

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use promptshelf_core::usage::{UsageFigures, UsageKey};
use promptshelf_service::{PromptCalls, Usage};
use promptshelf_store::{Store, StoreError, UsageQuery};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use self::clock::Clock;
pub use self::impact::{IMPACT_WINDOW, recent_calls, recent_calls_of_effect};
pub use self::overview::DailyUsage;
pub(crate) use self::overview::{Deprecated, ListedPrompts, overview_of};
pub use self::report::{MIN_CALLERS, report_of};
use crate::{channels::StoreHandle, random};

/// The time between two writes: the figures that a crash loses.
const INTERVAL: Duration = Duration::from_secs(10);

const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time in which the start of a server waits for the key of callers' hashes.
const KEY_TIMEOUT: Duration = Duration::from_secs(2);

/// The most keys that wait or are kept, about 500 bytes each.
const MAX_KEYS: usize = 50_000;

/// The most names of clients in an hour; further ones are `other`.
const MAX_CLIENTS: usize = 500;

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

/// Figures by hour, in seconds since 1970.
type Hours = BTreeMap<i64, BTreeMap<UsageKey, UsageFigures>>;

/// The log of usage of a server. Clones share it.
#[derive(Clone)]
pub struct UsageLog(Arc<Inner>);

struct Inner {
    usage: Usage,
    store: Option<StoreHandle>,
    retention: Duration,
    min_callers: u64,
    /// Whether only the figures of others are read.
    only_reads: bool,
    /// The calls whose figures are not written yet.
    waiting_calls: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Figures that are to be written; all of them without a store.
    waiting: Hours,
    /// A batch whose write has begun, with its id: it is written again under the same one.
    in_flight: Option<Batch>,
    clients: (i64, HashSet<String>),
    maintained: i64,
    clock: Clock,
}

struct Batch {
    id: String,
    hour: i64,
    figures: BTreeMap<UsageKey, UsageFigures>,
}

impl fmt::Debug for UsageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UsageLog")
    }
}

/// The number of calls that were counted and not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageLoss {
    /// The calls whose figures were given up, because too many waited.
    pub lost: u64,
    /// The calls whose figures wait for the store: those that a crash would lose.
    pub waiting: u64,
}

impl UsageLog {
    /// Creates the log of the counters. Without a store the figures are kept in memory. Those older than `retention` are
    /// removed, and numbers of callers below `min_callers` are not shown.
    #[must_use]
    pub fn new(usage: &Usage, store: Option<StoreHandle>, retention: Duration, min_callers: u64) -> UsageLog {
        if store.is_none() {
            // The figures never leave this process.
            usage.set_key(random::bytes());
        }
        let (usage, waiting_calls, state) = (usage.clone(), AtomicU64::new(0), Mutex::default());
        UsageLog(Arc::new(Inner { usage, store, retention, min_callers, only_reads: false, waiting_calls, state }))
    }

    /// Creates a reader of the figures that servers have written to a store.
    #[must_use]
    pub fn reading(store: StoreHandle, min_callers: u64) -> UsageLog {
        UsageLog(Arc::new(Inner {
            usage: Usage::default(),
            store: Some(store),
            retention: Duration::MAX,
            min_callers,
            only_reads: true,
            waiting_calls: AtomicU64::new(0),
            state: Mutex::default(),
        }))
    }

    /// The least number of callers that is shown.
    #[must_use]
    pub fn min_callers(&self) -> u64 {
        self.0.min_callers
    }

    /// Returns the calls that are lost or could be.
    #[must_use]
    pub fn loss(&self) -> UsageLoss {
        UsageLoss { lost: self.0.usage.lost(), waiting: self.0.waiting_calls.load(Ordering::Relaxed) }
    }

    /// Returns the calls of this process.
    pub(crate) fn calls(&self) -> PromptCalls {
        self.0.usage.calls()
    }

    /// Reads the key of callers' hashes, before the first request: calls without it do not count their callers. Waits at
    /// most two seconds, after which [`run`](UsageLog::run) goes on with it.
    pub async fn begin(&self) {
        let Some(store) = &self.0.store else { return };
        let reading = async { self.0.read_key(&store.get().await?).await };
        // `run` tries again at once, and reports a store that does not answer.
        drop(timeout(KEY_TIMEOUT, reading).await);
    }

    /// Writes the figures every ten seconds, and never returns.
    pub async fn run(&self) {
        let mut is_failing = false;
        loop {
            match self.write(Timestamp::now(), WRITE_TIMEOUT).await {
                Ok(()) => is_failing = false,
                Err(error) if !is_failing => {
                    is_failing = true;
                    tracing::warn!("figures of usage wait, because they cannot be written: {error}");
                }
                Err(_) => {}
            }
            sleep(INTERVAL).await;
        }
    }

    /// Writes the last figures, at a clean stop. What cannot be written within five seconds is lost.
    pub async fn finish(&self) {
        if let Err(error) = self.write(Timestamp::now(), LAST_WRITE_TIMEOUT).await {
            let calls = self.0.waiting_calls.swap(0, Ordering::Relaxed);
            self.0.usage.add_lost(calls);
            tracing::error!("the figures of {calls} calls are lost: {error}");
        }
    }

    /// Returns all figures, including those that wait.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn figures(&self, query: &UsageQuery) -> Result<BTreeMap<UsageKey, UsageFigures>, StoreError> {
        let mut all: BTreeMap<UsageKey, UsageFigures> = BTreeMap::new();
        self.read(query, |_, key, figures| all.entry(key).or_default().merge(figures)).await?;
        Ok(all)
    }

    /// Returns all figures by day in UTC, including those that wait.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn daily(&self, query: &UsageQuery) -> Result<DailyUsage, StoreError> {
        let mut days = DailyUsage::new();
        let add = |start: i64, key, figures: &_| {
            let day = days.entry(start.div_euclid(DAY) * DAY).or_default();
            day.entry(key).or_default().merge(figures);
        };
        self.read(query, add).await?;
        Ok(days)
    }

    /// Reads all figures with the start of their hour or day, including those that wait.
    async fn read(
        &self,
        query: &UsageQuery,
        mut add: impl FnMut(i64, UsageKey, &UsageFigures),
    ) -> Result<(), StoreError> {
        let now = Timestamp::now();
        // What cannot be written is added below.
        drop(self.write(now, LAST_WRITE_TIMEOUT).await);
        let state = self.0.state.lock().await;
        if let Some(store) = &self.0.store {
            for (start, key, figures) in store.get().await?.usage_rows(query).await? {
                add(start, key, &figures);
            }
        }
        let since = query.since.map_or(i64::MIN, Timestamp::as_second);
        let in_flight = state.in_flight.iter().map(|batch| (&batch.hour, &batch.figures));
        for (hour, figures) in state.waiting.iter().chain(in_flight) {
            let of_prompt = |key: &UsageKey| query.prompt.as_ref().is_none_or(|prompt| *prompt == key.prompt);
            if hour + HOUR > since {
                for (key, figures) in figures.iter().filter(|(key, _)| of_prompt(key)) {
                    add(*hour, key.clone(), figures);
                }
            }
        }
        Ok(())
    }

    async fn write(&self, now: Timestamp, limit: Duration) -> Result<(), StoreError> {
        if self.0.only_reads {
            return Ok(());
        }
        let mut state = self.0.state.lock().await;
        let hour = now.as_second().div_euclid(HOUR) * HOUR;
        let is_steady = state.clock.is_steady(Instant::now(), now);
        let lost = state.collect(self.0.usage.drain(), hour);
        self.0.usage.add_lost(lost);
        let result = match &self.0.store {
            Some(store) => {
                let writing = self.write_to(store, &mut state, now, is_steady);
                timeout(limit, writing).await.unwrap_or_else(|_| Err(no_answer()))
            }
            None => {
                state.expire(if is_steady { now } else { Timestamp::MIN }, self.0.retention);
                return Ok(());
            }
        };
        self.0.waiting_calls.store(state.calls(), Ordering::Relaxed);
        result
    }

    async fn write_to(
        &self,
        store: &StoreHandle,
        state: &mut State,
        now: Timestamp,
        is_steady: bool,
    ) -> Result<(), StoreError> {
        let hour = now.as_second().div_euclid(HOUR) * HOUR;
        let store = store.get().await?;
        self.0.read_key(&store).await?;
        loop {
            if state.in_flight.is_none() {
                let Some((hour, figures)) = state.waiting.pop_first() else { break };
                state.in_flight = Some(Batch { id: batch_id(), hour, figures });
            }
            if let Some(batch) = &state.in_flight {
                let at = Timestamp::from_second(batch.hour).unwrap_or(now);
                store.add_usage(&batch.id, at, &batch.figures).await?;
            }
            state.in_flight = None;
        }
        if is_steady && state.maintained != hour {
            store.roll_up_usage(now, self.0.retention).await?;
            state.maintained = hour;
        }
        Ok(())
    }
}

impl Inner {
    /// Reads the key of callers' hashes, if it is not known.
    async fn read_key(&self, store: &Store) -> Result<(), StoreError> {
        if !self.usage.has_key() {
            self.usage.set_key(store.usage_key().await?);
        }
        Ok(())
    }
}

impl State {
    /// Adds drained figures to those of an hour. Returns the number of calls that do not fit.
    fn collect(&mut self, drained: BTreeMap<UsageKey, UsageFigures>, hour: i64) -> u64 {
        if self.clients.0 != hour {
            self.clients = (hour, HashSet::new());
        }
        let mut keys: usize = self.waiting.values().map(BTreeMap::len).sum();
        let mut lost = 0;
        let present = self.waiting.entry(hour).or_default();
        for (mut key, figures) in drained {
            if !self.clients.1.contains(&key.client) {
                if self.clients.1.len() < MAX_CLIENTS {
                    self.clients.1.insert(key.client.clone());
                } else {
                    (key.client, key.client_version) = ("other".to_owned(), String::new());
                }
            }
            match present.get_mut(&key) {
                Some(known) => known.merge(&figures),
                None if keys >= MAX_KEYS => lost += figures.count,
                None => {
                    keys += 1;
                    present.insert(key, figures);
                }
            }
        }
        if present.is_empty() {
            self.waiting.remove(&hour);
        }
        lost
    }

    /// Removes figures in memory that are too old, and the oldest hours of too many.
    fn expire(&mut self, now: Timestamp, retention: Duration) {
        let retention = i64::try_from(retention.as_secs()).unwrap_or(i64::MAX);
        let oldest = now.as_second().saturating_sub(retention);
        self.waiting.retain(|hour, _| hour + HOUR > oldest);
        while self.waiting.len() > 1 && self.waiting.values().map(BTreeMap::len).sum::<usize>() > MAX_KEYS / 2 {
            self.waiting.pop_first();
        }
    }

    fn calls(&self) -> u64 {
        let in_flight = self.in_flight.iter().map(|batch| &batch.figures);
        self.waiting.values().chain(in_flight).flat_map(BTreeMap::values).map(|figures| figures.count).sum()
    }
}

fn no_answer() -> StoreError {
    StoreError::Unreachable { reason: "it did not answer in time".to_owned(), source: None }
}

fn batch_id() -> String {
    format!("{:032x}", u128::from_ne_bytes(random::bytes()))
}

#[cfg(test)]
mod tests;

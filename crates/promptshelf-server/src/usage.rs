//! The log of usage: drains the counters of requests, and writes them to a store behind the requests, or keeps them in
//! memory.
//!
//! While the store is away, figures wait, bounded; what does not fit is counted as lost. A clean stop writes the rest, so
//! that only a crash loses the figures of a few seconds.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use promptshelf_author::{AffectedCalls, Difference, Subject};
use promptshelf_core::usage::{UsageFigures, UsageKey};
use promptshelf_service::Usage;
use promptshelf_store::{BrokenCalls, Effect, Store, StoreError, UsageQuery};
use promptshelf_wire::{
    AffectedWord, COMPLETION, FormUsage, MAX_USAGE_ENTRIES, PromptUsage, RecentCalls, UsageDay, UsageGroup,
    UsageOverview, UsageReport, UsedDeprecated,
};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

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
    #[cfg(feature = "serve")]
    pub(crate) fn calls(&self) -> promptshelf_service::PromptCalls {
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

// The steadiness of the system's clock. Figures are removed by age, so a clock that is wrong for a while would remove
// all of them.

/// The largest difference to the monotonic clock between two looks, in seconds.
const JUMP: i64 = 60 * 60;

const SETTLING: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Default)]
struct Clock {
    last: Option<(Instant, Timestamp)>,
    jumped: Option<Instant>,
}

impl Clock {
    /// Returns whether the clock has not jumped for a day, as far as this process knows. The sleep of a machine counts as a
    /// jump where the monotonic clock stands still meanwhile.
    fn is_steady(&mut self, at: Instant, now: Timestamp) -> bool {
        if let Some((before, then)) = self.last {
            let passed = i64::try_from(at.saturating_duration_since(before).as_secs()).unwrap_or(i64::MAX);
            let drift = (now.as_second() - then.as_second()).saturating_sub(passed);
            if drift.saturating_abs() > JUMP {
                tracing::warn!(seconds = drift, "the clock has jumped; old figures of usage are removed after a day");
                self.jumped = Some(at);
            }
        }
        self.last = Some((at, now));
        self.jumped.is_none_or(|jumped| at.saturating_duration_since(jumped) >= SETTLING)
    }
}

/// The least number of callers that is shown by default.
pub const MIN_CALLERS: u64 = 5;

/// Makes a report of figures. Channels are separated, because each counts its own versions; `detail` separates versions of
/// clients and protocols too. Fewer callers than `min_callers` are not shown.
#[must_use]
pub fn report_of(
    since: Option<Timestamp>,
    figures: &BTreeMap<UsageKey, UsageFigures>,
    detail: bool,
    min_callers: u64,
) -> UsageReport {
    let mut merged: BTreeMap<UsageKey, UsageFigures> = BTreeMap::new();
    for (key, figures) in figures {
        let mut key = key.clone();
        if !detail {
            (key.client_version, key.protocol) = Default::default();
        }
        merged.entry(key).or_default().merge(figures);
    }
    let prompts = merged.into_iter().map(|(key, figures)| entry(key, figures, detail, min_callers));
    UsageReport { since, prompts: prompts.collect(), ..UsageReport::default() }
}

fn entry(key: UsageKey, figures: UsageFigures, detail: bool, min_callers: u64) -> PromptUsage {
    let millis = |share| {
        let latency = figures.latencies.quantile(share).unwrap_or_default();
        // Whole microseconds.
        latency.as_micros() as f64 / 1_000.0
    };
    let callers = figures.callers.count();
    PromptUsage {
        name: key.prompt,
        deprecated: false,
        alias_of: None,
        source: None,
        version: Some(key.version).filter(|version| *version > 0),
        channel: Some(key.channel).filter(|channel| !channel.is_empty()),
        client: Some(key.client).filter(|client| !client.is_empty()).unwrap_or_else(|| "unknown".to_owned()),
        client_version: Some(key.client_version).filter(|_| detail),
        protocol: Some(key.protocol).filter(|_| detail),
        method: key.method,
        outcome: key.outcome,
        count: figures.count,
        callers: Some(callers).filter(|callers| *callers >= min_callers),
        p50_ms: millis(0.5),
        p95_ms: millis(0.95),
        p99_ms: millis(0.99),
        left_out: figures.left_out,
        taken: figures.taken,
        unknown_arguments: figures.unknown_arguments,
        bytes_out: figures.bytes_out,
        forms: FormUsage {
            accepted: figures.forms.accepted,
            declined: figures.forms.declined,
            cancelled: figures.forms.cancelled,
        },
    }
}

/// Figures by the start of their day, in seconds since 1970.
pub type DailyUsage = BTreeMap<i64, BTreeMap<UsageKey, UsageFigures>>;

/// The prompts that the reader sees, by name. A deprecated one has an entry with its replacement.
pub(crate) type ListedPrompts = BTreeMap<String, Option<Deprecated>>;

/// A deprecation with its replacement, if it has one that the reader sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deprecated {
    pub(crate) replacement: Option<String>,
    /// Whether it is a former name of the replacement.
    pub(crate) is_alias: bool,
}

#[derive(Default)]
struct Sum {
    figures: UsageFigures,
    failed: u64,
}

impl Sum {
    fn add(&mut self, key: &UsageKey, figures: &UsageFigures) {
        self.figures.merge(figures);
        // A form that was sent, and a call that the client gave up, are not failures of the prompt.
        if !["ok", "asked", "cancelled"].contains(&key.outcome.as_str()) {
            self.failed += figures.count;
        }
    }

    fn millis(&self, share: f64) -> f64 {
        let latency = self.figures.latencies.quantile(share).unwrap_or_default();
        // Whole microseconds.
        latency.as_micros() as f64 / 1_000.0
    }

    fn group(&self, name: &str, min_callers: u64) -> UsageGroup {
        UsageGroup {
            name: name.to_owned(),
            calls: self.figures.count,
            failed: self.failed,
            callers: Some(self.figures.callers.count()).filter(|callers| *callers >= min_callers),
            p50_ms: self.millis(0.5),
            p95_ms: self.millis(0.95),
            p99_ms: self.millis(0.99),
        }
    }
}

#[derive(Default)]
struct Sums(BTreeMap<String, Sum>);

impl Sums {
    fn add(&mut self, name: &str, key: &UsageKey, figures: &UsageFigures) {
        match self.0.get_mut(name) {
            Some(sum) => sum.add(key, figures),
            None => self.0.entry(name.to_owned()).or_default().add(key, figures),
        }
    }

    fn groups(&self, min_callers: u64) -> Vec<UsageGroup> {
        let mut groups: Vec<UsageGroup> = self.0.iter().map(|(name, sum)| sum.group(name, min_callers)).collect();
        groups.sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.name.cmp(&other.name)));
        groups.truncate(MAX_USAGE_ENTRIES);
        groups
    }
}

/// Makes the overview of figures; `selected` is the prompt that they are about, if they are about one. Fewer
/// callers than `min_callers` are not shown.
pub(crate) fn overview_of(
    since: Option<Timestamp>,
    days: &DailyUsage,
    selected: Option<&str>,
    listed: &ListedPrompts,
    source_of: impl Fn(&str) -> Option<Arc<str>>,
    min_callers: u64,
) -> UsageOverview {
    let (mut total, mut of_days) = (Sum::default(), Vec::new());
    let (mut clients, mut prompts, mut sources) = (Sums::default(), Sums::default(), Sums::default());
    let (mut versions, mut outcomes) = (Sums::default(), Sums::default());
    let mut clients_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // Each channel counts its own versions.
    let channels: BTreeSet<&str> = days.values().flat_map(BTreeMap::keys).map(|key| key.channel.as_str()).collect();
    for (start, figures) in days {
        let mut day = Sum::default();
        for (key, figures) in figures.iter().filter(|(key, _)| key.method != COMPLETION) {
            day.add(key, figures);
            total.add(key, figures);
            let client = if key.client.is_empty() { "unknown" } else { &key.client };
            clients.add(client, key, figures);
            prompts.add(&key.prompt, key, figures);
            if let Some(source) = source_of(&key.prompt) {
                sources.add(&source, key, figures);
            }
            outcomes.add(&key.outcome, key, figures);
            if selected.is_some() && key.version > 0 {
                let version = match channels.len() {
                    0 | 1 => key.version.to_string(),
                    _ => format!("{} {}", key.channel, key.version),
                };
                versions.add(&version, key, figures);
            }
            clients_of.entry(&key.prompt).or_default().insert(client);
        }
        if day.figures.count > 0 {
            of_days.push(UsageDay {
                day: date(*start).to_string(),
                calls: day.figures.count,
                failed: day.failed,
                p50_ms: day.millis(0.5),
                p95_ms: day.millis(0.95),
            });
        }
    }
    let of_alias = |name: &String| listed.get(name)?.as_ref().filter(|one| one.is_alias)?.replacement.as_ref();
    let called: BTreeSet<&String> = prompts.0.keys().map(|name| of_alias(name).unwrap_or(name)).collect();
    let unused = listed.keys().filter(|name| selected.is_none() && of_alias(name).is_none() && !called.contains(name));
    let mut deprecated: Vec<UsedDeprecated> = listed
        .iter()
        .filter_map(|(name, deprecated)| {
            let (deprecated, sum) = (deprecated.as_ref()?, prompts.0.get(name)?);
            Some(UsedDeprecated {
                name: name.clone(),
                calls: sum.figures.count,
                clients: clients_of.get(name.as_str()).map_or(0, BTreeSet::len),
                replacement: deprecated.replacement.clone(),
            })
        })
        .collect();
    deprecated.sort_by_key(|one| std::cmp::Reverse(one.calls));
    deprecated.truncate(MAX_USAGE_ENTRIES);
    UsageOverview {
        since,
        total: total.group("", min_callers),
        days: of_days,
        clients: clients.groups(min_callers),
        prompts: prompts.groups(min_callers),
        sources: sources.groups(min_callers),
        versions: versions.groups(min_callers),
        outcomes: outcomes.groups(min_callers),
        unused_total: unused.clone().count(),
        unused: unused.take(MAX_USAGE_ENTRIES).cloned().collect(),
        deprecated,
    }
}

fn date(seconds: i64) -> Date {
    Timestamp::from_second(seconds).unwrap_or_default().to_zoned(TimeZone::UTC).date()
}

/// The age of the oldest calls that count: 30 days.
pub const IMPACT_WINDOW: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const RENDERING: [&str; 2] = ["prompts/get", "tools/call"];

/// Returns the recent calls that a difference of a channel affects; `None` if names of arguments do not decide it.
///
/// `report` has the figures of the last 30 days.
#[must_use]
pub fn recent_calls(difference: &Difference, channel: &str, report: &UsageReport) -> Option<RecentCalls> {
    if difference.subject != Subject::Prompt {
        return None;
    }
    of_calls(&difference.name, &difference.affects, channel, report)
}

/// Returns the recent calls that an effect of a proposal breaks; `None` as for [`of`](recent_calls).
#[must_use]
pub fn recent_calls_of_effect(effect: &Effect, channel: &str, report: &UsageReport) -> Option<RecentCalls> {
    let calls = match effect.calls.clone()? {
        BrokenCalls::All => AffectedCalls::All,
        BrokenCalls::Omitting(argument) => AffectedCalls::Omitting(argument),
        BrokenCalls::Sending(argument) => AffectedCalls::Sending(argument),
    };
    of_calls(effect.prompt.as_deref()?, &calls, channel, report)
}

fn of_calls(prompt: &str, calls: &AffectedCalls, channel: &str, report: &UsageReport) -> Option<RecentCalls> {
    let (which, argument) = match calls {
        AffectedCalls::All => (AffectedWord::All, None),
        AffectedCalls::Omitting(argument) => (AffectedWord::Omit, Some(argument.clone())),
        AffectedCalls::Sending(argument) => (AffectedWord::Send, Some(argument.clone())),
        _ => return None,
    };
    let mut recent = RecentCalls { which, argument, calls: 0, affected: 0, clients: 0 };
    let mut clients = BTreeSet::new();
    let is_counted = |row: &&PromptUsage| {
        let is_call = match which {
            // A template without rendering is gone too.
            AffectedWord::All => row.method != "completion/complete",
            _ => RENDERING.contains(&row.method.as_str()),
        };
        row.name == prompt && row.channel.as_deref() == Some(channel) && row.outcome == "ok" && is_call
    };
    for row in report.prompts.iter().filter(is_counted) {
        // A version that did not have the argument has no figure of it.
        let omitting = recent.argument.as_ref().map(|name| row.left_out.get(name).copied().unwrap_or(row.count));
        let affected = match which {
            AffectedWord::All => row.count,
            AffectedWord::Omit => omitting.unwrap_or_default(),
            AffectedWord::Send => row.count.saturating_sub(omitting.unwrap_or_default()),
        };
        recent.calls += row.count;
        recent.affected += affected;
        if affected > 0 {
            clients.insert(row.client.as_str());
        }
    }
    recent.clients = clients.len() as u64;
    Some(recent)
}

#[cfg(test)]
mod report_tests {
    use super::*;

    #[test]
    fn clock_is_steady_a_day_after_its_last_jump() {
        let (mut clock, start) = (Clock::default(), Instant::now());
        let mut look = |passed: u64, seconds: i64| {
            let now = Timestamp::from_second(1_000_000_000 + seconds).expect("a time");
            clock.is_steady(start + Duration::from_secs(passed), now)
        };
        assert!(look(0, 0) && look(10, 11) && look(3_600, 3_000), "small corrections");
        assert!(!look(3_610, 500_000_000) && !look(3_620, 500_000_010), "a jump forwards");
        assert!(!look(3_630, 3_030), "and back");
        assert!(!look(3_640 + 80_000, 83_040) && look(3_630 + 86_400, 3_030 + 86_400));
        assert!(!look(90_100, -500_000_000), "a jump backwards");
    }
}

#[cfg(test)]
mod impact_tests {
    use crate::usage::report_of;
    use promptshelf_author::differences;
    use promptshelf_core::{
        ArgumentDefinition, Catalog, Choice, Definitions, PromptDefinition, check,
        usage::{UsageFigures, UsageKey},
    };

    use super::*;

    fn catalog(arguments: Vec<ArgumentDefinition>) -> Catalog {
        let mut prompt = PromptDefinition::template("review", "Review.");
        prompt.arguments = arguments;
        check(Definitions::from_iter([prompt]), None).catalog
    }

    /// Client, method, outcome, number of calls, and how many of them left out each argument.
    type Row<'a> = (&'a str, &'a str, &'a str, u64, &'a [(&'a str, u64)]);

    fn report(rows: &[Row<'_>]) -> UsageReport {
        let figures = rows.iter().map(|(client, method, outcome, count, left_out)| {
            let key = UsageKey {
                channel: "production".to_owned(),
                prompt: "review".to_owned(),
                client: (*client).to_owned(),
                method: (*method).to_owned(),
                outcome: (*outcome).to_owned(),
                ..UsageKey::default()
            };
            let left_out = left_out.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
            (key, UsageFigures { count: *count, left_out, ..UsageFigures::default() })
        });
        report_of(None, &figures.collect(), true, 5)
    }

    fn sentences(before: &Catalog, after: &Catalog, channel: &str, report: &UsageReport) -> Vec<String> {
        let found = differences(before, after);
        let sentence = |found: &Difference| recent_calls(found, channel, report).map(|calls| calls.to_string());
        found.iter().filter_map(sentence).collect()
    }

    // req: S-204
    #[test]
    fn differences_name_the_share_of_affected_calls() {
        let framework = || ArgumentDefinition::new("framework");
        let choice = |words: &[&str]| {
            let mut argument = framework();
            argument.choices = words.iter().map(|word| Choice { value: (*word).to_owned(), title: None }).collect();
            catalog(vec![argument])
        };
        let figures = report(&[
            ("editor", "prompts/get", "ok", 1_000, &[("framework", 490)]),
            ("ci", "tools/call", "ok", 200, &[("framework", 2)]),
            // Before the version with this argument.
            ("old", "prompts/get", "ok", 4, &[]),
            ("bad", "prompts/get", "invalid-arguments", 900, &[("framework", 900)]),
            ("docs", "prompts/describe", "ok", 10, &[]),
            ("docs", "completion/complete", "ok", 500, &[]),
        ]);
        let (optional, required) = (catalog(vec![framework()]), catalog(vec![framework().required()]));
        let is = |before: &Catalog, after: &Catalog, expected: &str| {
            assert_eq!(sentences(before, after, "production", &figures), [expected]);
        };
        let none = catalog(Vec::new());
        is(&optional, &required, "41 % of calls leave it out (496 of 1,204 in the last 30 days, 3 clients)");
        is(&optional, &none, "58 % of calls send it (708 of 1,204 in the last 30 days, 2 clients)");
        is(
            &choice(&["a", "b"]),
            &choice(&["a"]),
            "58 % of calls send it (708 of 1,204 in the last 30 days, 2 clients)",
        );
        is(&none, &required, "called 1,214 times by 4 clients in the last 30 days");
        is(&none, &check(Definitions::default(), None).catalog, "called 1,214 times by 4 clients in the last 30 days");
        assert_eq!(sentences(&optional, &required, "staging", &figures), ["not called in the last 30 days"]);
        assert!(sentences(&required, &optional, "production", &figures).is_empty());
    }

    #[test]
    fn small_share_is_not_shown_as_zero() {
        let recent = RecentCalls {
            which: AffectedWord::Omit,
            argument: Some("a".to_owned()),
            calls: 1_000_000,
            affected: 1,
            clients: 1,
        };
        assert_eq!(
            recent.to_string(),
            "less than 1 % of calls leave it out (1 of 1,000,000 in the last 30 days, 1 client)"
        );
        let none = RecentCalls { affected: 0, clients: 0, ..recent };
        assert_eq!(none.to_string(), "none of 1,000,000 calls in the last 30 days leave it out");
    }
}

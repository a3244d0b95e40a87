//! Guarded rollouts: a share of the authenticated callers is served the catalog of another channel.
//!
//! A keyed hash of the caller decides, so that a caller keeps its version while the share only rises, on every replica.
//! Calls of both groups are counted for the comparison. Elsewhere: the share and the comparison (`promptshelf-store`), and
//! the exchange with the store (`promptshelf-server`).

use std::{
    collections::HashSet,
    fmt,
    hash::Hasher as _,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use promptshelf_core::{Access, rollout::FailingCallers, usage::Latencies};
use siphasher::sip::SipHasher13;

use crate::{caller::Caller, usage::FormReaction};

/// The time in which one call and one form of each caller are counted: the evidence is about callers, and a program that
/// repeats a call in a loop does not decide. Long enough that people who call now and then have the weight of a program.
const PERIOD: Duration = Duration::from_secs(5 * 60);

const MAX_CALLERS: usize = 100_000;

const CALLS_FOR_LATENCY: u64 = 100;

/// Latencies up to this one are never slow: differences below it come from the machine.
const NEVER_SLOW: Duration = Duration::from_millis(2);

/// A rollout from one channel to another. Clones share it.
#[derive(Clone)]
pub struct Rollout(Arc<Inner>);

struct Inner {
    channel: String,
    target: String,
    access: Option<Arc<Access>>,
    latency: Option<f64>,
    key: OnceLock<[u8; 16]>,
    percent: AtomicU8,
    counters: Mutex<Counters>,
    /// All calls and errors of the stable group and of the candidate, for metrics.
    totals: [[AtomicU64; 2]; 2],
}

/// The group of an authenticated caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RolloutGroup {
    /// It keeps the channel.
    Stable,
    /// It is served the target.
    Candidate,
}

/// The counts of one group since the last drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupCalls {
    /// The calls that ended with a prompt or a refusal.
    pub calls: u64,
    /// Those that were refused or failed.
    pub errors: u64,
    /// Those whose latency was compared.
    pub timed: u64,
    /// Those that were slow.
    pub slow: u64,
    /// The forms that were answered.
    pub forms: u64,
    /// Those that were declined or cancelled.
    pub declined: u64,
    /// The callers with errors.
    pub failing: FailingCallers,
    /// The callers with slow calls.
    pub slowed: FailingCallers,
    /// The callers with forms that were declined or cancelled.
    pub declining: FailingCallers,
}

struct Counters {
    stable: GroupCalls,
    candidate: GroupCalls,
    /// What was counted since `since`.
    counted: HashSet<(u64, Counted)>,
    since: Instant,
    usual: Latencies,
    usual_count: u64,
    slow: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Call,
    Form,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            stable: GroupCalls::default(),
            candidate: GroupCalls::default(),
            counted: HashSet::new(),
            since: Instant::now(),
            usual: Latencies::default(),
            usual_count: 0,
            slow: None,
        }
    }
}

pub(crate) struct RolloutCall {
    rollout: Rollout,
    group: RolloutGroup,
    hash: u64,
    started: Instant,
    pub(crate) outcome: &'static str,
}

impl fmt::Debug for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rollout({} to {}, {} %)", self.0.channel, self.0.target, self.percent())
    }
}

impl fmt::Debug for RolloutCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RolloutCall({:?}, {})", self.group, self.outcome)
    }
}

impl RolloutGroup {
    /// The name in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutGroup::Stable => "stable",
            RolloutGroup::Candidate => "candidate",
        }
    }
}

impl Rollout {
    /// Creates a rollout of nothing: no caller is served the target before [`set_key`](Rollout::set_key) and
    /// [`set_percent`](Rollout::set_percent). Callers that do not meet `access` keep the channel. Calls that are slower by
    /// the factor `latency` are counted as slow.
    #[must_use]
    pub fn new(channel: &str, target: &str, access: Option<Arc<Access>>, latency: Option<f64>) -> Rollout {
        Rollout(Arc::new(Inner {
            channel: channel.to_owned(),
            target: target.to_owned(),
            access,
            latency,
            key: OnceLock::new(),
            percent: AtomicU8::new(0),
            counters: Mutex::default(),
            totals: Default::default(),
        }))
    }

    /// Sets the key of callers' hashes, which all replicas share. The first call counts.
    pub fn set_key(&self, key: [u8; 16]) {
        // Another key would divide the callers again.
        let _ = self.0.key.set(key);
    }

    /// Sets the share in per cent. Returns whether it was another one.
    pub fn set_percent(&self, percent: u8) -> bool {
        let percent = percent.min(100);
        self.0.percent.swap(percent, Ordering::AcqRel) != percent
    }

    /// The share in per cent.
    #[must_use]
    pub fn percent(&self) -> u8 {
        self.0.percent.load(Ordering::Acquire)
    }

    /// Takes the counts of the stable group and of the candidate.
    #[must_use]
    pub fn take(&self) -> (GroupCalls, GroupCalls) {
        let mut counters = self.0.counters.lock();
        if counters.usual_count >= CALLS_FOR_LATENCY {
            counters.slow = counters.usual.quantile(0.95).map(|usual| usual.max(NEVER_SLOW));
        }
        (std::mem::take(&mut counters.stable), std::mem::take(&mut counters.candidate))
    }

    /// Returns the calls and the errors that were counted since the start, of the stable group and of the candidate.
    #[must_use]
    pub fn totals(&self) -> [[u64; 2]; 2] {
        self.0.totals.each_ref().map(|group| group.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Returns the group of a caller; `None` for one without identity, which always keeps the channel.
    #[must_use]
    pub fn group(&self, caller: &Caller) -> Option<RolloutGroup> {
        caller.identity()?;
        let percent = self.percent();
        if percent == 0 || self.0.access.as_ref().is_some_and(|access| !caller.meets(access)) {
            return Some(RolloutGroup::Stable);
        }
        // A hundredth of a per cent is the finest share.
        let is_candidate = self.hash(caller).is_some_and(|hash| hash % 10_000 < u64::from(percent) * 100);
        Some(if is_candidate { RolloutGroup::Candidate } else { RolloutGroup::Stable })
    }

    fn hash(&self, caller: &Caller) -> Option<u64> {
        let mut hasher = SipHasher13::new_with_key(self.0.key.get()?);
        // Another rollout divides the callers in another way.
        for text in ["rollout", &self.0.channel, &self.0.target, caller.key()] {
            hasher.write_usize(text.len());
            hasher.write(text.as_bytes());
        }
        Some(hasher.finish())
    }

    pub(crate) fn begin(&self, caller: &Caller, group: RolloutGroup) -> RolloutCall {
        let hash = self.hash(caller).unwrap_or_default();
        RolloutCall { rollout: self.clone(), group, hash, started: Instant::now(), outcome: "cancelled" }
    }
}

impl Counters {
    fn group(&mut self, group: RolloutGroup) -> &mut GroupCalls {
        match group {
            RolloutGroup::Stable => &mut self.stable,
            RolloutGroup::Candidate => &mut self.candidate,
        }
    }

    /// Returns whether something of a caller counts, the first time in a period.
    fn counts(&mut self, caller: u64, what: Counted) -> bool {
        if self.since.elapsed() >= PERIOD {
            self.counted.clear();
            self.since = Instant::now();
        }
        self.counted.len() < MAX_CALLERS && self.counted.insert((caller, what))
    }
}

impl RolloutCall {
    pub(crate) fn note_form(&self, reaction: FormReaction) {
        let mut counters = self.rollout.0.counters.lock();
        if !counters.counts(self.hash, Counted::Form) {
            return;
        }
        let counts = counters.group(self.group);
        counts.forms += 1;
        if reaction != FormReaction::Accepted {
            counts.declined += 1;
            counts.declining.add(self.hash, 1);
        }
    }
}

impl Drop for RolloutCall {
    fn drop(&mut self) {
        // The client left, or the prompt waits for an answer.
        if matches!(self.outcome, "cancelled" | "asked") {
            return;
        }
        let latency = self.started.elapsed();
        let mut counters = self.rollout.0.counters.lock();
        if !counters.counts(self.hash, Counted::Call) {
            return;
        }
        let is_ok = self.outcome == "ok";
        let [calls, errors] = &self.rollout.0.totals[usize::from(self.group == RolloutGroup::Candidate)];
        calls.fetch_add(1, Ordering::Relaxed);
        errors.fetch_add(u64::from(!is_ok), Ordering::Relaxed);
        let slow = counters.slow;
        let counts = counters.group(self.group);
        counts.calls += 1;
        if !is_ok {
            counts.errors += 1;
            counts.failing.add(self.hash, 1);
        }
        let Some(factor) = self.rollout.0.latency.filter(|_| is_ok) else { return };
        if let Some(slow) = slow {
            let bound = if self.group == RolloutGroup::Candidate { slow.mul_f64(factor) } else { slow };
            counts.timed += 1;
            if latency > bound {
                counts.slow += 1;
                counts.slowed.add(self.hash, 1);
            }
        }
        if self.group == RolloutGroup::Stable {
            counters.usual.add(latency);
            counters.usual_count += 1;
        }
    }
}

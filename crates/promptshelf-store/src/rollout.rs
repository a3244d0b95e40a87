//! Guarded rollouts: a share of the callers of a channel is served another channel. The share is raised in steps, and set
//! to nothing once there is evidence that the new version fails more.
//!
//! This is the state and its changes, without the database. The statistics are in `promptshelf_core::rollout`.

use std::time::Duration;

use jiff::Timestamp;
use promptshelf_core::rollout::{CallerEvidence, Evidence, FAILING_CALLERS, FailingCallers, RATIOS, Trials};
use serde::{Deserialize, Serialize};

use crate::address::ChannelName;

/// The evidence at which a rollout stops. Each of three tests alarms falsely in at most 1 of 300 rollouts, all of them
/// together in 1 %.
const STOP: f64 = 300.0;

/// The calls of the new version since the last step without which the next one waits.
pub(crate) const CALLS_PER_STEP: u64 = 20;

const APPLIED_INTERVAL: u64 = 10_000_000;

/// The time without such a note after which no server applies it, in microseconds.
const UNAPPLIED_AFTER: u64 = 30_000_000;

pub(crate) const SERVER: &str = "promptshelf";

/// The plan of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolloutPlan {
    /// The first share, and the size of each step, in per cent.
    pub percent: u8,
    /// The time between two steps in seconds; manually only without it.
    #[serde(default, rename = "stepSeconds", with = "seconds")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u64>))]
    pub steps: Option<Duration>,
    /// The factor by which the share of failed calls may be higher; not compared without it.
    #[serde(default)]
    pub errors: Option<f64>,
    /// The same for declined and cancelled forms.
    #[serde(default)]
    pub declined: Option<f64>,
    /// The factor by which calls may be slower: it decides which calls are counted as slow.
    #[serde(default)]
    pub latency: Option<f64>,
}

/// A duration as a number of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(|value| value.as_secs()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Duration::from_secs))
    }
}

impl RolloutPlan {
    /// Creates a plan without steps and bounds.
    #[must_use]
    pub fn new(percent: u8) -> RolloutPlan {
        RolloutPlan { percent, steps: None, errors: None, declined: None, latency: None }
    }
}

/// What nobody has decided otherwise: a tenth of the callers, steps by people, and a stop at twice the errors.
impl Default for RolloutPlan {
    fn default() -> RolloutPlan {
        RolloutPlan { errors: Some(2.0), ..RolloutPlan::new(10) }
    }
}

/// The phase of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RolloutPhase {
    /// The share rises by schedule, if there is one.
    Running,
    /// The share stays. Evidence can stop it.
    Paused,
    /// A person has stopped it.
    Stopped,
    /// A server has stopped it by itself, and nobody has changed it since.
    Failed,
    /// The new version was promoted.
    Finished,
}

impl RolloutPhase {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutPhase::Running => "running",
            RolloutPhase::Paused => "paused",
            RolloutPhase::Stopped => "stopped",
            RolloutPhase::Failed => "failed",
            RolloutPhase::Finished => "finished",
        }
    }

    /// Returns whether every caller is served the channel itself.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, RolloutPhase::Running | RolloutPhase::Paused)
    }

    pub(crate) fn from_name(name: &str) -> Option<RolloutPhase> {
        use RolloutPhase::{Failed, Finished, Paused, Running, Stopped};
        [Running, Paused, Stopped, Failed, Finished].into_iter().find(|phase| phase.as_str() == name)
    }
}

/// The counts of one group of callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GroupCounts {
    /// The calls.
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
}

impl GroupCounts {
    fn merge(&mut self, other: GroupCounts) {
        for (own, other) in [
            (&mut self.calls, other.calls),
            (&mut self.errors, other.errors),
            (&mut self.timed, other.timed),
            (&mut self.slow, other.slow),
            (&mut self.forms, other.forms),
            (&mut self.declined, other.declined),
        ] {
            *own = own.saturating_add(other);
        }
    }
}

/// The counts of both groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolloutCounts {
    /// Authenticated callers that keep the channel.
    pub stable: GroupCounts,
    /// Callers that are served the new version.
    pub candidate: GroupCounts,
    /// The callers of the new version with errors, declined forms and slow calls. Not for readers.
    #[serde(skip)]
    failing: [FailingCallers; TESTS],
}

/// The number of tests: errors, declined forms and slow calls.
const TESTS: usize = 3;

impl RolloutCounts {
    /// Creates the counts of both groups.
    #[must_use]
    pub fn new(stable: GroupCounts, candidate: GroupCounts) -> RolloutCounts {
        RolloutCounts { stable, candidate, ..RolloutCounts::default() }
    }

    /// Adds the callers of the new version with errors, with declined forms, and with slow calls.
    #[must_use]
    pub fn failing(self, failing: [FailingCallers; TESTS]) -> RolloutCounts {
        RolloutCounts { failing, ..self }
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == RolloutCounts::default()
    }

    fn merge(&mut self, other: RolloutCounts) {
        self.stable.merge(other.stable);
        self.candidate.merge(other.candidate);
    }
}

/// Counts and evidence since the evidence began: at the first share, at another revision of the new version, and after
/// the rollout was set manually.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolloutProgress {
    /// The revision of the target that the evidence is about.
    pub revision: u64,
    /// All counts.
    pub counts: RolloutCounts,
    /// The counts that wait until both groups have some.
    waiting: RolloutCounts,
    /// The calls of the new version since the last step.
    pub(crate) calls_since_step: u64,
    errors: [f64; RATIOS],
    declined: [f64; RATIOS],
    slow: [f64; RATIOS],
    /// The callers of the new version that failed in the counts that wait, for each test.
    failing: [[(u64, u64); FAILING_CALLERS]; TESTS],
    /// The evidence that rests on single callers, for each test.
    callers: [[(u64, [f64; RATIOS]); FAILING_CALLERS]; TESTS],
}

/// A rollout at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RolloutState {
    /// The channel whose callers are divided.
    pub channel: ChannelName,
    /// The channel that the share is served.
    pub target: ChannelName,
    /// The share in per cent; 0 if it is over.
    pub percent: u8,
    /// Its phase. One that is over stays so until a person continues it.
    pub phase: RolloutPhase,
    /// The author of the last change of the share.
    pub changed_by: String,
    /// The reason of the last change.
    pub reason: String,
    /// The time of the last change.
    pub changed_at: Timestamp,
    /// Counts and evidence.
    pub progress: RolloutProgress,
    /// Its plan; `None` for one of an earlier release.
    pub plan: Option<RolloutPlan>,
    /// When a server last applied it, exact to ten seconds; `None` if none has since it is recorded.
    pub applied_at: Option<Timestamp>,
}

pub(crate) fn time(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl RolloutState {
    pub(crate) fn set(&mut self, percent: u8, phase: RolloutPhase, by: &str, reason: String, now: i64) {
        (self.percent, self.phase, self.reason) = (percent, phase, reason);
        by.clone_into(&mut self.changed_by);
        self.changed_at = time(now);
        self.progress.calls_since_step = 0;
    }

    /// Adds counts, and stops or raises the share. `now` is in microseconds; `revision` is that of the target, if it
    /// exists.
    pub(crate) fn advance(&mut self, counts: RolloutCounts, now: i64, revision: Option<u64>) {
        let plan = self.plan.unwrap_or_else(|| RolloutPlan::new(self.percent));
        // A write at each exchange of each replica would cost more than it says.
        if self.applied_at.is_none_or(|at| now.abs_diff(at.as_microsecond()) >= APPLIED_INTERVAL) {
            self.applied_at = Some(time(now));
        }
        if self.phase.is_over() {
            return;
        }
        let Some(revision) = revision else {
            let reason = format!("the channel {} does not exist any more", self.target);
            return self.set(0, RolloutPhase::Failed, SERVER, reason, now);
        };
        if revision != self.progress.revision {
            self.progress = RolloutProgress::of_revision(revision);
        }
        self.progress.add(&plan, counts);
        if let Some(reason) = self.progress.reason_to_stop(&plan) {
            return self.set(0, RolloutPhase::Failed, SERVER, reason, now);
        }
        if self.phase == RolloutPhase::Paused {
            return;
        }
        let Some(steps) = plan.steps else { return };
        let since = now.saturating_sub(self.changed_at.as_microsecond());
        if since < 0 {
            // The clock of the database went back: the time of a step starts again.
            self.changed_at = time(now);
        } else if u128::from(since.unsigned_abs()) >= steps.as_micros()
            && self.progress.calls_since_step >= CALLS_PER_STEP
            && let Some(percent) = self.next_percent(&plan)
        {
            // One step, however far the clock jumped.
            self.set(percent, RolloutPhase::Running, SERVER, "the next step".to_owned(), now);
        }
    }

    /// Returns since when no server has applied it; `None` while one does, and if it is not known. `now` is in
    /// microseconds.
    pub(crate) fn unapplied_since(&self, now: i64) -> Option<Timestamp> {
        self.applied_at.filter(|at| now.abs_diff(at.as_microsecond()) >= UNAPPLIED_AFTER)
    }

    /// Returns the share of the next step; `None` after the last one, and while the rollout is paused or stopped.
    pub(crate) fn next_percent(&self, plan: &RolloutPlan) -> Option<u8> {
        let has_next = self.phase == RolloutPhase::Running && (1..100).contains(&self.percent);
        has_next.then(|| self.percent.saturating_add(plan.percent.max(1)).min(100))
    }
}

impl RolloutProgress {
    /// Creates empty counts about a revision of the target.
    pub(crate) fn of_revision(revision: u64) -> RolloutProgress {
        RolloutProgress { revision, ..RolloutProgress::default() }
    }

    fn add(&mut self, plan: &RolloutPlan, counts: RolloutCounts) {
        self.counts.merge(counts);
        for (known, new) in self.failing.iter_mut().zip(counts.failing) {
            let mut merged = FailingCallers(*known);
            merged.merge(new);
            *known = merged.0;
        }
        self.calls_since_step = self.calls_since_step.saturating_add(counts.candidate.calls);
        self.waiting.merge(counts);
        let RolloutCounts { stable, candidate, .. } = &mut self.waiting;
        // Groups are compared over the same time, so that a busy hour weighs on both.
        let calls = ((&mut candidate.calls, &mut candidate.errors), (&mut stable.calls, &mut stable.errors));
        let [errors, declined, slow] = &mut self.callers;
        let [failing, declining, slowed] = &mut self.failing;
        compare(&mut self.errors, errors, failing, plan.errors, calls.0, calls.1);
        let forms = ((&mut candidate.forms, &mut candidate.declined), (&mut stable.forms, &mut stable.declined));
        compare(&mut self.declined, declined, declining, plan.declined, forms.0, forms.1);
        let timed = ((&mut candidate.timed, &mut candidate.slow), (&mut stable.timed, &mut stable.slow));
        // The bound of latency decides which calls are counted as slow.
        compare(&mut self.slow, slow, slowed, plan.latency.map(|_| 1.0), timed.0, timed.1);
    }

    fn reason_to_stop(&self, plan: &RolloutPlan) -> Option<String> {
        let RolloutCounts { stable, candidate, .. } = &self.counts;
        let describe = |what: &str, of: [u64; 4]| {
            format!("{what}: {} of {} with the new version, {} of {} without", of[0], of[1], of[2], of[3])
        };
        // The caller that failed most may be at fault itself, or want to stop the rollout.
        let reaches = |log_ratios: [f64; RATIOS], test: usize| {
            CallerEvidence(self.callers[test]).left_without_one(&Evidence { log_ratios }) >= STOP
        };
        if plan.errors.is_some() && reaches(self.errors, 0) {
            return Some(describe("errors", [candidate.errors, candidate.calls, stable.errors, stable.calls]));
        }
        if plan.declined.is_some() && reaches(self.declined, 1) {
            return Some(describe(
                "declined forms",
                [candidate.declined, candidate.forms, stable.declined, stable.forms],
            ));
        }
        (plan.latency.is_some() && reaches(self.slow, 2))
            .then(|| describe("slow calls", [candidate.slow, candidate.timed, stable.slow, stable.timed]))
    }
}

/// Adds waiting counts to evidence, once both groups have some. Each group is its calls and those that failed.
fn compare(
    log_ratios: &mut [f64; RATIOS],
    callers: &mut [(u64, [f64; RATIOS]); FAILING_CALLERS],
    failing: &mut [(u64, u64); FAILING_CALLERS],
    bound: Option<f64>,
    candidate: (&mut u64, &mut u64),
    stable: (&mut u64, &mut u64),
) {
    if bound.is_some() && (*candidate.0 == 0 || *stable.0 == 0) {
        return;
    }
    let take = |(count, failures): (&mut u64, &mut u64)| Trials {
        count: std::mem::take(count),
        failures: std::mem::take(failures),
    };
    let (candidate, stable) = (take(candidate), take(stable));
    let failing = FailingCallers(std::mem::take(failing));
    if let Some(bound) = bound {
        let mut evidence = Evidence { log_ratios: *log_ratios };
        evidence.add(bound, candidate, stable);
        *log_ratios = evidence.log_ratios;
        let mut evidence = CallerEvidence(*callers);
        evidence.add(bound, failing, candidate.count, stable.count);
        *callers = evidence.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000_000;

    fn state() -> RolloutState {
        RolloutState {
            channel: ChannelName::production(),
            target: "next".parse().expect("a name"),
            percent: 10,
            phase: RolloutPhase::Running,
            changed_by: SERVER.to_owned(),
            reason: "begun".to_owned(),
            changed_at: time(10 * HOUR),
            progress: RolloutProgress::of_revision(1),
            plan: Some(plan()),
            applied_at: None,
        }
    }

    #[test]
    fn rollout_without_a_server_is_noticed() {
        const SECOND: i64 = 1_000_000;
        let mut state = state();
        assert_eq!(state.unapplied_since(HOUR), None, "nothing is known");
        state.advance(calls(0, 0, 0), HOUR, Some(1));
        let before = state.clone();
        state.advance(calls(0, 0, 0), HOUR + 9 * SECOND, Some(1));
        assert_eq!(state, before, "nothing is written for nine seconds");
        state.advance(calls(0, 0, 0), HOUR + 10 * SECOND, Some(1));
        assert_eq!(state.applied_at, Some(time(HOUR + 10 * SECOND)));
        assert_eq!(state.unapplied_since(HOUR + 39 * SECOND), None);
        assert_eq!(state.unapplied_since(HOUR + 40 * SECOND), state.applied_at);
        // The clock of the database went back.
        state.advance(calls(0, 0, 0), HOUR / 2, Some(1));
        assert_eq!(state.applied_at, Some(time(HOUR / 2)));
        state.phase = RolloutPhase::Stopped;
        state.advance(calls(0, 0, 0), HOUR, Some(1));
        assert_eq!(state.unapplied_since(HOUR), None, "a server keeps a stopped rollout, too");
    }

    fn calls(stable: u64, candidate: u64, errors: u64) -> RolloutCounts {
        let group = |calls, errors| GroupCounts { calls, errors, ..GroupCounts::default() };
        RolloutCounts::new(group(stable, 0), group(candidate, errors))
    }

    // req: S-268
    #[test]
    fn one_caller_stops_nothing_and_two_do() {
        let mut state = state();
        let of = |caller: u64| {
            let mut failing = FailingCallers::default();
            failing.add(caller, 1);
            calls(9, 1, 1).failing([failing, FailingCallers::default(), FailingCallers::default()])
        };
        for _ in 0..10_000 {
            state.advance(of(7), 10 * HOUR, Some(1));
        }
        assert!(!state.phase.is_over(), "{state:?}");
        let stored = serde_json::to_string(&state.progress).expect("JSON");
        state.progress = serde_json::from_str(&stored).expect("JSON");
        for _ in 0..20 {
            state.advance(of(8), 10 * HOUR, Some(1));
        }
        assert!(state.phase.is_over(), "{state:?}");
    }

    fn plan() -> RolloutPlan {
        RolloutPlan { steps: Some(Duration::from_secs(3_600)), errors: Some(2.0), ..RolloutPlan::new(40) }
    }

    // req: S-201
    #[test]
    fn one_step_is_taken_however_clocks_jump() {
        let mut state = state();
        state.advance(calls(90, 20, 0), 10 * HOUR + HOUR / 2, Some(1));
        assert_eq!(state.percent, 10, "it is too early");
        state.advance(calls(0, 0, 0), 9_000 * HOUR, Some(1));
        assert_eq!(state.percent, 50, "one step for many hours");
        state.advance(calls(90, 19, 0), 9_900 * HOUR, Some(1));
        assert_eq!(state.percent, 50, "too few calls of the new version");
        state.advance(calls(90, 1, 0), 8 * HOUR, Some(1));
        assert_eq!((state.percent, state.changed_at), (50, time(8 * HOUR)), "the clock went back");
        state.advance(calls(0, 0, 0), 9 * HOUR, Some(1));
        state.advance(calls(90, 20, 0), 10 * HOUR, Some(1));
        assert_eq!(state.percent, 100, "at most all callers");
        state.advance(calls(90, 20, 0), 99 * HOUR, Some(1));
        assert_eq!((state.percent, state.phase), (100, RolloutPhase::Running));
    }

    #[test]
    fn paused_rollout_takes_no_step_and_can_fail() {
        let mut state = RolloutState { phase: RolloutPhase::Paused, ..state() };
        state.advance(calls(90, 20, 0), 99 * HOUR, Some(1));
        assert_eq!((state.percent, state.phase), (10, RolloutPhase::Paused));
        state.advance(calls(180, 20, 20), 99 * HOUR, Some(1));
        assert_eq!((state.percent, state.phase), (0, RolloutPhase::Failed));
    }

    // req: S-200
    #[test]
    fn errors_stop_it_and_nothing_starts_it_again() {
        let mut state = state();
        // One group alone cannot be compared, and is not lost.
        state.advance(calls(0, 20, 10), 10 * HOUR, Some(1));
        assert!(!state.phase.is_over());
        state.advance(calls(180, 0, 0), 10 * HOUR, Some(1));
        assert!(state.phase.is_over() && state.percent == 0, "{state:?}");
        assert_eq!(state.reason, "errors: 10 of 20 with the new version, 0 of 180 without");
        let stopped = state.clone();
        state.advance(calls(900, 100, 0), 99 * HOUR, Some(2));
        assert_eq!(state, RolloutState { applied_at: Some(time(99 * HOUR)), ..stopped });
    }

    #[test]
    fn evidence_is_about_one_revision_and_its_bounds() {
        let mut state = state();
        state.plan = Some(RolloutPlan::new(10));
        state.advance(calls(90, 100, 100), 10 * HOUR, Some(1));
        assert!(!state.phase.is_over(), "no bound is set");
        state.plan = Some(plan());
        state.advance(calls(90, 10, 0), 10 * HOUR, Some(2));
        assert_eq!((state.progress.revision, state.progress.counts), (2, calls(90, 10, 0)));
        state.advance(calls(0, 0, 0), 10 * HOUR, None);
        assert_eq!((state.percent, state.reason.as_str()), (0, "the channel next does not exist any more"));
    }

    #[test]
    fn declined_forms_and_slow_calls_stop_it_too() {
        let (mut forms, mut slow) = (RolloutCounts::default(), RolloutCounts::default());
        (forms.stable.forms, forms.candidate.forms, forms.candidate.declined) = (100, 50, 30);
        (slow.stable.timed, slow.candidate.timed, slow.candidate.slow) = (100, 50, 30);
        for (counts, expected) in [(forms, "declined forms: 30 of 50"), (slow, "slow calls: 30 of 50")] {
            let mut state = state();
            state.advance(counts, 10 * HOUR, Some(1));
            assert!(!state.phase.is_over(), "only errors are compared");
            let mut state = self::state();
            state.plan = Some(RolloutPlan { declined: Some(2.0), latency: Some(2.0), ..plan() });
            state.advance(counts, 10 * HOUR, Some(1));
            assert!(state.phase.is_over() && state.reason.starts_with(expected), "{}", state.reason);
        }
    }
}

//! A rollout as people and programs read it: its state, its next step, and the changes of its share.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    address::ChannelName,
    rollout::{CALLS_PER_STEP, RolloutCounts, RolloutPhase, RolloutPlan, RolloutState},
};

/// A rollout with its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolloutReport {
    /// The channel whose callers are divided.
    pub channel: ChannelName,
    /// The channel that the share is served.
    #[serde(rename = "to")]
    pub target: ChannelName,
    /// The share in per cent; 0 if it is over.
    pub percent: u8,
    /// Its phase. One that is over stays so until a person continues it.
    #[serde(rename = "state")]
    pub phase: RolloutPhase,
    /// The author of the last change of the share.
    pub changed_by: String,
    /// The reason of the last change.
    pub reason: String,
    /// The time of the last change.
    pub changed_at: Timestamp,
    /// The revision of `to` that the counts are about.
    pub revision: u64,
    /// The counts since the evidence began: at the first share, at another revision, and after a change manually.
    pub counts: RolloutCounts,
    /// Its plan; null for one of an earlier release.
    pub plan: Option<RolloutPlan>,
    /// Since when no server has applied it, exact to ten seconds: none that runs serves the channel over HTTP. Null while a
    /// server applies it, and if it is not known.
    pub unapplied_since: Option<Timestamp>,
    /// The next step by schedule; null without a schedule, after the last step, and while it is paused or stopped.
    pub next: Option<RolloutStep>,
    /// The changes of the share, the newest first; at most 100.
    pub history: Vec<RolloutChange>,
}

/// The next step of a rollout. It is taken once both conditions are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolloutStep {
    /// The share from then on, in per cent.
    pub percent: u8,
    /// The earliest time, by the clock of the database.
    pub not_before: Timestamp,
    /// The calls of the new version that are still missing.
    pub missing_calls: u64,
}

/// A change of the share of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RolloutChange {
    /// Its number, from 1 for each rollout.
    pub number: u64,
    /// The kind of the change.
    pub kind: RolloutChangeKind,
    /// Whether a server made it by itself. A person can have the server's name.
    #[serde(rename = "automatic")]
    pub is_automatic: bool,
    /// The share from then on, in per cent.
    pub percent: u8,
    /// Its author.
    pub changed_by: String,
    /// Its reason.
    pub reason: String,
    /// Its time.
    pub at: Timestamp,
    /// The revision of the target that the counts are about.
    pub revision: u64,
    /// The counts of both groups until then, with the shares before it: from the start of the evidence on.
    pub counts: RolloutCounts,
}

/// The kind of a change of the share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RolloutChangeKind {
    /// The first share.
    Begin,
    /// A step by schedule.
    Step,
    /// Another share, manually.
    Set,
    /// No further steps.
    Pause,
    /// Further steps.
    Resume,
    /// The end, by evidence or manually.
    Stop,
    /// The end, because the new version was promoted.
    Finish,
}

impl RolloutChangeKind {
    /// Returns the name that JSON and the database use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutChangeKind::Begin => "begin",
            RolloutChangeKind::Step => "step",
            RolloutChangeKind::Set => "set",
            RolloutChangeKind::Pause => "pause",
            RolloutChangeKind::Resume => "resume",
            RolloutChangeKind::Stop => "stop",
            RolloutChangeKind::Finish => "finish",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<RolloutChangeKind> {
        use RolloutChangeKind::{Begin, Finish, Pause, Resume, Set, Step, Stop};
        [Begin, Step, Set, Pause, Resume, Stop, Finish].into_iter().find(|kind| kind.as_str() == name)
    }
}

impl RolloutReport {
    /// `now` is the time of the database in microseconds.
    pub(crate) fn new(state: RolloutState, history: Vec<RolloutChange>, now: i64) -> RolloutReport {
        let (next, unapplied_since) = (next_step(&state), state.unapplied_since(now));
        let RolloutState { channel, target, percent, phase, changed_by, reason, changed_at, progress, plan, .. } =
            state;
        RolloutReport {
            channel,
            target,
            percent,
            phase,
            changed_by,
            reason,
            changed_at,
            revision: progress.revision,
            counts: progress.counts,
            plan,
            unapplied_since,
            next,
            history,
        }
    }
}

fn next_step(state: &RolloutState) -> Option<RolloutStep> {
    let plan = state.plan?;
    let percent = state.next_percent(&plan)?;
    let not_before = state.changed_at.checked_add(plan.steps?).ok()?;
    let missing_calls = CALLS_PER_STEP.saturating_sub(state.progress.calls_since_step);
    Some(RolloutStep { percent, not_before, missing_calls })
}

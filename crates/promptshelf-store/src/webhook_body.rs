//! The JSON text of an event, as it is sent to webhooks. It has no contents of files.

use jiff::Timestamp;
use serde::{Serialize, ser::SerializeStruct as _};

use crate::{
    StoreError,
    address::ChannelName,
    check::CheckSummary,
    model::{Policy, PolicyChange, PromptChange, Proposal, Review, RevisionKind, Verdict},
    rollout::{RolloutCounts, RolloutState},
    rollout_report::RolloutChangeKind,
    webhook::WebhookEvent,
};

const MAX_PROMPTS: usize = 100;

const MAX_FINDINGS: (usize, usize) = (10, 500);

/// The details of an event. Empty ones are left out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Change<'a> {
    pub(crate) proposal: Option<&'a Proposal>,
    pub(crate) revision: Option<u64>,
    pub(crate) approved_by: &'a [String],
    pub(crate) emergency: Option<&'a str>,
    pub(crate) review: Option<&'a Review>,
    pub(crate) lacks: &'a [String],
    pub(crate) prompts: &'a [PromptChange],
    pub(crate) findings: &'a [String],
    pub(crate) policy: Option<&'a PolicyChange>,
    pub(crate) rollout: Option<RolloutBody<'a>>,
}

#[derive(Clone, Copy)]
pub(crate) struct RolloutBody<'a> {
    pub(crate) state: &'a RolloutState,
    pub(crate) kind: RolloutChangeKind,
    pub(crate) is_automatic: bool,
    pub(crate) counts: &'a RolloutCounts,
}

impl Serialize for RolloutBody<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RolloutState { target, percent, phase, .. } = self.state;
        let mut body = serializer.serialize_struct("Rollout", 6)?;
        body.serialize_field("to", target)?;
        body.serialize_field("change", &self.kind)?;
        body.serialize_field("percent", percent)?;
        body.serialize_field("state", phase)?;
        body.serialize_field("automatic", &self.is_automatic)?;
        body.serialize_field("counts", self.counts)?;
        body.end()
    }
}

impl<'a> Change<'a> {
    pub(crate) fn of(proposal: &'a Proposal) -> Change<'a> {
        Change { proposal: Some(proposal), revision: proposal.revision, ..Change::default() }
    }

    pub(crate) fn of_policy(change: &'a PolicyChange) -> Change<'a> {
        Change { policy: Some(change), emergency: change.emergency.as_deref(), ..Change::default() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Body<'a> {
    id: &'a str,
    event: WebhookEvent,
    channel: &'a ChannelName,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<RevisionKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<ReviewBody<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    approved_by: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    emergency: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    lacks: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<&'a CheckSummary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
    #[serde(skip_serializing_if = "<[PromptChange]>::is_empty")]
    prompts: &'a [PromptChange],
    #[serde(skip_serializing_if = "Option::is_none")]
    more_prompts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<RolloutBody<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyBody<'a> {
    before: Option<&'a Policy>,
    after: &'a Policy,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_operator: Option<bool>,
}

#[derive(Serialize)]
struct ReviewBody<'a> {
    reviewer: &'a str,
    verdict: Verdict,
    note: &'a str,
}

impl<'a> Body<'a> {
    pub(crate) fn new(
        id: &'a str,
        event: WebhookEvent,
        channel: &'a ChannelName,
        at: Timestamp,
        change: Change<'a>,
    ) -> Body<'a> {
        let Change {
            proposal,
            revision,
            approved_by,
            emergency,
            review,
            lacks,
            prompts,
            findings,
            policy: changed,
            rollout,
        } = change;
        let proposed = proposal.and_then(|proposal| proposal.policy.as_ref());
        let proposed = proposed.map(|it| PolicyBody { before: Some(&it.before), after: &it.after, by_operator: None });
        let made = changed.map(|it| PolicyBody {
            before: it.before.as_ref(),
            after: &it.after,
            by_operator: Some(it.by_operator),
        });
        let shown = &prompts[..prompts.len().min(MAX_PROMPTS)];
        let (count, length) = MAX_FINDINGS;
        Body {
            id,
            event,
            channel,
            at,
            revision,
            proposal: proposal.map(|proposal| proposal.id).or(changed.and_then(|changed| changed.proposal)),
            kind: proposal.map(|proposal| proposal.kind),
            author: proposal
                .map(|proposal| proposal.author.as_str())
                .or(changed.map(|changed| changed.actor.as_str()))
                .or(rollout.map(|rollout| rollout.state.changed_by.as_str())),
            message: proposal
                .map(|proposal| proposal.message.as_str())
                .or(changed.map(|changed| changed.message.as_str()))
                .or(rollout.map(|rollout| rollout.state.reason.as_str())),
            review: review.map(|review| ReviewBody {
                reviewer: &review.reviewer,
                verdict: review.verdict,
                note: &review.note,
            }),
            approved_by,
            emergency,
            lacks,
            checks: proposal.map(|proposal| &proposal.checks),
            findings: findings.iter().take(count).map(|finding| finding.chars().take(length).collect()).collect(),
            prompts: shown,
            more_prompts: Some(prompts.len() - shown.len()).filter(|more| *more > 0),
            policy: made.or(proposed),
            rollout,
        }
    }

    pub(crate) fn to_json(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(|error| StoreError::invalid(error.to_string()))
    }
}

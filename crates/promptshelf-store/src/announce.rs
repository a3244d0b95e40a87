//! Adds events to the outbox of webhooks, in the transaction of the change.

use jiff::Timestamp;

use crate::{
    StoreError,
    address::ChannelName,
    check::CheckReport,
    database::Transaction,
    model::{PolicyChange, PromptChange, Proposal, RevisionKind},
    policy::Permit,
    rollout::{RolloutCounts, RolloutState},
    rollout_report::RolloutChangeKind,
    tables::{
        channel,
        webhook::{self, NewDelivery},
    },
    webhook::WebhookEvent,
    webhook::{Announced, Body, RolloutBody},
};

pub(crate) async fn published(
    transaction: &mut Transaction,
    proposal: &Proposal,
    prompts: &[PromptChange],
    Permit { approved_by, emergency }: &Permit<'_>,
    report: &CheckReport,
) -> Result<(), StoreError> {
    let event = match proposal.kind {
        RevisionKind::Rollback => WebhookEvent::RolledBack,
        RevisionKind::Publish | RevisionKind::Promote | RevisionKind::Policy => WebhookEvent::Published,
    };
    let of_revision = Announced { approved_by, emergency: *emergency, ..Announced::of(proposal) };
    announce(transaction, event, &proposal.channel, proposal.at, Announced { prompts, ..of_revision }).await?;
    let Some(revision) = proposal.revision.filter(|_| report.summary.errors > 0) else { return Ok(()) };
    webhook::is_newly_broken(transaction, &proposal.channel, revision).await?;
    let broken = Announced { findings: &report.findings, ..of_revision };
    announce(transaction, WebhookEvent::Broken, &proposal.channel, proposal.at, broken).await
}

pub(crate) async fn proposed(
    transaction: &mut Transaction,
    proposal: &Proposal,
    prompts: &[PromptChange],
) -> Result<(), StoreError> {
    let change = Announced { prompts, lacks: &proposal.lacks, ..Announced::of(proposal) };
    announce(transaction, WebhookEvent::Proposed, &proposal.channel, proposal.at, change).await
}

pub(crate) async fn reviewed(transaction: &mut Transaction, proposal: &Proposal) -> Result<(), StoreError> {
    let Some(review) = proposal.reviews.last() else { return Ok(()) };
    let change = Announced { review: Some(review), lacks: &proposal.lacks, ..Announced::of(proposal) };
    announce(transaction, WebhookEvent::Reviewed, &proposal.channel, review.at, change).await
}

pub(crate) async fn policy_changed(transaction: &mut Transaction, change: &PolicyChange) -> Result<(), StoreError> {
    let of_policy = Announced { approved_by: &change.approved_by, ..Announced::of_policy(change) };
    announce(transaction, WebhookEvent::PolicyChanged, &change.channel, change.at, of_policy).await
}

pub(crate) async fn rollout(
    transaction: &mut Transaction,
    state: &RolloutState,
    kind: RolloutChangeKind,
    is_automatic: bool,
    counts: &RolloutCounts,
) -> Result<(), StoreError> {
    let event = match kind {
        RolloutChangeKind::Begin => WebhookEvent::RolloutStarted,
        RolloutChangeKind::Stop => WebhookEvent::RolloutStopped,
        RolloutChangeKind::Finish => WebhookEvent::RolloutFinished,
        _ => WebhookEvent::RolloutStep,
    };
    let change = Announced { rollout: Some(RolloutBody { state, kind, is_automatic, counts }), ..Announced::default() };
    announce(transaction, event, &state.channel, state.changed_at, change).await
}

async fn announce(
    transaction: &mut Transaction,
    event: WebhookEvent,
    channel: &ChannelName,
    at: Timestamp,
    change: Announced<'_>,
) -> Result<(), StoreError> {
    let webhooks = webhook::wanting(transaction, event).await?;
    if webhooks.is_empty() {
        return Ok(());
    }
    let key = uuid::Uuid::new_v4().to_string();
    let body = Body::new(&key, event, channel, at, change).to_json()?;
    let new = NewDelivery { channel: channel.as_str(), event, key: &key, body: &body };
    webhook::lock(transaction).await?;
    for id in &webhooks {
        webhook::add(transaction, id, &new).await?;
    }
    Ok(())
}

/// Announces that a server cannot load a revision, unless it is not the newest one or was announced before.
pub(crate) async fn broken(
    transaction: &mut Transaction,
    name: &ChannelName,
    revision: u64,
    problem: &str,
) -> Result<(), StoreError> {
    channel::get(transaction, name).await?;
    webhook::lock(transaction).await?;
    let channel = channel::get(transaction, name).await?;
    if channel.revision != revision || !webhook::is_newly_broken(transaction, name, revision).await? {
        return Ok(());
    }
    let findings = [problem.to_owned()];
    let change = Announced { revision: Some(revision), findings: &findings, ..Announced::default() };
    announce(transaction, WebhookEvent::Broken, name, Timestamp::now(), change).await
}

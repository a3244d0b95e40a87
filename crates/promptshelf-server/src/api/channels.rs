//! Channels and their policies.

use axum::http::{StatusCode, header};
use promptshelf_store::{ChannelInfo, ChannelName, Policy, PolicyGuard, PolicyOutcome, PolicyRoles, StoreError};
use promptshelf_wire::{PolicyAnswer, Scope, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations, Trust},
    etag::{self, represent},
    problem::Problem,
    request::MAX_LIMIT,
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_channels).on(get_channel).on(get_policy).on(put_policy).on(policy_history)
}

async fn list_channels(call: Call<op::ListChannels>) -> Answer {
    let mut channels = call.store().await?.channels().await?;
    channels.retain(|channel| call.sees(&channel.name));
    call.answer(&call.paging.of_sorted(channels, MAX_LIMIT, |channel| channel.name.to_string())?)
}

async fn get_channel(call: Call<op::GetChannel>) -> Answer {
    let channel = &call.path.channel;
    call.answer(&call.store().await?.channel(channel).await?)
}

async fn get_policy(call: Call<op::GetPolicy>) -> Answer {
    let channel = &call.path.channel;
    call.answer(&call.store().await?.channel(channel).await?.policy)
}

async fn policy_history(call: Call<op::PolicyHistory>) -> Answer {
    let channel = &call.path.channel;
    let limit = call.paging.limit();
    let changes = call.store().await?.policy_history(channel, call.paging.after()?, limit + 1).await?;
    call.answer(&call.paging.of_rows(changes, limit, |last| last.number))
}

async fn put_policy(call: Call<op::PutPolicy>) -> Answer {
    let channel = &call.path.channel;
    let mut body = call.body().await?;
    let message = std::mem::take(&mut body.message);
    let policy = Policy::from(body);
    let store = call.store().await?;
    let (guard, status) = if etag::is_creation(&call.headers)? && !call.headers.contains_key(header::IF_MATCH) {
        (PolicyGuard::Absent, StatusCode::CREATED)
    } else {
        let present = match store.channel(channel).await {
            Ok(info) => Some(info.policy),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let tag = present.as_ref().map(represent).transpose()?.map(|(_, tag)| tag);
        etag::check_match(&call.headers, tag.as_ref(), true)?;
        let present = present.ok_or_else(|| Problem::not_found(&format!("The channel {channel}")))?;
        call.require_role(&present.roles.administer, "administer it")?;
        (PolicyGuard::Is(present), StatusCode::OK)
    };
    let present = match &guard {
        PolicyGuard::Is(present) => Some(present),
        _ => None,
    };
    known_evaluations(&call, present, &policy)?;
    call.note("before", &present.map_or_else(|| Ok("null".to_owned()), json)?);
    call.note("after", &json(&policy)?);
    call.note("message", &message);
    let actor = call.actor();
    let outcome = match call.trust() {
        Trust::Operator => {
            PolicyOutcome::Changed(Box::new(store.set_policy(channel, &policy, &guard, &message, &actor).await?))
        }
        _ => store.propose_policy(channel, &policy, &guard, &message, &actor).await?,
    };
    match outcome {
        PolicyOutcome::Changed(info) => call.changed(status, &PolicyAnswer::Changed(info.policy.clone()), &info.policy),
        PolicyOutcome::Proposed(proposal) => {
            call.note_number("proposal", proposal.id);
            call.changed(StatusCode::ACCEPTED, &PolicyAnswer::Proposed(proposal.clone()), &proposal)
        }
    }
}

fn json(policy: &Policy) -> Result<String, Problem> {
    serde_json::to_string(policy).map_err(|_| Problem::internal())
}

/// Refuses an evaluation that a policy begins to require and that the settings do not have: nothing could be published.
fn known_evaluations(call: &Context, present: Option<&Policy>, policy: &Policy) -> Result<(), Problem> {
    let Some(known) = &call.state.api.evaluations else { return Ok(()) };
    let is_new = |name: &&String| present.is_none_or(|present| !present.evaluations.contains(name));
    match policy.evaluations.iter().filter(is_new).find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) if known.is_empty() => Err(Problem::invalid(format!(
            "The settings of the server have no evaluation `{name}`, nor any other: add `[[evaluation]]` with this name first"
        ))),
        Some(name) => Err(Problem::invalid(format!(
            "The settings of the server have no evaluation `{name}`: expected {}",
            known.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ")
        ))),
    }
}

pub(super) async fn existing(call: &Context, channel: &ChannelName) -> Result<ChannelInfo, Problem> {
    Ok(call.store().await?.channel(channel).await?)
}

/// Returns the roles of the channel that a proposal or a promotion is for. A caller without `library:admin` cannot make
/// a channel by proposing to it.
pub(super) async fn target_roles(call: &Context, channel: &ChannelName) -> Result<PolicyRoles, Problem> {
    match call.store().await?.channel(channel).await {
        Ok(info) => Ok(info.policy.roles),
        Err(StoreError::NotFound { .. }) if call.has(Scope::Admin) => Ok(PolicyRoles::default()),
        Err(error) => Err(error.into()),
    }
}

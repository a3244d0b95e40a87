//! Promotion between channels, and rollback.

use axum::http::{HeaderMap, StatusCode, header};
use promptshelf_store::{ChannelName, Promotion, Rollback, StoreError};
use promptshelf_wire::{PromoteBody, RollbackBody, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations},
    channels::{existing, target_roles},
    etag,
    problem::Problem,
    proposals::respond,
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(rollback).on(promote)
}

async fn rollback(call: Call<op::Rollback>) -> Answer {
    let channel = &call.path.channel;
    let body: RollbackBody = call.body().await?;
    call.note_number("to", body.to);
    expected(&call, channel, &call.headers).await?;
    let roles = existing(&call, channel).await?.policy.roles;
    call.require_role(&roles.propose, "propose")?;
    let (actor, checker) = (call.actor_under(&roles), call.checker());
    let store = call.store().await?;
    let RollbackBody { to, prompt, message, dry_run } = body;
    let rollback = Rollback { channel: channel.clone(), to, prompt, message, dry_run };
    let published = store.rollback(&rollback, &actor, checker).await?;
    respond(&call, status(dry_run), published).await
}

async fn promote(call: Call<op::Promote>) -> Answer {
    let channel = &call.path.channel;
    let body: PromoteBody = call.body().await?;
    call.note("from", body.from.as_str());
    call.require_channel(&body.from)?;
    expected(&call, channel, &call.headers).await?;
    let roles = target_roles(&call, channel).await?;
    call.require_role(&roles.propose, "propose")?;
    let (actor, checker) = (call.actor_under(&roles), call.checker());
    let store = call.store().await?;
    let PromoteBody { from, prompts, all, message, dry_run } = body;
    let promotion = Promotion { from, to: channel.clone(), prompts, all, message, dry_run, ends_rollout: false };
    let published = store.promote(&promotion, &actor, checker).await?;
    respond(&call, status(dry_run), published).await
}

/// Checks `If-Match` against the channel.
async fn expected(call: &Context, channel: &ChannelName, headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key(header::IF_MATCH) {
        return Ok(());
    }
    let present = match call.store().await?.channel(channel).await {
        Ok(present) => Some(etag::represent(&present)?.1),
        Err(StoreError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    etag::check_match(headers, present.as_ref(), true)
}

fn status(is_dry_run: bool) -> StatusCode {
    if is_dry_run { StatusCode::OK } else { StatusCode::CREATED }
}

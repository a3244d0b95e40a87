//! Promotion between channels, and rollback.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use promptshelf_store::{ChannelName, Promotion, StoreError};

use super::{
    channels::{existing, target_roles},
    etag,
    model::{Outcome, PromoteBody, RollbackBody},
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    proposals::respond,
    request::{ApiPath, Unread},
};

/// Proposes the state of an earlier revision; with the scope `library:publish` it is published at once if the policy is
/// met
#[utoipa::path(post, path = "/channels/{channel}/rollback", tag = "transfer", security(("token" = ["library:propose"])),
    params(("channel" = ChannelName, Path),
        ("If-Match" = Option<String>, Header, description = "The ETag of the channel that the caller has seen")),
    request_body = RollbackBody,
    responses((status = 200, body = Outcome, description = "The result of a dry run"), (status = 201, body = Outcome),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "The channel has changed")))]
pub(super) async fn rollback(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/rollback", &[Scope::Propose])?;
    let answer = async {
        let headers = request.headers().clone();
        let body: RollbackBody = request.json(&state.endpoint).await?;
        operation.note_number("to", body.to);
        expected(&state, &channel, &headers).await?;
        let roles = existing(&state, &channel).await?.policy.roles;
        operation.require_role(&roles.propose, "propose")?;
        let (actor, checker) = (operation.actor_under(&roles), state.checker(&operation));
        let store = state.store().await?;
        let prompt = body.prompt.as_deref();
        let published = store.rollback(&channel, body.to, prompt, &body.message, body.dry_run, &actor, checker).await?;
        respond(&mut operation, status(body.dry_run), published)
    }
    .await;
    Ok(operation.end(answer))
}

/// Proposes the state of another channel; with the scope `library:publish` it is published at once if the policy is met,
/// and with `library:admin` the channel is made if it does not exist
#[utoipa::path(post, path = "/channels/{channel}/promote", tag = "transfer",
    security(("token" = ["library:read", "library:propose"])),
    params(("channel" = ChannelName, Path, description = "The channel to copy to"),
        ("If-Match" = Option<String>, Header, description = "The ETag of the channel that the caller has seen")),
    request_body = PromoteBody,
    responses((status = 200, body = Outcome, description = "The result of a dry run"), (status = 201, body = Outcome),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "The channel has changed")))]
pub(super) async fn promote(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/promote", &[Scope::Read, Scope::Propose])?;
    let answer = async {
        let headers = request.headers().clone();
        let body: PromoteBody = request.json(&state.endpoint).await?;
        operation.note("from", body.from.as_str());
        operation.require_channel(&body.from)?;
        expected(&state, &channel, &headers).await?;
        let roles = target_roles(&state, &operation, &channel).await?;
        operation.require_role(&roles.propose, "propose")?;
        let (actor, checker) = (operation.actor_under(&roles), state.checker(&operation));
        let store = state.store().await?;
        let PromoteBody { from, prompts, all, message, dry_run } = body;
        let promotion = Promotion { from, to: channel, prompts, all, message, dry_run };
        let published = store.promote(&promotion, &actor, checker).await?;
        respond(&mut operation, status(dry_run), published)
    }
    .await;
    Ok(operation.end(answer))
}

/// Checks `If-Match` against the channel.
async fn expected(state: &ApiState, channel: &ChannelName, headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key(header::IF_MATCH) {
        return Ok(());
    }
    let present = match state.store().await?.channel(channel).await {
        Ok(present) => Some(etag::represent(&present)?.1),
        Err(StoreError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    etag::check_match(headers, present.as_ref(), true)
}

fn status(is_dry_run: bool) -> StatusCode {
    if is_dry_run { StatusCode::OK } else { StatusCode::CREATED }
}

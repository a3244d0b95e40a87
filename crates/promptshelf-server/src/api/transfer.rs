//! Promotion between channels, and rollback.

use axum::{extract::State, http::StatusCode, response::Response};
use promptshelf_store::ChannelName;

use super::{
    channels::{existing, target_roles},
    model::{Outcome, PromoteBody, RollbackBody},
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    proposals::respond,
    request::{ApiPath, Unread},
};

/// Proposes the state of an earlier revision; with the scope `library:publish` it is published at once if the policy is
/// met
#[utoipa::path(post, path = "/channels/{channel}/rollback", tag = "transfer", security(("token" = ["library:propose"])),
    params(("channel" = ChannelName, Path)), request_body = RollbackBody,
    responses((status = 200, body = Outcome, description = "The result of a dry run"), (status = 201, body = Outcome)))]
pub(super) async fn rollback(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/rollback", &[Scope::Propose])?;
    let answer = async {
        let body: RollbackBody = request.json(&state.endpoint).await?;
        operation.note_number("to", body.to);
        let roles = existing(&state, &channel).await?.policy.roles;
        operation.require_role(&roles.propose, "propose")?;
        let may_publish = operation.has(Scope::Publish) && operation.has_role(&roles.publish);
        let (actor, checker) = (operation.actor(may_publish), state.api.checker.clone());
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
    params(("channel" = ChannelName, Path, description = "The channel to copy to")), request_body = PromoteBody,
    responses((status = 200, body = Outcome, description = "The result of a dry run"), (status = 201, body = Outcome)))]
pub(super) async fn promote(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/promote", &[Scope::Read, Scope::Propose])?;
    let answer = async {
        let body: PromoteBody = request.json(&state.endpoint).await?;
        operation.note("from", body.from.as_str());
        operation.require_channel(&body.from)?;
        let roles = target_roles(&state, &operation, &channel).await?;
        operation.require_role(&roles.propose, "propose")?;
        let may_publish = operation.has(Scope::Publish) && operation.has_role(&roles.publish);
        let (actor, checker) = (operation.actor(may_publish), state.api.checker.clone());
        let store = state.store().await?;
        let published =
            store.promote(&body.from, &channel, &body.prompts, &body.message, body.dry_run, &actor, checker).await?;
        respond(&mut operation, status(body.dry_run), published)
    }
    .await;
    Ok(operation.end(answer))
}

fn status(is_dry_run: bool) -> StatusCode {
    if is_dry_run { StatusCode::OK } else { StatusCode::CREATED }
}

//! Guarded rollouts: their state and history, the share, and the stop.
//!
//! Reading needs `library:read`. A change needs the scope and the roles of publishing to the channel whose callers are
//! divided, and both channels must be shown to the caller.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use jiff::Timestamp;
use promptshelf_store::{Actor, ChannelName, RolloutReport, Store, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    channels::existing,
    etag,
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::{ApiPath, Unread},
};

/// Rollouts.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rollouts {
    /// By channel and target.
    rollouts: Vec<RolloutReport>,
}

/// A share to set.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RolloutShareBody {
    /// The channel that the share is served. Only needed if the channel has several rollouts.
    #[serde(default)]
    to: Option<ChannelName>,
    /// The share in per cent, from 0 to 100.
    #[schema(maximum = 100)]
    percent: u8,
    /// The reason, of at most 4,096 characters.
    #[serde(default)]
    message: Option<String>,
    /// `changedAt` of the state that the caller has seen: after another change nothing is set.
    #[serde(default)]
    seen: Option<Timestamp>,
}

/// A rollout to stop.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RolloutStopBody {
    /// The channel that the share is served. Only needed if the channel has several rollouts.
    #[serde(default)]
    to: Option<ChannelName>,
    /// The reason, of at most 4,096 characters.
    #[serde(default)]
    message: Option<String>,
}

/// Lists all rollouts with their counts and histories
#[utoipa::path(get, path = "/rollouts", tag = "rollouts", security(("token" = ["library:read"])),
    responses((status = 200, body = Rollouts), (status = 304)))]
pub(super) async fn list_all_rollouts(
    State(state): State<ApiState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/rollouts", &[Scope::Read])?;
    let answer = async { etag::json(&headers, &visible(&state, &operation, |_| true).await?) }.await;
    Ok(operation.end(answer))
}

/// Lists the rollouts that divide the callers of a channel
#[utoipa::path(get, path = "/channels/{channel}/rollouts", tag = "rollouts", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path)), responses((status = 200, body = Rollouts), (status = 304)))]
pub(super) async fn list_rollouts(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/rollouts", &[Scope::Read])?;
    let answer = async {
        existing(&state, &channel).await?;
        etag::json(&headers, &visible(&state, &operation, |one| one.channel == channel).await?)
    }
    .await;
    Ok(operation.end(answer))
}

/// Sets the share of a rollout; a stopped one goes on, and the comparison begins anew
#[utoipa::path(post, path = "/channels/{channel}/rollouts/share", tag = "rollouts",
    security(("token" = ["library:read", "library:publish"])), params(("channel" = ChannelName, Path)),
    request_body = RolloutShareBody,
    responses((status = 200, body = RolloutReport),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "The rollout has changed since `seen`")))]
pub(super) async fn set_rollout(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/set-rollout", &[Scope::Read, Scope::Publish])?;
    let answer = async {
        let RolloutShareBody { to, percent, message, seen } = request.json(&state.endpoint).await?;
        operation.note_number("percent", u64::from(percent));
        let (store, target, actor) = divided(&state, &mut operation, &channel, to).await?;
        let message = message.as_deref().filter(|message| !message.trim().is_empty()).unwrap_or("set by hand");
        let report = store.set_rollout(&channel, Some(&target), percent, message, seen, &actor).await?;
        etag::changed(StatusCode::OK, &report, &report)
    }
    .await;
    Ok(operation.end(answer))
}

/// Stops a rollout: every caller is served the channel itself
#[utoipa::path(post, path = "/channels/{channel}/rollouts/stop", tag = "rollouts",
    security(("token" = ["library:read", "library:publish"])), params(("channel" = ChannelName, Path)),
    request_body = RolloutStopBody, responses((status = 200, body = RolloutReport)))]
pub(super) async fn stop_rollout(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/stop-rollout", &[Scope::Read, Scope::Publish])?;
    let answer = async {
        let RolloutStopBody { to, message } = request.json(&state.endpoint).await?;
        let (store, target, actor) = divided(&state, &mut operation, &channel, to).await?;
        let message = message.as_deref().filter(|message| !message.trim().is_empty()).unwrap_or("stopped by hand");
        let report = store.stop_rollout(&channel, Some(&target), message, &actor).await?;
        etag::changed(StatusCode::OK, &report, &report)
    }
    .await;
    Ok(operation.end(answer))
}

async fn visible(
    state: &ApiState,
    operation: &Operation,
    is_wanted: impl Fn(&RolloutReport) -> bool,
) -> Result<Rollouts, Problem> {
    let mut rollouts = state.store().await?.rollouts().await?;
    rollouts.retain(|one| is_wanted(one) && operation.sees(&one.channel) && operation.sees(&one.target));
    Ok(Rollouts { rollouts })
}

/// Returns the target of a rollout that the caller may change, and the author of the change.
async fn divided(
    state: &ApiState,
    operation: &mut Operation,
    channel: &ChannelName,
    to: Option<ChannelName>,
) -> Result<(Store, ChannelName, Actor), Problem> {
    let roles = existing(state, channel).await?.policy.roles;
    operation.require_role(&roles.publish, "publish")?;
    let missing = |to: &str| StoreError::NotFound { what: format!("a rollout of {channel}{to}") };
    let target = match to {
        Some(target) => target,
        None => {
            let Rollouts { rollouts } = visible(state, operation, |one| one.channel == *channel).await?;
            match <[RolloutReport; 1]>::try_from(rollouts) {
                Ok([only]) => only.target,
                Err(none) if none.is_empty() => return Err(missing("").into()),
                Err(_) => {
                    let reason = format!("{channel} has several rollouts: name one with `to`");
                    return Err(StoreError::InvalidInput { reason }.into());
                }
            }
        }
    };
    if !operation.sees(&target) {
        return Err(missing(&format!(" to {target}")).into());
    }
    operation.note("to", target.as_str());
    Ok((state.store().await?, target, operation.actor()))
}

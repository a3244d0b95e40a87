//! Channels and their policies.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use promptshelf_store::{
    ChannelInfo, ChannelName, Policy, PolicyGuard, PolicyOutcome, PolicyRoles, Proposal, StoreError,
};

use super::{
    etag::{self, represent},
    model::{Channels, PolicyBody, PolicyChanges, PolicyHistoryQuery},
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::{ApiPath, ApiQuery, Unread, page_size},
};

/// Lists all channels with their newest revisions and policies
#[utoipa::path(get, path = "/channels", tag = "channels", security(("token" = ["library:read"])),
    responses((status = 200, body = Channels), (status = 304)))]
pub(super) async fn list_channels(
    State(state): State<ApiState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/channels", &[Scope::Read])?;
    let answer = async {
        let mut channels = state.store().await?.channels().await?;
        channels.retain(|channel| operation.sees(&channel.name));
        etag::json(&headers, &Channels { channels })
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns a channel with its newest revision and its policy
#[utoipa::path(get, path = "/channels/{channel}", tag = "channels", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path)), responses((status = 200, body = ChannelInfo), (status = 304)))]
pub(super) async fn get_channel(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/channel", &[Scope::Read])?;
    let answer = async { etag::json(&headers, &state.store().await?.channel(&channel).await?) }.await;
    Ok(operation.end(answer))
}

/// Returns the policy of a channel
#[utoipa::path(get, path = "/channels/{channel}/policy", tag = "channels", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path)), responses((status = 200, body = Policy), (status = 304)))]
pub(super) async fn get_policy(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/policy", &[Scope::Read])?;
    let answer = async { etag::json(&headers, &state.store().await?.channel(&channel).await?.policy) }.await;
    Ok(operation.end(answer))
}

/// Lists the changes of a channel's policy, the newest first
#[utoipa::path(get, path = "/channels/{channel}/policy/history", tag = "channels",
    security(("token" = ["library:read"])), params(("channel" = ChannelName, Path), PolicyHistoryQuery),
    responses((status = 200, body = PolicyChanges), (status = 304)))]
pub(super) async fn policy_history(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    ApiQuery(query): ApiQuery<PolicyHistoryQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/policy-history", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        // One more than a page, to know whether there is another one.
        let mut changes = state.store().await?.policy_history(&channel, query.before, limit + 1).await?;
        let has_more = changes.len() > limit;
        changes.truncate(limit);
        let next = changes.last().map(|last| last.number).filter(|_| has_more);
        etag::json(&headers, &PolicyChanges { changes, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Replaces the policy of a channel (`If-Match`), or creates a channel (`If-None-Match: *`). If the present policy asks for
/// approvals, one that loosens it becomes a proposal
#[utoipa::path(put, path = "/channels/{channel}/policy", tag = "channels", security(("token" = ["library:admin"])),
    params(("channel" = ChannelName, Path),
        ("If-Match" = Option<String>, Header, description = "The ETag of the policy that is replaced"),
        ("If-None-Match" = Option<String>, Header, description = "`*` creates the channel")),
    request_body = PolicyBody,
    responses((status = 200, body = Policy), (status = 201, body = Policy, description = "The channel was created"),
        (status = 202, body = Proposal, description = "The new policy is looser, and waits for the approvals of the present one"),
        (status = 412, body = Problem, content_type = "application/problem+json", description = "The policy has changed, or the channel exists"),
        (status = 428, body = Problem, content_type = "application/problem+json", description = "Neither `If-Match` nor `If-None-Match: *`")))]
pub(super) async fn put_policy(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/set-policy", &[Scope::Admin])?;
    let answer = async {
        let headers = request.headers().clone();
        let mut body = request.json::<PolicyBody>(&state.endpoint).await?;
        let message = std::mem::take(&mut body.message);
        let policy = Policy::from(body);
        let store = state.store().await?;
        let (guard, status) = if etag::is_creation(&headers)? && !headers.contains_key(header::IF_MATCH) {
            (PolicyGuard::Absent, StatusCode::CREATED)
        } else {
            let present = match store.channel(&channel).await {
                Ok(info) => Some(info.policy),
                Err(StoreError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let tag = present.as_ref().map(represent).transpose()?.map(|(_, tag)| tag);
            etag::check_match(&headers, tag.as_ref(), true)?;
            let present = present.ok_or_else(|| Problem::not_found(&format!("The channel {channel}")))?;
            operation.require_role(&present.roles.administer, "administer it")?;
            (PolicyGuard::Is(present), StatusCode::OK)
        };
        let present = match &guard {
            PolicyGuard::Is(present) => Some(present),
            _ => None,
        };
        known_evaluations(&state, present, &policy)?;
        operation.note("before", &present.map_or_else(|| Ok("null".to_owned()), json)?);
        operation.note("after", &json(&policy)?);
        operation.note("message", &message);
        match store.propose_policy(&channel, &policy, &guard, &message, &operation.actor()).await? {
            PolicyOutcome::Changed(info) => etag::changed(status, &info.policy, &info.policy),
            PolicyOutcome::Proposed(proposal) => {
                operation.note_number("proposal", proposal.id);
                etag::changed(StatusCode::ACCEPTED, &proposal, &proposal)
            }
        }
    }
    .await;
    Ok(operation.end(answer))
}

fn json(policy: &Policy) -> Result<String, Problem> {
    serde_json::to_string(policy).map_err(|_| Problem::internal())
}

/// Refuses an evaluation that a policy begins to require and that the settings do not have: nothing could be published.
fn known_evaluations(state: &ApiState, present: Option<&Policy>, policy: &Policy) -> Result<(), Problem> {
    let Some(known) = &state.api.evaluations else { return Ok(()) };
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

pub(super) async fn existing(state: &ApiState, channel: &ChannelName) -> Result<ChannelInfo, Problem> {
    Ok(state.store().await?.channel(channel).await?)
}

/// Returns the roles of the channel that a proposal or a promotion is for. A caller without `library:admin` cannot make
/// a channel by proposing to it.
pub(super) async fn target_roles(
    state: &ApiState,
    operation: &Operation,
    channel: &ChannelName,
) -> Result<PolicyRoles, Problem> {
    match state.store().await?.channel(channel).await {
        Ok(info) => Ok(info.policy.roles),
        Err(StoreError::NotFound { .. }) if operation.has(Scope::Admin) => Ok(PolicyRoles::default()),
        Err(error) => Err(error.into()),
    }
}

//! Revisions of channels.

use axum::{extract::State, http::HeaderMap, response::Response};
use promptshelf_store::{ChannelName, HistoryQuery, Revision};

use super::{
    channels::existing,
    etag,
    model::{Revisions, RevisionsQuery, ServedPrompts},
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    request::{ApiPath, ApiQuery, page_size},
};

/// Lists revisions, the newest first
#[utoipa::path(get, path = "/channels/{channel}/revisions", tag = "history", security(("token" = ["library:read"])),
    params(("channel" = ChannelName, Path), RevisionsQuery), responses((status = 200, body = Revisions), (status = 304)))]
pub(super) async fn list_revisions(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    ApiQuery(query): ApiQuery<RevisionsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/revisions", &[Scope::Read])?;
    let answer = async {
        let limit = page_size(query.limit)?;
        existing(&state, &channel).await?;
        let RevisionsQuery { prompt, at, before, .. } = query;
        // One more than a page, to know whether there is another one.
        let query = HistoryQuery { prompt, at, before, limit: limit + 1 };
        let mut revisions = state.store().await?.history(&channel, &query).await?;
        let has_more = revisions.len() > limit;
        revisions.truncate(limit);
        let next = revisions.last().map(|last| last.number).filter(|_| has_more);
        etag::json(&headers, &Revisions { revisions, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Returns a revision
#[utoipa::path(get, path = "/channels/{channel}/revisions/{number}", tag = "history",
    security(("token" = ["library:read"])), params(("channel" = ChannelName, Path), ("number" = u64, Path)),
    responses((status = 200, body = Revision), (status = 304)))]
pub(super) async fn get_revision(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath((channel, number)): ApiPath<(ChannelName, u64)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/revision", &[Scope::Read])?;
    operation.note_number("revision", number);
    let answer = async { etag::json(&headers, &state.store().await?.revision(&channel, number).await?) }.await;
    Ok(operation.end(answer))
}

/// Lists the prompts that a revision serves, with their versions
#[utoipa::path(get, path = "/channels/{channel}/revisions/{number}/prompts", tag = "history",
    security(("token" = ["library:read"])), params(("channel" = ChannelName, Path), ("number" = u64, Path)),
    responses((status = 200, body = ServedPrompts), (status = 304)))]
pub(super) async fn get_served(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath((channel, number)): ApiPath<(ChannelName, u64)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/served", &[Scope::Read])?;
    operation.note_number("revision", number);
    let answer = async {
        // A revision that does not exist serves nothing, and is an error all the same.
        state.store().await?.revision(&channel, number).await?;
        etag::json(&headers, &ServedPrompts { prompts: state.store().await?.served(&channel, number).await? })
    }
    .await;
    Ok(operation.end(answer))
}

//! Webhooks of servers: their queues, and the events that were given up.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use promptshelf_store::{DeadLetter, StoreError, WebhookQueue};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    etag,
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::ApiPath,
};

/// The webhooks that servers of the store have in their settings.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Webhooks {
    /// By their labels.
    webhooks: Vec<WebhookQueue>,
}

/// Events that were given up.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLetters {
    /// The newest first; at most 1,000.
    dead_letters: Vec<DeadLetter>,
}

/// Lists the webhooks, with the numbers of events that wait or were given up
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", security(("token" = ["library:admin"])),
    responses((status = 200, body = Webhooks), (status = 304)))]
pub(super) async fn list_webhooks(
    State(state): State<ApiState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/webhooks", &[Scope::Admin])?;
    let answer = async { etag::json(&headers, &Webhooks { webhooks: state.store().await?.webhooks().await? }) }.await;
    Ok(operation.end(answer))
}

/// Lists the events that were given up, the newest first
#[utoipa::path(get, path = "/webhooks/dead-letters", tag = "webhooks", security(("token" = ["library:admin"])),
    responses((status = 200, body = DeadLetters), (status = 304)))]
pub(super) async fn list_dead_letters(
    State(state): State<ApiState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/dead-letters", &[Scope::Admin])?;
    let answer = async {
        let mut dead_letters = state.store().await?.dead_letters().await?;
        dead_letters.retain(|letter| sees(&operation, letter));
        etag::json(&headers, &DeadLetters { dead_letters })
    }
    .await;
    Ok(operation.end(answer))
}

/// Queues an event that was given up again; it is sent with its old idempotency key
#[utoipa::path(post, path = "/webhooks/dead-letters/{id}/redelivery", tag = "webhooks",
    security(("token" = ["library:admin"])), params(("id" = u64, Path)),
    responses((status = 200, body = DeadLetter, description = "The event as it was given up")))]
pub(super) async fn redeliver(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/redeliver", &[Scope::Admin])?;
    operation.note_number("delivery", id);
    let answer = async {
        let store = state.store().await?;
        let missing = || StoreError::NotFound { what: format!("the dead letter {id}") };
        let letter = store.dead_letter(id).await?.filter(|letter| sees(&operation, letter)).ok_or_else(missing)?;
        store.redeliver(id).await?;
        etag::changed(StatusCode::OK, &letter, &letter)
    }
    .await;
    Ok(operation.end(answer))
}

fn sees(operation: &Operation, letter: &DeadLetter) -> bool {
    letter.channel.parse().is_ok_and(|channel| operation.sees(&channel))
}

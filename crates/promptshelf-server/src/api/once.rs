//! Changes that a caller sends again, after an answer was lost: `Idempotency-Key`.

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use promptshelf_store::{Claim, KeptAnswer, KeyedRequest, Store};
use promptshelf_wire::{KEY_HEADER, Operation};

use super::{
    call::{Answer, Call, Part},
    problem::Problem,
};

const MAX_KEY: usize = 255;

/// What the key of a request means for it.
pub(super) enum Claimed {
    Unkeyed,
    First(FirstRequest),
    Answered(Response),
}

/// The first request with a key, whose answer is to be kept.
pub(super) struct FirstRequest {
    store: Store,
    request: KeyedRequest,
}

pub(super) async fn claim<O: Operation, S: Part>(call: &Call<O, S>) -> Result<Claimed, Problem> {
    let key = call.headers.get(KEY_HEADER).filter(|_| O::SPEC.happens_once());
    let (Some(key), Some(store)) = (key, call.state.store()) else { return Ok(Claimed::Unkeyed) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len())).ok_or_else(|| {
        Problem::invalid(format!(
            "The header {KEY_HEADER} is invalid: expected 1 to {MAX_KEY} visible ASCII characters"
        ))
    })?;
    let caller = call.caller().identity().map(|identity| identity.key.clone()).unwrap_or_default();
    let request = KeyedRequest { caller, key: key.to_owned(), digest: call.digest().await? };
    let store = store.get().await?;
    match store.claim_key(&request).await? {
        Claim::First => Ok(Claimed::First(FirstRequest { store, request })),
        Claim::Answered(answer) => {
            call.note("repeated", key);
            Ok(Claimed::Answered(again(answer)))
        }
        Claim::Running => {
            let detail = "The first request with this key has not been answered yet: send it again";
            Err(Problem::new(StatusCode::CONFLICT, "still-running", "The change is being made", detail).retry_after(1))
        }
        Claim::Other => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "key-reused",
            "The key was used for another change",
            format!("You have used the {KEY_HEADER} for another change in the last 24 hours: take a new one for each"),
        )),
        Claim::TooMany => Err(Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many-keys",
            "Too many keys",
            format!("The answers to your changes of the last 24 hours are too many: send it without {KEY_HEADER}"),
        )),
    }
}

fn again(answer: KeptAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, Bytes::from(answer.body)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    if let Some(tag) = answer.tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
        headers.insert(header::ETAG, tag);
    }
    response
}

impl FirstRequest {
    /// Keeps an answer. A refusal has changed nothing, and releases the key.
    pub(super) async fn keep(self, answer: Answer) -> Answer {
        let FirstRequest { store, request } = self;
        let response = match answer {
            Ok(response) if response.status().is_success() => response,
            other => {
                if let Err(error) = store.release_key(&request).await {
                    tracing::warn!("the key of a refused change is not released: {error}");
                }
                return other;
            }
        };
        let (head, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
        let tag = head.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let kept = KeptAnswer { status: head.status.as_u16(), tag, body: body.to_vec() };
        if let Err(error) = store.keep_answer(&request, &kept).await {
            // The change itself has been made.
            tracing::warn!("the answer to a change is not kept for its repetition: {error}");
        }
        Ok(Response::from_parts(head, Body::from(body)))
    }
}

//! Results of evaluations.
//!
//! Reading needs `library:read`. Storing needs a scope of its own, `library:evaluate`: a result opens the release gate, so
//! neither authors nor publishers may store one with their scopes, and a runner in CI needs no other change.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use promptshelf_store::{
    ChannelName, Digest, Evaluation, EvaluationQuery, NewEvaluation, ProposalEvaluations, StoreError,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    etag,
    operation::{ApiCaller, ApiState, Scope},
    problem::Problem,
    request::{ApiPath, ApiQuery, Unread},
};

const PAGE: usize = 100;
/// The largest number of results of a page. A result has up to 256 KiB of text.
const MAX_PAGE: usize = 100;

/// Which results.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EvaluationsQuery {
    /// Only those of this prompt.
    prompt: Option<String>,
    /// Only those of this evaluation.
    evaluation: Option<String>,
    /// Only those of the version with this digest.
    #[param(value_type = Option<String>)]
    digest: Option<Digest>,
    /// Only results with a smaller number: `next` of the previous page.
    before: Option<u64>,
    /// The number of results, 100 by default and at most.
    limit: Option<usize>,
}

/// Results of evaluations.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Evaluations {
    /// The newest first.
    evaluations: Vec<Evaluation>,
    /// The value of `before` for the next page; null on the last one.
    next: Option<u64>,
}

/// Lists results of evaluations of a channel's prompts, the newest first
#[utoipa::path(get, path = "/channels/{channel}/evaluations", tag = "evaluations",
    security(("token" = ["library:read"])), params(("channel" = ChannelName, Path), EvaluationsQuery),
    responses((status = 200, body = Evaluations), (status = 304)))]
pub(super) async fn list_evaluations(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    ApiQuery(query): ApiQuery<EvaluationsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin_on(&channel, caller.0, "api/evaluations", &[Scope::Read])?;
    let answer = async {
        let EvaluationsQuery { prompt, evaluation, digest, before, limit } = query;
        let limit = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        let query = EvaluationQuery { prompt, evaluation, digest, before, limit: limit + 1 };
        let mut evaluations = state.store().await?.evaluations(&channel, &query).await?;
        let has_more = evaluations.len() > limit;
        evaluations.truncate(limit);
        let next = evaluations.last().filter(|_| has_more).map(|last| last.id);
        etag::json(&headers, &Evaluations { evaluations, next })
    }
    .await;
    Ok(operation.end(answer))
}

/// Stores the result of an evaluation for a version that the channel serves, has served or has proposed
#[utoipa::path(post, path = "/channels/{channel}/evaluations", tag = "evaluations",
    security(("token" = ["library:evaluate"])), params(("channel" = ChannelName, Path)), request_body = NewEvaluation,
    responses((status = 201, body = Evaluation),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The prompt has another version by now, or the proposal is not open")))]
pub(super) async fn add_evaluation(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(channel): ApiPath<ChannelName>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_on(&channel, caller.0, "api/evaluate", &[Scope::Evaluate])?;
    let answer = async {
        let new: NewEvaluation = request.json(&state.endpoint).await?;
        operation.note("prompt", &new.prompt);
        operation.note("evaluation", &new.evaluation);
        if let Some(id) = new.proposal {
            operation.note_number("proposal", id);
        }
        let store = state.store().await?;
        let added = store.add_evaluation(&channel, &new, &operation.actor(), state.checker(&operation)).await;
        let added = added.map_err(|error| match error {
            // The precondition is part of the body.
            StoreError::Changed { .. } => Problem::new(
                StatusCode::CONFLICT,
                "stale-evaluation",
                "The result is of another version",
                "Neither a revision of the channel nor the proposal has the prompt with this digest: it has changed \
                 meanwhile, run the evaluation again",
            ),
            error => error.into(),
        })?;
        etag::changed(StatusCode::CREATED, &added, &added)
    }
    .await;
    Ok(operation.end(answer))
}

/// Compares the newest results for a proposal with those of the versions that it replaces
#[utoipa::path(get, path = "/proposals/{id}/evaluations", tag = "evaluations", security(("token" = ["library:read"])),
    params(("id" = u64, Path)), responses((status = 200, body = ProposalEvaluations), (status = 304)))]
pub(super) async fn proposal_evaluations(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/proposal-evaluations", &[Scope::Read])?;
    operation.note_number("proposal", id);
    let answer = async {
        state.proposal(&mut operation, id).await?;
        etag::json(&headers, &state.store().await?.proposal_evaluations(id).await?)
    }
    .await;
    Ok(operation.end(answer))
}

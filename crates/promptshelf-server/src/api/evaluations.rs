//! Results of evaluations.
//!
//! Reading needs `library:read`. Storing needs a scope of its own, `library:evaluate`: a result opens the release gate, so
//! neither authors nor publishers may store one with their scopes, and a runner in CI needs no other change.

use axum::http::StatusCode;
use promptshelf_store::{EvaluationQuery, NewEvaluation, StoreError};
use promptshelf_wire::op;

use super::{
    ApiState,
    call::{Answer, Call, Operations},
    problem::Problem,
};

/// The largest number of results of a page. A result has up to 256 KiB of text.
const MAX_PAGE: usize = 100;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_evaluations).on(add_evaluation).on(proposal_evaluations)
}

async fn list_evaluations(call: Call<op::ListEvaluations>) -> Answer {
    let channel = &call.path.channel;
    let op::EvaluationsQuery { prompt, evaluation, digest } = call.query.clone();
    let (limit, before) = (call.paging.up_to(MAX_PAGE), call.paging.after()?);
    let query = EvaluationQuery { prompt, evaluation, digest, before, limit: limit + 1 };
    let evaluations = call.store().await?.evaluations(channel, &query).await?;
    call.answer(&call.paging.of_rows(evaluations, limit, |last| last.id))
}

async fn add_evaluation(call: Call<op::AddEvaluation>) -> Answer {
    let channel = &call.path.channel;
    let new: NewEvaluation = call.body().await?;
    call.note("prompt", &new.prompt);
    call.note("evaluation", &new.evaluation);
    if let Some(id) = new.proposal {
        call.note_number("proposal", id);
        // One of another channel is answered like one that does not exist.
        if call.proposal(id).await?.channel != *channel {
            return Err(StoreError::NotFound { what: format!("proposal {id}") }.into());
        }
    }
    let store = call.store().await?;
    let added = store.add_evaluation(channel, &new, &call.actor(), call.checker()).await;
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
    call.created(&added)
}

async fn proposal_evaluations(call: Call<op::ProposalEvaluations>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    call.proposal(id).await?;
    call.answer(&call.store().await?.proposal_evaluations(id).await?)
}

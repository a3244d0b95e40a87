//! Comments on proposals.

use axum::http::StatusCode;
use promptshelf_store::StoreError;
use promptshelf_wire::{Scope, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations},
    problem::Problem,
    request::MAX_LIMIT,
};

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_comments).on(add_comment)
}

async fn list_comments(call: Call<op::ListComments>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    call.proposal(id).await?;
    let comments = call.store().await?.comments(id).await?;
    call.answer(&call.paging.of_sorted(comments, MAX_LIMIT, |comment| comment.id)?)
}

async fn add_comment(call: Call<op::AddComment>) -> Answer {
    let id = call.path.id;
    call.note_number("proposal", id);
    let new = call.body().await?;
    let channel = call.proposal(id).await?.channel;
    let roles = call.store().await?.channel(&channel).await?.policy.roles;
    require_role(&call, &roles.review, &roles.propose)?;
    let comment = call.store().await?.comment(id, &new, &call.actor()).await;
    let comment = comment.map_err(|error| match error {
        // The precondition is part of the body.
        StoreError::Changed { .. } => Problem::new(
            StatusCode::CONFLICT,
            "stale-comment",
            "The comment is about other changes",
            "The proposal has changed since it was read: read it again, and comment on its present changes",
        ),
        error => error.into(),
    })?;
    call.created(&comment)
}

pub(super) fn may_review(call: &Context, roles: &[String]) -> bool {
    call.has(Scope::Review) && call.has_role(roles)
}

pub(super) fn require_role(call: &Context, review: &[String], propose: &[String]) -> Result<(), Problem> {
    if may_review(call, review) {
        return Ok(());
    }
    let role = call.require_role(propose, "comment as its authors");
    role.and_then(|()| call.require(&[Scope::Read, Scope::Propose]))
}

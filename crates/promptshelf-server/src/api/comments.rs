//! Comments on proposals.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use promptshelf_store::{Comment, CommentLine, Digest, NewComment, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    etag,
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::{ApiPath, Unread},
};

/// The scopes of a comment: reviewers and authors discuss.
const SCOPES: [&[Scope]; 2] = [&[Scope::Read, Scope::Review], &[Scope::Read, Scope::Propose]];

/// A comment on a proposal, on one of its files, or on a line.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CommentBody {
    /// The digest of the changes that the caller has seen.
    digest: Digest,
    /// The changed file; the whole proposal if it is missing.
    #[serde(default)]
    path: Option<String>,
    /// The line of the file; the whole file if it is missing.
    #[serde(default)]
    line: Option<CommentLine>,
    /// The text, of 1 to 4,096 characters. It is plain text: no reader interprets markup.
    text: String,
}

/// The comments on a proposal.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Comments {
    /// The oldest first; at most 1,000.
    comments: Vec<Comment>,
}

/// Lists the comments on a proposal, the oldest first
#[utoipa::path(get, path = "/proposals/{id}/comments", tag = "proposals", security(("token" = ["library:read"])),
    params(("id" = u64, Path)), responses((status = 200, body = Comments), (status = 304)))]
pub(super) async fn list_comments(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/comments", &[Scope::Read])?;
    operation.note_number("proposal", id);
    let answer = async {
        state.proposal(&mut operation, id).await?;
        etag::json(&headers, &Comments { comments: state.store().await?.comments(id).await? })
    }
    .await;
    Ok(operation.end(answer))
}

/// Comments on exactly the changes with this digest; reviewers and authors may
#[utoipa::path(post, path = "/proposals/{id}/comments", tag = "proposals",
    security(("token" = ["library:read", "library:review"]), ("token" = ["library:read", "library:propose"])),
    params(("id" = u64, Path)), request_body = CommentBody,
    responses((status = 201, body = Comment),
        (status = 409, body = Problem, content_type = "application/problem+json", description = "The proposal has other changes by now, or is not open")))]
pub(super) async fn add_comment(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin_with_one_of(caller.0, "api/comment", &SCOPES)?;
    operation.note_number("proposal", id);
    let answer = async {
        let CommentBody { digest, path, line, text } = request.json(&state.endpoint).await?;
        let channel = state.proposal(&mut operation, id).await?.channel;
        let roles = state.store().await?.channel(&channel).await?.policy.roles;
        require_role(&operation, &roles.review, &roles.propose)?;
        let new = NewComment { digest, path, line, text };
        let comment = state.store().await?.comment(id, &new, &operation.actor()).await;
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
        etag::changed(StatusCode::CREATED, &comment, &comment)
    }
    .await;
    Ok(operation.end(answer))
}

pub(super) fn may_review(operation: &Operation, roles: &[String]) -> bool {
    operation.has(Scope::Review) && operation.has_role(roles)
}

pub(super) fn require_role(operation: &Operation, review: &[String], propose: &[String]) -> Result<(), Problem> {
    if may_review(operation, review) {
        return Ok(());
    }
    let role = operation.require_role(propose, "comment as its authors");
    role.and_then(|()| operation.require(&[Scope::Read, Scope::Propose]))
}

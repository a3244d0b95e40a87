//! Tokens of the store, with which callers sign in to every server that uses it.
//!
//! A caller can give a token only what the caller's own one has, and neither reviews nor administration: an administrator
//! could otherwise approve own changes under another name. Such tokens come from who has the store itself.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use promptshelf_store::{Digest, NewToken, TokenInfo};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    etag,
    operation::{ApiCaller, ApiState, Operation, Scope},
    problem::Problem,
    request::{ApiPath, Unread},
};
use crate::http::auth::random_token;

/// The tokens of the store.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    /// The newest first: also expired and revoked ones.
    tokens: Vec<TokenInfo>,
}

/// A new token.
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreatedToken {
    /// The token itself, which is stored nowhere and not shown again.
    token: String,
    info: TokenInfo,
}

/// Lists the tokens of the store, without the tokens themselves
#[utoipa::path(get, path = "/tokens", tag = "tokens", security(("token" = ["library:admin"])),
    responses((status = 200, body = Tokens), (status = 304)))]
pub(super) async fn list_tokens(
    State(state): State<ApiState>,
    caller: ApiCaller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let operation = state.begin(caller.0, "api/tokens", &[Scope::Admin])?;
    let answer = async { etag::json(&headers, &Tokens { tokens: state.store().await?.tokens().await? }) }.await;
    Ok(operation.end(answer))
}

/// Creates a token, which every server of the store accepts within a second; the answer shows it, once
#[utoipa::path(post, path = "/tokens", tag = "tokens", security(("token" = ["library:admin"])), request_body = NewToken,
    responses((status = 201, body = CreatedToken),
        (status = 403, body = Problem, content_type = "application/problem+json", description = "The token would have a scope or role that the caller cannot give")))]
pub(super) async fn create_token(
    State(state): State<ApiState>,
    caller: ApiCaller,
    request: Unread,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/create-token", &[Scope::Admin])?;
    let answer = async {
        let new: NewToken = request.json(&state.endpoint).await?;
        operation.note("token", &new.name);
        grantable(&operation, &new)?;
        let token = random_token().map_err(|_| Problem::internal())?;
        let digest = Digest::of(token.as_bytes());
        let info = state.store().await?.create_token(&new, digest, &operation.actor()).await?;
        operation.note_number("tokenId", info.id);
        Ok((StatusCode::CREATED, Json(CreatedToken { token, info })).into_response())
    }
    .await;
    Ok(operation.end(answer))
}

/// Revokes a token: every server of the store refuses it within a second, and ends its streams
#[utoipa::path(delete, path = "/tokens/{id}", tag = "tokens", security(("token" = ["library:admin"])),
    params(("id" = u64, Path)), responses((status = 200, body = TokenInfo)))]
pub(super) async fn revoke_token(
    State(state): State<ApiState>,
    caller: ApiCaller,
    ApiPath(id): ApiPath<u64>,
) -> Result<Response, Problem> {
    let mut operation = state.begin(caller.0, "api/revoke-token", &[Scope::Admin])?;
    operation.note_number("tokenId", id);
    let answer = async {
        let info = state.store().await?.revoke_token(id, &operation.actor()).await?;
        operation.note("token", &info.name);
        Ok(Json(info).into_response())
    }
    .await;
    Ok(operation.end(answer))
}

fn grantable(operation: &Operation, new: &NewToken) -> Result<(), Problem> {
    let reserved = [Scope::Review.as_str(), Scope::Admin.as_str()];
    let refused = |what: String| Err(Problem::not_permitted("not-grantable", what));
    for scope in new.scopes.iter().filter(|_| operation.has_sign_in()) {
        if reserved.contains(&scope.as_str()) {
            return refused(format!(
                "A token with the scope {scope} is created by who has the store: promptshelf token create --store STORE"
            ));
        }
        if !operation.has_word(scope) {
            return refused(format!("You cannot give the scope {scope}, which your own sign-in does not have"));
        }
    }
    for role in &new.roles {
        if !operation.has_role(std::slice::from_ref(role)) {
            return refused(format!("You cannot give the role {role}, which you do not have"));
        }
    }
    Ok(())
}

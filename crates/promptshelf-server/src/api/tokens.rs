//! Tokens of the store, with which callers sign in to every server that uses it.
//!
//! A caller can give a token only what the caller's own one has, and neither reviews nor administration: an administrator
//! could otherwise approve own changes under another name. What a scope includes counts as itself. Such tokens come from who has the store itself. So do tokens
//! with the name of someone else, which rules of access and records would take for that person.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use promptshelf_store::{Digest, NewToken, StoreError, taken};
use promptshelf_wire::{CreatedToken, Scope, op};

use super::{
    ApiState,
    call::{Answer, Call, Context, Operations, Trust},
    problem::Problem,
    request::{MAX_LIMIT, Newest},
};
use crate::http::auth::random_token;

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(list_tokens).on(create_token).on(revoke_token)
}

async fn list_tokens(call: Call<op::ListTokens>) -> Answer {
    let tokens = call.store().await?.tokens().await?;
    call.answer(&call.paging.of_sorted(tokens, MAX_LIMIT, |token| Newest(token.id))?)
}

async fn create_token(call: Call<op::CreateToken>) -> Answer {
    let new: NewToken = call.body().await?;
    call.note("token", &new.name);
    grantable(&call, &new)?;
    let by_operator = call.trust() == Trust::Operator;
    let refused = || Problem::not_permitted("not-grantable", taken(&new.name));
    if !by_operator && call.state.site.is_reserved(&new.name) {
        return Err(refused());
    }
    let token = random_token().map_err(|_| Problem::internal())?;
    let digest = Digest::of(token.as_bytes());
    let info = call.store().await?.create_token(&new, digest, &call.actor(), by_operator).await;
    let info = info.map_err(|error| match error {
        StoreError::State { .. } => refused(),
        error => error.into(),
    })?;
    call.note_number("tokenId", info.id);
    // Without a tag, which would be a digest of the token.
    Ok((StatusCode::CREATED, Json(CreatedToken { token, info })).into_response())
}

async fn revoke_token(call: Call<op::RevokeToken>) -> Answer {
    let id = call.path.id;
    call.note_number("tokenId", id);
    let info = call.store().await?.revoke_token(id, &call.actor()).await?;
    call.note("token", &info.name);
    call.answer(&info)
}

fn grantable(call: &Context, new: &NewToken) -> Result<(), Problem> {
    let reserved = [Scope::Review.as_str(), Scope::Admin.as_str()];
    let refused = |what: String| Err(Problem::not_permitted("not-grantable", what));
    let scopes = if call.trust() == Trust::SignIn { call.state.site.implied(&new.scopes) } else { Vec::new() };
    for scope in &scopes {
        if reserved.contains(&scope.as_str()) {
            return refused(format!(
                "A token with the scope {scope} is created by who has the store: promptshelf token create --store STORE"
            ));
        }
        if !call.grants(scope) {
            return refused(format!("You cannot give the scope {scope}, which your own sign-in does not have"));
        }
    }
    for role in &new.roles {
        if !call.has_role(std::slice::from_ref(role)) {
            return refused(format!("You cannot give the role {role}, which you do not have"));
        }
    }
    Ok(())
}

//! Callers and responses of the page's API.

use axum::{
    Extension,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use promptshelf_mcp::http::RequiredScopes;
use promptshelf_service::{Caller, Rejection, whole_seconds};
use serde_json::Value;

/// The authenticated caller, if the middleware has put one into the request.
pub(super) type AuthenticatedCaller = Option<Extension<Caller>>;

pub(super) fn caller(authenticated: AuthenticatedCaller) -> Caller {
    authenticated.map_or_else(Caller::anonymous, |Extension(caller)| caller)
}

pub(super) fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

pub(super) fn rejected(rejection: &Rejection) -> Response {
    let status = match rejection {
        Rejection::UnknownPrompt { .. } => StatusCode::NOT_FOUND,
        Rejection::InsufficientScope { .. } => StatusCode::FORBIDDEN,
        Rejection::TooManyRequests { .. } | Rejection::TooManyAtOnce { .. } => StatusCode::TOO_MANY_REQUESTS,
        Rejection::NotRecorded => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = (status, format!("{rejection}.\n")).into_response();
    match rejection {
        Rejection::InsufficientScope { scopes } => {
            response.extensions_mut().insert(RequiredScopes(scopes.clone()));
        }
        Rejection::TooManyRequests { retry_after } => {
            let seconds = HeaderValue::from(whole_seconds(*retry_after));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        _ => {}
    }
    response
}

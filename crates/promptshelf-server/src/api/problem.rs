//! Problem details (RFC 9457): the body of every refusal and error.

use std::fmt;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use promptshelf_mcp::http::{Denial, RequiredScopes};
use promptshelf_service::{Rejection, whole_seconds};
use promptshelf_source::InvalidTreePath;
use promptshelf_store::{Digest, Reason, StoreError};
use serde_json::Value;

use super::call::MadeChange;

const MAX_PATHS: usize = 100;

/// A refusal or an error: the body, and what is not in it.
#[derive(Clone, Debug)]
pub(super) struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    body: promptshelf_wire::Problem,
    extra: Extra,
}

/// The parts of a refusal that are not in its body.
#[derive(Clone, Debug, Default)]
struct Extra {
    name: &'static str,
    challenge: Option<HeaderValue>,
    retry_after: Option<u64>,
    scopes: Option<RequiredScopes>,
    /// The error of the store, for callers in this process.
    store: Option<StoreError>,
}

impl Problem {
    /// Creates a problem. `name` is the stable part of its `type`, and its outcome in the audit.
    pub(super) fn new(
        status: StatusCode,
        name: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Problem {
        let body = promptshelf_wire::Problem::new(status.as_u16(), name, title, detail);
        Problem(Box::new(Inner { body, extra: Extra { name, ..Extra::default() } }))
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "invalid-request", "The request is invalid", detail)
    }

    /// The refusal of a path, with the reason in words of the page.
    pub(super) fn invalid_path(what: impl fmt::Display, reason: &InvalidTreePath) -> Problem {
        let mut problem = Problem::invalid(format!("{what}: {reason}"));
        problem.0.body.reasons = vec![Reason::new(reason.code(), reason.to_string())];
        problem
    }

    pub(super) fn invalid_cursor() -> Problem {
        Rejection::InvalidCursor.into()
    }

    pub(super) fn not_found(what: &str) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "Not found", format!("{what} does not exist"))
    }

    pub(super) fn exists(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, "exists", "The file exists", detail)
    }

    pub(super) fn not_permitted(name: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, name, "Not permitted", detail)
    }

    /// The refusal of a caller without a role.
    pub(super) fn insufficient_role(reason: Reason) -> Problem {
        let mut problem = Problem::not_permitted("insufficient-role", reason.text.clone());
        problem.0.body.reasons = vec![reason];
        problem
    }

    /// The refusal of a caller without a scope. The challenge names all scopes of the operation.
    pub(super) fn insufficient_scope(scopes: Vec<String>) -> Problem {
        let detail = Rejection::InsufficientScope { scopes: scopes.clone() }.to_string();
        let mut problem = Problem::new(StatusCode::FORBIDDEN, "insufficient-scope", "Insufficient scope", detail);
        problem.0.extra.scopes = Some(RequiredScopes(scopes));
        problem
    }

    pub(super) fn precondition_required(header: &str) -> Problem {
        Problem::new(
            StatusCode::PRECONDITION_REQUIRED,
            "precondition-required",
            "A precondition is required",
            format!("The header {header} is missing: send the ETag of the version that this request changes"),
        )
    }

    pub(super) fn precondition_failed(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::PRECONDITION_FAILED, "precondition-failed", "The precondition is not met", detail)
    }

    pub(super) fn internal() -> Problem {
        let detail = "Internal error; see the server's log";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", "Internal error", detail)
    }

    pub(super) fn changed(detail: impl Into<String>, content: Value, digest: Digest) -> Problem {
        let mut problem = Problem::new(StatusCode::PRECONDITION_FAILED, "changed", "The file has changed", detail);
        (problem.0.body.content, problem.0.body.digest) = (Some(content), Some(digest));
        problem
    }

    pub(super) fn foreign(reason: &str) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "foreign-request", "The host or origin is not allowed", reason)
    }

    pub(super) fn denied(denial: &Denial) -> Problem {
        let (name, title) = match denial.status {
            StatusCode::UNAUTHORIZED => ("sign-in-required", "Sign-in required"),
            StatusCode::FORBIDDEN => ("insufficient-scope", "Insufficient scope"),
            StatusCode::PAYLOAD_TOO_LARGE => ("too-large", "The body is too large"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ("unsupported-media-type", "Unsupported media type"),
            StatusCode::TOO_MANY_REQUESTS => ("too-many-requests", "Too many requests"),
            StatusCode::SERVICE_UNAVAILABLE => ("unavailable", "Unavailable"),
            _ => ("invalid-request", "The request is invalid"),
        };
        let mut problem = Problem::new(denial.status, name, title, denial.message.clone());
        problem.0.extra.challenge.clone_from(&denial.challenge);
        problem.0.extra.retry_after = denial.retry_after;
        problem
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Problem {
        self.0.extra.retry_after = Some(seconds);
        self
    }

    pub(super) fn name(&self) -> &'static str {
        self.0.extra.name
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Problem {
        let (status, title) = match &rejection {
            Rejection::UnknownPrompt { .. } => (StatusCode::NOT_FOUND, "Not found"),
            Rejection::InvalidArguments { .. } | Rejection::UnusableArguments { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "The arguments are invalid")
            }
            Rejection::Unavailable { .. } => (StatusCode::SERVICE_UNAVAILABLE, "Unavailable"),
            Rejection::InvalidCursor => (StatusCode::BAD_REQUEST, "The request is invalid"),
            Rejection::InsufficientScope { scopes } => return Problem::insufficient_scope(scopes.clone()),
            Rejection::TooManyRequests { .. } | Rejection::TooManyAtOnce { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "Too many requests")
            }
            Rejection::NotRecorded => (StatusCode::SERVICE_UNAVAILABLE, "Requests cannot be recorded"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
        };
        let mut problem = Problem::new(status, rejection.code(), title, rejection.to_string());
        if let Rejection::TooManyRequests { retry_after } = rejection {
            problem.0.extra.retry_after = Some(whole_seconds(retry_after));
        }
        problem
    }
}

/// Details of the server are logged, and left out of the answer.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let mut problem = Problem::of_store(&error);
        problem.0.extra.store = Some(error);
        problem
    }
}

impl Problem {
    fn of_store(error: &StoreError) -> Problem {
        let detail = error.to_string();
        let failed = |status, name, title, detail: &str| {
            tracing::error!("the API cannot use the store: {error}");
            Problem::new(status, name, title, detail)
        };
        match error {
            StoreError::InvalidChannel { .. }
            | StoreError::InvalidRevision { .. }
            | StoreError::InvalidInput { .. } => Problem::invalid(detail),
            StoreError::NotFound { what } => Problem::not_found(what),
            StoreError::Changed { .. } => Problem::precondition_failed(detail),
            StoreError::Conflict { paths, revision } => {
                let mut problem = Problem::new(StatusCode::CONFLICT, "conflict", "Changed by someone else", detail);
                problem.0.body.paths = Some(paths.iter().take(MAX_PATHS).cloned().collect());
                problem.0.body.revision = Some(*revision);
                problem
            }
            StoreError::Unchanged { .. } => {
                Problem::new(StatusCode::CONFLICT, "unchanged", "Nothing has to be changed", detail)
            }
            StoreError::State { .. } => {
                Problem::new(StatusCode::CONFLICT, "state", "The state does not permit this", detail)
            }
            StoreError::Policy { lacks, reasons } => {
                let mut problem =
                    Problem::new(StatusCode::CONFLICT, "policy", "The policy of the channel is not met", detail);
                (problem.0.body.lacks, problem.0.body.reasons) = (Some(lacks.clone()), reasons.clone());
                problem
            }
            StoreError::Unreachable { .. } => {
                let detail = "The store cannot be reached; nothing was changed, try again later";
                let mut problem =
                    failed(StatusCode::SERVICE_UNAVAILABLE, "store-unreachable", "The store cannot be reached", detail);
                problem.0.extra.retry_after = Some(5);
                problem
            }
            // Not 507: that is for an operator, and this is for the caller.
            StoreError::Quota { .. } => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "quota", "Too much is not published", detail)
            }
            StoreError::Full { .. } => failed(
                StatusCode::INSUFFICIENT_STORAGE,
                "store-full",
                "The disk of the store is full",
                "Nothing was changed; an operator has to make space on the disk of the store",
            ),
            StoreError::NewerSchema { .. } => {
                failed(StatusCode::SERVICE_UNAVAILABLE, "store-newer", "The store was made by a newer release", &detail)
            }
            StoreError::Corrupt { .. } => {
                failed(StatusCode::INTERNAL_SERVER_ERROR, "corrupt", "A content of the store is corrupt", &detail)
            }
            _ => failed(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal-error",
                "Internal error",
                "The store refused the operation; see the server's log",
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Only a map with keys that are not text fails.
        let body = serde_json::to_vec(&self.0.body).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = self.0.extra.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.0.extra.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(scopes) = self.0.extra.scopes {
            response.extensions_mut().insert(scopes);
        }
        if let Some(error) = self.0.extra.store {
            response.extensions_mut().insert(error);
        }
        response
    }
}

/// The answer in place of one whose record may be missing.
pub(crate) fn not_recorded(response: &Response) -> Response {
    if response.extensions().get::<MadeChange>().is_none() {
        return Problem::from(Rejection::NotRecorded).into_response();
    }
    let detail =
        "The change was made, but the audit cannot record its end: read the present state before you repeat it";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-recorded", "Requests cannot be recorded", detail).into_response()
}

/// The answer to a request that was not answered in time.
pub(crate) fn timed_out(detail: String) -> Response {
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "timed-out", "Not answered in time", detail).into_response()
}

/// The answer at a path that does not exist.
pub(super) async fn unknown() -> Response {
    Problem::not_found("This path of the API").into_response()
}

/// The answer to a method that a path does not have.
pub(super) async fn not_allowed() -> Response {
    let detail = "The path has other methods; the header Allow and /api/v1/openapi.json list them";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", detail).into_response()
}

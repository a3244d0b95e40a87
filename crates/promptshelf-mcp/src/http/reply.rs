//! HTTP responses.

use std::borrow::Cow;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{self, HeaderName},
};
use promptshelf_service::Caller;

use super::{Events, body::HttpBody};
use crate::{
    dispatch::Answer,
    error_code::{Advice, WireError, echo},
    jsonrpc::Fault,
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

static ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response extension: the scopes that a token needs for the request. Authentication turns it into a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredScopes(pub Vec<String>);

/// A response extension: the request was refused for its host or origin, whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignRequest {
    /// The host that the request names.
    pub host: String,
}

impl ForeignRequest {
    /// Returns the extension for the refusal of a request with these headers.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> ForeignRequest {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(echo);
        ForeignRequest { host: host.unwrap_or_default().to_owned() }
    }
}

/// A request extension: the request is to be refused. The endpoint sends the refusal, and not the authentication that
/// decided on it, because a browser may read the response only after its origin has been checked.
#[derive(Clone, Debug)]
pub struct Denial {
    /// The status of the response.
    pub status: StatusCode,
    /// The message, as a sentence.
    pub message: Cow<'static, str>,
    /// The value of `WWW-Authenticate`.
    pub challenge: Option<HeaderValue>,
    /// The value of `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
}

impl Denial {
    /// Creates a refusal without challenge and retry time.
    #[must_use]
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Denial {
        Denial { status, message: message.into(), challenge: None, retry_after: None }
    }
}

pub(super) fn add_request_id(headers: &mut HeaderMap, caller: &Caller) {
    if let Some(id) = caller.request_id().and_then(|id| HeaderValue::try_from(id).ok()) {
        headers.insert(REQUEST_ID.clone(), id);
    }
}

pub(super) fn denial(denial: &Denial) -> (Response<HttpBody>, &'static str) {
    let refused = refusal(denial.status, &*denial.message);
    let mut response = fault(&refused);
    if let Some(challenge) = &denial.challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    if let Some(seconds) = denial.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    (response, refused.error.word())
}

/// Creates a refusal that does not depend on the content of a message.
pub(super) fn refusal(status: StatusCode, message: impl Into<String>) -> Fault {
    WireError { status: status.as_u16(), ..WireError::invalid_request(message) }.into()
}

pub(super) fn json(answer: Answer) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::full(answer.body));
    match answer.advice {
        Some(Advice::Scopes(scopes)) => drop(response.extensions_mut().insert(RequiredScopes(scopes))),
        Some(Advice::RetryAfter(seconds)) => {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        None => {}
    }
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    describe(response.headers_mut(), "application/json");
    response
}

pub(super) fn fault(fault: &Fault) -> Response<HttpBody> {
    let mut response = json(Answer::error(fault.id.as_ref(), &fault.error));
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, METHODS);
    }
    response
}

/// Adds the accepted content codings to a refusal of another one (RFC 9110, 12.5.3). A refusal for another reason must
/// not have them.
pub(super) fn accept_no_coding(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

pub(super) fn events(events: Events) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::events(events));
    describe(response.headers_mut(), "text/event-stream");
    // A proxy that buffers the whole stream would never pass it on.
    response.headers_mut().insert(ACCEL_BUFFERING.clone(), HeaderValue::from_static("no"));
    response
}

/// Returns the response to a message that requires none.
pub(super) fn accepted() -> Response<HttpBody> {
    empty(StatusCode::ACCEPTED)
}

/// Returns the response to a request that has been carried out and needs no message.
pub(super) fn no_content() -> Response<HttpBody> {
    empty(StatusCode::NO_CONTENT)
}

/// Returns the response to `OPTIONS`.
pub(super) fn options() -> Response<HttpBody> {
    let mut response = no_content();
    response.headers_mut().insert(header::ALLOW, METHODS);
    response
}

fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::full(Bytes::new()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn describe(headers: &mut HeaderMap, content_type: &'static str) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // The response for one caller may be hidden from another.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

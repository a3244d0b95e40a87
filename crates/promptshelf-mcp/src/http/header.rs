//! What the headers of a request say, and whether the body says the same.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderMap,
    header::{self, HeaderName},
};
use promptshelf_service::TraceContext;
use serde_json::json;

use crate::{
    error_code::WireError,
    request::{Params, RequestMeta},
    revision::Revision,
};

static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

const EVENT_STREAM: &str = "text/event-stream";

/// The trace that the headers say a request belongs to (W3C Trace Context).
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceContext<'_>> {
    let parent = once(headers, &TRACEPARENT).ok()??;
    // It may come in pieces.
    let states: Vec<&str> = headers.get_all(&TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
    Some(TraceContext { parent: parent.into(), state: (!states.is_empty()).then(|| states.join(",").into()) })
}

/// A header that is there at most once. Which of two counts nobody can know:
/// one might be checked here and the other believed elsewhere.
fn once<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, WireError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(WireError::header_mismatch(format!("The header {name} is there twice")));
    }
    let value = value.to_str().map_err(|_| {
        WireError::header_mismatch(format!(
            "The header {name} holds characters that no header can; they are to be encoded"
        ))
    })?;
    Ok(Some(value.trim_matches([' ', '\t'])))
}

fn required<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, WireError> {
    once(headers, name)?.ok_or_else(|| WireError::header_mismatch(format!("The header {name} is missing")))
}

fn mismatch(name: &HeaderName) -> WireError {
    WireError::header_mismatch(format!("The header {name} and the body say different things"))
}

/// Whether the headers say that a request is of the modern era.
pub(super) fn name_modern_revision(headers: &HeaderMap) -> bool {
    headers.get_all(&PROTOCOL_VERSION).iter().any(|version| {
        version.to_str().is_ok_and(|version| Revision::parse(version.trim()).is_some_and(Revision::is_modern))
    })
}

/// The revision of a modern request: header and body have to agree on it.
pub(super) fn modern_revision(headers: &HeaderMap, meta: &RequestMeta<'_>) -> Result<Revision, WireError> {
    let header = required(headers, &PROTOCOL_VERSION)?;
    let version = meta.require()?;
    if version != header {
        return Err(mismatch(&PROTOCOL_VERSION));
    }
    Revision::parse(&version).filter(|known| known.is_modern()).ok_or_else(|| WireError::unsupported_version(&version))
}

/// Checks a modern notification, for which the protocol makes no rules: what
/// there is has to be right, and of what is missing only the version is missed.
pub(super) fn check_modern_notification(
    headers: &HeaderMap,
    meta: &RequestMeta<'_>,
    method: &str,
) -> Result<(), WireError> {
    let version = required(headers, &PROTOCOL_VERSION)?;
    if meta.require().is_ok_and(|said| said != version) {
        return Err(mismatch(&PROTOCOL_VERSION));
    }
    if !Revision::parse(version).is_some_and(Revision::is_modern) {
        return Err(WireError::unsupported_version(version));
    }
    match once(headers, &METHOD)? {
        Some(said) if said != method => Err(mismatch(&METHOD)),
        _ => Ok(()),
    }
}

/// The revision of a legacy request.
pub(super) fn legacy_revision(headers: &HeaderMap) -> Result<Revision, WireError> {
    // No code of the modern era here: a client would take it for a sign of one.
    let version = once(headers, &PROTOCOL_VERSION).map_err(|error| WireError::invalid_request(error.message))?;
    let Some(version) = version else { return Ok(Revision::UNNAMED) };
    Revision::parse(version).filter(|known| !known.is_modern()).ok_or_else(|| {
        let supported = Revision::ALL.map(Revision::as_str);
        let message = format!("Unsupported protocol version; this server speaks {}", supported.join(", "));
        WireError { data: Some(json!({ "supported": supported })), ..WireError::invalid_request(message) }
    })
}

/// Checks that a modern request's header names its method.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), WireError> {
    if required(headers, &METHOD)? == method { Ok(()) } else { Err(mismatch(&METHOD)) }
}

/// Checks that a modern request's header names what the request is about.
pub(super) fn check_name(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), WireError> {
    let name = match method {
        "prompts/get" => params.name(),
        "resources/read" => params.uri(),
        _ => return Ok(()),
    };
    // A body that names nothing is refused for that, whatever the header says.
    let name = name?;
    let said = decoded(required(headers, &NAME)?)
        .ok_or_else(|| WireError::header_mismatch(format!("The header {NAME} cannot be decoded")))?;
    if said == name { Ok(()) } else { Err(mismatch(&NAME)) }
}

/// What a header's value stands for: itself, or UTF-8 in Base64 between markers.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}

/// Whether a body is JSON by its own account.
pub(super) fn says_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the client takes one of the two things that a request is answered with.
pub(super) fn accepts_an_answer(headers: &HeaderMap) -> bool {
    let ranges = ["application/json", EVENT_STREAM, "*/*", "application/*", "text/*"];
    !headers.contains_key(header::ACCEPT)
        || accepted(headers).any(|range| ranges.iter().any(|known| range.eq_ignore_ascii_case(known)))
}

/// Whether the client asks for a stream by name. `*/*` is not enough: that is
/// what a browser or a command line tool says, which would wait forever.
pub(super) fn asks_for_events(headers: &HeaderMap) -> bool {
    accepted(headers).any(|range| range.eq_ignore_ascii_case(EVENT_STREAM))
}

/// The media ranges of `Accept`, without those that are refused by a weight of zero.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next()?;
        let refused = parts.any(|parameter| {
            let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32))
        });
        (!refused).then_some(essence)
    })
}

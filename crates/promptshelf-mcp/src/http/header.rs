//! Protocol headers of a request, and their comparison with the body.

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

/// Returns the trace of the headers (W3C Trace Context).
pub(super) fn trace(headers: &HeaderMap) -> Option<TraceContext<'_>> {
    let parent = once(headers, &TRACEPARENT).ok()??;
    // The field may be split into several headers.
    let states: Vec<&str> = headers.get_all(&TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
    Some(TraceContext { parent: parent.into(), state: (!states.is_empty()).then(|| states.join(",").into()) })
}

/// Returns the value of a header that may occur once. A duplicate is refused: this server might check one of the two
/// while a proxy uses the other.
fn once<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, WireError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(WireError::header_mismatch(format!("The header {name} occurs twice")));
    }
    let value = value.to_str().map_err(|_| {
        WireError::header_mismatch(format!(
            "The header {name} has invalid characters; encode the value as =?base64?…?="
        ))
    })?;
    Ok(Some(value.trim_matches([' ', '\t'])))
}

fn required<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, WireError> {
    once(headers, name)?.ok_or_else(|| WireError::header_mismatch(format!("The header {name} is missing")))
}

fn mismatch(name: &HeaderName) -> WireError {
    WireError::header_mismatch(format!("The header {name} differs from the body"))
}

pub(super) fn names_modern_revision(headers: &HeaderMap) -> bool {
    headers.get_all(&PROTOCOL_VERSION).iter().any(|version| {
        version.to_str().is_ok_and(|version| Revision::parse(version.trim()).is_some_and(Revision::is_modern))
    })
}

/// Returns the revision of a modern request, on which header and body must agree.
pub(super) fn modern_revision(headers: &HeaderMap, meta: &RequestMeta<'_>) -> Result<Revision, WireError> {
    let header = required(headers, &PROTOCOL_VERSION)?;
    let version = meta.require()?;
    if version != header {
        return Err(mismatch(&PROTOCOL_VERSION));
    }
    Revision::parse(&version).filter(|known| known.is_modern()).ok_or_else(|| WireError::unsupported_version(&version))
}

/// Checks a modern notification, for which the protocol defines no rules: the version is required, and other headers
/// must be correct if present.
pub(super) fn check_modern_notification(
    headers: &HeaderMap,
    meta: &RequestMeta<'_>,
    method: &str,
) -> Result<(), WireError> {
    let version = required(headers, &PROTOCOL_VERSION)?;
    if meta.require().is_ok_and(|in_body| in_body != version) {
        return Err(mismatch(&PROTOCOL_VERSION));
    }
    if !Revision::parse(version).is_some_and(Revision::is_modern) {
        return Err(WireError::unsupported_version(version));
    }
    match once(headers, &METHOD)? {
        Some(value) if value != method => Err(mismatch(&METHOD)),
        _ => Ok(()),
    }
}

pub(super) fn legacy_revision(headers: &HeaderMap) -> Result<Revision, WireError> {
    // Not an error code of the modern era, which a client would take for a modern server.
    let version = once(headers, &PROTOCOL_VERSION).map_err(|error| WireError::invalid_request(error.message))?;
    let Some(version) = version else { return Ok(Revision::UNNAMED) };
    Revision::parse(version).filter(|known| !known.is_modern()).ok_or_else(|| {
        let supported = Revision::ALL.map(Revision::as_str);
        let message = format!("Unsupported protocol version; expected one of {}", supported.join(", "));
        WireError { data: Some(json!({ "supported": supported })), ..WireError::invalid_request(message) }
    })
}

pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), WireError> {
    if required(headers, &METHOD)? == method { Ok(()) } else { Err(mismatch(&METHOD)) }
}

pub(super) fn check_name(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), WireError> {
    let name = match method {
        "prompts/get" | "tools/call" => params.name(),
        "resources/read" => params.uri(),
        _ => return Ok(()),
    };
    // A body without a name is refused for that reason, whatever the header holds.
    let name = name?;
    let value = decoded(required(headers, &NAME)?)
        .ok_or_else(|| WireError::header_mismatch(format!("The header {NAME} cannot be decoded")))?;
    if value == name { Ok(()) } else { Err(mismatch(&NAME)) }
}

/// Decodes a header value: plain, or Base64 of UTF-8 between markers.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(value));
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}

pub(super) const JSON: &str = "application/json";

pub(super) fn has_body_of(headers: &HeaderMap, media_type: &str) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(media_type)
}

/// Returns whether the body has a content coding such as gzip. None is decoded: it would let a small body become a large
/// one.
pub(super) fn has_content_coding(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.to_str().unwrap_or("unknown").split(',')).map(str::trim);
    codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

pub(super) fn accepts_response(headers: &HeaderMap) -> bool {
    let ranges = [JSON, EVENT_STREAM, "*/*", "application/*", "text/*"];
    !headers.contains_key(header::ACCEPT)
        || accepted(headers).any(|range| ranges.iter().any(|known| range.eq_ignore_ascii_case(known)))
}

/// Returns whether the client requests a stream explicitly. `*/*` is not enough: browsers and command line tools send
/// it, and would wait forever.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    accepted(headers).any(|range| range.eq_ignore_ascii_case(EVENT_STREAM))
}

/// Returns the media ranges of `Accept` with a weight above zero.
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

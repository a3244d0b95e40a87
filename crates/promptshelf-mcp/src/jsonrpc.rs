//! JSON-RPC 2.0 messages: parsing with bounds, and encoding.
//!
//! A message is parsed without copying: strings are borrowed from its bytes. An ID is kept as it was written, so that
//! it is returned digit for digit.
//!
//! Elsewhere: the members of `params` (`request`), and results (`to_wire`).

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    error_code::WireError,
    json::{self, present, write},
    request::{Params, RequestMeta},
};

const MAX_DEPTH: usize = 128;

const MAX_BATCH: usize = 1_000;

/// Maximum total size of the responses to a batch, in bytes, so that a small batch cannot use up the memory.
pub(crate) const MAX_BATCH_ANSWER: usize = 32 << 20;

#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    One(Message<'a>),
    /// Only revision 2025-03-26 has batches; the transports check it.
    Batch(Vec<Result<Message<'a>, Fault>>),
}

#[derive(Debug)]
pub(crate) enum Message<'a> {
    Request(Request<'a>),
    Notification(Notification<'a>),
    Response(Reply<'a>),
}

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

/// A message without a response.
#[derive(Debug)]
pub(crate) struct Notification<'a> {
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) id: Option<RequestId>,
    /// `None` if the client responded with an error.
    pub(crate) result: Option<&'a RawValue>,
}

/// A request ID exactly as it was written: a JSON string or integer, also as `1.0`.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct RequestId(Box<RawValue>);

impl RequestId {
    /// Parses the value of `id`.
    pub(crate) fn parse(raw: &RawValue) -> Option<RequestId> {
        let text = raw.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_written_as_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_integer = || text.parse().is_ok_and(|number: f64| number.is_finite() && number.fract() == 0.0);
        (text.starts_with('"') || is_written_as_integer || is_integer()).then(|| RequestId(raw.to_owned()))
    }

    pub(crate) fn as_json(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &RequestId) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.as_json().hash(hasher);
    }
}

/// An invalid message: the error, and the ID to respond to.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: WireError,
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Fault {
        Fault { id: None, error }
    }
}

/// The members of any message. `P` is the type of `params`.
#[derive(Deserialize)]
struct Envelope<'a, P> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    /// `null` is the same as no `params`.
    params: Option<P>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

impl<'a, P> Envelope<'a, P> {
    fn map<Q>(self, with: impl FnOnce(P) -> Q) -> Envelope<'a, Q> {
        let Envelope { jsonrpc, id, method, params, result, error } = self;
        Envelope { jsonrpc, id, method, params: params.map(with), result, error }
    }
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Incoming<'_>, Fault> {
    if is_too_deep(bytes) {
        return Err(WireError::parse("The JSON is nested too deeply").into());
    }
    let text = str::from_utf8(bytes).map_err(|_| WireError::parse("Invalid JSON"))?;
    if !text.trim_ascii_start().starts_with('[') {
        return parse_one(text).map(Incoming::One);
    }
    let Batch(batch) = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    if batch.is_empty() {
        return Err(WireError::invalid_request("A batch must not be empty").into());
    }
    if batch.len() > MAX_BATCH {
        return Err(
            WireError::invalid_request(format!("Too many messages in a batch; the limit is {MAX_BATCH}")).into()
        );
    }
    Ok(Incoming::Batch(batch.into_iter().map(|message| parse_one(message.get())).collect()))
}

/// The messages of a batch. Reads at most one more than allowed: a body of commas alone would need many times its own
/// size.
struct Batch<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Batch<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Batch<'a>, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<Self::Value, A::Error> {
                let mut batch = Vec::new();
                while batch.len() <= MAX_BATCH {
                    match messages.next_element()? {
                        Some(message) => batch.push(message),
                        None => return Ok(batch),
                    }
                }
                while messages.next_element::<IgnoredAny>()?.is_some() {}
                Ok(batch)
            }
        }
        deserializer.deserialize_seq(Messages).map(Batch)
    }
}

fn unreadable(error: &serde_json::Error) -> WireError {
    match error.classify() {
        serde_json::error::Category::Data => WireError::invalid_request("Invalid JSON-RPC 2.0 message"),
        _ => WireError::parse("Invalid JSON"),
    }
}

/// Reads a message together with its `params`. If only they cannot be read, the response still carries the ID.
fn envelope(text: &str) -> Result<Envelope<'_, Params<'_>>, serde_json::Error> {
    serde_json::from_str(text).or_else(|_| {
        serde_json::from_str(text).map(|envelope: Envelope<'_, IgnoredAny>| envelope.map(|_| Params::malformed()))
    })
}

fn parse_one(text: &str) -> Result<Message<'_>, Fault> {
    // serde would read an envelope from an array, one member after the other.
    if text.trim_ascii_start().starts_with('[') {
        return Err(WireError::invalid_request("A message must be an object").into());
    }
    let Envelope { jsonrpc, id, method, params, result, error } = envelope(text).map_err(|error| unreadable(&error))?;
    let params = params.unwrap_or_default();
    if method.is_none()
        && let Some(result) = outcome(result, error)
    {
        // A response is never answered, so that two sides do not answer each other.
        return Ok(Message::Response(Reply { id: id.and_then(RequestId::parse), result }));
    }
    let id = match id.map(RequestId::parse) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => return Err(WireError::invalid_request("`id` must be a string or an integer").into()),
    };
    let invalid = |id: Option<RequestId>, message: &str| Fault { id, error: WireError::invalid_request(message) };
    if jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
    }
    let Some(method) = method else { return Err(invalid(id, "`method` is missing")) };
    let Some(method) = json::text(method) else { return Err(invalid(id, "`method` must be a string")) };
    match id {
        // A notification with an ID is neither a notification nor a request.
        Some(id) if method.starts_with("notifications/") => {
            Err(invalid(Some(id), "A notification must not have an `id`"))
        }
        Some(id) => Ok(Message::Request(Request { id, method, params })),
        None => Ok(Message::Notification(Notification { method, params })),
    }
}

/// Returns the result of a response, `None` inside for a failure. Some libraries write both members, one of them as `null`.
fn outcome<'a>(result: Option<&'a RawValue>, error: Option<&RawValue>) -> Option<Option<&'a RawValue>> {
    match (result, error) {
        (Some(result), None) => Some(Some(result)),
        (None, Some(_)) => Some(None),
        (Some(result), Some(error)) if error.get() == "null" => Some(Some(result)),
        (Some(result), Some(_)) if result.get() == "null" => Some(None),
        _ => None,
    }
}

/// Returns whether arrays and objects are nested too deeply. The parser skips unused values without recursion, so
/// this bounds the values that are decoded later, not the parser's stack.
fn is_too_deep(bytes: &[u8]) -> bool {
    // Fast path for nearly all messages: the depth cannot exceed the number of openings in places where a value can
    // begin. Those of program code in a string are mostly elsewhere.
    let begins_value = |at: &usize| {
        let before = bytes[..*at].trim_ascii_end().last();
        before.is_none_or(|before| matches!(before, b'{' | b'[' | b':' | b','))
    };
    if memchr::memchr2_iter(b'{', b'[', bytes).filter(begins_value).nth(MAX_DEPTH).is_none() {
        return false;
    }
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            // Strings are skipped: they may be long.
            b'"' => at = end_of_string(bytes, at),
            b'{' | b'[' if depth == MAX_DEPTH => return true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // The escaped byte.
        at += 1;
    }
    bytes.len()
}

/// Checks that messages can be one batch: 2025-03-26 excludes `initialize` from batches, and 2026-07-28 has none. An
/// invalid batch is refused as a whole, because no revision defines the meaning of the rest.
pub(crate) fn check_batch(batch: &[Result<Message<'_>, Fault>]) -> Result<(), WireError> {
    for message in batch.iter().flatten() {
        let Message::Request(request) = message else { continue };
        if request.method == "initialize" {
            return Err(WireError::invalid_request("`initialize` must not be part of a batch"));
        }
        if request.params.check().and_then(|()| request.params.meta()).is_ok_and(RequestMeta::is_modern) {
            return Err(WireError::no_batches());
        }
    }
    Ok(())
}

/// Starts the response to a request. The result is written after it, and then [`close`] is called.
pub(crate) fn open_result(id: &RequestId) -> Vec<u8> {
    // The size of the result is not known yet; its writer reserves the space.
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_json().as_bytes());
    out.extend_from_slice(br#","result":"#);
    out
}

/// Ends a response that [`open_result`] started.
pub(crate) fn close(mut out: Vec<u8>) -> Bytes {
    out.push(b'}');
    out.into()
}

/// Encodes an error. Without an ID if that of the request could not be parsed: `null`, as in plain JSON-RPC, is in no
/// revision's schema.
pub(crate) fn error(id: Option<&RequestId>, error: &WireError) -> Bytes {
    #[derive(Serialize)]
    struct Body<'a> {
        code: i32,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a serde_json::Value>,
    }
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        out.extend_from_slice(id.as_json().as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(br#""error":"#);
    write(&mut out, &Body { code: error.code, message: &error.message, data: error.data.as_ref() });
    close(out)
}

/// Joins responses to a batch; `None` for an empty list.
pub(crate) fn batch(answers: &[Bytes]) -> Option<Bytes> {
    (!answers.is_empty()).then(|| [b"[", answers.join(&b","[..]).as_slice(), b"]"].concat().into())
}

pub(crate) fn request(id: &str, method: &str, params: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct Message<'a, P> {
        jsonrpc: &'static str,
        id: &'a str,
        method: &'a str,
        params: &'a P,
    }
    let mut out = Vec::with_capacity(1_024);
    write(&mut out, &Message { jsonrpc: "2.0", id, method, params });
    out.into()
}

pub(crate) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write(&mut out, method);
    out.extend_from_slice(br#","params":"#);
    write(&mut out, params);
    close(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn null_instead_of_params_is_the_same_as_none() {
        let given = |params: &str| {
            let message = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"{params}}}");
            match parse(message.as_bytes()) {
                Ok(Incoming::One(Message::Request(request))) => request.params.check().is_ok(),
                _ => false,
            }
        };
        assert!(given("") && given(",\"params\":null") && given(",\"params\":{}"));
        assert!(!given(",\"params\":[]") && !given(",\"params\":0"));
    }

    /// Two sides that answer each other's responses would never end.
    #[test]
    fn response_is_never_answered_and_null_is_no_result() {
        for (members, succeeds) in [
            (r#""id":"a","result":{},"error":null"#, true),
            (r#""id":"a","result":null,"error":{"code":1}"#, false),
            (r#""id":null,"error":{"code":-32700}"#, false),
            (r#""id":1.5,"result":{}"#, true),
        ] {
            match parse(format!("{{\"jsonrpc\":\"2.0\",{members}}}").as_bytes()) {
                Ok(Incoming::One(Message::Response(reply))) => {
                    assert_eq!(reply.result.is_some(), succeeds, "{members}");
                }
                other => panic!("{members}: {other:?}"),
            }
        }
    }

    #[test]
    fn integers_are_ids_however_they_are_written() {
        let id = |text: &str| {
            let message = format!("{{\"jsonrpc\":\"2.0\",\"id\":{text},\"method\":\"ping\"}}");
            match parse(message.as_bytes()) {
                Ok(Incoming::One(Message::Request(request))) => Some(request.id.as_json().to_owned()),
                _ => None,
            }
        };
        for text in ["0", "-1", "1.0", "1e3", "-0.0", "\"\"", "123456789012345678901234567890"] {
            assert_eq!(id(text).as_deref(), Some(text));
        }
        for text in ["1.5", "null", "true", "[]", "1e-1", "1e999"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn end_of_string_matches_reference(
            bytes in prop::collection::vec(prop_oneof![20 => Just(b'x'), 2 => Just(b'\\'), 1 => Just(b'"')], 0..150),
            begin in 0_usize..40,
        ) {
            let mut is_escaped = false;
            let end = bytes.iter().skip(begin).position(|byte| {
                let ends = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                ends
            });
            let end = end.map_or(bytes.len(), |end| begin + end + 1);
            prop_assert_eq!(end_of_string(&bytes, begin), end);
        }
    }
}

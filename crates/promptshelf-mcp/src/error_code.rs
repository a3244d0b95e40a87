//! Error codes and HTTP statuses: the one table.
//!
//! The specification mandates few statuses (2026-07-28, *Transports / Streamable HTTP*). Every other JSON-RPC error
//! has status 200, because a client may take a bare 400 for a server of the legacy era.

use promptshelf_core::Problem;
use promptshelf_service::Rejection;
use serde_json::{Value, json};

use crate::revision::{Era, Revision};

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL_ERROR: i32 = -32603;
/// Legacy revisions only; 2026-07-28 forbids it.
pub(crate) const RESOURCE_NOT_FOUND: i32 = -32002;
pub(crate) const HEADER_MISMATCH: i32 = -32020;
pub(crate) const MISSING_CAPABILITY: i32 = -32021;
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;

/// Maximum length of a caller's text in an error, in bytes.
const ECHO_BYTES: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireError {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
    pub(crate) status: u16,
    /// Whether a model can act on it: a tool call returns it in its result.
    pub(crate) is_for_model: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Advice {
    Scopes(Vec<String>),
    /// Seconds until a retry is admitted.
    RetryAfter(u64),
}

impl WireError {
    fn new(code: i32, status: u16, message: impl Into<String>) -> WireError {
        WireError { code, message: message.into(), data: None, status, is_for_model: false }
    }

    pub(crate) fn parse(message: impl Into<String>) -> WireError {
        WireError::new(PARSE_ERROR, 400, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> WireError {
        WireError::new(INVALID_REQUEST, 400, message)
    }

    /// A batch in a revision that has none.
    pub(crate) fn no_batches() -> WireError {
        WireError::invalid_request("This protocol revision has no batches")
    }

    /// An unknown method, or one of a capability that is not declared.
    pub(crate) fn method_not_found(method: &str, era: Era) -> WireError {
        let status = if era == Era::Modern { 404 } else { 200 };
        WireError::new(METHOD_NOT_FOUND, status, format!("Method not found: {}", echo(method)))
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> WireError {
        WireError::new(INVALID_PARAMS, 200, message)
    }

    pub(crate) fn for_model(message: impl Into<String>) -> WireError {
        WireError { is_for_model: true, ..WireError::invalid_params(message) }
    }

    pub(crate) fn invalid_meta(message: impl Into<String>) -> WireError {
        WireError::new(INVALID_PARAMS, 400, message)
    }

    pub(crate) fn header_mismatch(message: impl Into<String>) -> WireError {
        WireError::new(HEADER_MISMATCH, 400, message)
    }

    /// An unsupported revision. `supported` holds only those that the same request can be repeated with.
    pub(crate) fn unsupported_version(requested: &str) -> WireError {
        let supported = Revision::ALL.iter().filter(|revision| revision.is_modern()).map(|revision| revision.as_str());
        let supported: Vec<&str> = supported.collect();
        let mut error = WireError::new(UNSUPPORTED_VERSION, 400, "Unsupported protocol version");
        error.data = Some(json!({ "supported": supported, "requested": echo(requested) }));
        error
    }

    /// The prompt cannot continue without a question that the client cannot show. `missing` are the arguments that the
    /// client can send instead; without any, a model cannot help itself either.
    pub(crate) fn missing_elicitation(by_url: bool, missing: &[Problem]) -> WireError {
        let (mode, name) = if by_url { (json!({ "url": {} }), "URL mode of the ") } else { (json!({}), "") };
        let message = format!("This prompt asks the user a question, which requires the {name}elicitation capability");
        let data = json!({ "requiredCapabilities": { "elicitation": mode } });
        let is_for_model = !missing.is_empty();
        let error = WireError { data: Some(data), is_for_model, ..WireError::new(MISSING_CAPABILITY, 400, message) };
        error.with_problems("; without it, these arguments must be sent", missing)
    }

    pub(crate) fn unanswered(action: &str, alternatives: &[Problem]) -> WireError {
        let message = format!("The user {action} the question, and the prompt was not rendered");
        WireError::for_model(message).with_problems("; these arguments can be sent instead", alternatives)
    }

    /// A page that the client cannot open precedes the prompt.
    pub(crate) fn no_pages() -> WireError {
        let message = "This prompt opens a web page first, which requires a client with the URL mode of elicitation";
        WireError::for_model(message)
    }

    fn with_problems(mut self, introduction: &str, problems: &[Problem]) -> WireError {
        if problems.is_empty() {
            return self;
        }
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        self.message.push_str(&format!("{introduction}: {}", shown.join("; ")));
        self.data.get_or_insert_with(|| json!({}))["problems"] = listed(problems);
        self
    }

    pub(crate) fn internal() -> WireError {
        WireError::rejected(&Rejection::Internal, Revision::NEWEST_LEGACY)
    }

    fn too_many(message: String, retry_after_ms: u64) -> WireError {
        let data = json!({ "retryAfterMs": retry_after_ms });
        WireError { data: Some(data), ..WireError::new(INVALID_REQUEST, 429, message) }
    }

    pub(crate) fn word(&self) -> &'static str {
        match (self.code, self.status) {
            (INVALID_REQUEST, 401) => "unauthorized",
            (INVALID_REQUEST, 403) => "forbidden",
            (INVALID_REQUEST, 413) => "too-large",
            (INVALID_REQUEST, 429) => "too-many-requests",
            (_, 503) => "unavailable",
            (_, 504) => "timed-out",
            (PARSE_ERROR, _) => "parse-error",
            (METHOD_NOT_FOUND, _) => "method-not-found",
            (INVALID_PARAMS, _) => "invalid-params",
            (INTERNAL_ERROR, _) => "internal-error",
            (RESOURCE_NOT_FOUND, _) => "resource-not-found",
            (HEADER_MISMATCH, _) => "header-mismatch",
            (MISSING_CAPABILITY, _) => "missing-capability",
            (UNSUPPORTED_VERSION, _) => "unsupported-version",
            _ => "invalid-request",
        }
    }

    pub(crate) fn advice(&self) -> Option<Advice> {
        let data = self.data.as_ref()?;
        match self.status {
            403 => {
                let scopes = data.get("requiredScopes")?.as_array()?;
                Some(Advice::Scopes(scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
            }
            429 => Some(Advice::RetryAfter(data.get("retryAfterMs")?.as_u64()?.div_ceil(1_000))),
            _ => None,
        }
    }

    pub(crate) fn rejected(rejection: &Rejection, revision: Revision) -> WireError {
        let message = rejection.to_string();
        match rejection {
            Rejection::UnknownPrompt { .. } | Rejection::UnusableArguments { .. } => WireError::for_model(message),
            Rejection::InvalidCursor | Rejection::UnknownArgument { .. } => WireError::invalid_params(message),
            Rejection::InvalidArguments { problems, .. } => {
                let data = json!({ "problems": listed(problems) });
                WireError { data: Some(data), ..WireError::for_model(message) }
            }
            Rejection::UnknownResource { uri } => {
                let code = if revision.is_modern() { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
                WireError { data: Some(json!({ "uri": uri })), ..WireError::new(code, 200, message) }
            }
            Rejection::ResourceTooLarge { uri, .. } => {
                WireError { data: Some(json!({ "uri": uri })), ..WireError::new(INTERNAL_ERROR, 200, message) }
            }
            Rejection::InsufficientScope { scopes } => {
                let data = json!({ "requiredScopes": scopes });
                WireError { data: Some(data), ..WireError::new(INVALID_REQUEST, 403, message) }
            }
            Rejection::TooManyRequests { retry_after } => {
                WireError::too_many(message, u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX))
            }
            Rejection::TooManyAtOnce { .. } => WireError::too_many(message, 1_000),
            Rejection::NotRecorded => WireError::new(INTERNAL_ERROR, 503, message),
            // `Rejection::Internal`, and variants that a later version of the service may add.
            _ => WireError::new(INTERNAL_ERROR, 200, message),
        }
    }
}

fn listed(problems: &[Problem]) -> Value {
    problems.iter().map(|problem| json!({ "argument": *problem.argument, "reason": problem.reason })).collect()
}

pub(crate) fn echo(text: &str) -> &str {
    &text[..text.floor_char_boundary(ECHO_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the codes reserved for the specification only the assigned ones are used, each in its era.
    // req: I24, J6, N9, N10, N11, N12, N13, N20
    #[test]
    fn codes_are_those_of_the_specification() {
        let standard = [PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR];
        assert_eq!(standard, [-32700, -32600, -32601, -32602, -32603]);
        let uri = || "a:b".to_owned();
        let rejections = [
            Rejection::UnknownPrompt { name: uri() },
            Rejection::InvalidArguments { prompt: uri(), problems: Vec::new() },
            Rejection::UnusableArguments { prompt: uri(), reason: uri() },
            Rejection::UnknownResource { uri: uri() },
            Rejection::ResourceTooLarge { uri: uri(), limit: 1 },
            Rejection::InvalidCursor,
            Rejection::UnknownArgument { name: uri(), known: Vec::new() },
            Rejection::Internal,
        ];
        for rejection in &rejections {
            for revision in Revision::ALL {
                let error = WireError::rejected(rejection, revision);
                let legacy_only = error.code == RESOURCE_NOT_FOUND && !revision.is_modern();
                assert!(standard.contains(&error.code) || legacy_only, "{error:?}");
                assert_eq!(error.status, 200);
            }
        }
        for (error, code, status) in [
            (WireError::parse("x"), PARSE_ERROR, 400),
            (WireError::invalid_request("x"), INVALID_REQUEST, 400),
            (WireError::method_not_found("x", Era::Modern), METHOD_NOT_FOUND, 404),
            (WireError::method_not_found("x", Era::Legacy), METHOD_NOT_FOUND, 200),
            (WireError::invalid_params("x"), INVALID_PARAMS, 200),
            (WireError::invalid_meta("x"), INVALID_PARAMS, 400),
            (WireError::header_mismatch("x"), -32020, 400),
            (WireError::missing_elicitation(false, &[]), -32021, 400),
            (WireError::unsupported_version("x"), -32022, 400),
            (WireError::internal(), INTERNAL_ERROR, 200),
            (WireError::rejected(&Rejection::NotRecorded, Revision::NEWEST_LEGACY), INTERNAL_ERROR, 503),
        ] {
            assert_eq!((error.code, error.status), (code, status), "{error:?}");
        }
        // A model that calls a tool can send arguments, and cannot gain a capability.
        let missing = [Problem { argument: "a".to_owned(), reason: "is required".to_owned() }];
        assert!(WireError::missing_elicitation(true, &missing).is_for_model);
        assert!(!WireError::missing_elicitation(true, &[]).is_for_model);
    }
}

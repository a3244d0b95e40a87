//! The error type of the crate.
//!
//! How the SDK's errors map to it is in `sdk_error`.

use std::{error::Error, fmt, time::Duration};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error of a connection or a request.
///
/// Text that comes from the server is included verbatim: escape it before printing it to a terminal. The text of an
/// error includes that of its causes; [`source`](Error::source) returns the cause itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The endpoint, or the configuration it comes from, is unusable. Nothing was sent.
    InvalidEndpoint(String),
    /// The server cannot be reached, cannot be started, or has closed the connection.
    Unreachable {
        /// The reason, with its causes and the end of the process's stderr.
        reason: String,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The server was reached, and does not answer requests for now: HTTP 429, or 500 and above.
    Unavailable {
        /// The HTTP status.
        status: u16,
        /// The time after which it wants to be asked again, if it names one.
        retry_after: Option<Duration>,
    },
    /// The URL answers, but not as an MCP endpoint: with a status such as 404 or 405, or with a web page.
    NotAnEndpoint {
        /// The answer.
        reason: String,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The server requires authentication (HTTP 401), and no sign-in is possible.
    AuthenticationRequired,
    /// The caller is authenticated but lacks permission (HTTP 403).
    Forbidden {
        /// The missing scopes, separated by spaces, if the server names them.
        scope: Option<String>,
    },
    /// Signing in failed.
    SignInFailed {
        /// The reason, with its causes.
        reason: String,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The server did not answer within the timeout of the connection.
    TimedOut {
        /// The timeout.
        after: Duration,
    },
    /// The server answered with a JSON-RPC error.
    ErrorResponse {
        /// The error code, such as `-32602`.
        code: i32,
        /// The server's message.
        message: String,
        /// Further details, in a form that the server defines.
        data: Option<serde_json::Value>,
    },
    /// The HTTP API refused a request.
    Refused {
        /// The HTTP status, such as 404.
        status: u16,
        /// The server's reason.
        message: String,
    },
    /// An answer exceeds a limit of this client: a list without end, or too many or too large parts.
    LimitExceeded(String),
    /// The answer does not follow the protocol.
    InvalidResponse {
        /// The reason.
        reason: String,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The user cancelled a form or a sign-in.
    Cancelled,
}

impl ClientError {
    /// Returns whether the server rejected the parameters: an unknown name or URI, or invalid arguments.
    #[must_use]
    pub fn is_invalid_params(&self) -> bool {
        matches!(self, ClientError::ErrorResponse { code: -32602, .. })
    }

    /// Returns whether the server does not implement the method.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, ClientError::ErrorResponse { code: -32601, .. })
    }

    pub(crate) fn unreachable(reason: impl Into<String>) -> ClientError {
        ClientError::Unreachable { reason: reason.into(), source: None }
    }

    pub(crate) fn sign_in_failed(reason: impl Into<String>) -> ClientError {
        ClientError::SignInFailed { reason: reason.into(), source: None }
    }

    pub(crate) fn sign_in(error: impl Error + Send + Sync + 'static) -> ClientError {
        ClientError::SignInFailed { reason: chain(&error), source: Some(Box::new(error)) }
    }

    pub(crate) fn invalid_response(reason: impl Into<String>) -> ClientError {
        ClientError::InvalidResponse { reason: reason.into(), source: None }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::InvalidEndpoint(reason) | ClientError::LimitExceeded(reason) => f.write_str(reason),
            ClientError::Unreachable { reason, .. } => write!(f, "cannot reach the server: {reason}"),
            ClientError::Unavailable { status, retry_after } => {
                let what = match status {
                    429 => "there were too many requests",
                    503 => "it cannot answer at the moment",
                    _ => "it has failed",
                };
                write!(f, "the server did not answer the request: {what} (HTTP {status})")?;
                match retry_after.map(|wait| wait.as_secs()) {
                    Some(1) => f.write_str("; try again in 1 second"),
                    Some(seconds) => write!(f, "; try again in {seconds} seconds"),
                    None => Ok(()),
                }
            }
            ClientError::NotAnEndpoint { reason, .. } => write!(f, "this URL is not an MCP endpoint: {reason}"),
            ClientError::AuthenticationRequired => f.write_str("the server requires authentication"),
            ClientError::Forbidden { scope: Some(scope) } => write!(f, "the server requires the scopes {scope}"),
            ClientError::Forbidden { scope: None } => f.write_str("the server denied access"),
            ClientError::SignInFailed { reason, .. } => write!(f, "sign-in failed: {reason}"),
            ClientError::TimedOut { after } => write!(f, "no answer within {} seconds", after.as_secs_f64()),
            ClientError::ErrorResponse { message, .. } => write!(f, "the server returned an error: {message}"),
            ClientError::Refused { status, message } => {
                write!(f, "the server refused the request ({status}): {message}")
            }
            ClientError::InvalidResponse { reason, .. } => f.write_str(reason),
            ClientError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ClientError::Unreachable { source, .. }
            | ClientError::NotAnEndpoint { source, .. }
            | ClientError::SignInFailed { source, .. }
            | ClientError::InvalidResponse { source, .. } => source.as_ref().map(as_error),
            _ => None,
        }
    }
}

pub(crate) fn as_error(error: &BoxError) -> &(dyn Error + 'static) {
    &**error
}

pub(crate) fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (**error).source())
}

/// Formats an error with its causes, each text once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

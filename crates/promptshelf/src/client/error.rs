//! Why a client does not get what it asks for.

use std::{fmt, time::Duration};

use rmcp::{
    ServiceError,
    model::{ErrorCode, ResultType},
    service::ClientInitializeError,
    transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError},
};

use super::transport::Lease;
use crate::OpenError;

/// What can go wrong between a client and a server. Texts that come from the
/// server are as it sent them: make them visible before they reach a terminal.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The target means nothing; the sentence says why.
    Target(String),
    /// A library folder cannot be opened.
    Open(OpenError),
    /// There is no server, or it has gone; the sentence says why.
    Down(String),
    /// The server wants to know who asks.
    SignIn,
    /// The server has not answered in time.
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The server has answered with an error.
    Refused {
        /// The error's number, such as `-32602`.
        code: i32,
        /// The server's own sentence.
        message: String,
    },
    /// A list has no end, or what comes is larger than anything a prompt needs.
    Unreasonable(String),
    /// The server has answered what was not asked.
    Unexpected(String),
    /// A person did not want to answer a question of the server.
    Cancelled,
}

impl ClientError {
    /// Whether the server says that it does not know what is asked for or
    /// cannot use the arguments.
    #[must_use]
    pub fn is_invalid_params(&self) -> bool {
        matches!(self, ClientError::Refused { code: -32602, .. })
    }

    /// Whether the server does not have this method at all.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        matches!(self, ClientError::Refused { code: -32601, .. })
    }

    pub(super) fn from_service(error: ServiceError, lease: &Lease) -> ClientError {
        match error {
            ServiceError::McpError(error) if error.code == ErrorCode(-32042) => {
                ClientError::Refused { code: -32042, message: format!("a page has to be visited: {}", error.message) }
            }
            ServiceError::McpError(error) => {
                ClientError::Refused { code: error.code.0, message: error.message.into_owned() }
            }
            ServiceError::TransportClosed => ClientError::Down(lease.with_last_words("the server has gone")),
            ServiceError::TransportSend(error) if wants_sign_in(&*error.error) => ClientError::SignIn,
            ServiceError::TransportSend(error) => ClientError::Down(lease.with_last_words(&chain(&*error.error))),
            ServiceError::UnexpectedResponse => {
                ClientError::Unexpected("the server has answered something else than what was asked".to_owned())
            }
            ServiceError::Cancelled { .. } => ClientError::Down("the server has cancelled the request".to_owned()),
            other => ClientError::Unexpected(other.to_string()),
        }
    }

    pub(super) fn from_start(error: &ClientInitializeError, lease: &Lease) -> ClientError {
        match error {
            error if error.is_authorization_required() => ClientError::SignIn,
            ClientInitializeError::JsonRpcError(error) => {
                ClientError::Refused { code: error.code.0, message: error.message.to_string() }
            }
            ClientInitializeError::TransportError { error, .. } => {
                ClientError::Down(lease.with_last_words(&chain(&*error.error)))
            }
            ClientInitializeError::ConnectionClosed(_) => {
                ClientError::Down(lease.with_last_words("the server has ended before it answered"))
            }
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                let revisions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
                ClientError::Unexpected(format!("the server speaks only {}", revisions.join(", ")))
            }
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => ClientError::from_start(fallback, lease),
            // What came is not printed: it can be of any size.
            ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
                ClientError::Unexpected("the server does not answer as an MCP server does".to_owned())
            }
            other => ClientError::Unexpected(other.to_string()),
        }
    }
}

/// A result without a kind is complete, and one of a kind that is not known
/// here is none (specification 2026-07-28, *Results*). The SDK passes both on.
pub(super) fn complete<T>(result: T, kind: fn(&T) -> Option<&ResultType>) -> Result<T, ServiceError> {
    match kind(&result) {
        Some(kind) if !kind.is_complete() => Err(ServiceError::UnexpectedResponse),
        _ => Ok(result),
    }
}

fn wants_sign_in(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<AuthRequiredError>() || error.is::<InsufficientScopeError>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// An error and what it comes from, once each.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut sentence = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let said = source.to_string();
        if !sentence.contains(&said) {
            sentence.push_str(": ");
            sentence.push_str(&said);
        }
        next = source.source();
    }
    sentence
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Target(sentence) | ClientError::Unreasonable(sentence) | ClientError::Unexpected(sentence) => {
                f.write_str(sentence)
            }
            ClientError::Open(error) => error.fmt(f),
            ClientError::Down(reason) => write!(f, "the server cannot be reached: {reason}"),
            ClientError::SignIn => f.write_str("the server wants to know who asks"),
            ClientError::TimedOut { after } => {
                write!(f, "the server has not answered within {} seconds", after.as_secs_f64())
            }
            ClientError::Refused { message, .. } => write!(f, "the server says: {message}"),
            ClientError::Cancelled => f.write_str("the server's question was not answered"),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<OpenError> for ClientError {
    fn from(error: OpenError) -> ClientError {
        ClientError::Open(error)
    }
}

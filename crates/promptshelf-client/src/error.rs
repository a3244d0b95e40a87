//! Why a client does not get what it asks for.

use std::{fmt, time::Duration};

use rmcp::{
    ServiceError,
    model::{ErrorCode, ResultType},
    service::ClientInitializeError,
    transport::{
        auth::AuthError,
        streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError},
    },
};

use super::{sign_in::failed, transport::Lease};
use promptshelf_server::OpenError;

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
    /// The server knows who asks, and wants these scopes for it, if it says any.
    Forbidden {
        /// The scopes, with spaces between them.
        scope: Option<String>,
    },
    /// Signing in does not work; the sentence says why.
    SignInFailed(String),
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
            ServiceError::TransportSend(error) => ClientError::from_transport(&*error.error, lease),
            ServiceError::UnexpectedResponse => {
                ClientError::Unexpected("the server has answered something else than what was asked".to_owned())
            }
            ServiceError::Cancelled { .. } => ClientError::Down("the server has cancelled the request".to_owned()),
            other => ClientError::Unexpected(other.to_string()),
        }
    }

    fn from_transport(error: &(dyn std::error::Error + 'static), lease: &Lease) -> ClientError {
        if let Some(challenge) = Challenge::find(error) {
            return challenge.error();
        }
        for cause in causes(error) {
            match cause.downcast_ref() {
                Some(AuthError::AuthorizationRequired) => return ClientError::SignIn,
                Some(error) => return failed(error),
                None => {}
            }
            if let Some(StreamableHttpError::<reqwest::Error>::ResponseBodyTooLarge { max_size }) = cause.downcast_ref()
            {
                return ClientError::Unreasonable(format!("the server's answer has more than {max_size} bytes"));
            }
        }
        ClientError::Down(lease.with_last_words(&chain(error)))
    }

    pub(super) fn from_start(error: &ClientInitializeError, lease: &Lease) -> ClientError {
        match error {
            ClientInitializeError::TransportError { error, .. } => ClientError::from_transport(&*error.error, lease),
            ClientInitializeError::JsonRpcError(error) => {
                ClientError::Refused { code: error.code.0, message: error.message.to_string() }
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

/// What a server says about who may ask, in place of an answer.
#[derive(Clone, Debug)]
pub(super) struct Challenge {
    /// `WWW-Authenticate`, as it came.
    pub(super) header: String,
    /// With 403 the scopes that are missing; `None` with 401.
    forbidden: Option<Option<String>>,
}

impl Challenge {
    /// The challenge among what an error comes from.
    pub(super) fn find(error: &(dyn std::error::Error + 'static)) -> Option<Challenge> {
        causes(error).find_map(|cause| {
            if let Some(AuthRequiredError { www_authenticate_header: header, .. }) = cause.downcast_ref() {
                return Some(Challenge { header: header.clone(), forbidden: None });
            }
            let InsufficientScopeError { www_authenticate_header: header, required_scope, .. } =
                cause.downcast_ref()?;
            Some(Challenge { header: header.clone(), forbidden: Some(required_scope.clone()) })
        })
    }

    /// The challenge that has kept a connection from starting.
    pub(super) fn of_start(error: &ClientInitializeError) -> Option<Challenge> {
        match error {
            ClientInitializeError::TransportError { error, .. } => Challenge::find(&*error.error),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Challenge::of_start(fallback),
            _ => None,
        }
    }

    /// What a server would say that wants these scopes.
    pub(super) fn of_scopes(scopes: &[String]) -> Challenge {
        Challenge { header: "Bearer error=\"insufficient_scope\"".to_owned(), forbidden: Some(Some(scopes.join(" "))) }
    }

    pub(super) fn is_forbidden(&self) -> bool {
        self.forbidden.is_some()
    }

    /// The scopes that are missing.
    pub(super) fn scopes(&self) -> Vec<String> {
        self.forbidden.iter().flatten().flat_map(|scopes| scopes.split_whitespace().map(str::to_owned)).collect()
    }

    pub(super) fn error(&self) -> ClientError {
        match &self.forbidden {
            Some(scope) => ClientError::Forbidden { scope: scope.clone() },
            None => ClientError::SignIn,
        }
    }
}

/// An error, what it comes from, what that comes from, and so on.
fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// An error and what it comes from, once each.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut sentence = error.to_string();
    for cause in causes(error).skip(1) {
        let said = cause.to_string();
        if !sentence.contains(&said) {
            sentence.push_str(": ");
            sentence.push_str(&said);
        }
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
            ClientError::Forbidden { scope: Some(scope) } => write!(f, "the server wants the scopes {scope} for this"),
            ClientError::Forbidden { scope: None } => f.write_str("the server does not allow this"),
            ClientError::SignInFailed(reason) => write!(f, "signing in does not work: {reason}"),
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

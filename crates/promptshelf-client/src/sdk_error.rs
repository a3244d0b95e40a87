//! Maps errors of the SDK to [`ClientError`].

use std::{error::Error, io, time::Duration};

use hyper_util::client::proxy::matcher::Matcher;
use rmcp::{
    ServiceError,
    model::{ErrorCode, ErrorData, ResultType},
    service::ClientInitializeError,
    transport::{
        DynamicTransportError,
        auth::AuthError,
        streamable_http_client::{HttpStatusError, StreamableHttpError},
    },
};

use crate::{
    challenge::Challenge,
    error::{ClientError, causes, chain},
    process::Process,
};

/// The error code of revision 2025-11-25 for a page that has to be visited before the request can succeed.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

pub(crate) fn request_error(error: ServiceError, process: &Process) -> ClientError {
    match error {
        ServiceError::McpError(error) if error.code == URL_ELICITATION_REQUIRED => ClientError::ErrorResponse {
            code: error.code.0,
            message: format!("a page has to be visited first: {}", error.message),
            data: error.data,
        },
        ServiceError::McpError(error) => error_response(error),
        ServiceError::TransportClosed => {
            ClientError::unreachable(process.with_stderr("the server closed the connection"))
        }
        ServiceError::TransportSend(error) => match transport_error(error, process) {
            // It has been one until now.
            ClientError::NotAnEndpoint { reason, source } => ClientError::InvalidResponse {
                reason: format!("the server does not answer as before: {reason}"),
                source,
            },
            other => other,
        },
        ServiceError::UnexpectedResponse => {
            ClientError::invalid_response("the server's answer does not match the request")
        }
        ServiceError::Cancelled { .. } => ClientError::unreachable("the server cancelled the request"),
        other => ClientError::InvalidResponse { reason: other.to_string(), source: Some(Box::new(other)) },
    }
}

/// Maps the error of a connection that could not be established.
pub(crate) fn connect_error(error: ClientInitializeError, process: &Process) -> ClientError {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_error(error, process),
        ClientInitializeError::JsonRpcError(error) => error_response(error),
        ClientInitializeError::ConnectionClosed(_) => {
            ClientError::unreachable(process.with_stderr("the server ended before it answered"))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let revisions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            ClientError::invalid_response(format!(
                "no common protocol revision: the server supports only {}",
                revisions.join(", ")
            ))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => connect_error(*fallback, process),
        // The answer itself is not printed: it can have any size.
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            ClientError::invalid_response("the server does not answer like an MCP server")
        }
        other => ClientError::InvalidResponse { reason: other.to_string(), source: Some(Box::new(other)) },
    }
}

fn error_response(error: ErrorData) -> ClientError {
    ClientError::ErrorResponse { code: error.code.0, message: error.message.into_owned(), data: error.data }
}

fn transport_error(error: DynamicTransportError, process: &Process) -> ClientError {
    let cause: &(dyn Error + 'static) = &*error.error;
    if let Some(challenge) = Challenge::find(cause) {
        return challenge.to_error();
    }
    let auth = causes(cause).find_map(|cause| cause.downcast_ref()).map(|auth| match auth {
        AuthError::AuthorizationRequired => None,
        other => Some(chain(other)),
    });
    let limit = causes(cause).find_map(|cause| match cause.downcast_ref()? {
        StreamableHttpError::<reqwest::Error>::ResponseBodyTooLarge { max_size } => Some(*max_size),
        _ => None,
    });
    match (auth, limit) {
        (Some(None), _) => ClientError::AuthenticationRequired,
        (Some(Some(reason)), _) => ClientError::SignInFailed { reason, source: Some(error.error) },
        (None, Some(limit)) => ClientError::LimitExceeded(format!("the server's answer exceeds {limit} bytes")),
        (None, None) => {
            if let Some(StreamableHttpError::<reqwest::Error>::HttpStatus(HttpStatusError {
                status,
                retry_after,
                ..
            })) = causes(cause).find_map(|cause| cause.downcast_ref())
            {
                let seconds = retry_after.as_ref().and_then(|after| after.trim().parse().ok());
                return ClientError::Unavailable { status: *status, retry_after: seconds.map(Duration::from_secs) };
            }
            let http = causes(cause).find_map(|cause| cause.downcast_ref());
            if let Some(StreamableHttpError::UnexpectedServerResponse(answer)) = http
                && answer.starts_with("HTTP 403")
            {
                return ClientError::Forbidden { scope: None };
            }
            if let Some(StreamableHttpError::UnexpectedServerResponse(answer)) = http
                && !answer.starts_with("HTTP ")
            {
                return ClientError::InvalidResponse { reason: answer.to_string(), source: Some(error.error) };
            }
            let (is_endpoint, reason) = match http {
                Some(http) => http_reason(http),
                None => (true, process.with_stderr(&chain(cause))),
            };
            let source = Some(error.error);
            if is_endpoint {
                ClientError::Unreachable { reason, source }
            } else {
                ClientError::NotAnEndpoint { reason, source }
            }
        }
    }
}

/// Describes an error of HTTP, and whether the URL may be an MCP endpoint nevertheless.
fn http_reason(http: &StreamableHttpError<reqwest::Error>) -> (bool, String) {
    match http {
        StreamableHttpError::Client(error) => (true, connection_reason(error)),
        StreamableHttpError::UnexpectedServerResponse(answer) => match unexpected_status(answer) {
            Some(status) => (false, status),
            None => (true, answer.clone().into_owned()),
        },
        StreamableHttpError::UnexpectedContentType(found) => {
            (false, format!("it answers with {}", found.as_deref().unwrap_or("content of an unknown type")))
        }
        other => (true, chain(other)),
    }
}

const MAX_SHOWN_ANSWER: usize = 200;

/// Returns the status of the SDK's `HTTP 404 Not Found: body` if it means that the URL is another one, with a body of
/// one line.
fn unexpected_status(answer: &str) -> Option<String> {
    let status = answer.strip_prefix("HTTP ")?;
    let is_about_the_url =
        status.starts_with(['3', '4']) && !["408", "425", "429"].iter().any(|s| status.starts_with(s));
    let (status, body) = status.split_once(": ").unwrap_or((status, ""));
    let body = body.trim();
    let is_sentence = !body.is_empty() && !body.starts_with('<') && body.lines().count() == 1;
    let body = if is_sentence {
        format!(": {}", body.chars().take(MAX_SHOWN_ANSWER).collect::<String>())
    } else {
        String::new()
    };
    is_about_the_url.then(|| format!("HTTP {status}{body}"))
}

/// Returns the host and the port of the proxy that the environment names for a URL.
fn proxy_of(url: &url::Url) -> Option<String> {
    let uri = url.as_str().parse().ok()?;
    Some(Matcher::from_system().intercept(&uri)?.uri().authority()?.to_string())
}

/// Describes why the connection failed: the SDK shows only that a request failed.
pub(crate) fn connection_reason(error: &reqwest::Error) -> String {
    let host = error.url().and_then(|url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    });
    let host = host.unwrap_or_else(|| "the host".to_owned());
    let host = match error.url().filter(|_| error.is_connect()).and_then(proxy_of) {
        Some(proxy) => format!("the proxy {proxy}, which the environment names for {host},"),
        None => host,
    };
    let last = causes(error).last().map(ToString::to_string).unwrap_or_default();
    let system =
        causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).find(|io| io.raw_os_error().is_some());
    if causes(error).any(|cause| cause.to_string().starts_with("dns error")) {
        return format!("no such host: {} ({last})", error.url().and_then(|url| url.host_str()).unwrap_or(&host));
    }
    let is_https = error.url().is_some_and(|url| url.scheme() == "https");
    let is_cut_off = causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    if is_cut_off && !error.is_connect() {
        return "the connection ended in the middle of an answer".to_owned();
    }
    match system.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            let what = if host.starts_with("the proxy") { "it" } else { "the server" };
            format!("{host} refused the connection; is {what} running there?")
        }
        // Errors of the system have a number, those of TLS have none.
        None if error.is_connect() && is_https => format!("TLS failed with {host}: {last}"),
        _ => format!("{host}: {last}"),
    }
}

/// Accepts a result that is complete. A result without a `resultType` is complete; one of an unknown type is invalid
/// (specification 2026-07-28, *Results*). The SDK returns both.
pub(crate) fn complete<T>(result: T, kind: fn(&T) -> Option<&ResultType>) -> Result<T, ServiceError> {
    match kind(&result) {
        Some(kind) if !kind.is_complete() => Err(ServiceError::UnexpectedResponse),
        _ => Ok(result),
    }
}

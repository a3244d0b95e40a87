//! Maps errors of the SDK to [`ClientError`].

use std::error::Error;

use rmcp::{
    ServiceError,
    model::{ErrorCode, ErrorData, ResultType},
    service::ClientInitializeError,
    transport::{DynamicTransportError, auth::AuthError, streamable_http_client::StreamableHttpError},
};

use crate::{
    challenge::Challenge,
    error::{ClientError, causes, chain},
    process::Process,
};

/// The error code of revision 2025-11-25 for a page that has to be visited before the request can succeed.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Maps the error of a request.
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
        ServiceError::TransportSend(error) => transport_error(error, process),
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
            ClientError::Unreachable { reason: process.with_stderr(&chain(cause)), source: Some(error.error) }
        }
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

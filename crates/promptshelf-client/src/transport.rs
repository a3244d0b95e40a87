//! Opens a connection to a server and negotiates the protocol revision.

use std::{pin::Pin, time::Duration};

use rmcp::{
    model::{ErrorCode, ErrorData, ProtocolVersion, RequestId, ServerJsonRpcMessage},
    service::{
        ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
        serve_client_with_lifecycle,
    },
    transport::{
        IntoTransport, StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    challenge::Challenge,
    client_handler::Handler,
    closing::{self, Owner},
    endpoint::Endpoint,
    error::ClientError,
    http::{HttpClient, HttpTransport, Messages, header_map, http_client},
    pipe::Pipe,
    process::Process,
    reconnection::Reconnection,
    sdk_error::connect_error,
    sign_in::AuthSession,
};

/// Error codes that only servers of revision 2026-07-28 and later use.
const MODERN_CODES: std::ops::RangeInclusive<i32> = -32022..=-32020;
/// How long to try to open an HTTP session again after the server has forgotten it.
const SESSION_RECOVERY: Duration = Duration::from_secs(10);

pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Handler>,
    pub(crate) process: Process,
    _session: Option<Owner>,
}

pub(crate) struct ConnectFailure {
    pub(crate) error: ClientError,
    pub(crate) challenge: Option<Challenge>,
    can_retry: bool,
    /// Whether the server does not accept `initialize`: its answer to `server/discover` was late.
    is_modern: bool,
    /// The newest revision that the server lists, if all of them are older ones.
    older: Option<ProtocolVersion>,
}

impl From<ClientError> for ConnectFailure {
    fn from(error: ClientError) -> ConnectFailure {
        ConnectFailure { error, challenge: None, can_retry: false, is_modern: false, older: None }
    }
}

/// Connects in the newest revision that the server speaks.
///
/// Some servers of revisions before 2026-07-28 end, or answer outside of the protocol, when they receive
/// `server/discover` first. For them a second connection begins with `initialize`; with `is_legacy`, the order is
/// reversed. `timeout` is the time for the whole.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    handler: &Handler,
    auth: Option<&AuthSession>,
    is_legacy: bool,
    timeout: Duration,
) -> Result<Connection, ConnectFailure> {
    let first = if is_legacy { initialize() } else { discover() };
    let first = match attempt(endpoint, handler, auth, first, probe_time(timeout)).await {
        Ok(connection) => return checked(connection).await.map_err(ConnectFailure::from),
        Err(failure) if !failure.can_retry => return Err(failure),
        Err(failure) => failure,
    };
    let second = if first.is_modern {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else if is_legacy {
        discover()
    } else {
        initialize()
    };
    match attempt(endpoint, &handler.offering(first.older.clone()), auth, second, timeout).await {
        Ok(connection) => checked(connection).await.map_err(ConnectFailure::from),
        // An unreachable server fails twice; the first error is the better one.
        Err(ConnectFailure {
            error: ClientError::Unreachable { .. } | ClientError::Unavailable { .. } | ClientError::NotAnEndpoint { .. },
            ..
        }) => Err(first),
        Err(second) => Err(second),
    }
}

/// Connects over a pair of streams. A second attempt is impossible: the streams belong to the first one.
pub(crate) async fn connect_io(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    handler: &Handler,
    is_legacy: bool,
    timeout: Duration,
) -> Result<Connection, ClientError> {
    let lifecycle = if is_legacy { initialize() } else { discover() };
    let pipe = Pipe::new(reader, writer, probe_time(timeout), handler.probe.clone());
    let connection = start(handler, pipe, lifecycle, Process::default()).await;
    checked(connection.map_err(|failure| failure.error)?).await
}

/// Begins with `server/discover`, then falls back to `initialize` on the same connection.
fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

fn initialize() -> ClientLifecycleMode {
    ClientLifecycleMode::Initialize
}

/// Returns the time for the answer to `server/discover`, which leaves time for `initialize`. After ten seconds the SDK goes on
/// by itself.
fn probe_time(timeout: Duration) -> Duration {
    (timeout / 3).min(Duration::from_secs(9))
}

/// Creates the answer in place of one to `server/discover` that has not come in time. Servers of older revisions may
/// ignore unknown methods.
pub(crate) fn probe_error(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer", None), Some(id))
}

async fn checked(connection: Connection) -> Result<Connection, ClientError> {
    if let Some(server) = connection.service.peer().peer_info()
        && !ProtocolVersion::KNOWN_VERSIONS.contains(&server.protocol_version)
    {
        return Err(ClientError::invalid_response(format!(
            "no common protocol revision: the server supports only {}",
            server.protocol_version
        )));
    }
    let mut cache = ClientCacheConfig::default();
    // A caller has to learn that a server is down, rather than see an outdated list.
    cache.serve_stale_on_error = false;
    connection.service.peer().set_response_cache_config(cache).await;
    Ok(connection)
}

/// A connection that is being made. The type is named, because the compiler cannot derive that the SDK's future is `Send`
/// inside of another one.
type Starting<'a> = Pin<Box<dyn Future<Output = Result<Connection, ConnectFailure>> + Send + 'a>>;

async fn attempt(
    endpoint: &Endpoint,
    handler: &Handler,
    auth: Option<&AuthSession>,
    lifecycle: ClientLifecycleMode,
    probe_timeout: Duration,
) -> Result<Connection, ConnectFailure> {
    match endpoint {
        Endpoint::Url { url, headers } => {
            let headers = header_map(headers)?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
            config.session_recovery_timeout = SESSION_RECOVERY;
            let client = match auth {
                Some(auth) => HttpClient::Authorized(auth.http_client()),
                None => HttpClient::Plain(Messages(http_client()?)),
            };
            let (open, owner) = closing::open();
            let transport = HttpTransport {
                client,
                wants_notifications: handler.wants_notifications(),
                probe_timeout,
                probe: handler.probe.clone(),
                reconnection: Reconnection::default(),
                _open: open,
            };
            let transport = StreamableHttpClientTransport::with_client(transport, config);
            let starting: Starting<'_> = Box::pin(start(handler, transport, lifecycle, Process::default()));
            Ok(Connection { _session: Some(owner), ..starting.await? })
        }
        Endpoint::Command { line, environment, folder } => {
            let (process, stdin, stdout) = Process::start(line, environment, folder.as_deref())?;
            let pipe = Pipe::new(stdout, stdin, probe_timeout, handler.probe.clone());
            let starting: Starting<'_> = Box::pin(start(handler, pipe, lifecycle, process));
            starting.await
        }
    }
}

async fn start<T, E, A>(
    handler: &Handler,
    transport: T,
    lifecycle: ClientLifecycleMode,
    process: Process,
) -> Result<Connection, ConnectFailure>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    match serve_client_with_lifecycle(handler.clone(), transport, lifecycle).await {
        Ok(service) => Ok(Connection { service, process, _session: None }),
        Err(error) => {
            if is_closed(&error) {
                process.finish_stderr().await;
            }
            let challenge = Challenge::of_connect(&error);
            let can_retry = match &error {
                // Newer SDKs list older revisions too, and accept them only after `initialize`.
                ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                    server_supported.iter().any(|revision| revision.as_str() < ProtocolVersion::V_2026_07_28.as_str())
                }
                ClientInitializeError::JsonRpcError(error) => !MODERN_CODES.contains(&error.code.0),
                error => challenge.is_none() && !error.is_authorization_required(),
            };
            let older = match &error {
                ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => newest(server_supported),
                _ => None,
            };
            let is_modern = lacks_initialize(&error);
            Err(ConnectFailure { error: connect_error(error, &process), challenge, can_retry, is_modern, older })
        }
    }
}

fn lacks_initialize(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            error.code == ErrorCode::METHOD_NOT_FOUND || MODERN_CODES.contains(&error.code.0)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => lacks_initialize(fallback),
        _ => false,
    }
}

/// Returns the newest revision of a list that this client knows.
fn newest(revisions: &[ProtocolVersion]) -> Option<ProtocolVersion> {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().filter(|revision| revisions.contains(revision));
    known.max_by(|one, other| one.as_str().cmp(other.as_str())).cloned()
}

fn is_closed(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_closed(fallback),
        _ => false,
    }
}

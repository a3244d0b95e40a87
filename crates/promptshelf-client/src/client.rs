//! A connection to one server, and sending requests over it.
//!
//! Connecting is in `options`, lists are in `pagination`, `get` and `read` in `multi_round`, subscriptions in `changes`.

use std::{fmt, mem, sync::Arc, time::Duration};

use crate::{
    challenge::Challenge,
    client_handler::Handler,
    error::ClientError,
    model::{Arguments, Completion, CompletionTarget},
    sdk_error::{complete, request_error},
    sign_in::AuthSession,
    transport::Connection,
};
use rmcp::{
    ServiceError,
    model::{
        ArgumentInfo, CompleteRequestParams, CompletionContext, ErrorCode, ErrorData, Reference, ServerCapabilities,
    },
    service::{Peer, RoleClient},
};

/// The most sign-ins for one request: the first one, one for missing scopes, and one for a change meanwhile.
pub(crate) const MAX_SIGN_INS: usize = 3;

/// The first revision without `initialize` (specification 2026-07-28).
const FIRST_MODERN_REVISION: &str = "2026-07-28";

/// A connection to one MCP server. Clones share it; it is closed when the last of them is dropped.
///
/// Created with [`Client::connect`], [`Client::from_io`] or [`ConnectOptions`](crate::ConnectOptions).
///
/// ```no_run
/// use promptshelf_client::{Client, CompletionTarget, Endpoint};
///
/// # async fn example() -> Result<(), promptshelf_client::ClientError> {
/// let client = Client::connect(&Endpoint::command(["npx", "-y", "some-mcp-server"])).await?;
/// let languages = client.complete(CompletionTarget::Prompt("review"), "language", "ru", &[].into()).await?;
/// let arguments = [("language".to_owned(), languages.values[0].clone())].into();
/// let prompt = client.get("review", &arguments).await?;
/// let style = client.read("docs://style").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    state: Arc<ConnectionState>,
    auth: Option<Arc<AuthSession>>,
}

pub(crate) struct ConnectionState {
    pub(crate) label: String,
    pub(crate) handler: Handler,
    pub(crate) connection: Connection,
    pub(crate) timeout: Duration,
    pub(crate) max_list_entries: usize,
}

impl Client {
    pub(crate) fn new(state: ConnectionState, auth: Option<AuthSession>) -> Client {
        Client { state: Arc::new(state), auth: auth.map(Arc::new) }
    }

    /// Returns the same connection without interactive sign-in, for requests in the background.
    #[must_use]
    pub fn without_sign_in(&self) -> Client {
        Client { auth: None, ..self.clone() }
    }

    /// Returns whether the user has signed in over this connection.
    #[must_use]
    pub fn has_signed_in(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.sign_ins() > 0)
    }

    /// Requests further scopes by signing in again, unless they are granted already. Does nothing for a connection
    /// without sign-in.
    ///
    /// # Errors
    ///
    /// [`ClientError::SignInFailed`] or [`ClientError::Cancelled`].
    pub async fn request_scopes(&self, scopes: &[String]) -> Result<(), ClientError> {
        match &self.auth {
            Some(auth) => auth.request_scopes(scopes).await,
            None => Ok(()),
        }
    }

    /// Returns whether the credential store holds credentials for the server.
    pub async fn has_stored_credentials(&self) -> bool {
        match &self.auth {
            Some(auth) => auth.has_stored_credentials().await,
            None => false,
        }
    }

    /// Returns the connection's label: [`ConnectOptions::label`](crate::ConnectOptions::label) or the endpoint.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.state.label
    }

    /// Returns the name that the server gives itself. It is not verified.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        let server = self.peer().peer_info()?;
        server.server_info.as_ref().map(|server| server.title.clone().unwrap_or_else(|| server.name.clone()))
    }

    /// Returns the negotiated revision of the protocol, such as `2026-07-28`.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        self.peer().peer_info().map(|server| server.protocol_version.to_string())
    }

    /// Returns whether the negotiated revision is older than 2026-07-28, where a session begins with `initialize`.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.revision().is_some_and(|revision| revision.as_str() < FIRST_MODERN_REVISION)
    }

    /// Returns whether a later connection to the server should begin with `initialize`, as with
    /// [`ConnectOptions::legacy`](crate::ConnectOptions::legacy): its revision is older, and the answer to
    /// `server/discover` was no failure that may pass.
    #[must_use]
    pub fn prefers_legacy(&self) -> bool {
        self.is_legacy() && !self.state.handler.probe.has_failed()
    }

    /// Returns whether the server declares the prompts capability.
    #[must_use]
    pub fn has_prompts(&self) -> bool {
        self.has_capability(|capabilities| capabilities.prompts.is_some())
    }

    /// Returns whether the server declares the completions capability.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        self.has_capability(|capabilities| capabilities.completions.is_some())
    }

    /// Returns whether the server declares the resources capability.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        self.has_capability(|capabilities| capabilities.resources.is_some())
    }

    /// Returns whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.connection.service.is_closed()
    }

    /// Returns the end of the server process's stderr, at most 2 KiB; empty for servers that this client did not start.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.state.connection.process.stderr()
    }

    /// Returns values for an argument that begin with, or otherwise match, `prefix`. `known` are the arguments with a
    /// value already. A server sends at most 100 values.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Client::get).
    pub async fn complete(
        &self,
        target: CompletionTarget<'_>,
        argument: &str,
        prefix: &str,
        known: &Arguments,
    ) -> Result<Completion, ClientError> {
        let reference = match target {
            CompletionTarget::Prompt(name) => Reference::for_prompt(name),
            CompletionTarget::ResourceTemplate(template) => Reference::for_resource(template),
        };
        let mut params = CompleteRequestParams::new(reference, ArgumentInfo::new(argument, prefix));
        if !known.is_empty() {
            let known = known.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            params = params.with_context(CompletionContext::with_arguments(known));
        }
        let request =
            || async { complete(self.peer().complete(params.clone()).await?, |answer| answer.result_type.as_ref()) };
        let answer = self.request(request).await?;
        Ok(Completion::from_wire(answer.completion))
    }

    /// Forgets all cached answers, so that the next lists come from the server. A cached list is otherwise returned for as
    /// long as the server permits.
    pub async fn forget_cached(&self) {
        self.peer().clear_response_cache().await;
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.state.connection.service.peer()
    }

    pub(crate) fn handler(&self) -> &Handler {
        &self.state.handler
    }

    pub(crate) fn max_list_entries(&self) -> usize {
        self.state.max_list_entries
    }

    pub(crate) fn has_capability(&self, test: impl Fn(&ServerCapabilities) -> bool) -> bool {
        self.peer().peer_info().is_some_and(|server| test(&server.capabilities))
    }

    /// Sends a request and waits for the answer, within the timeout. After a challenge of the server the user can sign
    /// in, and the request is sent again; as it is after a refusal of the revision that lists this very revision, as by
    /// replicas during an update.
    pub(crate) async fn request<T, A>(&self, send: impl Fn() -> A) -> Result<T, ClientError>
    where
        A: Future<Output = Result<T, ServiceError>>,
    {
        let mut attempts = 0;
        let mut may_repeat = true;
        loop {
            let sign_ins = self.auth.as_ref().map_or(0, |auth| auth.sign_ins());
            let error = match self.answer(send()).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if mem::take(&mut may_repeat) && self.supports_nevertheless(&error) {
                continue;
            }
            let challenge = match &error {
                ServiceError::TransportSend(error) => Challenge::find(&*error.error),
                _ => None,
            };
            match (&self.auth, challenge) {
                (Some(auth), Some(challenge)) if attempts < MAX_SIGN_INS => {
                    let _interaction = self.state.handler.interaction();
                    auth.sign_in(sign_ins, &challenge).await?;
                }
                _ => {
                    let process = &self.state.connection.process;
                    if matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) {
                        process.finish_stderr().await;
                    }
                    return Err(request_error(error, process));
                }
            }
            attempts += 1;
        }
    }

    fn supports_nevertheless(&self, error: &ServiceError) -> bool {
        let ServiceError::McpError(ErrorData { code: ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, data, .. }) = error
        else {
            return false;
        };
        let supported = data.as_ref().and_then(|data| data["supported"].as_array());
        let revision = self.revision();
        supported.is_some_and(|supported| supported.iter().any(|it| it.as_str() == revision.as_deref()))
    }

    /// Waits for an answer. The timeout begins again as long as the user is interacting.
    async fn answer<T>(&self, answer: impl Future<Output = T>) -> Result<T, ClientError> {
        let timeout = self.state.timeout;
        let mut answer = std::pin::pin!(answer);
        loop {
            tokio::select! {
                answer = &mut answer => return Ok(answer),
                () = tokio::time::sleep(timeout) => {
                    if !self.state.handler.is_interacting() {
                        return Err(ClientError::TimedOut { after: timeout });
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("label", &self.state.label).finish_non_exhaustive()
    }
}

pub(crate) async fn with_timeout<T>(timeout: Duration, future: impl Future<Output = T>) -> Result<T, ClientError> {
    tokio::time::timeout(timeout, future).await.map_err(|_| ClientError::TimedOut { after: timeout })
}

//! Options of a connection, and connecting with them.

use std::{fmt, sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    client::{Client, ConnectionState, MAX_SIGN_INS, with_timeout},
    client_handler::Handler,
    elicitation::ElicitationHandler,
    endpoint::Endpoint,
    error::ClientError,
    pagination::DEFAULT_MAX_ENTRIES,
    sign_in::{AuthSession, SignIn},
    transport::{self, ConnectFailure, Connection},
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of a connection, as a builder.
///
/// ```no_run
/// use std::time::Duration;
///
/// use promptshelf_client::{ConnectOptions, Endpoint};
///
/// # async fn example() -> Result<(), promptshelf_client::ClientError> {
/// let endpoint = Endpoint::url("https://example.com/mcp");
/// let client = ConnectOptions::new().timeout(Duration::from_secs(5)).connect(&endpoint).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until `connect` or `connect_io` is called"]
pub struct ConnectOptions {
    label: Option<String>,
    timeout: Duration,
    elicitation: Option<Arc<dyn ElicitationHandler>>,
    sign_in: Option<SignIn>,
    is_legacy: bool,
    max_list_entries: usize,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            label: None,
            timeout: DEFAULT_TIMEOUT,
            elicitation: None,
            sign_in: None,
            is_legacy: false,
            max_list_entries: DEFAULT_MAX_ENTRIES,
        }
    }
}

impl ConnectOptions {
    /// Creates the default options: a timeout of 60 seconds, no elicitation and no sign-in.
    pub fn new() -> ConnectOptions {
        ConnectOptions::default()
    }

    /// Sets the name of the connection that users see. The default is the text of the endpoint, or `server`.
    pub fn label(mut self, label: impl Into<String>) -> ConnectOptions {
        self.label = Some(label.into());
        self
    }

    /// Sets the time limit for connecting and for each request. It does not run while the user interacts with an
    /// [`ElicitationHandler`] or signs in.
    pub fn timeout(mut self, timeout: Duration) -> ConnectOptions {
        self.timeout = timeout;
        self
    }

    /// Sets the handler of elicitations. Without one, the capability is not declared to the server.
    pub fn elicitation_handler(mut self, handler: Arc<dyn ElicitationHandler>) -> ConnectOptions {
        self.elicitation = Some(handler);
        self
    }

    /// Enables sign-in with OAuth. It applies to endpoints with a [`sign_in_url`](Endpoint::sign_in_url).
    pub fn sign_in(mut self, sign_in: SignIn) -> ConnectOptions {
        self.sign_in = Some(sign_in);
        self
    }

    /// Sets whether to begin with `initialize` instead of `server/discover`, because an earlier connection found a
    /// server of an older revision ([`Client::is_legacy`]). A newer server is still recognized.
    pub fn legacy(mut self, is_legacy: bool) -> ConnectOptions {
        self.is_legacy = is_legacy;
        self
    }

    /// Sets the most entries of a list; 100,000 by default. It also bounds the number of pages, to one per 100
    /// entries.
    pub fn max_list_entries(mut self, max_list_entries: usize) -> ConnectOptions {
        self.max_list_entries = max_list_entries;
        self
    }

    /// Connects to an endpoint: starts the command, or sends a request to the URL.
    ///
    /// Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// - [`ClientError::InvalidEndpoint`] if the endpoint is malformed;
    /// - [`ClientError::Unreachable`] if no server answers, or the command cannot be started or ends;
    /// - [`ClientError::InvalidResponse`] if it does not answer like an MCP server, or has no common revision;
    /// - [`ClientError::TimedOut`] if it does not answer in time;
    /// - [`ClientError::AuthenticationRequired`], [`ClientError::Forbidden`], [`ClientError::SignInFailed`] and
    ///   [`ClientError::Cancelled`] if it does not grant access.
    pub async fn connect(self, endpoint: &Endpoint) -> Result<Client, ClientError> {
        let label = self.label.clone().unwrap_or_else(|| endpoint.to_string());
        let handler = Handler::new(label.clone(), self.elicitation.clone());
        let auth = match (&self.sign_in, endpoint.sign_in_url()) {
            (Some(sign_in), Some(url)) => Some(with_timeout(self.timeout, AuthSession::new(url, sign_in)).await??),
            _ => None,
        };
        let mut attempts = 0;
        let connection = loop {
            let sign_ins = auth.as_ref().map_or(0, AuthSession::sign_ins);
            let connecting = transport::connect(endpoint, &handler, auth.as_ref(), self.is_legacy, self.timeout);
            match with_timeout(self.timeout, connecting).await? {
                Ok(connection) => break connection,
                Err(ConnectFailure { error, challenge, .. }) => match (&auth, challenge) {
                    (Some(auth), Some(challenge)) if attempts < MAX_SIGN_INS => {
                        auth.sign_in(sign_ins, &challenge).await?;
                    }
                    _ => return Err(error),
                },
            }
            attempts += 1;
        };
        Ok(self.client(label, handler, connection, auth))
    }

    /// Connects to a server at the other end of two streams, one JSON-RPC message per line as on stdio.
    ///
    /// Must be called inside a Tokio runtime. The streams are closed when the last clone of the client is dropped.
    /// A server of an older revision that ends when it receives `server/discover` requires [`legacy`](Self::legacy).
    ///
    /// # Errors
    ///
    /// [`ClientError::Unreachable`], [`ClientError::InvalidResponse`], [`ClientError::ErrorResponse`] and
    /// [`ClientError::TimedOut`], as for [`connect`](Self::connect).
    pub async fn connect_io(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Client, ClientError> {
        let label = self.label.clone().unwrap_or_else(|| "server".to_owned());
        let handler = Handler::new(label.clone(), self.elicitation.clone());
        let connecting = transport::connect_io(reader, writer, &handler, self.is_legacy, self.timeout);
        let connection = with_timeout(self.timeout, connecting).await??;
        Ok(self.client(label, handler, connection, None))
    }

    fn client(self, label: String, handler: Handler, connection: Connection, auth: Option<AuthSession>) -> Client {
        let ConnectOptions { timeout, max_list_entries, .. } = self;
        Client::new(ConnectionState { label, handler, connection, timeout, max_list_entries }, auth)
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("label", &self.label)
            .field("timeout", &self.timeout)
            .field("sign_in", &self.sign_in)
            .field("is_legacy", &self.is_legacy)
            .field("max_list_entries", &self.max_list_entries)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to an endpoint with the default [`ConnectOptions`].
    ///
    /// # Errors
    ///
    /// Those of [`ConnectOptions::connect`].
    pub async fn connect(endpoint: &Endpoint) -> Result<Client, ClientError> {
        ConnectOptions::new().connect(endpoint).await
    }

    /// Connects to a server at the other end of two streams with the default [`ConnectOptions`], for instance to a
    /// server in the same process:
    ///
    /// ```
    /// use promptshelf_client::Client;
    /// use tokio::io::{AsyncRead, AsyncWrite};
    ///
    /// # async fn serve(reader: impl AsyncRead, writer: impl AsyncWrite) {}
    /// async fn connect_in_process() -> Result<Client, promptshelf_client::ClientError> {
    ///     let (client_end, server_end) = tokio::io::duplex(64 << 10);
    ///     let (reader, writer) = tokio::io::split(server_end);
    ///     tokio::spawn(serve(reader, writer));
    ///     let (reader, writer) = tokio::io::split(client_end);
    ///     Client::from_io(reader, writer).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`ConnectOptions::connect_io`].
    pub async fn from_io(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Client, ClientError> {
        ConnectOptions::new().connect_io(reader, writer).await
    }
}

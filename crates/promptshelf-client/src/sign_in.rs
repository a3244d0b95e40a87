//! Signing in to a server with OAuth 2.1 and PKCE, in the user's browser (specification, *Authorization*).
//!
//! The SDK implements the protocol: discovery (RFC 9728, RFC 8414), `resource` (RFC 8707), `iss` (RFC 9207) and token
//! renewal. This module decides when the user has to sign in, as which client and for which scopes, receives the
//! redirect, and stores the credentials.

mod session;

use std::{
    collections::BTreeSet,
    convert::Infallible,
    error::Error,
    fmt, io,
    net::Ipv4Addr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialRefreshGuard,
    CredentialStore as SdkCredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};
use url::{Url, form_urlencoded};

use crate::{
    error::{BoxError, ClientError, as_error},
    http::http_client,
    secure_url::is_secure_url,
};

pub(crate) use self::session::AuthSession;

/// A store of credentials that survives the process. The values are secrets.
///
/// The methods may block; they are called on threads for blocking work.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
///
/// use promptshelf_client::{CredentialError, CredentialStore};
///
/// #[derive(Default)]
/// struct Memory(Mutex<HashMap<String, String>>);
///
/// impl CredentialStore for Memory {
///     fn load(&self, server: &str) -> Result<Option<String>, CredentialError> {
///         Ok(self.0.lock().unwrap().get(server).cloned())
///     }
///     fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError> {
///         self.0.lock().unwrap().insert(server.to_owned(), secret.to_owned());
///         Ok(())
///     }
///     fn clear(&self, server: &str) -> Result<bool, CredentialError> {
///         Ok(self.0.lock().unwrap().remove(server).is_some())
///     }
/// }
/// ```
pub trait CredentialStore: Send + Sync + 'static {
    /// Returns the credentials of a server, by its URL.
    fn load(&self, server: &str) -> Result<Option<String>, CredentialError>;

    /// Stores the credentials of a server in place of earlier ones.
    fn save(&self, server: &str, secret: &str) -> Result<(), CredentialError>;

    /// Removes the credentials of a server and returns whether there were any.
    fn clear(&self, server: &str) -> Result<bool, CredentialError>;

    /// Locks the credentials of a server while a token is renewed, until the guard is dropped. It prevents two
    /// processes from using the same refresh token. `None` renews without a lock.
    fn lock(&self, _server: &str) -> Result<Option<Box<dyn Send>>, CredentialError> {
        Ok(None)
    }
}

#[derive(Default)]
struct TokenMemory(Mutex<Option<String>>);

impl TokenMemory {
    fn replace(&self, secret: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.0.lock(), secret)
    }
}

impl CredentialStore for TokenMemory {
    fn load(&self, _: &str) -> Result<Option<String>, CredentialError> {
        Ok(self.0.lock().clone())
    }

    fn save(&self, _: &str, secret: &str) -> Result<(), CredentialError> {
        self.replace(Some(secret.to_owned()));
        Ok(())
    }

    fn clear(&self, _: &str) -> Result<bool, CredentialError> {
        Ok(self.replace(None).is_some())
    }
}

/// An error of a [`CredentialStore`]. Its text must not contain secrets.
#[derive(Debug)]
pub struct CredentialError {
    message: String,
    source: Option<BoxError>,
}

impl CredentialError {
    /// Creates an error with a message for people.
    #[must_use]
    pub fn new(message: impl Into<String>) -> CredentialError {
        CredentialError { message: message.into(), source: None }
    }

    /// Adds the cause. The message should include its text.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> CredentialError {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CredentialError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(as_error)
    }
}

/// A page on which the user signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignInPage {
    /// The URL of the MCP server that requires it.
    pub server: String,
    /// The host and port of the page, which the server chose.
    pub host: String,
    /// The page's URL: `https`, or on this machine.
    pub url: String,
}

/// Opens the sign-in page in the user's browser.
pub trait BrowserOpener: Send + Sync + 'static {
    /// Opens the page without waiting until the user has signed in. Returns `false` if the user refuses, which ends
    /// the request with [`ClientError::Cancelled`](crate::ClientError::Cancelled).
    fn open(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

/// The configuration of OAuth sign-in, as a builder.
///
/// ```
/// use std::sync::Arc;
///
/// use promptshelf_client::{ConnectOptions, CredentialStore, SignIn};
///
/// fn options(store: Arc<dyn CredentialStore>) -> ConnectOptions {
///     let sign_in = SignIn::new(store).scopes(vec!["prompts:read".to_owned()]);
///     ConnectOptions::new().sign_in(sign_in)
/// }
/// ```
#[derive(Clone)]
#[must_use = "a sign-in does nothing until it is part of `ConnectOptions`"]
pub struct SignIn {
    store: Arc<dyn CredentialStore>,
    browser: Option<Arc<dyn BrowserOpener>>,
    client_id: Option<String>,
    client_secret: Option<ClientSecret>,
    scopes: Vec<String>,
    grant: Grant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    AuthorizationCode,
    /// The program signs in as itself (RFC 6749, section 4.4).
    ClientCredentials,
}

/// A client secret, and the only authorization server that receives it.
#[derive(Clone)]
struct ClientSecret {
    secret: String,
    issuer: Option<String>,
}

impl SignIn {
    /// Creates a configuration that uses stored credentials only, without interaction.
    pub fn new(store: Arc<dyn CredentialStore>) -> SignIn {
        let grant = Grant::AuthorizationCode;
        SignIn { store, browser: None, client_id: None, client_secret: None, scopes: Vec::new(), grant }
    }

    /// Creates a configuration with which the program signs in as itself, without a user (the grant
    /// `client_credentials` of RFC 6749, section 4.4). The authorization server whose issuer identifier is `issuer` has
    /// registered the client, and no other one receives the secret. Tokens are kept in memory, and a new one is requested
    /// when the server refuses the last one or it ends.
    ///
    /// ```
    /// use promptshelf_client::{ConnectOptions, SignIn};
    ///
    /// let sign_in = SignIn::client_credentials("mirror", "its secret", "https://id.example.com");
    /// let options = ConnectOptions::new().sign_in(sign_in.scopes(vec!["prompts:read".to_owned()]));
    /// ```
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<String>, issuer: impl Into<String>) -> SignIn {
        let sign_in =
            SignIn::new(Arc::new(TokenMemory::default())).client(id).client_secret(secret, Some(issuer.into()));
        SignIn { grant: Grant::ClientCredentials, ..sign_in }
    }

    /// Allows interactive sign-in.
    pub fn browser(mut self, browser: Arc<dyn BrowserOpener>) -> SignIn {
        self.browser = Some(browser);
        self
    }

    /// Sets the OAuth client: the identifier of a registered client, or the `https` URL of a client ID metadata
    /// document. Without one the client registers itself, if the authorization server allows it (RFC 7591).
    pub fn client(mut self, id: impl Into<String>) -> SignIn {
        self.client_id = Some(id.into());
        self
    }

    /// Sets the secret of the OAuth client, and the issuer identifier of the authorization server that has registered
    /// it. The MCP server names its authorization server, so the secret is sent to this issuer only; without an issuer
    /// a sign-in fails with an error that names the one of the server.
    pub fn client_secret(mut self, secret: impl Into<String>, issuer: Option<String>) -> SignIn {
        self.client_secret = Some(ClientSecret { secret: secret.into(), issuer });
        self
    }

    fn secret_for(&self, issuer: Option<&str>) -> Result<Option<String>, ClientError> {
        let Some(ClientSecret { secret, issuer: expected }) = &self.client_secret else { return Ok(None) };
        if let (Some(issuer), Some(expected)) = (issuer, expected)
            && is_same_issuer(issuer, expected)
        {
            return Ok(Some(secret.clone()));
        }
        let found = issuer.unwrap_or("an unpublished authorization server");
        Err(ClientError::sign_in_failed(match expected {
            Some(expected) => format!("the client secret belongs to {expected}, and the server names {found}"),
            None => format!("the client secret has no issuer, and the server names {found}: set the secret's issuer"),
        }))
    }

    /// Sets the scopes of the first sign-in, in place of those that the server names.
    pub fn scopes(mut self, scopes: Vec<String>) -> SignIn {
        self.scopes = scopes;
        self
    }
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIn")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// The stored credentials of one server. Clones share them.
#[derive(Clone)]
struct ServerCredentials {
    store: Arc<dyn CredentialStore>,
    server: Arc<str>,
    client: Arc<Mutex<RegisteredClient>>,
    /// Whether the SDK receives the refresh token: its authorization server is known to be the one that issued it.
    may_refresh: Arc<AtomicBool>,
    grant: Grant,
}

/// The parts of a client registration that the SDK does not store.
#[derive(Clone, Default, Serialize, Deserialize)]
struct RegisteredClient {
    redirect: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// The scopes of a dynamic registration.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    scopes: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    credentials: StoredCredentials,
    client: RegisteredClient,
}

struct EarlierSignIn {
    client_id: String,
    secret: Option<String>,
    redirect: String,
    issuer: Option<String>,
    granted: Vec<String>,
    /// The scopes of the registration. Some authorization servers reject requests for others.
    registered: BTreeSet<String>,
}

impl EarlierSignIn {
    fn client_config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.client_id, &self.redirect);
        match &self.secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

impl ServerCredentials {
    fn new(store: Arc<dyn CredentialStore>, server: &str, grant: Grant) -> ServerCredentials {
        ServerCredentials { store, server: server.into(), client: Arc::default(), may_refresh: Arc::default(), grant }
    }

    fn set_client(&self, redirect: &str, secret: Option<&str>, scopes: BTreeSet<String>) {
        let client = RegisteredClient { redirect: redirect.to_owned(), secret: secret.map(str::to_owned), scopes };
        *self.client.lock() = client;
    }

    /// Sets whether the SDK receives the refresh token. By default it does not.
    fn set_may_refresh(&self, may_refresh: bool) {
        self.may_refresh.store(may_refresh, Ordering::Release);
    }

    async fn earlier(&self) -> Result<Option<EarlierSignIn>, AuthError> {
        Ok(self.record().await?.map(|Record { credentials, client }| EarlierSignIn {
            client_id: credentials.client_id,
            secret: client.secret,
            redirect: client.redirect,
            issuer: credentials.issuer,
            granted: credentials.granted_scopes,
            registered: client.scopes,
        }))
    }

    /// Reads the record. A malformed one counts as missing, so that the user signs in again.
    async fn record(&self) -> Result<Option<Record>, AuthError> {
        let text = self.blocking(CredentialStore::load).await?;
        let record: Option<Record> = text.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(record) = &record {
            *self.client.lock() = record.client.clone();
        }
        Ok(record)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        access: impl FnOnce(&dyn CredentialStore, &str) -> Result<T, CredentialError> + Send + 'static,
    ) -> Result<T, AuthError> {
        let (store, server) = (Arc::clone(&self.store), Arc::clone(&self.server));
        let result = tokio::task::spawn_blocking(move || access(&*store, &server)).await;
        result
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}

#[async_trait]
impl SdkCredentialStore for ServerCredentials {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let mut credentials = self.record().await?.map(|record| record.credentials);
        if let Some(tokens) = credentials.as_mut().and_then(|credentials| credentials.token_response.as_mut()) {
            if !self.may_refresh.load(Ordering::Acquire) {
                tokens.set_refresh_token(None);
            }
            if self.grant == Grant::ClientCredentials {
                // The SDK does not send a token in its last 30 seconds, and a new one may have a shorter life. The server
                // refuses a token that has ended.
                tokens.set_expires_in(None);
            }
        }
        Ok(credentials)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client = self.client.lock().clone();
        let text = serde_json::to_string(&Record { credentials, client })
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.blocking(move |store, server| store.save(server, &text)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.blocking(CredentialStore::clear).await.map(drop)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let lock = self.blocking(CredentialStore::lock).await?;
        Ok(lock.map(CredentialRefreshGuard::new))
    }
}

// Discovery of a server's authorization server, and the requirements on its metadata.
// The SDK falls back to endpoints at the server's own origin if the server publishes no metadata (specification
// 2025-03-26, *Fallbacks for Servers without Metadata Discovery*). Such endpoints may sign a user in, but they never
// receive credentials of an earlier sign-in: a server could otherwise collect the refresh tokens of its authorization
// server by not publishing it any more.

/// The largest metadata of an authorization server, in bytes.
const MAX_METADATA_BYTES: usize = 256 << 10;

/// The time for the metadata of an issuer, with all the URLs where it can be.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);

struct AuthorizationServer {
    metadata: AuthorizationMetadata,
    /// Whether the server published it. Otherwise the endpoints are defaults.
    is_published: bool,
}

impl AuthorizationServer {
    async fn discover(
        manager: &AuthorizationManager,
        challenge: Option<&str>,
        server: &str,
    ) -> Result<AuthorizationServer, ClientError> {
        let found = manager.resolve_metadata_from_challenge(challenge).await.map_err(ClientError::sign_in)?;
        check_endpoints(&found.metadata, server)?;
        Ok(AuthorizationServer { is_published: found.source.is_discovered(), metadata: found.metadata })
    }

    /// Reads the metadata of an issuer at its own well-known URLs (RFC 8414, section 3.1).
    ///
    /// An MCP server can name a URL of its own below `/.well-known/` as its authorization server. The SDK does not compare
    /// the issuer of what it finds there, so that the server could give the name of another issuer to its own token
    /// endpoint. A secret is only sent to endpoints that its issuer publishes.
    async fn of_issuer(issuer: &str) -> Result<AuthorizationMetadata, ClientError> {
        let read = tokio::time::timeout(METADATA_TIMEOUT, published_by(issuer)).await;
        read.unwrap_or(Err(ClientError::TimedOut { after: METADATA_TIMEOUT }))
    }

    /// Returns the placeholder of an unknown authorization server. Its name never resolves (RFC 6761, section 6.4).
    fn unknown() -> AuthorizationServer {
        let mut metadata = AuthorizationMetadata::default();
        metadata.authorization_endpoint = "https://unknown.invalid/".to_owned();
        metadata.token_endpoint = "https://unknown.invalid/".to_owned();
        AuthorizationServer { metadata, is_published: false }
    }

    fn issuer(&self) -> Option<&str> {
        self.metadata.issuer.as_deref().filter(|_| self.is_published)
    }

    fn has_issued(&self, stored_issuer: Option<&str>) -> bool {
        self.issuer().is_some() && self.issuer() == stored_issuer
    }

    /// Requires PKCE with S256. Metadata without the member means that it is not supported (specification 2025-11-25,
    /// *Authorization Code Protection*).
    fn check_pkce(&self) -> Result<(), ClientError> {
        let methods = self.metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !self.is_published || methods.iter().any(|method| method == "S256") {
            return Ok(());
        }
        Err(ClientError::sign_in_failed(format!(
            "the authorization server {} does not announce PKCE with S256 (`code_challenge_methods_supported`), so an \
             authorization code could be stolen",
            self.metadata.issuer.as_deref().unwrap_or(&self.metadata.authorization_endpoint)
        )))
    }
}

async fn published_by(issuer: &str) -> Result<AuthorizationMetadata, ClientError> {
    let base = Url::parse(issuer)
        .map_err(|error| ClientError::sign_in_failed(format!("the issuer {issuer} is not a URL: {error}")))?;
    let client = http_client()?;
    let mut reason = "no metadata was found".to_owned();
    for url in well_known(&base) {
        match fetch(&client, url).await {
            Ok(metadata) if metadata.issuer.as_deref().is_some_and(|found| is_same_issuer(found, issuer)) => {
                check_endpoints(&metadata, issuer)?;
                return Ok(metadata);
            }
            Ok(_) => reason = "its metadata has another issuer".to_owned(),
            Err(error) => reason = error,
        }
    }
    Err(ClientError::sign_in_failed(format!(
        "the authorization server {issuer} does not publish its endpoints: {reason}"
    )))
}

/// Returns the URLs of an issuer's metadata: of OAuth, and of OpenID Connect in both forms.
fn well_known(issuer: &Url) -> [Url; 3] {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&path);
        url
    };
    [
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("/.well-known/openid-configuration{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}

/// Compares issuers. Some servers publish theirs with a slash at the end, and are configured without it.
fn is_same_issuer(one: &str, other: &str) -> bool {
    let without_slash = |issuer: &str| issuer.strip_suffix('/').unwrap_or(issuer).to_owned();
    without_slash(one) == without_slash(other)
}

async fn fetch(client: &reqwest::Client, url: Url) -> Result<AuthorizationMetadata, String> {
    let unreachable = |error: reqwest::Error| error.without_url().to_string();
    let mut response = client.get(url).send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(format!("it answered with HTTP {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&part);
        if body.len() > MAX_METADATA_BYTES {
            return Err(format!("its metadata has more than {MAX_METADATA_BYTES} bytes"));
        }
    }
    serde_json::from_slice(&body).map_err(|error| format!("its metadata is malformed: {error}"))
}

/// Requires `https` for endpoints that are not on this machine: codes and tokens must be encrypted, and only web pages
/// may be opened.
fn check_endpoints(metadata: &AuthorizationMetadata, server: &str) -> Result<(), ClientError> {
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
        if !is_secure_url(endpoint) {
            return Err(ClientError::sign_in_failed(format!(
                "the authorization endpoint {endpoint} of {server} is not https"
            )));
        }
    }
    Ok(())
}

// The redirect URI of a sign-in: an HTTP server on a loopback port that listens until the user has signed in
// (RFC 8252, section 7.3).

const LAST_PAGE_TIMEOUT: Duration = Duration::from_secs(2);

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The most connections at once. Any program and any page can connect to the port.
const MAX_CONNECTIONS: usize = 16;

struct Redirect {
    listener: TcpListener,
    uri: String,
}

struct Listening {
    uri: String,
    callbacks: mpsc::Receiver<Callback>,
    accepting: JoinHandle<()>,
}

struct Redirected {
    url: String,
    /// The error of the authorization server, if it granted nothing.
    error: Option<String>,
    page: oneshot::Sender<bool>,
    accepting: JoinHandle<()>,
}

/// A request with the expected state: its query, and whether the sign-in succeeded, for the page in the browser.
type Callback = (String, oneshot::Sender<bool>);

struct Expected {
    state: String,
    callbacks: mpsc::Sender<Callback>,
}

impl Redirect {
    /// Binds the port of the previous sign-in, so that its client registration stays valid, or any free port.
    async fn bind(previous: Option<&str>) -> io::Result<Redirect> {
        let port = previous.and_then(|uri| Url::parse(uri).ok()?.port()).unwrap_or(0);
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(_) if port > 0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            listener => listener?,
        };
        let uri = format!("http://{}/callback", listener.local_addr()?);
        Ok(Redirect { listener, uri })
    }

    /// Accepts connections until the request with this state arrives. All other requests are rejected.
    fn listen(self, state: String) -> Listening {
        let (sender, callbacks) = mpsc::channel(1);
        let expected = Arc::new(Expected { state, callbacks: sender });
        let accepting = tokio::spawn(accept(self.listener, expected));
        Listening { uri: self.uri, callbacks, accepting }
    }
}

impl Listening {
    async fn redirected(mut self) -> Result<Redirected, ClientError> {
        let Some((query, page)) = self.callbacks.recv().await else {
            return Err(ClientError::sign_in_failed("the port of the redirect URI is closed"));
        };
        let parameter = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let error = parameter("error").map(|error| match parameter("error_description") {
            Some(description) => format!("the authorization server returned {error}: {description}"),
            None => format!("the authorization server returned {error}"),
        });
        let url = format!("{}?{query}", self.uri);
        // `self` is taken apart manually: dropping it would stop the server before the last page.
        let accepting = std::mem::replace(&mut self.accepting, tokio::spawn(std::future::ready(())));
        Ok(Redirected { url, error, page, accepting })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Redirected {
    async fn finish(mut self, signed_in: bool) {
        self.page.send(signed_in).ok();
        tokio::time::timeout(LAST_PAGE_TIMEOUT, &mut self.accepting).await.ok();
        self.accepting.abort();
    }
}

/// Accepts connections until one of them has answered the expected request. Dropping the set ends the others.
async fn accept(listener: TcpListener, expected: Arc<Expected>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if permits.available_permits() > 0 => {
                let (Ok((stream, _)), Ok(permit)) = (accepted, Arc::clone(&permits).try_acquire_owned()) else { continue };
                let expected = Arc::clone(&expected);
                connections.spawn(async move {
                    let _permit = permit;
                    serve(stream, expected).await
                });
            }
            Some(Ok(true)) = connections.join_next() => return,
        }
    }
}

/// Answers one request. Returns whether it was the expected one.
async fn serve(stream: TcpStream, expected: Arc<Expected>) -> bool {
    let (done, mut is_done) = mpsc::unbounded_channel();
    let service = service_fn(|request: Request<Incoming>| {
        let (expected, done) = (Arc::clone(&expected), done.clone());
        async move {
            let (response, is_expected) = respond(&request, &expected).await;
            if is_expected {
                done.send(()).ok();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    connection.await.ok();
    is_done.try_recv().is_ok()
}

async fn respond(request: &Request<Incoming>, expected: &Expected) -> (Response<String>, bool) {
    let query = request.uri().query().unwrap_or_default();
    let is_callback = request.method() == Method::GET && request.uri().path() == "/callback";
    let has_state =
        form_urlencoded::parse(query.as_bytes()).any(|(name, state)| name == "state" && state == expected.state);
    let (page, signed_in) = oneshot::channel();
    let is_expected = is_callback && has_state && expected.callbacks.try_send((query.to_owned(), page)).is_ok();
    let signed_in = if is_expected { signed_in.await.ok() } else { None };
    let (status, text) = match signed_in {
        Some(true) => (StatusCode::OK, "You are signed in. You can close this page and return to the terminal."),
        Some(false) => (StatusCode::OK, "Sign-in failed. The terminal shows the reason; you can close this page."),
        None => (StatusCode::BAD_REQUEST, "No sign-in is in progress at this address."),
    };
    let mut response = Response::new(format!("<!doctype html><title>promptshelf</title><p>{text}</p>\n"));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The URL of this page contains the authorization code.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    (response, is_expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn issuer_that_never_answers_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", silent.local_addr().unwrap());
        let found = AuthorizationServer::of_issuer(&issuer).await;
        assert!(matches!(found, Err(ClientError::TimedOut { after: METADATA_TIMEOUT })), "{found:?}");
    }
}

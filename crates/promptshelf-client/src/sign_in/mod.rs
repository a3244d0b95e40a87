//! Signing in to a server at an address: OAuth 2.1 with PKCE, in the person's
//! own browser (specification, *Authorization*).
//!
//! The protocol is the official SDK's: discovery (RFC 9728, RFC 8414),
//! `resource` (RFC 8707), `iss` (RFC 9207), renewal. Here is what it leaves to
//! its user: when somebody is asked, which client we are, which scopes are
//! worth asking for again, where the answer comes back and where it is kept.

mod kept;
mod redirect;

use std::{
    collections::BTreeSet,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
    AuthorizationRequest, AuthorizationSession, OAuthClientConfig, WWWAuthenticateParams,
};
use tokio::sync::Mutex;
use url::Url;

use self::{kept::Kept, redirect::Redirect};
use super::{ClientError, error::Challenge, target::is_this_machine};

/// What authorization servers show people as our name.
const NAME: &str = "promptshelf";
/// How long somebody may take with the page.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where sign-ins are kept between two runs. What is kept is a secret.
///
/// The methods may block; they are not called on the threads of a runtime.
pub trait CredentialStore: Send + Sync + 'static {
    /// What was kept for a server.
    ///
    /// # Errors
    ///
    /// A sentence that says why it cannot be told.
    fn load(&self, server: &str) -> Result<Option<String>, String>;

    /// Keeps something for a server, instead of what was kept before.
    ///
    /// # Errors
    ///
    /// A sentence that says why it cannot be kept.
    fn save(&self, server: &str, secret: &str) -> Result<(), String>;

    /// Forgets a server; says whether there was anything to forget.
    ///
    /// # Errors
    ///
    /// A sentence that says why it cannot be forgotten.
    fn clear(&self, server: &str) -> Result<bool, String>;

    /// Held while a sign-in is renewed, so that two programs do not use up the
    /// same refresh token.
    ///
    /// # Errors
    ///
    /// A sentence that says why it cannot be had.
    fn lock(&self, _server: &str) -> Result<Option<Box<dyn Send>>, String> {
        Ok(None)
    }
}

/// A page where somebody signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignInPage {
    /// The server that wants it.
    pub server: String,
    /// The host of the page. The server has chosen it.
    pub host: String,
    /// The page: `https`, or on this machine.
    pub url: String,
}

/// Whoever brings a person to a page.
pub trait BrowserOpener: Send + Sync + 'static {
    /// Brings somebody to the page, and does not wait until they are done;
    /// `false` when they do not want to.
    fn visit(&self, page: SignInPage) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

/// How to sign in where a server wants it.
#[derive(Clone)]
#[must_use = "it does nothing until a connector has it"]
pub struct SignIn {
    vault: Arc<dyn CredentialStore>,
    visitor: Option<Arc<dyn BrowserOpener>>,
    client_id: Option<String>,
    client_secret: Option<String>,
    scopes: Vec<String>,
}

impl SignIn {
    /// Signs in with what a vault keeps; nobody is asked.
    pub fn new(vault: Arc<dyn CredentialStore>) -> SignIn {
        SignIn { vault, visitor: None, client_id: None, client_secret: None, scopes: Vec::new() }
    }

    /// Lets somebody sign in.
    pub fn visitor(mut self, visitor: Arc<dyn BrowserOpener>) -> SignIn {
        self.visitor = Some(visitor);
        self
    }

    /// Who we are for authorization servers: an identifier that was registered
    /// there, or the `https` address of a client ID metadata document. Without
    /// one we register by ourselves, where that is possible.
    pub fn client(mut self, id: impl Into<String>, secret: Option<String>) -> SignIn {
        self.client_id = Some(id.into());
        self.client_secret = secret;
        self
    }

    /// Scopes to ask for, instead of those that the server names.
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
            .finish_non_exhaustive()
    }
}

/// The way into one server.
pub(super) struct Gate {
    url: Url,
    server: String,
    sign_in: SignIn,
    kept: Kept,
    client: AuthClient<reqwest::Client>,
    /// One page at a time; inside are the scopes that were asked for in this run.
    asked: Mutex<BTreeSet<String>>,
    times: AtomicUsize,
}

impl Gate {
    /// Prepares requests with what is kept for the server, if anything is.
    pub(super) async fn of(server: &str, sign_in: &SignIn) -> Result<Gate, ClientError> {
        let url =
            Url::parse(server).map_err(|error| ClientError::Target(format!("{server} is no address: {error}")))?;
        let kept = Kept::new(Arc::clone(&sign_in.vault), server);
        let manager = manager(&url, &kept).await.map_err(|error| failed(&error))?;
        let client = AuthClient::new(super::transport::http_client()?, manager);
        let gate = Gate {
            url,
            server: server.to_owned(),
            sign_in: sign_in.clone(),
            kept,
            client,
            asked: Mutex::default(),
            times: AtomicUsize::new(0),
        };
        gate.take_up().await;
        Ok(gate)
    }

    /// Uses a sign-in of an earlier run. Where its authorization server cannot
    /// be asked right now, the token is still good until it ends.
    async fn take_up(&self) {
        let Ok(Some(known)) = self.kept.known().await else { return };
        let mut manager = self.client.auth_manager.lock().await;
        let taken = match manager.initialize_from_store().await {
            // The SDK remembers no secrets of clients.
            Ok(true) if known.secret.is_some() => manager.configure_client(known.config()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            tracing::debug!(%error, "a sign-in of an earlier run cannot be renewed");
        }
    }

    /// What requests are sent with.
    pub(super) fn client(&self) -> AuthClient<reqwest::Client> {
        self.client.clone()
    }

    /// Whether there is anything to sign in with.
    pub(super) async fn has_kept(&self) -> bool {
        matches!(self.kept.known().await, Ok(Some(_)))
    }

    /// Lets somebody sign in for scopes beside those that were granted before,
    /// unless all of them were.
    pub(super) async fn ask_for(&self, scopes: &[String]) -> Result<(), ClientError> {
        let known = self.kept.known().await.map_err(|error| failed(&error))?;
        if known.is_some_and(|known| scopes.iter().all(|scope| known.scopes.contains(scope))) {
            return Ok(());
        }
        self.pass(self.times(), &Challenge::of_scopes(scopes)).await
    }

    /// How often somebody has signed in. Whoever is refused tells with it
    /// whether somebody has signed in since it asked.
    pub(super) fn times(&self) -> usize {
        self.times.load(Ordering::Acquire)
    }

    /// Lets somebody sign in, because a request that was sent after so many
    /// times was refused. Afterwards the request can be sent again.
    pub(super) async fn pass(&self, times: usize, challenge: &Challenge) -> Result<(), ClientError> {
        let mut asked = self.asked.lock().await;
        if self.times() > times {
            return Ok(());
        }
        let Some(visitor) = &self.sign_in.visitor else { return Err(challenge.error()) };
        let wanted = challenge.scopes();
        if challenge.is_forbidden() {
            let step_up = WWWAuthenticateParams::parse(&challenge.header, &self.url).is_insufficient_scope();
            // What was asked for before and is still not enough will not be enough the next time.
            if !step_up || wanted.iter().all(|scope| asked.contains(scope)) {
                return Err(challenge.error());
            }
        }
        let mut manager = manager(&self.url, &self.kept).await.map_err(|error| failed(&error))?;
        let found = manager.resolve_metadata_from_challenge(Some(&challenge.header)).await;
        let found = found.map_err(|error| failed(&error))?;
        self.must_be_safe(&found.metadata)?;
        let is_guessed = found.source == AuthorizationMetadataSource::LegacyEndpointFallback;
        manager.set_metadata(found.metadata.clone());
        let known = self.kept.known().await.ok().flatten();
        let known = known.filter(|known| known.issuer == found.metadata.issuer && known.issuer.is_some());

        let scopes = self.scopes(&manager, challenge, known.as_ref().map(|known| known.scopes.as_slice())).await;
        let redirect = Redirect::open(known.as_ref().map(|known| known.redirect.as_str()))
            .await
            .map_err(|error| ClientError::SignInFailed(format!("no port can be listened on: {error}")))?;
        let known = known.filter(|known| known.redirect == redirect.uri && scopes.is_subset(&known.registered));
        let registered = known.as_ref().map_or_else(|| scopes.clone(), |known| known.registered.clone());
        let (id, secret) = match self.identity(&mut manager, &found.metadata, known, &redirect.uri, &scopes).await {
            // Where nothing was said about signing in, there is nothing to say about it either.
            Err(_) if is_guessed => return Err(challenge.error()),
            identity => identity?,
        };
        self.kept.set_client(&redirect.uri, secret.as_deref(), registered);

        let mut request =
            AuthorizationRequest::new(&redirect.uri).with_initial_scope_selection().with_preregistered_client(id);
        if let Some(secret) = secret {
            request = request.with_client_secret(secret);
        }
        let request = request.with_scopes(scopes.iter().cloned());
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| failed(&error))?;
        asked.extend(scopes);
        asked.extend(wanted);
        self.walk(session, redirect, &**visitor).await
    }

    /// From the page to the tokens.
    async fn walk(
        &self,
        session: AuthorizationSession,
        redirect: Redirect,
        visitor: &dyn BrowserOpener,
    ) -> Result<(), ClientError> {
        let url = session.get_authorization_url().to_owned();
        let page = Url::parse(&url).map_err(|error| ClientError::SignInFailed(error.to_string()))?;
        let state = page.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
        let host = match page.port() {
            Some(port) => format!("{}:{port}", page.host_str().unwrap_or_default()),
            None => page.host_str().unwrap_or_default().to_owned(),
        };
        let waiting = redirect.wait(state.unwrap_or_default());
        if !visitor.visit(SignInPage { server: self.server.clone(), host, url }).await {
            return Err(ClientError::Cancelled);
        }
        let answered = tokio::time::timeout(PATIENCE, waiting.answer()).await;
        let answer = answered.map_err(|_| ClientError::SignInFailed("nobody has signed in".to_owned()))??;
        let signed_in = match &answer.refused {
            Some(refused) => Err(ClientError::SignInFailed(refused.clone())),
            None => session.handle_callback_url(&answer.url).await.map(drop).map_err(|error| failed(&error)),
        };
        answer.reply(signed_in.is_ok()).await;
        signed_in?;
        *self.client.auth_manager.lock().await = session.auth_manager;
        self.times.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// What to ask for: what somebody said, or what the server names, and when
    /// that is more than was granted before, both.
    async fn scopes(
        &self,
        manager: &AuthorizationManager,
        challenge: &Challenge,
        granted: Option<&[String]>,
    ) -> BTreeSet<String> {
        if !challenge.is_forbidden() && !self.sign_in.scopes.is_empty() {
            return self.sign_in.scopes.iter().cloned().collect();
        }
        let mut scopes: BTreeSet<String> = manager.select_initial_scopes(&[]).await.into_iter().collect();
        if challenge.is_forbidden() {
            scopes.extend(challenge.scopes());
            scopes.extend(granted.unwrap_or_default().iter().cloned());
        }
        scopes
    }

    /// Who we are: what somebody has set up, what this authorization server has
    /// called us before, or what it calls us now.
    async fn identity(
        &self,
        manager: &mut AuthorizationManager,
        metadata: &AuthorizationMetadata,
        known: Option<kept::Known>,
        redirect: &str,
        scopes: &BTreeSet<String>,
    ) -> Result<(String, Option<String>), ClientError> {
        let takes_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
        let takes_documents = takes_documents.and_then(serde_json::Value::as_bool).unwrap_or(false);
        match &self.sign_in.client_id {
            Some(id) if !id.starts_with("https://") || takes_documents => {
                return Ok((id.clone(), self.sign_in.client_secret.clone()));
            }
            _ => {}
        }
        if let Some(known) = known {
            return Ok((known.id, known.secret));
        }
        if metadata.registration_endpoint.is_none() {
            return Err(ClientError::SignInFailed(
                "the authorization server lets no program register by itself: register one there, and name it with \
                 --client-id"
                    .to_owned(),
            ));
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = manager.register_client(NAME, redirect, &scopes).await.map_err(|error| failed(&error))?;
        Ok((registered.client_id, registered.client_secret))
    }

    /// Codes and tokens cross no network in clear, and nothing but a web page is opened.
    fn must_be_safe(&self, metadata: &AuthorizationMetadata) -> Result<(), ClientError> {
        let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
        for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
            let is_here = endpoint.starts_with("http://") && is_this_machine(endpoint);
            if !endpoint.starts_with("https://") && !is_here {
                return Err(ClientError::SignInFailed(format!(
                    "{} names {endpoint} for signing in, which is not https",
                    self.server
                )));
            }
        }
        Ok(())
    }
}

/// A manager that knows what is kept.
async fn manager(url: &Url, kept: &Kept) -> Result<AuthorizationManager, AuthError> {
    let mut manager = AuthorizationManager::new(url.clone()).await?;
    manager.set_credential_store(kept.clone());
    Ok(manager)
}

/// Why it does not work, with what it comes from.
pub(super) fn failed(error: &AuthError) -> ClientError {
    ClientError::SignInFailed(super::error::chain(error))
}

impl kept::Known {
    fn config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.id, &self.redirect);
        match &self.secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

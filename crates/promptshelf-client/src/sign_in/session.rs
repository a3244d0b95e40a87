//! The authorization of one connection.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, ClientCredentialsConfig,
    WWWAuthenticateParams,
};
use tokio::sync::Mutex;
use url::Url;

use super::{
    AuthorizationServer, BrowserOpener, EarlierSignIn, Grant, Redirect, ServerCredentials, SignIn, SignInPage,
};
use crate::{
    challenge::Challenge,
    error::ClientError,
    http::{Messages, http_client},
};

/// The name under which the client registers; authorization servers show it to users.
const CLIENT_NAME: &str = "promptshelf";

const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(600);

/// The time for discovery and the token of a program that signs in as itself.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// The authorization of a connection: the tokens of its requests, and interactive sign-in.
pub(crate) struct AuthSession {
    url: Url,
    server: String,
    config: SignIn,
    credentials: ServerCredentials,
    client: AuthClient<Messages>,
    /// The scopes that were requested in this session. Locked during a sign-in, so that there is one at a time.
    requested: Mutex<BTreeSet<String>>,
    sign_ins: AtomicUsize,
}

impl AuthSession {
    /// Creates a session with the stored credentials of the server, if there are any.
    pub(crate) async fn new(server: &str, config: &SignIn) -> Result<AuthSession, ClientError> {
        let url = Url::parse(server)
            .map_err(|error| ClientError::InvalidEndpoint(format!("expected a URL, got `{server}`: {error}")))?;
        let credentials = ServerCredentials::new(Arc::clone(&config.store), server, config.grant);
        let manager = manager(&url, &credentials).await.map_err(ClientError::sign_in)?;
        let client = AuthClient::new(Messages(http_client()?), manager);
        let session = AuthSession {
            url,
            server: server.to_owned(),
            config: config.clone(),
            credentials,
            client,
            requested: Mutex::default(),
            sign_ins: AtomicUsize::new(0),
        };
        session.restore().await;
        Ok(session)
    }

    /// Restores an earlier sign-in. Unless the server publishes the authorization server that issued the credentials,
    /// the access token stays usable until it expires, and no refresh token is sent anywhere.
    async fn restore(&self) {
        let Ok(Some(earlier)) = self.credentials.earlier().await else { return };
        let mut manager = self.client.auth_manager.lock().await;
        let found = AuthorizationServer::discover(&manager, None, &self.server).await;
        let found = found.unwrap_or_else(|error| {
            tracing::debug!(%error, "stored credentials cannot be renewed");
            AuthorizationServer::unknown()
        });
        let claims = found.has_issued(earlier.issuer.as_deref());
        // The refresh token is for endpoints that its issuer publishes, whatever the server names.
        let issued = match (&earlier.issuer, claims) {
            (Some(issuer), true) => AuthorizationServer::of_issuer(issuer)
                .await
                .inspect_err(|error| tracing::debug!(%error, "stored credentials cannot be renewed"))
                .ok(),
            _ => None,
        };
        let restored = if let Some(metadata) = issued {
            manager.set_metadata(metadata);
            match manager.initialize_from_store().await {
                Ok(true) => {
                    self.credentials.set_may_refresh(true);
                    // The SDK does not store client secrets.
                    manager.configure_client(earlier.client_config())
                }
                other => other.map(drop),
            }
        } else if found.issuer().is_some() && earlier.issuer.is_some() && !claims {
            // The SDK removes credentials of another issuer.
            manager.set_metadata(found.metadata);
            manager.initialize_from_store().await.map(drop)
        } else {
            manager.set_metadata(AuthorizationServer::unknown().metadata);
            manager.configure_client_id(&earlier.client_id)
        };
        if let Err(error) = restored {
            tracing::debug!(%error, "stored credentials cannot be renewed");
        }
    }

    pub(crate) fn http_client(&self) -> AuthClient<Messages> {
        self.client.clone()
    }

    pub(crate) async fn has_stored_credentials(&self) -> bool {
        matches!(self.credentials.earlier().await, Ok(Some(_)))
    }

    /// Requests further scopes, unless all of them are granted.
    pub(crate) async fn request_scopes(&self, scopes: &[String]) -> Result<(), ClientError> {
        let earlier = self.credentials.earlier().await.map_err(ClientError::sign_in)?;
        if earlier.is_some_and(|earlier| scopes.iter().all(|scope| earlier.granted.contains(scope))) {
            return Ok(());
        }
        self.sign_in(self.sign_ins(), &Challenge::for_scopes(scopes)).await
    }

    /// Returns the number of sign-ins. A request that is rejected compares it to detect a sign-in since it was sent.
    pub(crate) fn sign_ins(&self) -> usize {
        self.sign_ins.load(Ordering::Acquire)
    }

    /// Signs in after the challenge to a request that was sent after `sign_ins` sign-ins. Returns at once if there was
    /// another sign-in since. The request can be sent again afterwards.
    pub(crate) async fn sign_in(&self, sign_ins: usize, challenge: &Challenge) -> Result<(), ClientError> {
        let mut requested = self.requested.lock().await;
        if self.sign_ins() > sign_ins {
            return Ok(());
        }
        if self.config.grant == Grant::ClientCredentials {
            // The operator has chosen the scopes: a server that requires more gets no token for them.
            if challenge.is_forbidden() {
                return Err(challenge.to_error());
            }
            let signed_in = tokio::time::timeout(TOKEN_TIMEOUT, self.sign_in_as_program(challenge)).await;
            return signed_in.unwrap_or(Err(ClientError::TimedOut { after: TOKEN_TIMEOUT }));
        }
        let Some(browser) = &self.config.browser else { return Err(challenge.to_error()) };
        let missing = challenge.scopes();
        if challenge.is_forbidden() {
            let step_up = WWWAuthenticateParams::parse(&challenge.header, &self.url).is_insufficient_scope();
            // Scopes that were requested before and still missing will not be granted the next time.
            if !step_up || missing.iter().all(|scope| requested.contains(scope)) {
                return Err(challenge.to_error());
            }
        }
        let mut manager = manager(&self.url, &self.credentials).await.map_err(ClientError::sign_in)?;
        let mut found = AuthorizationServer::discover(&manager, Some(&challenge.header), &self.server).await?;
        let earlier = self.credentials.earlier().await.ok().flatten();
        let earlier = earlier.filter(|earlier| found.has_issued(earlier.issuer.as_deref()));
        let has_secret = earlier.as_ref().is_some_and(|earlier| earlier.secret.is_some())
            || matches!(self.config.secret_for(found.issuer()), Ok(Some(_)));
        if let (Some(issuer), true) = (found.issuer(), has_secret) {
            // A secret is for endpoints that its issuer publishes, whatever the server names.
            found.metadata = AuthorizationServer::of_issuer(issuer).await?;
        }
        found.check_pkce()?;
        manager.set_metadata(found.metadata.clone());

        let scopes = self.scopes(&manager, challenge, earlier.as_ref().map(|earlier| earlier.granted.as_slice())).await;
        let redirect =
            Redirect::bind(earlier.as_ref().map(|earlier| earlier.redirect.as_str())).await.map_err(|error| {
                ClientError::SignInFailed {
                    reason: format!("the redirect URI cannot be bound: {error}"),
                    source: Some(Box::new(error)),
                }
            })?;
        let earlier =
            earlier.filter(|earlier| earlier.redirect == redirect.uri && scopes.is_subset(&earlier.registered));
        let registered = earlier.as_ref().map_or_else(|| scopes.clone(), |earlier| earlier.registered.clone());
        let (id, secret) = match self.identity(&mut manager, &found, earlier, &redirect.uri, &scopes).await {
            // A server that announces no authorization server gets the plain error.
            Err(_) if !found.is_published => return Err(challenge.to_error()),
            identity => identity?,
        };
        self.credentials.set_client(&redirect.uri, secret.as_deref(), registered);

        let mut request =
            AuthorizationRequest::new(&redirect.uri).with_initial_scope_selection().with_preregistered_client(id);
        if let Some(secret) = secret {
            request = request.with_client_secret(secret);
        }
        let request = request.with_scopes(scopes.iter().cloned());
        let session =
            AuthorizationSession::new(manager, request).await.map_err(|(_, error)| ClientError::sign_in(error))?;
        requested.extend(scopes);
        requested.extend(missing);
        self.authorize(session, redirect, &**browser).await?;
        self.credentials.set_may_refresh(found.issuer().is_some());
        Ok(())
    }

    async fn sign_in_as_program(&self, challenge: &Challenge) -> Result<(), ClientError> {
        let mut manager = manager(&self.url, &self.credentials).await.map_err(ClientError::sign_in)?;
        let found = AuthorizationServer::discover(&manager, Some(&challenge.header), &self.server).await?;
        let (Some(issuer), Some(id), Some(secret)) =
            (found.issuer(), &self.config.client_id, self.config.secret_for(found.issuer())?)
        else {
            return Err(challenge.to_error());
        };
        // The MCP server chose the document in `found`; the issuer itself has the endpoints.
        let metadata = AuthorizationServer::of_issuer(issuer).await?;
        manager.set_metadata(metadata);
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: id.clone(),
            client_secret: secret,
            scopes: self.scopes(&manager, challenge, None).await.into_iter().collect(),
            resource: Some(self.server.clone()),
        };
        manager.validate_client_credentials_metadata(&config).map_err(ClientError::sign_in)?;
        manager.configure_client_credentials(&config).map_err(ClientError::sign_in)?;
        manager.exchange_client_credentials(&config).await.map_err(ClientError::sign_in)?;
        *self.client.auth_manager.lock().await = manager;
        self.sign_ins.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    async fn authorize(
        &self,
        session: AuthorizationSession,
        redirect: Redirect,
        browser: &dyn BrowserOpener,
    ) -> Result<(), ClientError> {
        let url = session.get_authorization_url().to_owned();
        let page = Url::parse(&url)
            .map_err(|error| ClientError::sign_in_failed(format!("the authorization URL is malformed: {error}")))?;
        let state = page.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
        let host = match page.port() {
            Some(port) => format!("{}:{port}", page.host_str().unwrap_or_default()),
            None => page.host_str().unwrap_or_default().to_owned(),
        };
        let listening = redirect.listen(state.unwrap_or_default());
        if !browser.open(SignInPage { server: self.server.clone(), host, url }).await {
            return Err(ClientError::Cancelled);
        }
        let redirected = tokio::time::timeout(SIGN_IN_TIMEOUT, listening.redirected()).await;
        let redirected = redirected.map_err(|_| {
            ClientError::sign_in_failed(format!("no redirect within {} minutes", SIGN_IN_TIMEOUT.as_secs() / 60))
        })??;
        let signed_in = match &redirected.error {
            Some(error) => Err(ClientError::sign_in_failed(error.clone())),
            None => session.handle_callback_url(&redirected.url).await.map(drop).map_err(ClientError::sign_in),
        };
        redirected.finish(signed_in.is_ok()).await;
        signed_in?;
        *self.client.auth_manager.lock().await = session.auth_manager;
        self.sign_ins.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Returns the scopes to request: the configured ones, or those that the server names; after HTTP 403 together with
    /// the granted ones.
    async fn scopes(
        &self,
        manager: &AuthorizationManager,
        challenge: &Challenge,
        granted: Option<&[String]>,
    ) -> BTreeSet<String> {
        if !challenge.is_forbidden() && !self.config.scopes.is_empty() {
            return self.config.scopes.iter().cloned().collect();
        }
        let mut scopes: BTreeSet<String> = manager.select_initial_scopes(&[]).await.into_iter().collect();
        if challenge.is_forbidden() {
            scopes.extend(challenge.scopes());
            scopes.extend(granted.unwrap_or_default().iter().cloned());
        }
        scopes
    }

    /// Returns the client identifier and secret: configured, of an earlier sign-in, or newly registered.
    async fn identity(
        &self,
        manager: &mut AuthorizationManager,
        found: &AuthorizationServer,
        earlier: Option<EarlierSignIn>,
        redirect: &str,
        scopes: &BTreeSet<String>,
    ) -> Result<(String, Option<String>), ClientError> {
        let supports_documents = found.metadata.additional_fields.get("client_id_metadata_document_supported");
        let supports_documents = supports_documents.and_then(serde_json::Value::as_bool).unwrap_or(false);
        match &self.config.client_id {
            Some(id) if !id.starts_with("https://") || supports_documents => {
                return Ok((id.clone(), self.config.secret_for(found.issuer())?));
            }
            _ => {}
        }
        if let Some(earlier) = earlier {
            return Ok((earlier.client_id, earlier.secret));
        }
        if found.metadata.registration_endpoint.is_none() {
            return Err(ClientError::sign_in_failed(
                "the authorization server does not support client registration: register a client there and configure \
                 its client ID",
            ));
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = manager.register_client(CLIENT_NAME, redirect, &scopes).await.map_err(ClientError::sign_in)?;
        Ok((registered.client_id, registered.client_secret))
    }
}

async fn manager(url: &Url, credentials: &ServerCredentials) -> Result<AuthorizationManager, AuthError> {
    let mut manager = AuthorizationManager::new(url.clone()).await?;
    manager.set_credential_store(credentials.clone());
    Ok(manager)
}

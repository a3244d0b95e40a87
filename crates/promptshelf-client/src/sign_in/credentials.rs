//! The credentials of one server in a [`CredentialStore`], in the SDK's interface.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore as SdkCredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};

use super::{
    config::Grant,
    store::{CredentialError, CredentialStore},
};

/// The stored credentials of one server. Clones share them.
#[derive(Clone)]
pub(super) struct ServerCredentials {
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

pub(super) struct EarlierSignIn {
    pub(super) client_id: String,
    pub(super) secret: Option<String>,
    pub(super) redirect: String,
    pub(super) issuer: Option<String>,
    pub(super) granted: Vec<String>,
    /// The scopes of the registration. Some authorization servers reject requests for others.
    pub(super) registered: BTreeSet<String>,
}

impl EarlierSignIn {
    pub(super) fn client_config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.client_id, &self.redirect);
        match &self.secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

impl ServerCredentials {
    pub(super) fn new(store: Arc<dyn CredentialStore>, server: &str, grant: Grant) -> ServerCredentials {
        ServerCredentials { store, server: server.into(), client: Arc::default(), may_refresh: Arc::default(), grant }
    }

    pub(super) fn set_client(&self, redirect: &str, secret: Option<&str>, scopes: BTreeSet<String>) {
        let client = RegisteredClient { redirect: redirect.to_owned(), secret: secret.map(str::to_owned), scopes };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// Sets whether the SDK receives the refresh token. By default it does not.
    pub(super) fn set_may_refresh(&self, may_refresh: bool) {
        self.may_refresh.store(may_refresh, Ordering::Release);
    }

    pub(super) async fn earlier(&self) -> Result<Option<EarlierSignIn>, AuthError> {
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
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = record.client.clone();
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
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
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

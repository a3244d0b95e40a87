//! What is kept of a sign-in, as the SDK reads and writes it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore as SdkCredentialStore, StoredCredentials,
};
use serde::{Deserialize, Serialize};

use super::CredentialStore;

/// One server's place in a vault. Clones share it.
#[derive(Clone)]
pub(super) struct Kept {
    vault: Arc<dyn CredentialStore>,
    server: Arc<str>,
    client: Arc<Mutex<Client>>,
}

/// What the SDK does not keep of who we are for an authorization server.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Client {
    redirect: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// What it was registered for, by itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    scopes: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    credentials: StoredCredentials,
    client: Client,
}

/// Who we have been for an authorization server, and what it granted.
pub(super) struct Known {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) redirect: String,
    pub(super) issuer: Option<String>,
    /// What was granted.
    pub(super) scopes: Vec<String>,
    /// What the client was registered for; some authorization servers let it ask for nothing else.
    pub(super) registered: BTreeSet<String>,
}

impl Kept {
    pub(super) fn new(vault: Arc<dyn CredentialStore>, server: &str) -> Kept {
        Kept { vault, server: server.into(), client: Arc::default() }
    }

    /// Who we are from the next sign-in on.
    pub(super) fn set_client(&self, redirect: &str, secret: Option<&str>, scopes: BTreeSet<String>) {
        let client = Client { redirect: redirect.to_owned(), secret: secret.map(str::to_owned), scopes };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    pub(super) async fn known(&self) -> Result<Option<Known>, AuthError> {
        Ok(self.record().await?.map(|Record { credentials, client }| Known {
            id: credentials.client_id,
            secret: client.secret,
            redirect: client.redirect,
            issuer: credentials.issuer,
            scopes: credentials.granted_scopes,
            registered: client.scopes,
        }))
    }

    /// What cannot be understood counts as not there: it is signed in again.
    async fn record(&self) -> Result<Option<Record>, AuthError> {
        let text = self.with(CredentialStore::load).await?;
        let record: Option<Record> = text.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(record) = &record {
            *self.client.lock().unwrap_or_else(PoisonError::into_inner) = record.client.clone();
        }
        Ok(record)
    }

    async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn CredentialStore, &str) -> Result<T, String> + Send + 'static,
    ) -> Result<T, AuthError> {
        let (vault, server) = (Arc::clone(&self.vault), Arc::clone(&self.server));
        let done = tokio::task::spawn_blocking(move || act(&*vault, &server)).await;
        done.map_err(|error| AuthError::CredentialStoreError(error.to_string()))?
            .map_err(AuthError::CredentialStoreError)
    }
}

#[async_trait]
impl SdkCredentialStore for Kept {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.record().await?.map(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = serde_json::to_string(&Record { credentials, client })
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.with(move |vault, server| vault.save(server, &text)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.with(CredentialStore::clear).await.map(drop)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let lock = self.with(CredentialStore::lock).await?;
        Ok(lock.map(CredentialRefreshGuard::new))
    }
}

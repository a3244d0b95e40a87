//! Cache of the issuer's keys, refreshed when they are old or a token names an unknown key.
//!
//! Requests to the issuer are rate-limited, so that tokens with invented key IDs cannot cause one each.
//! While the issuer is unreachable, cached keys are used for up to a day.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{fetch, token_error::TokenError};

/// The age from which keys are refreshed in the background.
const FRESH: Duration = Duration::from_mins(10);
/// The age from which keys are no longer used.
const USABLE: Duration = Duration::from_hours(24);
/// The least time between two attempts to fetch.
const COOL_DOWN: Duration = Duration::from_secs(10);
/// The most keys that are read of one issuer.
const MAX_KEYS: usize = 100;

#[derive(Clone, Debug)]
pub(super) struct Keys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    issuer: String,
    jwks_uri: Option<String>,
    current: Mutex<Option<Arc<Fetched>>>,
    /// The time of the last attempt. The task that holds the lock fetches; others wait for it.
    last_attempt: tokio::sync::Mutex<Option<Instant>>,
}

struct Fetched {
    at: Instant,
    keys: Vec<Key>,
}

struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    family: AlgorithmFamily,
    key: DecodingKey,
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fetched({} keys)", self.keys.len())
    }
}

impl Keys {
    pub(super) fn new(issuer: &str, jwks_uri: Option<&str>) -> Keys {
        Keys(Arc::new(Inner {
            issuer: issuer.to_owned(),
            jwks_uri: jwks_uri.map(str::to_owned),
            current: Mutex::default(),
            last_attempt: tokio::sync::Mutex::default(),
        }))
    }

    /// Returns the key that a token's header names.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, TokenError> {
        if let Some(fetched) = self.current() {
            if let Some(key) = fetched.find(id, algorithm) {
                if fetched.at.elapsed() >= FRESH && self.0.last_attempt.try_lock().is_ok() {
                    let keys = self.clone();
                    tokio::spawn(async move { keys.refresh(fetched.at).await });
                }
                return Ok(key);
            }
            self.refresh(fetched.at).await;
        } else {
            self.refresh(Instant::now()).await;
        }
        match self.current() {
            Some(fetched) => {
                fetched.find(id, algorithm).ok_or(TokenError::Invalid("The token is signed with an unknown key"))
            }
            None => Err(TokenError::Unavailable),
        }
    }

    fn current(&self) -> Option<Arc<Fetched>> {
        let current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|fetched| fetched.at.elapsed() < USABLE)
    }

    /// Fetches the keys, unless newer ones than `known` are there or the last attempt was less than
    /// [`COOL_DOWN`] ago. Concurrent calls wait for the one that fetches.
    async fn refresh(&self, known: Instant) {
        let mut last_attempt = self.0.last_attempt.lock().await;
        let is_newer = self.current().is_some_and(|fetched| fetched.at > known);
        if is_newer || last_attempt.is_some_and(|at| at.elapsed() < COOL_DOWN) {
            return;
        }
        *last_attempt = Some(Instant::now());
        let (issuer, jwks_uri) = (self.0.issuer.clone(), self.0.jwks_uri.clone());
        let fetching = tokio::task::spawn_blocking(move || fetch::keys(&issuer, jwks_uri.as_deref()));
        match fetching.await {
            Ok(Ok(document)) => {
                let fetched = Fetched { at: Instant::now(), keys: read(&document) };
                tracing::info!(keys = fetched.keys.len(), "fetched the issuer's keys");
                *self.0.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(fetched));
            }
            Ok(Err(reason)) => tracing::warn!(reason, "cannot fetch the issuer's keys"),
            Err(error) => tracing::error!(%error, "the task that fetches the issuer's keys failed"),
        }
    }
}

impl Fetched {
    /// Finds the key with this ID and algorithm. Without an ID exactly one key must fit.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let name = format!("{algorithm:?}");
        let mut matching = self.keys.iter().filter(|key| {
            key.family == algorithm.family()
                && key.algorithm.as_ref().is_none_or(|only| *only == name)
                && id.is_none_or(|id| key.id.as_deref() == Some(id))
        });
        match (matching.next(), matching.next()) {
            (Some(key), None) => Some(key.key.clone()),
            _ => None,
        }
    }
}

/// Reads the keys that verify signatures. Unknown kinds of keys and symmetric ones are ignored.
fn read(document: &Value) -> Vec<Key> {
    let keys = document["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    keys.iter().take(MAX_KEYS).filter_map(key).collect()
}

fn key(value: &Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
    if jwk.common.public_key_use.as_ref().is_some_and(|key_use| *key_use != PublicKeyUse::Signature) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    let family = key.family();
    if family == AlgorithmFamily::Hmac {
        return None;
    }
    let algorithm = value["alg"].as_str().map(str::to_owned);
    Some(Key { id: jwk.common.key_id, algorithm, family, key })
}

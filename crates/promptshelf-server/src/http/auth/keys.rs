//! The issuer's keys: fetched once, kept, and fetched again when they are old
//! or when a token names one that is not there.
//!
//! Whoever sends tokens with made-up key ids must not make this server ask the
//! issuer each time; and while the issuer cannot be reached, the keys that are
//! there go on being used for a day.

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

use super::{Refused, fetch};

/// From then on keys are fetched again, in the background.
const FRESH: Duration = Duration::from_mins(10);
/// From then on keys are not used any more.
const USABLE: Duration = Duration::from_hours(24);
/// How long it takes at least from one attempt to the next.
const COOL_DOWN: Duration = Duration::from_secs(10);
/// The most keys of one issuer.
const MAX_KEYS: usize = 100;

#[derive(Clone, Debug)]
pub(super) struct Keys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    issuer: String,
    jwks_uri: Option<String>,
    current: Mutex<Option<Arc<Fetched>>>,
    /// When it was last tried. Whoever holds it is the one who fetches.
    tried: tokio::sync::Mutex<Option<Instant>>,
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
            tried: tokio::sync::Mutex::default(),
        }))
    }

    /// The key that a token says it is signed with.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, Refused> {
        if let Some(fetched) = self.current() {
            if let Some(key) = fetched.find(id, algorithm) {
                if fetched.at.elapsed() >= FRESH && self.0.tried.try_lock().is_ok() {
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
                fetched.find(id, algorithm).ok_or(Refused::Invalid("The token is signed with a key that is not known"))
            }
            None => Err(Refused::Unavailable),
        }
    }

    fn current(&self) -> Option<Arc<Fetched>> {
        let current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|fetched| fetched.at.elapsed() < USABLE)
    }

    /// Fetches the keys, unless somebody has since `known`, or has just tried.
    /// Those who come meanwhile wait for the one who fetches.
    async fn refresh(&self, known: Instant) {
        let mut tried = self.0.tried.lock().await;
        let is_newer = self.current().is_some_and(|fetched| fetched.at > known);
        if is_newer || tried.is_some_and(|at| at.elapsed() < COOL_DOWN) {
            return;
        }
        *tried = Some(Instant::now());
        let (issuer, jwks_uri) = (self.0.issuer.clone(), self.0.jwks_uri.clone());
        let fetching = tokio::task::spawn_blocking(move || fetch::keys(&issuer, jwks_uri.as_deref()));
        match fetching.await {
            Ok(Ok(document)) => {
                let fetched = Fetched { at: Instant::now(), keys: read(&document) };
                tracing::info!(keys = fetched.keys.len(), "the issuer's keys have been fetched");
                *self.0.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(fetched));
            }
            Ok(Err(reason)) => tracing::warn!(reason, "the issuer's keys cannot be fetched"),
            Err(error) => tracing::error!(%error, "fetching the issuer's keys was not finished"),
        }
    }
}

impl Fetched {
    /// The key with an id that an algorithm can use. Without an id there has to
    /// be exactly one that it can.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let name = format!("{algorithm:?}");
        let mut fitting = self.keys.iter().filter(|key| {
            key.family == algorithm.family()
                && key.algorithm.as_ref().is_none_or(|only| *only == name)
                && id.is_none_or(|id| key.id.as_deref() == Some(id))
        });
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Some(key.key.clone()),
            _ => None,
        }
    }
}

/// The keys of a document that verify signatures. What is not understood, and
/// what is secret, is passed over.
fn read(document: &Value) -> Vec<Key> {
    let keys = document["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    keys.iter().take(MAX_KEYS).filter_map(key).collect()
}

fn key(written: &Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(written.clone()).ok()?;
    if jwk.common.public_key_use.as_ref().is_some_and(|used| *used != PublicKeyUse::Signature) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    let family = key.family();
    if family == AlgorithmFamily::Hmac {
        return None;
    }
    let algorithm = written["alg"].as_str().map(str::to_owned);
    Some(Key { id: jwk.common.key_id, algorithm, family, key })
}

//! The issuer's keys: those of a file, or a cache of fetched ones, refreshed when they are old or a token names an unknown
//! key.
//!
//! Requests to the issuer are rate-limited, so that tokens with invented key IDs cannot cause one each.
//! While the issuer is unreachable, cached keys are used for up to a day.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{Jwk, PublicKeyUse},
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{fetch, options::IssuerOptions, token_error::TokenError};

const FRESH: Duration = Duration::from_mins(10);
/// The age from which keys are no longer used.
const USABLE: Duration = Duration::from_hours(24);
const COOL_DOWN: Duration = Duration::from_secs(10);
const REPORTED: Duration = Duration::from_mins(1);
const MAX_KEYS: usize = 100;

/// A set of keys that is configured and not fetched: a document of RFC 7517. It has at least one key that can verify
/// signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet(Value);

impl FromStr for KeySet {
    type Err = String;

    fn from_str(text: &str) -> Result<KeySet, String> {
        let document = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
        if read(&document).is_empty() { Err(NO_KEYS.to_owned()) } else { Ok(KeySet(document)) }
    }
}

const NO_KEYS: &str = "expected a JSON Web Key Set with a public key that verifies signatures";

/// The keys of an issuer. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Keys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: IssuerOptions,
    state: Mutex<State>,
    /// The time of the last attempt. The task that holds the lock fetches; others wait for it.
    last_attempt: tokio::sync::Mutex<Option<Instant>>,
    is_followed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Fetched>>,
    fetches: KeyFetches,
    problem: Option<(String, Instant)>,
}

/// How often the issuer's keys were fetched, and failed to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFetches {
    /// Successful fetches.
    pub succeeded: u64,
    /// Failed ones.
    pub failed: u64,
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

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetched({} keys)", self.keys.len())
    }
}

impl Keys {
    pub(super) fn new(options: &IssuerOptions) -> Keys {
        let fixed = options.keys.as_ref().map(|KeySet(document)| Arc::new(Fetched::new(document)));
        Keys(Arc::new(Inner {
            options: options.clone(),
            state: Mutex::new(State { current: fixed, ..State::default() }),
            last_attempt: tokio::sync::Mutex::default(),
            is_followed: AtomicBool::new(false),
        }))
    }

    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, TokenError> {
        if let Some(fetched) = self.current() {
            if let Some(key) = fetched.find(id, algorithm) {
                if !self.is_fixed() && fetched.at.elapsed() >= FRESH && self.0.last_attempt.try_lock().is_ok() {
                    let keys = self.clone();
                    tokio::spawn(async move { keys.refresh(fetched.at, COOL_DOWN).await });
                }
                return Ok(key);
            }
            self.refresh(fetched.at, COOL_DOWN).await;
        } else {
            self.refresh(Instant::now(), COOL_DOWN).await;
        }
        match self.current() {
            Some(fetched) => fetched
                .find(id, algorithm)
                .ok_or(TokenError::invalid("unknown-key", "The token is signed with an unknown key")),
            None => Err(TokenError::unavailable("keys-unavailable")),
        }
    }

    /// Fetches the keys now, and again whenever they are old or could not be fetched. Once for all clones; ends with the
    /// last of them.
    pub(super) fn follow(&self) {
        if self.is_fixed() || self.0.is_followed.swap(true, Ordering::Relaxed) {
            return;
        }
        let shared = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            while let Some(keys) = shared.upgrade().map(Keys) {
                keys.refresh(Instant::now(), COOL_DOWN).await;
                let wait = if keys.problem().is_none() { FRESH } else { COOL_DOWN };
                drop(keys);
                sleep(wait).await;
            }
        });
    }

    pub(super) fn fetch_now(&self) {
        let keys = self.clone();
        tokio::spawn(async move { keys.refresh(Instant::now(), Duration::ZERO).await });
    }

    /// Returns the age of the keys; `None` for configured ones, and while there are none.
    pub(super) fn age(&self) -> Option<Duration> {
        if self.is_fixed() { None } else { self.current().map(|fetched| fetched.at.elapsed()) }
    }

    pub(super) fn fetches(&self) -> KeyFetches {
        self.state().fetches
    }

    /// Returns why no token can be verified at present; `None` for keys that are fetched with the first token.
    pub(super) fn missing(&self) -> Option<String> {
        match (self.current(), self.problem()) {
            (Some(fetched), _) if !fetched.keys.is_empty() => None,
            (Some(_), _) => Some(NO_KEYS.to_owned()),
            (None, Some(problem)) => Some(problem),
            (None, None) if !self.0.is_followed.load(Ordering::Relaxed) => None,
            (None, None) => Some("they are being fetched".to_owned()),
        }
    }

    fn problem(&self) -> Option<String> {
        self.state().problem.as_ref().map(|(reason, _)| reason.clone())
    }

    fn is_fixed(&self) -> bool {
        self.0.options.keys.is_some()
    }

    fn current(&self) -> Option<Arc<Fetched>> {
        let is_fixed = self.is_fixed();
        self.state().current.clone().filter(|fetched| is_fixed || fetched.at.elapsed() < USABLE)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Fetches the keys, unless newer ones than `known` are there or the last attempt was less than `cool_down` ago.
    /// Concurrent calls wait for the one that fetches.
    async fn refresh(&self, known: Instant, cool_down: Duration) {
        if self.is_fixed() {
            return;
        }
        let mut last_attempt = self.0.last_attempt.lock().await;
        let is_newer = self.current().is_some_and(|fetched| fetched.at > known);
        if is_newer || last_attempt.is_some_and(|at| at.elapsed() < cool_down) {
            return;
        }
        *last_attempt = Some(Instant::now());
        let options = self.0.options.clone();
        // Reading the system's certificates blocks.
        let runtime = tokio::runtime::Handle::current();
        let fetching = tokio::task::spawn_blocking(move || runtime.block_on(fetch::keys(&options)));
        match fetching.await {
            Ok(Ok(document)) => self.succeeded(Fetched::new(&document)),
            Ok(Err(reason)) => self.failed(reason),
            Err(error) => self.failed(format!("the task that fetches them failed: {error}")),
        }
    }

    fn succeeded(&self, fetched: Fetched) {
        let (issuer, keys) = (&self.0.options.issuer, fetched.keys.len());
        let mut state = self.state();
        state.fetches.succeeded += 1;
        let ids = |fetched: &Fetched| fetched.keys.iter().map(|key| key.id.clone()).collect::<Vec<_>>();
        let is_known = state.current.as_ref().is_some_and(|current| ids(current) == ids(&fetched));
        let was_away = state.problem.take().is_some();
        state.current = Some(Arc::new(fetched));
        drop(state);
        match keys {
            0 => tracing::warn!(
                issuer,
                "the issuer has no keys that verify signatures: nobody can sign in with its tokens"
            ),
            _ if is_known && !was_away => tracing::debug!(keys, issuer, "fetched the issuer's keys"),
            _ => tracing::info!(keys, issuer, "fetched the issuer's keys"),
        }
    }

    fn failed(&self, reason: String) {
        let mut state = self.state();
        state.fetches.failed += 1;
        let is_reported = matches!(&state.problem, Some((last, at)) if *last == reason && at.elapsed() < REPORTED);
        if !is_reported {
            tracing::warn!(reason, "cannot fetch the issuer's keys");
            state.problem = Some((reason, Instant::now()));
        }
    }
}

impl Fetched {
    fn new(document: &Value) -> Fetched {
        Fetched { at: Instant::now(), keys: read(document) }
    }

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

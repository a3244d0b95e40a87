//! `requestState`: the answers so far, signed and carried by the client.
//!
//! The server keeps no state between two rounds. It sends the state to the client and accepts it back only if the
//! signature is valid, the state has not expired, and it belongs to the same caller, prompt and arguments, and to the
//! version of the prompt that the server has (2026-07-28, *Multi round-trip requests*: treat as attacker-controlled). The state is signed and not
//! encrypted: it holds only data that the client has sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Maximum length of a state, in bytes.
const MAX_STATE_BYTES: usize = 1 << 20;

const PURPOSE: &[u8] = b"promptshelf requestState 3\0";

const ENGINE: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The key that request states are signed with.
///
/// Servers that share a key accept each other's states, so that a guided prompt can start on one replica and end on
/// another. By default each process generates its own key.
///
/// ```
/// use promptshelf_mcp::StateKey;
///
/// let shared = StateKey::from_secret(b"32 random bytes, the same on each replica");
/// ```
#[derive(Clone)]
pub struct StateKey {
    key: [u8; 32],
    /// Keys that only verify.
    others: Vec<[u8; 32]>,
    lifetime: Duration,
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}

/// Default lifetime of a state: time for a person to fill in a form.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

impl StateKey {
    /// Derives a key from a secret of any length; 32 random bytes are recommended.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> StateKey {
        use sha2::Digest as _;
        StateKey { key: Sha256::digest(secret).into(), others: Vec::new(), lifetime: LIFETIME }
    }

    /// Generates a random key.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers.
    #[must_use]
    pub fn random() -> StateKey {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the operating system has random numbers");
        StateKey { key, others: Vec::new(), lifetime: LIFETIME }
    }

    /// Sets the lifetime of states; one hour by default.
    #[must_use]
    pub fn lifetime(self, lifetime: Duration) -> StateKey {
        StateKey { lifetime, ..self }
    }

    /// Also accepts states that are signed with another key: during a rotation, of servers that still have the old key, or
    /// have the new one already.
    #[must_use]
    pub fn with_previous(mut self, other: StateKey) -> StateKey {
        self.others.push(other.key);
        self
    }

    /// Signs a state that belongs to `bound`.
    pub(super) fn seal(&self, bound: &Bound<'_>, progress: &Progress) -> String {
        let expires = since_epoch().saturating_add(self.lifetime).as_secs();
        let version = ENGINE.encode(bound.digest);
        let payload = serde_json::to_vec(&Sealed { expires, version, progress }).unwrap_or_default();
        let signature = mac(&self.key, bound, &payload).finalize().into_bytes();
        format!("{}.{}", ENGINE.encode(payload), ENGINE.encode(signature))
    }

    /// Returns the content of a state if it is signed with this key, complete, not expired, and belongs to `bound`.
    pub(super) fn open(&self, bound: &Bound<'_>, state: &str) -> Result<Progress, Refusal> {
        let opened = self.verified(bound, state).ok_or(Refusal::Invalid)?;
        let is_same = ENGINE.decode(opened.version).is_ok_and(|version| version == bound.digest);
        if is_same { Ok(opened.progress) } else { Err(Refusal::OtherVersion) }
    }

    fn verified(&self, bound: &Bound<'_>, state: &str) -> Option<Opened> {
        if state.len() > MAX_STATE_BYTES {
            return None;
        }
        let (payload, signature) = state.split_once('.')?;
        let (payload, signature) = (ENGINE.decode(payload).ok()?, ENGINE.decode(signature).ok()?);
        // Compared in constant time, before any part of the payload is parsed.
        let is_signed = |key: &[u8; 32]| mac(key, bound, &payload).verify_slice(&signature).is_ok();
        std::iter::once(&self.key).chain(&self.others).any(is_signed).then_some(())?;
        let opened: Opened = serde_json::from_slice(&payload).ok()?;
        (Duration::from_secs(opened.expires) > since_epoch()).then_some(opened)
    }
}

fn mac(key: &[u8; 32], bound: &Bound<'_>, payload: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(PURPOSE);
    for part in [bound.caller.as_bytes(), bound.prompt.as_bytes(), bound.arguments, payload] {
        // Prefixed with their lengths, so that no byte can move from one part to the next.
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'a> {
    pub(super) caller: &'a str,
    pub(super) prompt: &'a str,
    /// The digest of the prompt, so that a state of another version cannot skip a new step.
    pub(super) digest: &'a [u8],
    /// The arguments of the request, as bytes that are equal for equal arguments.
    pub(super) arguments: &'a [u8],
}

/// The progress of a guided prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The answers so far, by argument.
    pub(super) answers: std::collections::BTreeMap<String, String>,
    /// Completed steps.
    pub(super) passed: std::collections::BTreeSet<u32>,
    /// Number of questions so far.
    pub(super) rounds: u32,
    /// The state of a prompt of another server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) remote: Option<String>,
}

/// The reason for which a state is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It was not made by a server with this key for this request, or has expired.
    Invalid,
    /// The prompt was another one when the state was made: it has been edited, or another server is ahead or behind.
    OtherVersion,
}

#[derive(Serialize)]
struct Sealed<'a> {
    expires: u64,
    version: String,
    progress: &'a Progress,
}

#[derive(Deserialize)]
struct Opened {
    expires: u64,
    version: String,
    progress: Progress,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUND: Bound<'static> = Bound { caller: "local", prompt: "setup", digest: b"1", arguments: b"{\"a\":\"1\"}" };

    // req: S-330
    #[test]
    fn states_of_both_keys_are_accepted_during_a_rotation() {
        let key = |secret: &str| StateKey::from_secret(secret.as_bytes());
        let (old, new) = (key("the old secret"), key("the new secret"));
        let of_old = old.seal(&BOUND, &progress());
        let of_new = new.seal(&BOUND, &progress());
        for server in [old.clone().with_previous(new.clone()), new.clone().with_previous(old.clone())] {
            assert!(server.open(&BOUND, &of_old).is_ok() && server.open(&BOUND, &of_new).is_ok());
            assert_eq!(server.open(&BOUND, &key("another one").seal(&BOUND, &progress())), Err(Refusal::Invalid));
        }
        assert_eq!(new.with_previous(old).seal(&BOUND, &progress()), of_new, "the first one signs");
    }

    fn progress() -> Progress {
        Progress { answers: [("language".into(), "rust".into())].into(), passed: [1].into(), rounds: 1, remote: None }
    }

    #[test]
    fn state_opens_with_same_key() {
        let state = StateKey::from_secret(b"shared").seal(&BOUND, &progress());
        assert_eq!(StateKey::from_secret(b"shared").open(&BOUND, &state), Ok(progress()));
        assert_eq!(StateKey::from_secret(b"other").open(&BOUND, &state), Err(Refusal::Invalid));
    }

    // req: I7, I19
    #[test]
    fn state_is_bound_to_caller_prompt_and_arguments() {
        let key = StateKey::from_secret(b"shared");
        let state = key.seal(&BOUND, &progress());
        assert_eq!(key.open(&Bound { caller: "other", ..BOUND }, &state), Err(Refusal::Invalid));
        assert_eq!(key.open(&Bound { prompt: "other", ..BOUND }, &state), Err(Refusal::Invalid));
        assert_eq!(key.open(&Bound { digest: b"2", ..BOUND }, &state), Err(Refusal::OtherVersion));
        assert_eq!(key.open(&Bound { digest: b"2", caller: "other", ..BOUND }, &state), Err(Refusal::Invalid));
        assert_eq!(key.open(&Bound { arguments: b"{}", ..BOUND }, &state), Err(Refusal::Invalid));
        assert_eq!(key.open(&Bound { caller: "locals", prompt: "etup", ..BOUND }, &state), Err(Refusal::Invalid));
    }

    // req: I7, R-5
    #[test]
    fn state_expires() {
        let key = StateKey::from_secret(b"shared").lifetime(Duration::ZERO);
        assert_eq!(key.open(&BOUND, &key.seal(&BOUND, &progress())), Err(Refusal::Invalid));
    }

    proptest! {
        // req: I6, R-5, X20
        #[test]
        fn changed_state_is_refused(position in 0_usize..1_000, with in proptest::char::range('!', '~')) {
            let key = StateKey::from_secret(b"shared");
            let state = key.seal(&BOUND, &progress());
            let position = position % state.len();
            let mut changed: Vec<char> = state.chars().collect();
            prop_assume!(changed[position] != with);
            changed[position] = with;
            prop_assert_eq!(key.open(&BOUND, &changed.into_iter().collect::<String>()), Err(Refusal::Invalid));
            prop_assert_eq!(key.open(&BOUND, &state[..position]), Err(Refusal::Invalid));
        }
    }
}

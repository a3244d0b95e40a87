//! `requestState`: what has been answered so far, carried by the client, signed.
//!
//! The server remembers nothing between two rounds. What it would have to
//! remember goes to the client and comes back, and is believed only when the
//! signature holds, it has not expired, and it belongs to the same caller, the
//! same prompt and the same arguments (2026-07-28, *Multi round-trip requests*:
//! treat as attacker-controlled). It is signed, not encrypted: it holds nothing
//! but what the client itself has sent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The longest state that is looked at, in bytes.
const MAX_STATE_BYTES: usize = 1 << 20;

/// Separates these signatures from any other use of the same key.
const PURPOSE: &[u8] = b"promptshelf requestState 1\0";

const ENGINE: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The key that request states are signed with.
///
/// Servers that share a key accept each other's states, so that a guided
/// prompt can begin on one replica and end on another. Without a configured
/// key each process draws its own.
#[derive(Clone)]
pub struct StateKey {
    key: [u8; 32],
    lifetime: Duration,
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}

/// For how long a state can come back: a person may think about a form.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

impl StateKey {
    /// A key from a secret of any length; 32 random bytes are a good one.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> StateKey {
        use sha2::Digest as _;
        StateKey { key: Sha256::digest(secret).into(), lifetime: LIFETIME }
    }

    /// A key that nobody else has.
    ///
    /// # Panics
    ///
    /// When the operating system has no random numbers to give.
    #[must_use]
    pub fn random() -> StateKey {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the operating system has random numbers");
        StateKey { key, lifetime: LIFETIME }
    }

    /// Lets states expire after another time than an hour.
    #[must_use]
    pub fn lifetime(self, lifetime: Duration) -> StateKey {
        StateKey { lifetime, ..self }
    }

    /// Signs what a state holds. `bound` is what it belongs to.
    pub(super) fn seal(&self, bound: &Bound<'_>, progress: &Progress) -> String {
        let expires = since_epoch().saturating_add(self.lifetime).as_secs();
        let payload = serde_json::to_vec(&Sealed { expires, progress }).unwrap_or_default();
        let signature = self.mac(bound, &payload).finalize().into_bytes();
        format!("{}.{}", ENGINE.encode(payload), ENGINE.encode(signature))
    }

    /// What a state holds, if it is ours, whole, in time, and belongs to `bound`.
    /// Which of these fails is nobody's business.
    pub(super) fn open(&self, bound: &Bound<'_>, state: &str) -> Option<Progress> {
        if state.len() > MAX_STATE_BYTES {
            return None;
        }
        let (payload, signature) = state.split_once('.')?;
        let (payload, signature) = (ENGINE.decode(payload).ok()?, ENGINE.decode(signature).ok()?);
        // Compared in constant time, and before anything of the payload is read.
        self.mac(bound, &payload).verify_slice(&signature).ok()?;
        let opened: Opened = serde_json::from_slice(&payload).ok()?;
        (Duration::from_secs(opened.expires) > since_epoch()).then_some(opened.progress)
    }

    fn mac(&self, bound: &Bound<'_>, payload: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mac.update(PURPOSE);
        for part in [bound.caller.as_bytes(), bound.prompt.as_bytes(), bound.arguments, payload] {
            // With their lengths, so that nothing can move from one part to the next.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What a state belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'a> {
    pub(super) caller: &'a str,
    pub(super) prompt: &'a str,
    /// The arguments of the request, in a form in which equal ones are equal bytes.
    pub(super) arguments: &'a [u8],
}

/// How far a guided prompt has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// What has been answered, by argument.
    pub(super) answers: std::collections::BTreeMap<String, String>,
    /// Steps that are over.
    pub(super) passed: std::collections::BTreeSet<u32>,
    /// Questions asked so far.
    pub(super) rounds: u32,
}

#[derive(Serialize)]
struct Sealed<'a> {
    expires: u64,
    progress: &'a Progress,
}

#[derive(Deserialize)]
struct Opened {
    expires: u64,
    progress: Progress,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUND: Bound<'static> = Bound { caller: "local", prompt: "setup", arguments: b"{\"a\":\"1\"}" };

    fn progress() -> Progress {
        Progress { answers: [("language".into(), "rust".into())].into(), passed: [1].into(), rounds: 1 }
    }

    #[test]
    fn a_state_comes_back_whole_to_whoever_has_the_key() {
        let state = StateKey::from_secret(b"shared").seal(&BOUND, &progress());
        assert_eq!(StateKey::from_secret(b"shared").open(&BOUND, &state), Some(progress()));
        assert_eq!(StateKey::from_secret(b"other").open(&BOUND, &state), None);
    }

    // req: I7, I19
    #[test]
    fn a_state_belongs_to_its_caller_prompt_and_arguments() {
        let key = StateKey::from_secret(b"shared");
        let state = key.seal(&BOUND, &progress());
        assert_eq!(key.open(&Bound { caller: "other", ..BOUND }, &state), None);
        assert_eq!(key.open(&Bound { prompt: "other", ..BOUND }, &state), None);
        assert_eq!(key.open(&Bound { arguments: b"{}", ..BOUND }, &state), None);
        assert_eq!(key.open(&Bound { caller: "locals", prompt: "etup", ..BOUND }, &state), None);
    }

    // req: I7, R-5
    #[test]
    fn a_state_expires() {
        let key = StateKey::from_secret(b"shared").lifetime(Duration::ZERO);
        assert_eq!(key.open(&BOUND, &key.seal(&BOUND, &progress())), None);
    }

    proptest! {
        // req: I6, R-5, X20
        #[test]
        fn no_change_of_a_state_goes_unnoticed(position in 0_usize..1_000, with in proptest::char::range('!', '~')) {
            let key = StateKey::from_secret(b"shared");
            let state = key.seal(&BOUND, &progress());
            let position = position % state.len();
            let mut changed: Vec<char> = state.chars().collect();
            prop_assume!(changed[position] != with);
            changed[position] = with;
            prop_assert_eq!(key.open(&BOUND, &changed.into_iter().collect::<String>()), None);
            prop_assert_eq!(key.open(&BOUND, &state[..position]), None);
        }
    }
}

//! Tokens that several servers share, such as those of a store: replaced as a whole whenever they have changed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::{Mutex, MutexGuard};
use promptshelf_service::{Identity, Revocation};
use tokio::time::Instant;

use super::{
    options::StaticToken,
    token_error::TokenError,
    tokens::{PREFIX, digest_of, identified},
};

/// The time without news after which shared tokens are no longer accepted: one of them could have been revoked.
const USABLE: Duration = Duration::from_hours(24);

/// A token that several servers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedToken {
    /// The number of the token, by which its uses are reported.
    pub id: u64,
    /// The digest and the caller.
    pub token: StaticToken,
}

/// The shared tokens that are valid. Clones share them. Until they are known, tokens with their prefix cannot be verified.
///
/// ```
/// use promptshelf_server::http::auth::{SharedTokens, SignIn, SignInOptions};
///
/// let tokens = SharedTokens::default();
/// let mut options = SignInOptions::default();
/// options.shared_tokens = Some(tokens.clone());
/// let sign_in = SignIn::new(options);
/// // Nobody can sign in until a token is added; a call without it revokes that token, and ends its streams.
/// tokens.replace(Vec::new());
/// ```
#[derive(Clone, Debug, Default)]
pub struct SharedTokens(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    known: Option<Known>,
    used: BTreeMap<u64, SystemTime>,
}

#[derive(Debug)]
struct Known {
    /// By digest. The time of the look-up tells nothing of use about a token: an attacker knows no digest's token.
    tokens: HashMap<[u8; 32], (SharedToken, Revocation)>,
    confirmed: Instant,
}

impl SharedTokens {
    /// Replaces all tokens. Those that are gone or have changed are revoked: their open streams end.
    pub fn replace(&self, tokens: Vec<SharedToken>) {
        let mut state = self.state();
        let mut before = state.known.take().map(|known| known.tokens).unwrap_or_default();
        let with_revocation = |token: SharedToken| {
            let digest = token.token.sha256;
            let revocation = match before.remove(&digest) {
                Some((known, revocation)) if known == token => revocation,
                Some((_, changed)) => {
                    changed.revoke();
                    Revocation::new()
                }
                None => Revocation::new(),
            };
            (digest, (token, revocation))
        };
        let tokens = tokens.into_iter().map(with_revocation).collect();
        state.known = Some(Known { tokens, confirmed: Instant::now() });
        before.values().for_each(|(_, revocation)| revocation.revoke());
    }

    /// Reports that the tokens are still the valid ones.
    pub fn confirm(&self) {
        if let Some(known) = &mut self.state().known {
            known.confirmed = Instant::now();
        }
    }

    /// Returns the tokens that were used since the last call, with the time of the last use.
    #[must_use]
    pub fn take_used(&self) -> Vec<(u64, SystemTime)> {
        std::mem::take(&mut self.state().used).into_iter().collect()
    }

    /// Ends the open streams of all tokens, because other terms apply to them now.
    pub(super) fn revoke_streams(&self) {
        for (_, revocation) in self.state().known.iter_mut().flat_map(|known| known.tokens.values_mut()) {
            std::mem::take(revocation).revoke();
        }
    }

    /// Authenticates `token`; `None` if it is unknown.
    pub(super) fn find(&self, token: &str, now: SystemTime) -> Option<Result<(Identity, Revocation), TokenError>> {
        let mut state = self.state();
        let Some(known) = state.known.as_ref().filter(|known| known.confirmed.elapsed() < USABLE) else {
            return token.starts_with(PREFIX).then_some(Err(TokenError::unavailable("tokens-unavailable")));
        };
        let (SharedToken { id, token }, revocation) = known.tokens.get(&digest_of(token))?;
        let id = *id;
        let found = identified(token, revocation, format!("token {id}"), now);
        if found.is_ok() {
            state.used.insert(id, now);
        }
        Some(found)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

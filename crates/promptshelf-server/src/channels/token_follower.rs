//! Keeps the tokens of a store: every server accepts a new one, and refuses a revoked one, within a second.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant, SystemTime},
};

use jiff::Timestamp;
use promptshelf_store::{ChangeHints, TOKEN_CALLER, TokenInfo, TokenState};
use tokio::time::sleep;

use super::{
    follower::{CONNECT_TIMEOUT, FollowError, HEAD_TIMEOUT, in_time},
    source_signals::next,
    store_handle::StoreHandle,
};
use crate::http::auth::{SharedToken, SharedTokens, StaticToken};

/// The time between two comparisons without a hint.
const INTERVAL: Duration = Duration::from_millis(500);

const MIN_PAUSE: Duration = Duration::from_millis(50);

// Within a second, with the time to read the store.
const _: () = assert!(INTERVAL.as_millis() + MIN_PAUSE.as_millis() <= 600);

const RECORDED: Duration = Duration::from_mins(1);

/// Follows the tokens of a store.
#[derive(Debug)]
pub struct TokenFollower {
    store: StoreHandle,
    tokens: SharedTokens,
    hints: Option<ChangeHints>,
    known: Option<TokenState>,
    recorded: HashMap<u64, Instant>,
    /// Uses that are not recorded yet.
    used: BTreeMap<u64, SystemTime>,
}

impl TokenFollower {
    /// Creates a follower, which fills `tokens`.
    #[must_use]
    pub fn new(store: StoreHandle, tokens: SharedTokens) -> TokenFollower {
        TokenFollower { store, tokens, hints: None, known: None, recorded: HashMap::new(), used: BTreeMap::new() }
    }

    /// Reads the tokens, before a server answers its first caller. A failure is for [`run`](TokenFollower::run) to report.
    pub async fn read(&mut self) {
        let _ = self.compare().await;
    }

    /// Reads the tokens whenever they have changed. Never returns. While the store is away, the last ones are accepted, for a
    /// day.
    pub async fn run(mut self) {
        let mut is_away = false;
        loop {
            match self.compare().await {
                Ok(()) => is_away = false,
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        let url = self.store.url();
                        tracing::warn!(
                            "tokens that are created or revoked now take effect when {url} can be used: {error}"
                        );
                    }
                    if matches!(error, FollowError::TimedOut) {
                        self.store.reset().await;
                        self.hints = None;
                    }
                }
            }
            sleep(MIN_PAUSE).await;
            tokio::select! {
                () = next(&mut self.hints) => {}
                () = sleep(INTERVAL) => {}
            }
        }
    }

    async fn compare(&mut self) -> Result<(), FollowError> {
        let store = in_time(CONNECT_TIMEOUT, self.store.get()).await?;
        if self.hints.is_none() {
            self.hints = Some(store.token_hints().await);
        }
        let state = in_time(HEAD_TIMEOUT, store.token_state()).await?;
        if self.known != Some(state) {
            let (state, valid) = in_time(CONNECT_TIMEOUT, store.valid_tokens()).await?;
            self.tokens.replace(valid.into_iter().map(|(digest, info)| shared(*digest.bytes(), info)).collect());
            self.known = Some(state);
        } else {
            self.tokens.confirm();
        }
        self.used.extend(self.tokens.take_used());
        let is_due = |id: &u64| self.recorded.get(id).is_none_or(|at| at.elapsed() >= RECORDED);
        let due: Vec<(u64, Timestamp)> = self
            .used
            .iter()
            .filter(|(id, _)| is_due(id))
            .filter_map(|(id, at)| Some((*id, Timestamp::try_from(*at).ok()?)))
            .collect();
        if !due.is_empty() {
            in_time(HEAD_TIMEOUT, store.note_token_uses(&due)).await?;
            for (id, _) in due {
                self.used.remove(&id);
                self.recorded.insert(id, Instant::now());
            }
        }
        Ok(())
    }
}

fn shared(sha256: [u8; 32], info: TokenInfo) -> SharedToken {
    let TokenInfo { id, name, scopes, roles, expires, .. } = info;
    let expires = expires.map(SystemTime::from);
    SharedToken { id, token: StaticToken { name: format!("{TOKEN_CALLER}{name}"), sha256, scopes, roles, expires } }
}

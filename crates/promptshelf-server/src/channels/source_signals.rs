//! Requests to read a source again, passed on to all replicas through a store.
//!
//! A webhook or a request reaches one replica. It reads the source at once, and counts the request in the store; the
//! others compare the counts after a hint and every second.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use promptshelf_source::SourceSet;
use promptshelf_store::ChangeHints;
use tokio::{sync::Notify, time::sleep};

use super::{
    follower::{CONNECT_TIMEOUT, FollowError, HEAD_TIMEOUT, in_time},
    store_handle::{Connect as _, StoreHandle},
};

const MIN_PAUSE: Duration = Duration::from_millis(100);

/// Passes requests on to the other replicas, and takes theirs. Clones are the same.
#[derive(Clone)]
pub struct SourceSignals(Arc<Inner>);

struct Inner {
    store: StoreHandle,
    /// The sources whose requests have not been written yet.
    waiting: Mutex<BTreeSet<String>>,
    sent: Notify,
}

impl fmt::Debug for SourceSignals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceSignals({})", self.0.store.url())
    }
}

impl SourceSignals {
    /// Creates the signals of a store. Nothing is read before [`run`](SourceSignals::run).
    #[must_use]
    pub fn new(store: StoreHandle) -> SourceSignals {
        SourceSignals(Arc::new(Inner { store, waiting: Mutex::default(), sent: Notify::new() }))
    }

    /// Requests that all replicas read a source again. Does not block.
    pub fn send(&self, source: &str) {
        self.with_waiting(|waiting| waiting.insert(source.to_owned()));
        self.0.sent.notify_one();
    }

    /// Passes on the refreshes of a set of sources, and refreshes those that other replicas request. Never returns.
    pub async fn run(self, set: SourceSet) {
        let sender = self.clone();
        set.relay_refreshes(move |source| sender.send(source));
        let mut known = BTreeMap::new();
        let mut hints = None;
        let mut is_away = false;
        loop {
            match self.exchange(&mut known, &mut hints).await {
                Ok(requested) => {
                    is_away = false;
                    // An own request comes back too: another look at the source is harmless.
                    for source in requested {
                        set.refresh_here(&source);
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        let url = self.0.store.url();
                        tracing::warn!("webhooks reach this replica only while {url} cannot be used: {error}");
                    }
                    if matches!(error, FollowError::TimedOut) {
                        self.0.store.reset().await;
                        hints = None;
                    }
                }
            }
            sleep(MIN_PAUSE).await;
            tokio::select! {
                () = next(&mut hints) => {}
                () = self.0.sent.notified() => {}
                () = sleep(self.0.store.pause()) => {}
            }
        }
    }

    /// Writes the requests of this replica, and returns the sources with new ones. After a start these are all that ever
    /// had one, so that none is missed.
    async fn exchange(
        &self,
        known: &mut BTreeMap<String, u64>,
        hints: &mut Option<ChangeHints>,
    ) -> Result<Vec<String>, FollowError> {
        let store = in_time(CONNECT_TIMEOUT, self.0.store.get()).await?;
        if hints.is_none() {
            *hints = Some(store.source_hints().await);
        }
        let waiting: Vec<String> = self.with_waiting(std::mem::take).into_iter().collect();
        if !waiting.is_empty()
            && let Err(error) = in_time(CONNECT_TIMEOUT, store.signal_sources(&waiting)).await
        {
            self.with_waiting(|later| later.extend(waiting));
            return Err(error);
        }
        let counts = in_time(HEAD_TIMEOUT, store.source_signals()).await?;
        let is_new = |(source, count): &(&String, &u64)| known.get(*source) != Some(count);
        let requested = counts.iter().filter(is_new).map(|(source, _)| source.clone()).collect();
        *known = counts;
        Ok(requested)
    }

    fn with_waiting<T>(&self, act: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
        act(&mut self.0.waiting.lock())
    }
}

/// Waits for a hint, which never comes without a store that sends them.
pub(super) async fn next(hints: &mut Option<ChangeHints>) {
    match hints {
        Some(hints) => hints.next().await,
        None => std::future::pending().await,
    }
}

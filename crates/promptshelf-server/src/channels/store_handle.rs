//! The connection to a store that may be away.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::stream::{self, BoxStream, StreamExt as _};
use promptshelf_core::BoxFuture;
use promptshelf_store::{
    ChannelName, Delta, Digest, Head, HistoryQuery, Revision, Served, Store, StoreError, StoreUrl,
};
use tokio::sync::Mutex;

use crate::random;

/// The time after which an upload that nothing refers to is removed, and the time between two looks.
const UPLOADS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const UPLOADS_LOOKED_AT: Duration = Duration::from_secs(60 * 60);

/// The time between two comparisons without a hint, ±20 % so that replicas do not query in step.
const INTERVAL: Duration = Duration::from_secs(1);

/// Contents with their digests.
pub(crate) type Contents = Vec<(Digest, Arc<[u8]>)>;

/// What a follower reads of a store. The simulation of replicas has a store in memory instead.
pub(crate) trait ChannelReader: Send + Sync {
    fn head<'a>(&'a self, channel: &'a ChannelName) -> Answer<'a, Head>;
    fn delta<'a>(&'a self, channel: &'a ChannelName, since: Option<&'a Head>) -> Answer<'a, Delta>;
    fn blobs<'a>(&'a self, digests: &'a [Digest]) -> Answer<'a, Contents>;
    fn served<'a>(&'a self, channel: &'a ChannelName, revision: u64) -> Answer<'a, Vec<Served>>;
    fn history<'a>(&'a self, channel: &'a ChannelName, query: &'a HistoryQuery) -> Answer<'a, Vec<Revision>>;
    fn hints<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, BoxStream<'static, ()>>;
}

pub(crate) type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Where a follower finds its store.
pub(super) trait Connect: fmt::Debug + Send + Sync {
    fn url(&self) -> &StoreUrl;
    fn get(&self) -> Answer<'_, Arc<dyn ChannelReader>>;
    fn reset(&self) -> BoxFuture<'_, ()>;

    /// Returns the time until the next comparison.
    fn pause(&self) -> Duration {
        random::share(INTERVAL, 80..=120)
    }
}

impl ChannelReader for Store {
    fn head<'a>(&'a self, channel: &'a ChannelName) -> Answer<'a, Head> {
        Box::pin(self.head(channel))
    }

    fn delta<'a>(&'a self, channel: &'a ChannelName, since: Option<&'a Head>) -> Answer<'a, Delta> {
        Box::pin(self.delta(channel, since))
    }

    fn blobs<'a>(&'a self, digests: &'a [Digest]) -> Answer<'a, Contents> {
        Box::pin(self.blobs(digests))
    }

    fn served<'a>(&'a self, channel: &'a ChannelName, revision: u64) -> Answer<'a, Vec<Served>> {
        Box::pin(self.served(channel, revision))
    }

    fn history<'a>(&'a self, channel: &'a ChannelName, query: &'a HistoryQuery) -> Answer<'a, Vec<Revision>> {
        Box::pin(self.history(channel, query))
    }

    fn hints<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, BoxStream<'static, ()>> {
        Box::pin(async {
            let next = async |mut hints: promptshelf_store::ChangeHints| {
                hints.next().await;
                Some(((), hints))
            };
            stream::unfold(self.hints(channel).await, next).boxed()
        })
    }
}

impl Connect for StoreHandle {
    fn url(&self) -> &StoreUrl {
        self.url()
    }

    fn get(&self) -> Answer<'_, Arc<dyn ChannelReader>> {
        Box::pin(async { Ok(Arc::new(self.get().await?) as Arc<dyn ChannelReader>) })
    }

    fn reset(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.reset())
    }
}

/// A store that is opened at the first use, and again after [`reset`](StoreHandle::reset). Clones share the store.
#[derive(Clone)]
pub struct StoreHandle(Arc<Inner>);

struct Inner {
    url: StoreUrl,
    migrates: bool,
    store: Mutex<Option<Store>>,
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreHandle({})", self.0.url)
    }
}

impl StoreHandle {
    /// Creates a handle without connecting.
    #[must_use]
    pub fn new(url: StoreUrl) -> StoreHandle {
        StoreHandle(Arc::new(Inner { url, migrates: true, store: Mutex::new(None) }))
    }

    /// Creates a handle for a program that only reads, and leaves the schema of the store as it is.
    #[must_use]
    pub fn reading(url: StoreUrl) -> StoreHandle {
        StoreHandle(Arc::new(Inner { url, migrates: false, store: Mutex::new(None) }))
    }

    /// Creates a handle of an open store.
    #[must_use]
    pub fn of(store: Store) -> StoreHandle {
        StoreHandle(Arc::new(Inner { url: store.url().clone(), migrates: false, store: Mutex::new(Some(store)) }))
    }

    /// The place of the store.
    #[must_use]
    pub fn url(&self) -> &StoreUrl {
        &self.0.url
    }

    /// Returns the store; the first call opens it. An SQLite file that was replaced is opened again.
    ///
    /// # Errors
    ///
    /// Those of [`Store::open`] or [`Store::open_unmigrated`]. The next call tries again.
    pub async fn get(&self) -> Result<Store, StoreError> {
        let mut store = self.0.store.lock().await;
        if let Some(present) = &*store {
            if !present.is_replaced()? {
                return Ok(present.clone());
            }
            let url = &self.0.url;
            tracing::warn!("the file of the store {url} was replaced while it was open: it is opened again");
            present.discard().await;
            *store = None;
        }
        let opened =
            if self.0.migrates { Store::open(&self.0.url).await? } else { Store::open_unmigrated(&self.0.url).await? };
        if let Some(before) = opened.migrated_from() {
            let (url, now) = (&self.0.url, Store::newest_schema());
            tracing::info!("the schema of the store {url} was version {before}, and is version {now} now");
        }
        Ok(store.insert(opened).clone())
    }

    /// Returns whether the last change of the store failed because its disk is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        // While it is being opened it changes nothing.
        self.0.store.try_lock().is_ok_and(|store| store.as_ref().is_some_and(Store::is_full))
    }

    /// Removes contents that callers have uploaded and that nothing refers to, a day later. Never returns.
    pub async fn remove_uploads(self) {
        let mut interval = tokio::time::interval(UPLOADS_LOOKED_AT);
        loop {
            interval.tick().await;
            let removed = async { self.get().await?.remove_uploads(UPLOADS_KEPT).await };
            match removed.await {
                Ok((0, _)) => {}
                Ok((number, bytes)) => {
                    tracing::info!("{number} uploads that nothing refers to, {bytes} bytes, are removed");
                }
                Err(error) => tracing::warn!("old uploads are not removed: {error}"),
            }
        }
    }

    /// Drops the store, so that the next call of [`get`](StoreHandle::get) connects again: a connection that was cut
    /// silently never ends by itself.
    pub async fn reset(&self) {
        *self.0.store.lock().await = None;
    }
}

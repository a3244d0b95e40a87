//! The follower of a channel: compares heads, reads deltas, and replaces the library's tree.
//!
//! Epoch, revision and digest are compared after each hint, after each connection, and every second. Hints can be lost;
//! the comparison cannot. While the store is away, or its newest revision cannot be loaded, the last good one is served.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use promptshelf_source::{Files, Loader, MemoryTree, SourceError};
use promptshelf_store::{ChannelName, Head, HistoryQuery, Revision, StoreError};
use tokio::{
    sync::Notify,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

use super::{
    cache::{CacheError, DiskCache},
    copy::ChannelCopy,
    store_handle::{ChannelReader, Connect, StoreHandle},
    versions,
};
use crate::replica::ReplicaMonitor;

const LOGGED_NAMES: usize = 5;

/// The time for a comparison. A connection that was cut silently is noticed after it.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(3);

/// The time to connect again, and to read the newest revision if a copy on disk can be served instead.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time to open the store for the first time, migrations included, and to read a delta or contents.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

const BLOBS_PER_QUERY: usize = 1_000;

/// The channel to follow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowOptions {
    /// The store.
    pub store: StoreHandle,
    /// The channel.
    pub channel: ChannelName,
    /// The folder of the copy on disk, with which a restart can serve while the store is away. None by default.
    pub cache: Option<PathBuf>,
    /// The state of the replica, from before the start. A new one by default.
    pub monitor: ReplicaMonitor,
}

impl FollowOptions {
    /// Creates options without a copy on disk.
    #[must_use]
    pub fn new(store: StoreHandle, channel: ChannelName) -> FollowOptions {
        let monitor = ReplicaMonitor::new(channel.as_str());
        FollowOptions { store, channel, cache: None, monitor }
    }
}

/// Follows a channel. The library is built on [`source`](Follower::source), and [`run`](Follower::run) keeps it current.
#[derive(Debug)]
pub struct Follower {
    store: Arc<dyn Connect>,
    channel: ChannelName,
    cache: Option<DiskCache>,
    source: Files,
    monitor: ReplicaMonitor,
    copy: Arc<ChannelCopy>,
    /// The revision that could be read and not be loaded.
    refused: Option<Head>,
    outage: Option<Outage>,
    hints: Hints,
    written: Option<Head>,
    writing: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Outage {
    began: Instant,
    kind: OutageKind,
}

/// The kind of an outage. Each is logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutageKind {
    Away,
    Corrupt,
    /// This revision cannot be loaded.
    Refused(u64),
}

impl OutageKind {
    fn of(error: &FollowError) -> OutageKind {
        match error {
            FollowError::Store(StoreError::Corrupt { .. }) => OutageKind::Corrupt,
            FollowError::Store(_) | FollowError::TimedOut => OutageKind::Away,
            FollowError::Load { revision, .. } => OutageKind::Refused(*revision),
        }
    }
}

/// Why a channel cannot be followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FollowError {
    /// The store cannot be read.
    Store(StoreError),
    /// The store did not answer in time.
    TimedOut,
    /// The newest revision cannot be loaded.
    Load {
        /// Its number.
        revision: u64,
        /// The error of the library.
        source: SourceError,
    },
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FollowError::Store(error) => error.fmt(f),
            FollowError::TimedOut => f.write_str("the store did not answer in time"),
            FollowError::Load { revision, source } => write!(f, "revision {revision} cannot be loaded: {source}"),
        }
    }
}

impl std::error::Error for FollowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message is already that of the inner error.
            FollowError::Store(error) => std::error::Error::source(error),
            FollowError::TimedOut => None,
            FollowError::Load { source, .. } => Some(source),
        }
    }
}

impl From<StoreError> for FollowError {
    fn from(error: StoreError) -> FollowError {
        FollowError::Store(error)
    }
}

impl Follower {
    /// Reads the newest revision; from the copy on disk if the store is away.
    ///
    /// # Errors
    ///
    /// [`FollowError`] if neither can be read.
    pub async fn start(options: FollowOptions) -> Result<Follower, FollowError> {
        let FollowOptions { store, channel, cache, monitor } = options;
        Follower::start_on(Arc::new(store), channel, cache, monitor).await
    }

    pub(super) async fn start_on(
        store: Arc<dyn Connect>,
        channel: ChannelName,
        cache: Option<PathBuf>,
        monitor: ReplicaMonitor,
    ) -> Result<Follower, FollowError> {
        let cache = cache.map(|folder| DiskCache::new(&folder, store.url(), &channel));
        let cached = read_cache(cache.clone()).await;
        let limit = if cached.is_some() { CONNECT_TIMEOUT } else { READ_TIMEOUT };
        let reading = timeout(limit, read(&*store, &channel, cached.as_ref())).await;
        let (copy, failure) = match reading.unwrap_or(Err(FollowError::TimedOut)) {
            Ok(Some((copy, _))) => (copy, None),
            Ok(None) => match cached {
                Some(copy) => (copy, None),
                None => return Err(StoreError::NotFound { what: format!("the channel {channel}") }.into()),
            },
            Err(error) => match cached {
                Some(copy) if is_away(&error) => (copy, Some(error)),
                _ => return Err(error),
            },
        };
        let source = Files::tree(MemoryTree::default());
        let mut follower = Follower {
            store,
            channel,
            cache,
            source,
            monitor,
            copy: Arc::new(copy),
            refused: None,
            outage: None,
            hints: Hints::default(),
            written: None,
            writing: None,
        };
        follower.install(&follower.copy);
        follower.record_served();
        match failure {
            Some(error) => follower.fail(&error),
            None => follower.monitor.set_current(),
        }
        Ok(follower)
    }

    /// The source of the library that follows the channel.
    #[must_use]
    pub fn source(&self) -> &Files {
        &self.source
    }

    /// The state of this replica.
    #[must_use]
    pub fn monitor(&self) -> &ReplicaMonitor {
        &self.monitor
    }

    /// Follows the channel, and never returns. `loader` is that of the library on [`source`](Follower::source).
    pub async fn run(mut self, loader: Loader) {
        loop {
            match self.follow(&loader).await {
                Ok(()) => self.recover(),
                Err(error) => {
                    if matches!(error, FollowError::TimedOut) {
                        self.store.reset().await;
                        self.hints.stop();
                    }
                    self.fail(&error);
                }
            }
            self.write_cache();
            tokio::select! {
                biased;
                () = self.hints.next() => {}
                () = sleep(self.store.pause()) => {}
            }
        }
    }

    async fn follow(&mut self, loader: &Loader) -> Result<(), FollowError> {
        self.hints.start(&self.store, &self.channel);
        let store = in_time(CONNECT_TIMEOUT, self.store.get()).await?;
        let head = in_time(HEAD_TIMEOUT, store.head(&self.channel)).await?;
        if head == self.copy.head {
            self.refused = None;
            return Ok(());
        }
        if let Some(refused) = self.refused.as_ref().filter(|refused| **refused == head) {
            let source = SourceError::new("it could not be loaded before");
            return Err(FollowError::Load { revision: refused.revision, source });
        }
        let Some((copy, made)) = read_from(&*store, &self.channel, Some(&self.copy)).await? else { return Ok(()) };
        let before = std::mem::replace(&mut self.copy, Arc::new(copy));
        self.install(&self.copy);
        if let Err(source) = loader.reload().await {
            let refused = std::mem::replace(&mut self.copy, before);
            // Other causes of a reload, such as new access rules, need a tree that can be loaded.
            self.install(&self.copy);
            loader.reload().await.ok();
            self.refused = Some(refused.head.clone());
            return Err(FollowError::Load { revision: refused.head.revision, source });
        }
        self.refused = None;
        self.record_served();
        tracing::info!("{}", self.change(&before.head, made.as_ref()));
        Ok(())
    }

    /// Tells who made the served revision, and what it changed. After a change of the store as a whole the revision may be
    /// one from before, and its author did nothing now.
    fn change(&self, before: &Head, made: Option<&Revision>) -> String {
        let (channel, Head { epoch, revision: now, .. }) = (&self.channel, &self.copy.head);
        let revisions = format!("{channel}: revision {} → {now}", before.revision);
        if before.epoch != *epoch {
            return format!(
                "{revisions}: the store was restored from a backup, or was given a new epoch, which is {epoch}"
            );
        }
        let Some(made) = made else { return revisions };
        let mut names: Vec<&str> = made.prompts.iter().map(|change| change.name.as_str()).collect();
        let more = names.split_off(names.len().min(LOGGED_NAMES)).len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names = if names.is_empty() { "no prompts".to_owned() } else { names.join(", ") + &more };
        let emergency = if made.emergency.is_some() { ", an emergency" } else { "" };
        format!("{revisions} by {} ({names}{emergency})", made.author)
    }

    fn install(&self, copy: &ChannelCopy) {
        let provenance = versions::provenance(&self.channel, &copy.head, &copy.versions);
        self.source.replace_revision(copy.tree.clone(), provenance);
    }

    fn record_served(&self) {
        let Head { epoch, revision, digest } = &self.copy.head;
        self.monitor.set_served(epoch.to_string(), *revision, digest.map(|digest| digest.to_string()));
    }

    fn recover(&mut self) {
        self.monitor.set_current();
        if let Some(outage) = self.outage.take() {
            let (seconds, revision) = (outage.began.elapsed().as_secs(), self.copy.head.revision);
            tracing::info!("channel {} can be read again after {seconds} s, at revision {revision}", self.channel);
        }
    }

    /// Records a failure. Each outage is logged once, and again if its kind changes.
    fn fail(&mut self, error: &FollowError) {
        self.monitor.set_degraded();
        let kind = OutageKind::of(error);
        if let OutageKind::Refused(revision) = kind {
            self.monitor.set_refused(revision);
        }
        let began = match &self.outage {
            Some(outage) if outage.kind == kind => return,
            Some(outage) => outage.began,
            None => Instant::now(),
        };
        self.outage = Some(Outage { began, kind });
        let revision = self.copy.head.revision;
        tracing::error!("channel {} cannot be read, so revision {revision} stays in use: {error}", self.channel);
    }

    /// Starts to replace the copy on disk, unless it is current or being written. A large channel takes a while, which
    /// must not delay the start or a comparison. A failure costs only a restart without the store.
    fn write_cache(&mut self) {
        let Some(cache) = self.cache.clone() else { return };
        let is_writing = self.writing.as_ref().is_some_and(|writing| !writing.is_finished());
        if is_writing || self.written.as_ref() == Some(&self.copy.head) {
            return;
        }
        self.written = Some(self.copy.head.clone());
        let (copy, channel) = (Arc::clone(&self.copy), self.channel.clone());
        self.writing = Some(spawn_blocking(move || {
            if let Err(error) = cache.write(&copy) {
                tracing::error!("cannot write the copy of channel {channel}: {error}");
            }
        }));
    }
}

/// Reads the copy on disk. A damaged one is logged and counts as absent.
async fn read_cache(cache: Option<DiskCache>) -> Option<ChannelCopy> {
    let cache = cache?;
    let read = spawn_blocking(move || cache.read()).await;
    let read = read.unwrap_or_else(|error| Err(CacheError::Io(PathBuf::new(), std::io::Error::other(error))));
    read.unwrap_or_else(|error| {
        tracing::error!("the copy on disk cannot be used: {error}");
        None
    })
}

/// Returns the revision in the copy on disk that a start serves in place of the store: after this error, or if it does not
/// answer.
#[cfg(feature = "serve")]
pub(crate) async fn revision_of_copy(
    folder: &std::path::Path,
    store: &promptshelf_store::StoreUrl,
    channel: &ChannelName,
    error: Option<StoreError>,
) -> Option<u64> {
    if !is_away(&error.map_or(FollowError::TimedOut, FollowError::Store)) {
        return None;
    }
    read_cache(Some(DiskCache::new(folder, store, channel))).await.map(|copy| copy.head.revision)
}

/// Whether a failure passes by itself, so that an older copy may be served in the meantime.
fn is_away(error: &FollowError) -> bool {
    match error {
        FollowError::TimedOut => true,
        FollowError::Store(error) => {
            use StoreError::{Changed, Corrupt, Database, NotFound, Unreachable};
            matches!(error, Unreachable { .. } | Database { .. } | Corrupt { .. } | Changed { .. } | NotFound { .. })
        }
        FollowError::Load { .. } => false,
    }
}

async fn read(
    store: &dyn Connect,
    channel: &ChannelName,
    base: Option<&ChannelCopy>,
) -> Result<Option<NewCopy>, FollowError> {
    let store = in_time(READ_TIMEOUT, store.get()).await?;
    read_from(&*store, channel, base).await
}

/// A revision with all contents, and how it came to be.
type NewCopy = (ChannelCopy, Option<Revision>);

/// Reads the newest revision; `None` if it is that of the copy.
async fn read_from(
    store: &dyn ChannelReader,
    channel: &ChannelName,
    base: Option<&ChannelCopy>,
) -> Result<Option<NewCopy>, FollowError> {
    match read_delta(store, channel, base).await {
        // What was read is not what the store has: it went back to a backup. Everything is read instead.
        Err(FollowError::Store(StoreError::Corrupt { .. } | StoreError::Changed { .. })) => {
            read_delta(store, channel, None).await
        }
        result => result,
    }
}

async fn read_delta(
    store: &dyn ChannelReader,
    channel: &ChannelName,
    base: Option<&ChannelCopy>,
) -> Result<Option<NewCopy>, FollowError> {
    let delta = in_time(READ_TIMEOUT, store.delta(channel, base.map(|copy| &copy.head))).await?;
    if base.is_some_and(|copy| copy.head == delta.head) {
        return Ok(None);
    }
    let is_complete = delta.is_complete;
    let mut contents = Vec::new();
    for digests in ChannelCopy::missing(base, &delta).chunks(BLOBS_PER_QUERY) {
        contents.extend(in_time(READ_TIMEOUT, store.blobs(digests)).await?);
    }
    let mut copy = ChannelCopy::apply(base, delta, contents)?;
    let known = base.filter(|_| !is_complete).map_or(&[][..], |base| &base.versions);
    copy.versions = in_time(READ_TIMEOUT, versions::read(store, channel, &copy.head, known)).await?;
    // Last: a store that went back to a backup meanwhile has told the versions of another revision with this number.
    let revision = copy.head.revision;
    let query = HistoryQuery { before: Some(revision + 1), limit: 1, ..HistoryQuery::default() };
    let made = in_time(READ_TIMEOUT, store.history(channel, &query)).await?.pop();
    let is_same = |made: &Revision| (made.number, made.digest) == (revision, copy.head.digest);
    if !made.as_ref().map_or(revision == 0, is_same) {
        return Err(StoreError::Changed { what: format!("revision {revision}") }.into());
    }
    Ok(Some((copy, made)))
}

pub(super) async fn in_time<T>(
    limit: Duration,
    reading: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, FollowError> {
    timeout(limit, reading).await.map_err(|_| FollowError::TimedOut)?.map_err(FollowError::Store)
}

/// Hints of the store, received by a task of their own: a listener that hangs must not delay a comparison.
#[derive(Debug, Default)]
struct Hints {
    received: Arc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl Hints {
    /// Listens, if no task does so already.
    fn start(&mut self, store: &Arc<dyn Connect>, channel: &ChannelName) {
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let (store, channel, received) = (Arc::clone(store), channel.clone(), Arc::clone(&self.received));
        self.task = Some(tokio::spawn(async move {
            // Without a store the task ends, and the next comparison starts another one.
            let Ok(store) = store.get().await else { return };
            let mut hints = store.hints(&channel).await;
            while hints.next().await.is_some() {
                received.notify_one();
            }
        }));
    }

    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    async fn next(&self) {
        self.received.notified().await;
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.stop();
    }
}

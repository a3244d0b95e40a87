//! The interface of a prompt source: [`Source`], and the values that it exchanges with a loader.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use promptshelf_core::{CatalogPart, Definitions, Provenance};
use tokio::sync::Notify;

use crate::error::SourceError;

/// A place that prompts are read from.
///
/// A source reads everything it contains, and requests another read when it changes. It returns all that it found, with
/// a diagnostic for each part that it could not understand; a [`Loader`](crate::Loader) merges, checks and publishes it.
///
/// # Example
///
/// A source with one prompt, which changes on every call of `touch`:
///
/// ```
/// use std::sync::{Mutex, atomic::{AtomicU64, Ordering}};
///
/// use promptshelf_core::{Definitions, PromptDefinition};
/// use promptshelf_source::{Fingerprint, Loader, ReloadSignal, Snapshot, Source, SourceError, WatchGuard};
///
/// #[derive(Default)]
/// struct Counter {
///     count: AtomicU64,
///     signal: Mutex<ReloadSignal>,
/// }
///
/// impl Counter {
///     fn touch(&self) {
///         self.count.fetch_add(1, Ordering::SeqCst);
///         self.signal.lock().unwrap().request();
///     }
/// }
///
/// impl Source for Counter {
///     fn read(&self) -> Result<Snapshot, SourceError> {
///         let count = self.count.load(Ordering::SeqCst);
///         let prompts = [PromptDefinition::template("count", format!("Count from {count}."))];
///         Ok(Snapshot::new(Fingerprint::new(count), Definitions::from_iter(prompts)))
///     }
///
///     fn watch(&self, signal: ReloadSignal) -> WatchGuard {
///         *self.signal.lock().unwrap() = signal;
///         WatchGuard::noop()
///     }
/// }
///
/// let counter = std::sync::Arc::new(Counter::default());
/// let loader = Loader::open(vec![Box::new(counter.clone())]).unwrap();
/// counter.touch();
/// assert!(loader.handle().current().find("count").is_some());
/// ```
pub trait Source: Send + Sync {
    /// Returns the present state.
    ///
    /// May block on files or sockets: a [`Loader`](crate::Loader) calls it on a thread for blocking work, and never
    /// twice at a time. Parts that have not changed since the last read are shared with it, so that they are not
    /// checked again.
    fn read(&self) -> Result<Snapshot, SourceError>;

    /// Requests a reload through `signal` after every change, until the returned guard is dropped.
    ///
    /// May block until changes are observed: every change after the return causes a request. Superfluous requests cost
    /// one read each; a missing request leaves outdated prompts in place. Never fails: a source that cannot observe
    /// changes requests a reload at intervals.
    fn watch(&self, signal: ReloadSignal) -> WatchGuard;
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn read(&self) -> Result<Snapshot, SourceError> {
        (**self).read()
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        (**self).watch(signal)
    }
}

/// The immutable state of a source at one moment.
///
/// ```
/// use promptshelf_core::{Definitions, PromptDefinition};
/// use promptshelf_source::{Fingerprint, Snapshot};
///
/// let prompts = vec![PromptDefinition::template("hello", "Say hello.")];
/// let snapshot = Snapshot::new(Fingerprint::new(1), Definitions::from_iter(prompts));
/// assert_eq!(snapshot.into_definitions().prompts.len(), 1);
/// ```
pub struct Snapshot {
    fingerprint: Fingerprint,
    pub(crate) generation: Option<u64>,
    pub(crate) provenance: Option<(Arc<Provenance>, bool)>,
    pub(crate) parts: Option<Vec<CatalogPart>>,
    pub(crate) definitions: Definitions,
}

impl Snapshot {
    /// Creates a snapshot of everything that the source defines.
    #[must_use]
    pub fn new(fingerprint: Fingerprint, definitions: Definitions) -> Snapshot {
        Snapshot { fingerprint, generation: None, provenance: None, parts: None, definitions }
    }

    /// Sets the generation of the catalog, such as the revision of a channel: servers that read the same state from
    /// different machines agree on it. By default each server counts its catalogs. The first source with a generation
    /// determines it.
    #[must_use]
    pub fn with_generation(self, generation: u64) -> Snapshot {
        Snapshot { generation: Some(generation), ..self }
    }

    /// Sets the provenance of the prompts, and whether clients see it. The first source with a provenance determines it,
    /// for its own prompts.
    #[must_use]
    pub fn with_provenance(self, provenance: Arc<Provenance>, is_shown: bool) -> Snapshot {
        Snapshot { provenance: Some((provenance, is_shown)), ..self }
    }

    /// Adds catalogs that are already checked. The loader joins them, so that each keeps its names to itself.
    #[must_use]
    pub fn with_parts(self, parts: Vec<CatalogPart>) -> Snapshot {
        Snapshot { parts: Some(parts), ..self }
    }

    /// Returns the fingerprint of the state.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns everything that the source defines.
    #[must_use]
    pub fn into_definitions(self) -> Definitions {
        self.definitions
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// Identifies the state of a source: equal fingerprints of one source mean equal snapshots.
///
/// ```
/// use promptshelf_source::Fingerprint;
///
/// assert_eq!(Fingerprint::new(7), Fingerprint::new(7));
/// assert_ne!(Fingerprint::new(7), Fingerprint::new(8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Creates a fingerprint from a counter or a hash that the source chooses.
    #[must_use]
    pub fn new(number: u64) -> Fingerprint {
        Fingerprint(number)
    }
}

/// Requests reloads. Clones share one signal, and several requests before a reload starts count as one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use promptshelf_source::ReloadSignal;
///
/// let signal = ReloadSignal::new();
/// signal.clone().request();
/// signal.request();
/// signal.requested().await; // returns at once, and clears both requests
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ReloadSignal(Arc<Notify>);

impl ReloadSignal {
    /// Creates a signal without a pending request.
    #[must_use]
    pub fn new() -> ReloadSignal {
        ReloadSignal::default()
    }

    /// Requests a reload. Never blocks.
    pub fn request(&self) {
        self.0.notify_one();
    }

    /// Waits for a request, and clears it. A request from before the call counts. Cancel-safe.
    pub async fn requested(&self) {
        self.0.notified().await;
    }
}

impl fmt::Debug for ReloadSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReloadSignal")
    }
}

/// The signals of those that watch a source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers(Arc<Mutex<Vec<Weak<ReloadSignal>>>>);

impl Watchers {
    pub(crate) fn add(&self, signal: ReloadSignal) -> WatchGuard {
        let signal = Arc::new(signal);
        self.0.lock().push(Arc::downgrade(&signal));
        WatchGuard::new(signal)
    }

    /// Requests a reload of each, and returns whether there is one.
    pub(crate) fn request(&self) {
        self.retain(ReloadSignal::request);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.retain(|_| ())
    }

    fn retain(&self, act: impl Fn(&ReloadSignal)) -> bool {
        let mut signals = self.0.lock();
        signals.retain(|signal| signal.upgrade().inspect(|signal| act(signal)).is_some());
        signals.is_empty()
    }
}

/// Keeps a watch on a source alive: no further reloads are requested after it is dropped.
///
/// ```
/// use promptshelf_source::WatchGuard;
///
/// let (sender, receiver) = std::sync::mpsc::channel::<()>();
/// let guard = WatchGuard::new(sender); // a watching thread would wait on `receiver`
/// drop(guard);
/// assert!(receiver.recv().is_err());
/// ```
#[must_use = "dropping the guard ends the watch"]
pub struct WatchGuard(#[expect(dead_code, reason = "kept alive for its destructor")] Option<Box<dyn Send + Sync>>);

impl WatchGuard {
    /// Creates a guard around a value whose destructor ends the watch.
    pub fn new(guard: impl Send + Sync + 'static) -> WatchGuard {
        WatchGuard(Some(Box::new(guard)))
    }

    /// Creates a guard for a source that has nothing to clean up, such as one that never changes.
    pub fn noop() -> WatchGuard {
        WatchGuard(None)
    }
}

impl fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchGuard")
    }
}

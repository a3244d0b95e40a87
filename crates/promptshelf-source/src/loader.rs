//! Loading: reads the sources on request, checks the definitions, and replaces the catalog.
//!
//! At most one load runs and one waits. If a source cannot be read, the last good catalog stays in use.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use promptshelf_core::{
    Catalog, CatalogHandle, CatalogPart, CatalogProvenance, Change, Checked, Definitions, Diagnostic, check, join,
};
use tokio::{
    sync::{oneshot, watch},
    task::{JoinHandle, spawn_blocking},
};

use crate::{
    error::SourceError,
    source::{Fingerprint, ReloadSignal, Snapshot, Source},
};

/// Loads sources into a catalog and keeps it up to date.
///
/// Clones are the same loader.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use promptshelf_source::{Files, Loader};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("hello.md"), "Say hello.\n")?;
/// let loader = Loader::open(vec![Box::new(Files::folder(folder.path()))])?;
/// let handle = loader.handle();
/// assert!(handle.current().find("hello").is_some());
///
/// std::fs::write(folder.path().join("bye.md"), "Say goodbye.\n")?;
/// loader.reload().await?;
/// assert!(handle.current().find("bye").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Loader(Arc<Inner>);

struct Inner {
    sources: Vec<Box<dyn Source>>,
    handle: CatalogHandle,
    is_quiet: bool,
    /// Locked while a load runs.
    state: Mutex<State>,
    report: watch::Sender<LoadReport>,
    requested: AtomicU64,
    /// The last finished load. Waiting for this lock means waiting for the next load.
    finished: tokio::sync::Mutex<Finished>,
}

#[derive(Default)]
struct State {
    /// The fingerprints of the snapshots that the catalog was made from.
    loaded: Vec<Fingerprint>,
    loads: u64,
    failures: u64,
}

#[derive(Default)]
struct Finished {
    /// The load covers all requests up to this count of `requested`.
    covers: u64,
    outcome: Option<Result<Change, SourceError>>,
}

/// The outcome of the last load.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadReport {
    /// The number of loads so far.
    pub loads: u64,
    /// The number of loads in which a source could not be read.
    pub failures: u64,
    /// The generation of the catalog after the load; see [`Catalog::generation`].
    pub generation: u64,
    /// The number of catalogs before that one; see [`Catalog::serial`].
    pub serial: u64,
    /// All diagnostics of the library.
    pub diagnostics: Arc<[Diagnostic]>,
    /// The error if a source could not be read; the catalog and the diagnostics are then those of the last successful
    /// load.
    pub failure: Option<SourceError>,
}

impl Loader {
    /// Reads and checks all sources for the first time. Blocks while they are read.
    ///
    /// The server's description and policy (`about`, `policy`) come from the first source; the others add prompts and
    /// resources.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot be read. Mistakes of authors are [`diagnostics`](Loader::diagnostics) and
    /// not errors.
    pub fn open(sources: Vec<Box<dyn Source>>) -> Result<Loader, SourceError> {
        Loader::open_as(sources, false)
    }

    /// Opens a loader that logs nothing: its reports are merged with those of others, or somebody asks for this library,
    /// who chooses what is in it.
    ///
    /// # Errors
    ///
    /// As [`open`](Loader::open).
    pub fn open_quietly(sources: Vec<Box<dyn Source>>) -> Result<Loader, SourceError> {
        Loader::open_as(sources, true)
    }

    fn open_as(sources: Vec<Box<dyn Source>>, is_quiet: bool) -> Result<Loader, SourceError> {
        let snapshots = read(&sources)?;
        let state = State { loaded: fingerprints(&snapshots), loads: 1, failures: 0 };
        let checked = load(snapshots, None);
        if !is_quiet {
            log_new(&[], &checked.diagnostics);
        }
        let handle = CatalogHandle::new(checked.catalog);
        let generation = handle.current().generation();
        let (report, _) = watch::channel(LoadReport {
            loads: 1,
            failures: 0,
            generation,
            serial: 0,
            diagnostics: checked.diagnostics.into(),
            failure: None,
        });
        Ok(Loader(Arc::new(Inner {
            sources,
            handle,
            is_quiet,
            state: Mutex::new(state),
            report,
            requested: AtomicU64::new(0),
            finished: tokio::sync::Mutex::default(),
        })))
    }

    /// Returns the handle of the catalog that this loader replaces.
    #[must_use]
    pub fn handle(&self) -> CatalogHandle {
        self.0.handle.clone()
    }

    /// Returns all diagnostics of the library, by file and position.
    #[must_use]
    pub fn diagnostics(&self) -> Arc<[Diagnostic]> {
        Arc::clone(&self.0.report.borrow().diagnostics)
    }

    /// Subscribes to the reports of all loads; the last one is available at once. Observers of the catalog are
    /// notified of a change before it is reported here.
    #[must_use]
    pub fn reports(&self) -> watch::Receiver<LoadReport> {
        self.0.report.subscribe()
    }

    /// Loads the changes of all sources. Calls during a load share the next one.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot be read. The last good catalog stays in use.
    pub async fn reload(&self) -> Result<Change, SourceError> {
        let ticket = self.0.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut finished = self.0.finished.lock().await;
        if finished.covers >= ticket
            && let Some(outcome) = &finished.outcome
        {
            return outcome.clone();
        }
        // Later requests may be for changes that this load misses.
        let covers = self.0.requested.load(Ordering::SeqCst);
        let inner = Arc::clone(&self.0);
        let outcome = match spawn_blocking(move || inner.load()).await {
            Ok(outcome) => outcome,
            Err(error) => Err(SourceError::new(format!("cannot load the library: {error}"))),
        };
        *finished = Finished { covers, outcome: Some(outcome.clone()) };
        outcome
    }

    /// Watches the sources, and reloads on each of their requests. Never returns; drop the future to end it.
    pub async fn run(&self) {
        self.follow(None).await;
    }

    /// Watches and reloads in the background until the result is dropped.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    #[must_use = "dropping it ends the following"]
    pub fn spawn(&self) -> ReloadTask {
        self.spawn_after(std::future::ready(()))
    }

    /// Like [`spawn`](Loader::spawn), but starts when `wait` completes. Changes from before that moment are loaded
    /// then.
    #[must_use = "dropping it ends the following"]
    pub fn spawn_after(&self, wait: impl Future<Output = ()> + Send + 'static) -> ReloadTask {
        let (ready, is_ready) = oneshot::channel();
        let loader = self.clone();
        let task = tokio::spawn(async move {
            wait.await;
            loader.follow(Some(ready)).await;
        });
        ReloadTask { task, is_ready: Some(is_ready) }
    }

    async fn follow(&self, ready: Option<oneshot::Sender<()>>) {
        let signal = ReloadSignal::new();
        let (inner, requests) = (Arc::clone(&self.0), signal.clone());
        let arm = move || inner.sources.iter().map(|source| source.watch(requests.clone())).collect::<Vec<_>>();
        let following = spawn_blocking(arm).await;
        if let Err(error) = &following {
            tracing::error!("cannot watch the library, so changes are not reloaded: {error}");
        }
        // Sources may have changed between the first load and now. Errors are in the report and the log.
        self.reload().await.ok();
        if let Some(ready) = ready {
            // The receiver is optional.
            ready.send(()).ok();
        }
        loop {
            signal.requested().await;
            self.reload().await.ok();
        }
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loader({} sources, {:?})", self.0.sources.len(), self.0.handle)
    }
}

/// A background task that watches the sources and reloads them until it is dropped.
#[derive(Debug)]
pub struct ReloadTask {
    task: JoinHandle<()>,
    is_ready: Option<oneshot::Receiver<()>>,
}

impl ReloadTask {
    /// Waits until every later change will be noticed.
    pub async fn ready(&mut self) {
        if let Some(is_ready) = self.is_ready.take() {
            // An error means that the task has ended, so there is nothing to wait for.
            is_ready.await.ok();
        }
    }
}

impl Drop for ReloadTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Inner {
    fn load(&self) -> Result<Change, SourceError> {
        let mut state = self.state.lock();
        state.loads += 1;
        let loads = state.loads;
        let before = self.report.borrow().clone();
        match read(&self.sources) {
            Ok(snapshots) if fingerprints(&snapshots) == state.loaded => {
                let change = self.handle.touch();
                self.report.send_replace(LoadReport { loads, failure: None, ..before });
                Ok(change)
            }
            Ok(snapshots) => {
                state.loaded = fingerprints(&snapshots);
                let Checked { catalog, diagnostics } = load(snapshots, Some(&self.handle.current()));
                if !self.is_quiet {
                    log_new(&before.diagnostics, &diagnostics);
                }
                let prompts = catalog.prompts().len();
                let change = self.handle.replace(catalog);
                let generation = change.generation;
                tracing::debug!(generation, prompts, "loaded the library");
                let (diagnostics, serial) = (diagnostics.into(), self.handle.current().serial());
                let report = LoadReport { loads, generation, serial, diagnostics, failure: None, ..before };
                self.report.send_replace(report);
                Ok(change)
            }
            Err(error) => {
                state.failures += 1;
                let is_known = before.failure.as_ref().is_some_and(|known| known.to_string() == error.to_string());
                if !is_known && !self.is_quiet {
                    tracing::error!("cannot reload the library, so the last good version stays in use: {error}");
                }
                self.report.send_replace(LoadReport {
                    loads,
                    failures: state.failures,
                    failure: Some(error.clone()),
                    ..before
                });
                Err(error)
            }
        }
    }
}

fn read(sources: &[Box<dyn Source>]) -> Result<Vec<Snapshot>, SourceError> {
    sources.iter().map(|source| source.read()).collect()
}

fn fingerprints(snapshots: &[Snapshot]) -> Vec<Fingerprint> {
    snapshots.iter().map(Snapshot::fingerprint).collect()
}

/// Merges snapshots in their order, and checks them. What is the same as in the `previous` catalog is taken from it.
fn load(snapshots: Vec<Snapshot>, previous: Option<&Catalog>) -> Checked {
    let generation = snapshots.iter().find_map(|snapshot| snapshot.generation);
    let provenance = (0..).zip(&snapshots).find_map(|(source, snapshot)| {
        let (provenance, is_shown) = snapshot.provenance.clone()?;
        Some(CatalogProvenance { source, provenance, is_shown })
    });
    let mut merged: Option<Definitions> = None;
    let mut parts: Option<Vec<CatalogPart>> = None;
    for (number, snapshot) in snapshots.into_iter().enumerate() {
        if let Some(more) = snapshot.parts {
            parts.get_or_insert_default().extend(more);
        }
        let definitions = snapshot.definitions.of_source(number);
        match &mut merged {
            Some(merged) => merged.merge(definitions),
            None => merged = Some(definitions),
        }
    }
    // The definitions of the server itself are the last part of a joined catalog.
    let own = previous.map(|previous| previous.parts().last().map_or(previous, |own| &own.catalog));
    let Checked { catalog, diagnostics } = check(merged.unwrap_or_default(), own);
    let own = Checked { catalog: catalog.with_provenance(provenance), diagnostics };
    match parts {
        // The revision of a channel says nothing about the other sources: loads are counted.
        Some(parts) => join(own, parts),
        None => Checked { catalog: own.catalog.with_generation(generation), ..own },
    }
}

/// The most findings of one load that are logged. The line of each takes time in proportion to its file.
const MAX_LOGGED: usize = 100;

fn log_new(before: &[Diagnostic], now: &[Diagnostic]) {
    fn key(found: &Diagnostic) -> (&str, usize, &str) {
        (&found.location.source.path, found.location.span().start, &found.message)
    }
    let before: HashSet<_> = before.iter().map(key).collect();
    let new = || now.iter().filter(|diagnostic| !before.contains(&key(diagnostic)));
    for diagnostic in new().take(MAX_LOGGED) {
        if diagnostic.is_error() {
            tracing::error!("{diagnostic}");
        } else {
            tracing::warn!("{diagnostic}");
        }
    }
    let more = new().skip(MAX_LOGGED).count();
    if more > 0 {
        tracing::warn!("the library has {more} more findings; `promptshelf check` shows them");
    }
}

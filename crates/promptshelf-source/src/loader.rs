//! ReloadSignal, read, check, replace: at most one load runs and one waits, and when
//! nothing can be read the last good catalog stays.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use promptshelf_core::{
    Catalog, CatalogHandle, Change, Checked, Definitions, Diagnostic, PromptDefinition, check, check_edited,
};
use tokio::{
    sync::{oneshot, watch},
    task::{JoinHandle, spawn_blocking},
};

use crate::{
    error::SourceError,
    source::{Fingerprint, ReloadSignal, Snapshot, Source},
};

/// Loads sources into a catalog and keeps it up to date. Clones are the same loader.
#[derive(Clone)]
pub struct Loader(Arc<Inner>);

struct Inner {
    sources: Vec<Box<dyn Source>>,
    handle: CatalogHandle,
    /// Held while a load runs.
    state: Mutex<State>,
    report: watch::Sender<LoadReport>,
    /// How many loads have been requested for.
    requested: AtomicU64,
    /// The newest finished load. Whoever waits for it waits for the next load.
    finished: tokio::sync::Mutex<Finished>,
}

#[derive(Default)]
struct State {
    /// What of each source stands in the catalog.
    fingerprints: Vec<Option<Fingerprint>>,
    loads: u64,
    failures: u64,
}

#[derive(Default)]
struct Finished {
    /// Everybody who requested before it began, by the count of `requested`.
    covers: u64,
    outcome: Option<Result<Change, SourceError>>,
}

/// What the newest load found.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// How many loads there have been.
    pub loads: u64,
    /// How many of them could read nothing.
    pub failures: u64,
    /// The generation of the catalog that it left in place.
    pub generation: u64,
    /// Everything that is wrong with the library.
    pub diagnostics: Arc<[Diagnostic]>,
    /// Why nothing could be read; the catalog and the diagnostics are then
    /// those of the last load that could read.
    pub failure: Option<SourceError>,
}

impl Loader {
    /// Reads and checks all sources for the first time. Blocks while they are read.
    ///
    /// The first source speaks for the server (`about`, `policy`); the others
    /// add to it.
    ///
    /// # Errors
    ///
    /// [`SourceError`] when one of them cannot be read. Mistakes of authors are
    /// no errors: see [`diagnostics`](Loader::diagnostics).
    pub fn open(sources: Vec<Box<dyn Source>>) -> Result<Loader, SourceError> {
        let mut state = State { fingerprints: vec![None; sources.len()], loads: 1, failures: 0 };
        let definitions = match look(&sources, &state.fingerprints)? {
            Some(readings) => whole(&sources, readings, &mut state.fingerprints)?,
            None => Definitions::default(),
        };
        let checked = check(definitions, None);
        log_new(&[], &checked.diagnostics);
        let handle = CatalogHandle::new(checked.catalog);
        let generation = handle.current().generation();
        let (report, _) = watch::channel(LoadReport {
            loads: 1,
            failures: 0,
            generation,
            diagnostics: checked.diagnostics.into(),
            failure: None,
        });
        Ok(Loader(Arc::new(Inner {
            sources,
            handle,
            state: Mutex::new(state),
            report,
            requested: AtomicU64::new(0),
            finished: tokio::sync::Mutex::default(),
        })))
    }

    /// Where the catalog stands.
    #[must_use]
    pub fn handle(&self) -> CatalogHandle {
        self.0.handle.clone()
    }

    /// Everything that is wrong with the library, by file and place.
    #[must_use]
    pub fn diagnostics(&self) -> Arc<[Diagnostic]> {
        Arc::clone(&self.0.report.borrow().diagnostics)
    }

    /// What the newest load found, now and after each further one. Observers of
    /// the catalog hear of a change before it is reported here.
    #[must_use]
    pub fn reports(&self) -> watch::Receiver<LoadReport> {
        self.0.report.subscribe()
    }

    /// Loads what has changed. Calls while a load runs are answered together by
    /// the next one.
    ///
    /// # Errors
    ///
    /// [`SourceError`] when a source cannot be read. The last good catalog stays.
    pub async fn reload(&self) -> Result<Change, SourceError> {
        let ticket = self.0.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut finished = self.0.finished.lock().await;
        if finished.covers >= ticket
            && let Some(outcome) = &finished.outcome
        {
            return outcome.clone();
        }
        // Whoever asks from here on may know of something that this load misses.
        let covers = self.0.requested.load(Ordering::SeqCst);
        let inner = Arc::clone(&self.0);
        let outcome = match spawn_blocking(move || inner.load()).await {
            Ok(outcome) => outcome,
            Err(error) => Err(SourceError::new(format!("loading the library failed: {error}"))),
        };
        *finished = Finished { covers, outcome: Some(outcome.clone()) };
        outcome
    }

    /// Follows the sources, and loads after every nudge of theirs. Never
    /// returns; to end it, drop the future.
    pub async fn run(&self) {
        self.follow(None).await;
    }

    /// Runs in the background until the result is dropped. Needs a Tokio runtime.
    #[must_use = "dropping it ends the following"]
    pub fn spawn(&self) -> ReloadTask {
        self.spawn_after(std::future::ready(()))
    }

    /// Like [`spawn`](Loader::spawn), once something has happened. What changes
    /// before is noticed then.
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
            tracing::error!("changes of the library will not be noticed: {error}");
        }
        // Something may have changed between the first load and now. What a
        // load has to say stands in the report and the log.
        self.reload().await.ok();
        if let Some(ready) = ready {
            // Nobody has to wait for it.
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

/// A loader that follows its sources in the background until this is dropped.
#[derive(Debug)]
pub struct ReloadTask {
    task: JoinHandle<()>,
    is_ready: Option<oneshot::Receiver<()>>,
}

impl ReloadTask {
    /// Waits until every later change will be noticed.
    pub async fn ready(&mut self) {
        if let Some(is_ready) = self.is_ready.take() {
            // An error says that the task has ended, and nothing is to be waited for.
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.loads += 1;
        let loads = state.loads;
        let before = self.report.borrow().clone();
        match self.check(&mut state.fingerprints, &before.diagnostics) {
            Ok(Some(checked)) => {
                log_new(&before.diagnostics, &checked.diagnostics);
                let change = self.replace(checked.catalog);
                let diagnostics = checked.diagnostics.into();
                let generation = change.generation;
                self.report.send_replace(LoadReport { loads, generation, diagnostics, failure: None, ..before });
                Ok(change)
            }
            Ok(None) => {
                let change = self.handle.touch();
                self.report.send_replace(LoadReport { loads, failure: None, ..before });
                Ok(change)
            }
            Err(error) => {
                state.failures += 1;
                let is_known = before.failure.as_ref().is_some_and(|known| known.to_string() == error.to_string());
                if !is_known {
                    tracing::error!("the last good version of the library stays: {error}");
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

    /// Checks what has changed; nothing where nothing has.
    fn check(
        &self,
        fingerprints: &mut Vec<Option<Fingerprint>>,
        known: &[Diagnostic],
    ) -> Result<Option<Checked>, SourceError> {
        let Some(mut readings) = look(&self.sources, fingerprints)? else { return Ok(None) };
        let current = self.handle.current();
        if let Some(edited) = edited(&mut readings)
            && let Some(checked) = check_edited(&edited, &current, known)
        {
            for (fingerprint, reading) in fingerprints.iter_mut().zip(readings) {
                *fingerprint = reading.map(|reading| reading.fingerprint()).or(*fingerprint);
            }
            return Ok(Some(checked));
        }
        Ok(Some(check(whole(&self.sources, readings, fingerprints)?, Some(&current))))
    }

    fn replace(&self, catalog: Catalog) -> Change {
        let prompts = catalog.prompts().len();
        let change = self.handle.replace(catalog);
        tracing::debug!(generation = change.generation, prompts, "loaded the library");
        change
    }
}

/// Asks all sources what has changed; nothing where nothing has.
fn look(
    sources: &[Box<dyn Source>],
    fingerprints: &[Option<Fingerprint>],
) -> Result<Option<Vec<Option<Snapshot>>>, SourceError> {
    let readings: Result<Vec<_>, _> =
        sources.iter().zip(fingerprints).map(|(source, known)| source.read(*known)).collect();
    readings.map(|readings| (sources.is_empty() || readings.iter().any(Option::is_some)).then_some(readings))
}

/// Prompts that were edited, where nothing else has changed in any source.
fn edited(readings: &mut [Option<Snapshot>]) -> Option<Vec<PromptDefinition>> {
    let mut all = Vec::new();
    for (number, reading) in readings.iter_mut().enumerate() {
        let Some(reading) = reading else { continue };
        let prompts = reading.take_edited_prompts()?;
        all.extend(Definitions { prompts, ..Definitions::default() }.of_source(number).prompts);
    }
    Some(all)
}

/// Everything that all sources define.
fn whole(
    sources: &[Box<dyn Source>],
    readings: Vec<Option<Snapshot>>,
    fingerprints: &mut Vec<Option<Fingerprint>>,
) -> Result<Definitions, SourceError> {
    let mut merged: Option<Definitions> = None;
    let mut new = Vec::with_capacity(sources.len());
    for (number, (source, reading)) in sources.iter().zip(readings).enumerate() {
        let whole = match reading {
            Some(reading) => Some(reading),
            None => source.read(None)?,
        };
        let Some(reading) = whole else {
            return Err(SourceError::new("a source gave nothing when it was requested for everything"));
        };
        new.push(Some(reading.fingerprint()));
        let definitions = reading.into_definitions()?.of_source(number);
        match &mut merged {
            Some(merged) => merged.merge(definitions),
            None => merged = Some(definitions),
        }
    }
    *fingerprints = new;
    Ok(merged.unwrap_or_default())
}

/// Logs what was not wrong before.
fn log_new(before: &[Diagnostic], now: &[Diagnostic]) {
    fn key(found: &Diagnostic) -> (&str, usize, &str) {
        (&found.location.source.path, found.location.span().start, &found.message)
    }
    let before: HashSet<_> = before.iter().map(key).collect();
    for diagnostic in now.iter().filter(|diagnostic| !before.contains(&key(diagnostic))) {
        if diagnostic.is_error() {
            tracing::error!("{diagnostic}");
        } else {
            tracing::warn!("{diagnostic}");
        }
    }
}

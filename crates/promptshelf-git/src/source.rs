//! The source: compares the repository with the served commit, reads and checks a new one, and replaces the tree.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use promptshelf_core::{CommitProvenance, Provenance};
use promptshelf_source::{Files, MemoryTree, SourceError};
use tokio::{
    sync::{Mutex, Notify, watch},
    task::spawn_blocking,
    time::sleep,
};

use crate::{
    address::is_commit,
    commit::{self, Judge},
    condition::Condition,
    error::{GitError, short},
    objects::{self, CommitTree, KnownFiles},
    options::{Credentials, GitOptions, OnErrors},
    repository::{Locked, MAX_HISTORY, Record, Repository},
    state::{GitState, ServedCommit, now},
};

const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// A library in a git repository. Clones are the same source.
///
/// The first [`refresh`](GitSource::refresh) reads the newest commit, and [`run`](GitSource::run) polls for others. Until
/// then the tree is empty.
#[derive(Clone)]
pub struct GitSource(Arc<Inner>);

struct Inner {
    options: GitOptions,
    repository: Repository,
    source: Files,
    state: watch::Sender<GitState>,
    nudged: Notify,
    /// Locked while a commit is read.
    worker: Mutex<Worker>,
}

#[derive(Default)]
struct Worker {
    files: KnownFiles,
    served: Option<Conditions>,
    refused: Option<(Conditions, GitError)>,
    /// The commit whose whole history has no valid signature.
    unsigned: Option<Conditions>,
}

#[derive(Clone, PartialEq, Eq)]
struct Conditions {
    commit: String,
    signers: Option<Vec<u8>>,
}

impl Conditions {
    /// Returns how the signature is judged; `None` without signers.
    fn judge(&self, record: &Record) -> Option<Judge<'_>> {
        let signers = self.signers.as_deref()?;
        Some(Judge { signers, fetched: record.fetched(&self.commit) })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Followed,
    Chosen,
    Back,
}

impl fmt::Debug for GitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GitSource({})", self.0.options.address)
    }
}

impl GitSource {
    /// Creates a source without any input or output.
    ///
    /// # Errors
    ///
    /// [`GitError::InvalidOptions`] for an interval below a second or a relative folder.
    pub fn new(mut options: GitOptions) -> Result<GitSource, GitError> {
        let invalid = |reason: &str| Err(GitError::InvalidOptions { reason: reason.to_owned() });
        if options.interval < MIN_INTERVAL {
            return invalid("the interval of a git source is at least 1 s");
        }
        if !options.cache.is_absolute() {
            return invalid("the folder for copies of repositories is an absolute path");
        }
        // git runs in another folder.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        options.signers = options.signers.as_ref().map(absolute);
        if let Credentials::File(path) = &options.credentials {
            options.credentials = Credentials::File(absolute(path));
        }
        let repository = Repository::new(&options);
        let source = Files::tree(MemoryTree::default());
        Ok(GitSource(Arc::new(Inner {
            options,
            repository,
            source,
            state: watch::Sender::default(),
            nudged: Notify::new(),
            worker: Mutex::default(),
        })))
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &GitOptions {
        &self.0.options
    }

    /// The source of prompts, whose tree is replaced at each new commit.
    #[must_use]
    pub fn source(&self) -> &Files {
        &self.0.source
    }

    /// Returns the state at this moment.
    #[must_use]
    pub fn state(&self) -> GitState {
        self.0.state.borrow().clone()
    }

    /// Subscribes to changes of the state.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<GitState> {
        self.0.state.subscribe()
    }

    /// Requests a poll soon. Never blocks; several requests count as one, and polls are a second apart.
    pub fn nudge(&self) {
        self.0.nudged.notify_one();
    }

    /// Polls until it is dropped. Each new problem is logged once.
    pub async fn run(self) {
        let mut last = self.state().problem;
        loop {
            sleep(MIN_INTERVAL).await;
            let rest = self.pause().saturating_sub(MIN_INTERVAL);
            tokio::select! {
                () = self.0.nudged.notified() => {}
                () = sleep(rest) => {}
            }
            self.poll().await.ok();
            let problem = self.state().problem;
            if problem != last {
                match &problem {
                    Some(problem) => tracing::error!("{} stays as it is: {problem}", self.0.options.address),
                    None => tracing::info!("{} can be read again", self.0.options.address),
                }
                last = problem;
            }
        }
    }

    /// Compares the repository with the served commit, and serves a newer one: also one that was refused before, as its
    /// conditions may have changed. If nothing is served yet and the newest commit cannot be, that of the last run is.
    ///
    /// # Errors
    ///
    /// [`GitError`] if the newest commit is not served. [`state`](GitSource::state) shows which one is instead.
    pub async fn refresh(&self) -> Result<(), GitError> {
        self.0.worker.lock().await.refused = None;
        self.poll().await
    }

    /// Stays at a commit, or follows the reference again with `None`. The pin outlives this process, and holds for all
    /// that share the folder: they notice it at their next poll.
    ///
    /// # Errors
    ///
    /// [`GitError`] if the commit is not served. The pin then stays as it was.
    pub async fn pin(&self, commit: Option<&str>) -> Result<(), GitError> {
        if let Some(commit) = commit.filter(|commit| !is_commit(commit)) {
            let commit: String = commit.chars().take(80).collect();
            let reason = format!("{commit:?} is not the id of a commit: expected all of its 40 digits, or 64");
            return Err(GitError::InvalidOptions { reason });
        }
        let mut worker = self.0.worker.lock().await;
        let commit = commit.map(str::to_ascii_lowercase);
        if let Some(commit) = &commit {
            let lock = self.0.repository.lock().await?;
            let mut record = self.0.repository.record();
            record.pin = Some(commit.clone());
            let result = self.serve(&mut worker, &lock, commit, None, &mut record, Way::Chosen).await;
            self.note(&result);
            return result;
        }
        let lock = self.0.repository.lock().await?;
        let mut record = self.0.repository.record();
        record.pin = None;
        self.0.repository.write(&record)?;
        drop((lock, worker));
        self.refresh().await
    }

    /// Pins the commit of the reference that was served before the present one, and returns its id.
    ///
    /// # Errors
    ///
    /// [`GitError::NotFound`] if none is known, and those of [`pin`](GitSource::pin).
    pub async fn rollback(&self) -> Result<String, GitError> {
        let record = self.0.repository.record();
        let served = self.state().served.map(|served| served.id).or_else(|| record.good.clone());
        let before = served.and_then(|served| record.before(&served).map(str::to_owned));
        let commit = before
            .ok_or_else(|| GitError::NotFound { what: "commit that was served before the present one".to_owned() })?;
        self.pin(Some(&commit)).await?;
        Ok(commit)
    }

    /// Compares the repository with the served commit, and serves a newer one. A commit that was refused before is not
    /// read again.
    ///
    /// # Errors
    ///
    /// As for [`refresh`](GitSource::refresh).
    pub async fn poll(&self) -> Result<(), GitError> {
        let mut worker = self.0.worker.lock().await;
        let verified = self.verify_again(&mut worker).await;
        let result = match verified {
            Ok(()) => self.follow(&mut worker).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &result
            && worker.served.is_none()
        {
            self.restore(&mut worker, error).await;
        }
        self.note(&result);
        result
    }

    /// Verifies the served commit again once the file of signers has changed, or that of the last run. One whose key was
    /// withdrawn is no longer served, even if the repository is away: the newest one before it with a valid signature is.
    async fn verify_again(&self, worker: &mut Worker) -> Result<(), GitError> {
        let repository = &self.0.repository;
        if self.0.options.signers.is_none() {
            return Ok(());
        }
        let served = worker.served.as_ref().map(|served| served.commit.clone());
        let Some(commit) = served.or_else(|| repository.record().good) else { return Ok(()) };
        let conditions = self.conditions(&commit)?;
        if worker.served.as_ref() == Some(&conditions) || !repository.has(&commit).await {
            return Ok(());
        }
        let lock = repository.lock().await?;
        let mut record = repository.record();
        match commit::read(repository, &lock, &commit, conditions.judge(&record)).await {
            Ok(_) => {
                if let Some(served) = &mut worker.served {
                    *served = conditions;
                }
                Ok(())
            }
            Err(error @ GitError::Signature { .. }) => {
                tracing::error!("{} goes back: {error}", self.0.options.address);
                if !self.step_back(worker, &lock, &commit, &mut record).await? {
                    self.serve_nothing(worker, &mut record)?;
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Serves the newest commit before another one that has a valid signature. Returns whether there is one.
    async fn step_back(
        &self,
        worker: &mut Worker,
        lock: &Locked,
        from: &str,
        record: &mut Record,
    ) -> Result<bool, GitError> {
        let repository = &self.0.repository;
        let searched = self.conditions(from)?;
        if worker.unsigned.as_ref() == Some(&searched) {
            return Ok(false);
        }
        let deepened = repository.deepen(lock, from).await;
        if let Err(error) = &deepened {
            tracing::warn!("the history of {} cannot be fetched: {error}", self.0.options.address);
        }
        for commit in repository.history(from).await?.into_iter().skip(1) {
            let conditions = self.conditions(&commit)?;
            let verified = commit::read(repository, lock, &commit, conditions.judge(record)).await;
            if verified.is_err() {
                continue;
            }
            match self.serve(worker, lock, &commit, None, record, Way::Back).await {
                Ok(()) => return Ok(true),
                Err(error) => tracing::warn!("an earlier commit cannot be served: {error}"),
            }
        }
        worker.unsigned = deepened.is_ok().then_some(searched);
        Ok(false)
    }

    fn serve_nothing(&self, worker: &mut Worker, record: &mut Record) -> Result<(), GitError> {
        record.good = None;
        self.0.repository.write(record)?;
        self.0.source.replace(MemoryTree::default());
        (worker.served, worker.refused, worker.files) = (None, None, KnownFiles::default());
        self.0.state.send_modify(|state| state.served = None);
        Ok(())
    }

    /// Serves the newest commit, if it is another one than the served.
    async fn follow(&self, worker: &mut Worker) -> Result<(), GitError> {
        let repository = &self.0.repository;
        let fixed = self.0.options.address.reference().filter(|reference| is_commit(reference));
        let (newest, name, conditions, lock, mut record) = loop {
            let pin = repository.record().pin;
            self.0.state.send_if_modified(|state| std::mem::replace(&mut state.pin, pin.clone()) != pin);
            let (newest, name) = match pin.clone().or_else(|| fixed.map(str::to_ascii_lowercase)) {
                Some(commit) => (commit, None),
                None => {
                    let (commit, name) = repository.resolve().await?;
                    (commit, Some(name))
                }
            };
            let conditions = self.conditions(&newest)?;
            if worker.served.as_ref() == Some(&conditions) {
                return Ok(());
            }
            if let Some((_, error)) = worker.refused.as_ref().filter(|(refused, _)| *refused == conditions) {
                return Err(error.clone());
            }
            let lock = repository.lock().await?;
            let record = repository.record();
            // Another process may have pinned a commit meanwhile.
            if record.pin == pin {
                break (newest, name, conditions, lock, record);
            }
        };
        let way = if name.is_some() { Way::Followed } else { Way::Chosen };
        let result = self.serve(worker, &lock, &newest, name.as_deref(), &mut record, way).await;
        if result.is_err() {
            repository.remove_partial_packs(&lock);
        }
        if let Err(
            error @ (GitError::Refused { .. }
            | GitError::Signature { .. }
            | GitError::Load { .. }
            | GitError::TooLarge { .. }),
        ) = &result
        {
            worker.refused = Some((conditions, error.clone()));
        }
        result
    }

    fn conditions(&self, commit: &str) -> Result<Conditions, GitError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| GitError::InvalidOptions {
                reason: format!("cannot read the file of `signers`, {}: {error}", path.display()),
            })
        };
        Ok(Conditions { commit: commit.to_owned(), signers: self.0.options.signers.as_ref().map(read).transpose()? })
    }

    /// Serves the commit of the last run; without one, a commit with errors. Failures leave the source as it is: the
    /// caller has an error already.
    async fn restore(&self, worker: &mut Worker, failure: &GitError) {
        let repository = &self.0.repository;
        let Ok(lock) = repository.lock().await else { return };
        let mut record = repository.record();
        if let Some(good) = record.good.take()
            && repository.has(&format!("{good}^{{tree}}")).await
            && self.serve(worker, &lock, &good, None, &mut record, Way::Back).await.is_ok()
        {
            return;
        }
        record.good = None;
        let result = match failure {
            GitError::Refused { commit, .. } => self.serve(worker, &lock, commit, None, &mut record, Way::Back).await,
            GitError::Signature { commit, .. } => self.step_back(worker, &lock, commit, &mut record).await.map(drop),
            _ => Ok(()),
        };
        if let Err(error) = result {
            tracing::debug!("nothing can be served instead: {error}");
        }
    }

    /// With signers, the newest commit has to descend from the served one: an earlier one with a valid signature would
    /// bring back what was corrected since.
    async fn check_descent(&self, lock: &Locked, commit: &str, record: &Record) -> Result<(), GitError> {
        let Some(good) = record.good.as_deref().filter(|good| *good != commit) else { return Ok(()) };
        let repository = &self.0.repository;
        if !repository.has(good).await {
            return Ok(());
        }
        repository.deepen(lock, commit).await?;
        if repository.history(commit).await?.iter().any(|before| before == good) {
            return Ok(());
        }
        let name = self.0.options.name.as_deref().unwrap_or("NAME");
        let reason = format!(
            "it does not descend from the served commit {} within {MAX_HISTORY} commits, so that it may bring back an \
             earlier state; `promptshelf source pin {name} {commit}` serves it nevertheless",
            short(good)
        );
        Err(GitError::Refused { commit: commit.to_owned(), reason })
    }

    async fn serve(
        &self,
        worker: &mut Worker,
        lock: &Locked,
        commit: &str,
        name: Option<&str>,
        record: &mut Record,
        way: Way,
    ) -> Result<(), GitError> {
        let (repository, options) = (&self.0.repository, &self.0.options);
        let conditions = self.conditions(commit)?;
        let commit = if repository.has(&format!("{commit}^{{tree}}")).await {
            commit.to_owned()
        } else {
            repository.fetch(lock, commit, name).await?
        };
        // Of a commit in the history of another one, only the commit itself was fetched.
        if !repository.has(&format!("{commit}^{{tree}}")).await {
            repository.fetch_tree(lock, &commit).await?;
        }
        let served = commit::read(repository, lock, &commit, conditions.judge(record)).await?;
        if way == Way::Followed && served.signer.is_some() {
            self.check_descent(lock, &commit, record).await?;
        }
        let CommitTree { tree, files } = self.read(worker, lock, &commit).await?;
        self.check(worker, lock, &commit, &tree, record, way).await?;
        let mut provenance = CommitProvenance::new(options.address.repository(), &commit)
            .folder(options.address.folder())
            .author(&served.author);
        if let Some(signer) = &served.signer {
            provenance = provenance.signed_by(signer);
        }
        let provenance = Provenance::of_commit(provenance);
        let provenance = options.name.iter().fold(provenance, |all, name| all.with_source(name.as_str()));
        record.add(&commit);
        repository.write(record)?;
        self.0.source.replace_revision(tree, provenance);
        worker.files = files;
        worker.served = Some(Conditions { commit, ..conditions });
        worker.refused = None;
        self.set_served(served, record);
        if let Err(error) = repository.keep(lock, record).await {
            tracing::warn!("the copy of {} was not cleaned up: {error}", options.address);
        }
        Ok(())
    }

    /// Checks the library of a tree before it is served, against that of the last good commit.
    async fn check(
        &self,
        worker: &Worker,
        lock: &Locked,
        commit: &str,
        tree: &MemoryTree,
        record: &Record,
        way: Way,
    ) -> Result<(), GitError> {
        let now = self.condition(commit, tree).await?;
        // An operator may return to a commit that was served before.
        let is_return = match way {
            Way::Followed => false,
            Way::Chosen => record.served.iter().any(|served| served == commit),
            Way::Back => true,
        };
        let good = record.good.as_deref().filter(|good| *good != commit && !is_return);
        let Some(good) = good.filter(|_| now.has_errors() && self.0.options.on_errors == OnErrors::Refuse) else {
            return Ok(());
        };
        let served = worker.served.as_ref().filter(|served| served.commit == good);
        let before = match served {
            Some(_) => self.0.source.in_memory().unwrap_or_default(),
            // After a start, the last good commit is on disk. Without it nothing is served that could get worse.
            None => match self.read(worker, lock, good).await {
                Ok(read) => read.tree,
                Err(error) => {
                    tracing::debug!("the last good commit {good} cannot be read: {error}");
                    return Ok(());
                }
            },
        };
        let Ok(before) = self.condition(good, &before).await else { return Ok(()) };
        match now.worse_than(&before, tree) {
            None => Ok(()),
            Some(reason) => Err(GitError::Refused { commit: commit.to_owned(), reason }),
        }
    }

    async fn condition(&self, commit: &str, tree: &MemoryTree) -> Result<Condition, GitError> {
        let candidate = self.0.source.candidate(tree.clone());
        let checked = spawn_blocking(move || Condition::of(&candidate)).await;
        let checked = checked.unwrap_or_else(|error| Err(SourceError::new(format!("the check has failed: {error}"))));
        checked.map_err(|source| GitError::Load { commit: commit.to_owned(), source })
    }

    async fn read(&self, worker: &Worker, lock: &Locked, commit: &str) -> Result<CommitTree, GitError> {
        let options = &self.0.options;
        let (folder, limits) = (options.address.folder(), &options.limits);
        objects::read(&self.0.repository, lock, commit, folder, &worker.files, limits).await
    }

    fn set_served(&self, served: ServedCommit, record: &Record) {
        self.0.state.send_modify(|state| {
            state.commits += 1;
            state.served = Some(served);
            state.pin.clone_from(&record.pin);
        });
    }

    fn note(&self, result: &Result<(), GitError>) {
        self.0.state.send_modify(|state| match result {
            Ok(()) => {
                (state.problem, state.behind_since) = (None, None);
                state.compared = now();
            }
            Err(error) => {
                state.problem = Some(match (error, &state.served) {
                    (GitError::Signature { .. }, None) => format!(
                        "{error}; nothing is served, as no commit of the {MAX_HISTORY} before it has a valid signature"
                    ),
                    _ => error.to_string(),
                });
                state.behind_since = state.behind_since.or_else(now);
            }
        });
    }

    /// Returns the time until the next poll: the interval, or up to a fifth less, so that many servers spread their polls.
    fn pause(&self) -> Duration {
        // The keys of a new state are random.
        let percent = 80 + RandomState::new().hash_one(0) % 21;
        self.0.options.interval * u32::try_from(percent).unwrap_or(100) / 100
    }
}

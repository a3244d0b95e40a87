//! Watching of folders: file system events become debounced reload signals.
//!
//! Events arrive late, twice or not at all, so the kind of an event is not passed on: the reader compares files itself.
//! The paths of events are passed on, so that it needs to look at no others.

mod native;

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use cap_std::fs::Metadata;
use parking_lot::Mutex;

use self::native::NativeWatcher;
use crate::{
    file_role::is_ignored,
    source::{ReloadSignal, WatchGuard},
    tree::FileState,
};

/// The pause after an event before the signal is sent: the writes of one save are closer together than this.
const QUIET: Duration = Duration::from_millis(20);

/// The longest delay from the first event to the signal, however many events follow. A change has to be served a
/// tenth of a second after the write.
const MAX_DELAY: Duration = Duration::from_millis(60);

/// The bound up to which the longest delay grows while events never pause, as during a checkout: loading a
/// half-written checkout again and again is wasted work.
const MAX_DELAY_IN_A_BURST: Duration = Duration::from_millis(240);

/// The pause between two polls is at least this many times the duration of one poll, so polling takes at most 1 % of
/// the time.
const POLL_PAUSE_FACTOR: u32 = 100;

#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchOptions {
    pub(crate) native_events: bool,
    /// How often to compare the state of all files; `None` turns polling off.
    pub(crate) poll_interval: Option<Duration>,
}

impl Default for WatchOptions {
    fn default() -> WatchOptions {
        WatchOptions { native_events: true, poll_interval: Some(Duration::from_secs(2)) }
    }
}

/// The folders to watch. A reading can change them while they are watched. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct WatchedTrees(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    paths: Vec<PathBuf>,
    watchers: Vec<Sender<Message>>,
    /// The changes that were signalled and not taken yet.
    pending: Option<Changes>,
}

/// The paths of changed files; `None` if any may have changed, or been added or removed.
pub(crate) type Changes = Option<BTreeSet<String>>;

/// Adds changes to those that are pending.
fn merge(pending: &mut Option<Changes>, more: Changes) {
    *pending = Some(match (pending.take(), more) {
        (None, more) => more,
        (Some(Some(paths)), Some(more)) => Some(paths.into_iter().chain(more).collect()),
        _ => None,
    });
}

impl WatchedTrees {
    pub(crate) fn new(paths: Vec<PathBuf>) -> WatchedTrees {
        WatchedTrees(Arc::new(Mutex::new(State { paths, watchers: Vec::new(), pending: None })))
    }

    pub(crate) fn set(&self, paths: Vec<PathBuf>) {
        self.with(|state| {
            if state.paths != paths {
                state.paths = paths;
                state.watchers.retain(|watcher| watcher.send(Message::TreesChanged).is_ok());
            }
        });
    }

    /// Takes the signalled changes; `None` without a signal, too.
    pub(crate) fn take_changes(&self) -> Changes {
        self.with(|state| state.pending.take().flatten())
    }

    pub(crate) fn add_changes(&self, changes: Changes) {
        self.with(|state| merge(&mut state.pending, changes));
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.with(|state| state.paths.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock())
    }
}

enum Message {
    Event(notify::Result<notify::Event>),
    TreesChanged,
    Stop,
}

/// Requests a reload after every change below the trees, until the result is dropped. Returns when every later change
/// will be noticed.
pub(crate) fn watch(trees: &WatchedTrees, options: WatchOptions, signal: ReloadSignal) -> WatchGuard {
    let (sender, receiver) = channel();
    trees.with(|state| state.watchers.push(sender.clone()));
    let (ready, is_ready) = channel();
    let thread = {
        let (trees, events) = (trees.clone(), sender.clone());
        move || {
            let native = match options.native_events {
                // The receiver is gone once the watch has ended, and the event is of no use then.
                true => NativeWatcher::new(move |event| drop(events.send(Message::Event(event)))),
                false => NativeWatcher::disabled(),
            };
            let mut thread = WatchThread {
                trees,
                native,
                options,
                signal,
                polled: 0,
                max_delay: MAX_DELAY,
                pending: None,
                next_poll: None,
                own_output: OwnOutput::of_process(),
            };
            thread.update_watches();
            thread.poll();
            // Changes before this moment were not observed.
            thread.trees.add_changes(None);
            // The caller may have given up waiting; the thread goes on regardless.
            ready.send(()).ok();
            thread.run(&receiver);
        }
    };
    match thread::Builder::new().name("promptshelf-watch".to_owned()).spawn(thread) {
        Ok(_) => {
            is_ready.recv().ok();
        }
        Err(error) => {
            tracing::error!("cannot watch the library, so changes are not reloaded: cannot start a thread: {error}");
        }
    }
    WatchGuard::new(StopOnDrop(Mutex::new(sender)))
}

struct StopOnDrop(Mutex<Sender<Message>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let sender = self.0.get_mut();
        sender.send(Message::Stop).ok();
    }
}

struct WatchThread {
    trees: WatchedTrees,
    native: NativeWatcher,
    options: WatchOptions,
    signal: ReloadSignal,
    polled: u64,
    max_delay: Duration,
    pending: Option<Pending>,
    next_poll: Option<Instant>,
    own_output: OwnOutput,
}

/// Changes that have not been signalled yet.
struct Pending {
    first: Instant,
    last: Instant,
    changes: Option<Changes>,
}

impl WatchThread {
    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            let deadline = self.due().into_iter().chain(self.next_poll).min();
            let message = match deadline {
                Some(deadline) => messages.recv_timeout(deadline.saturating_duration_since(Instant::now())),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Event(event)) => {
                    if let Some(changes) = self.native.handle(event, &self.own_output) {
                        self.add(changes);
                    }
                }
                Ok(Message::TreesChanged) => {
                    self.update_watches();
                    self.add(None);
                }
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if self.next_poll.is_some_and(|at| at <= now) {
                let before = self.polled;
                self.poll();
                if self.polled != before {
                    // The missed event may have been the replacement of a watched folder.
                    self.update_watches();
                    self.add(None);
                }
            }
            self.signal_when_due();
        }
    }

    fn due(&self) -> Option<Instant> {
        let pending = self.pending.as_ref()?;
        Some((pending.last + QUIET).min(pending.first + self.max_delay))
    }

    fn signal_when_due(&mut self) {
        let now = Instant::now();
        if self.due().is_some_and(|due| due <= now)
            && let Some(pending) = self.pending.take()
        {
            let is_quiet = pending.last + QUIET <= now;
            self.max_delay = if is_quiet { MAX_DELAY } else { (self.max_delay * 2).min(MAX_DELAY_IN_A_BURST) };
            self.trees.add_changes(pending.changes.flatten());
            self.signal.request();
        }
    }

    fn update_watches(&mut self) {
        let paths = self.trees.paths();
        self.native.sync(paths.iter().map(PathBuf::as_path));
    }

    fn add(&mut self, changes: Changes) {
        let now = Instant::now();
        let pending = self.pending.get_or_insert(Pending { first: now, last: now, changes: None });
        pending.last = now;
        merge(&mut pending.changes, changes);
    }

    fn poll(&mut self) {
        let Some(interval) = self.options.poll_interval else { return };
        let start = Instant::now();
        self.polled = fingerprint(&self.trees.paths(), &self.own_output);
        self.next_poll = Some(Instant::now() + interval.max(start.elapsed() * POLL_PAUSE_FACTOR));
    }
}

/// The regular file behind stderr, to which this process may log, by device and inode; `None` if stderr is something else.
///
/// A log inside a watched folder would feed itself: a reload writes to the log, and the changed log causes a reload.
#[derive(Debug, Default)]
struct OwnOutput(Option<(u64, u64)>);

impl OwnOutput {
    fn is(&self, metadata: &fs::Metadata) -> bool {
        self.0.is_some() && identity(metadata) == self.0
    }

    fn is_at(&self, path: &Path) -> bool {
        self.0.is_some() && path.metadata().is_ok_and(|metadata| self.is(&metadata))
    }

    #[cfg(test)]
    fn of_file(metadata: &fs::Metadata) -> OwnOutput {
        OwnOutput(identity(metadata))
    }
}

#[cfg(unix)]
impl OwnOutput {
    fn of_process() -> OwnOutput {
        use std::{fs::File, os::fd::AsFd as _};
        let file = std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
        OwnOutput(file.and_then(|file| file.metadata()).ok().as_ref().and_then(identity))
    }
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// Without file identities, such a log is treated as any other file.
#[cfg(not(unix))]
impl OwnOutput {
    fn of_process() -> OwnOutput {
        OwnOutput::default()
    }
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Bounds of one poll; deeper folders and further entries are not compared.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 1_000_000;

/// Returns a number that differs when the state of anything below the folders does, apart from this process's log.
fn fingerprint(trees: &[PathBuf], own_output: &OwnOutput) -> u64 {
    let mut poll = Poll { sum: 0, entries: 0, own_output };
    for tree in trees {
        poll.add(tree, fs::metadata(tree));
        poll.folder(tree, "", 0);
    }
    poll.sum
}

struct Poll<'o> {
    /// A sum, because the order of a folder's entries is not defined.
    sum: u64,
    entries: usize,
    own_output: &'o OwnOutput,
}

impl Poll<'_> {
    /// Adds the entries of a folder; `inside` is its path below its tree.
    fn folder(&mut self, folder: &Path, inside: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let (name, Ok(file_type)) = (entry.file_name(), entry.file_type()) else { continue };
            let inside = match inside {
                "" => name.to_string_lossy().into_owned(),
                around => format!("{around}/{}", name.to_string_lossy()),
            };
            if is_ignored(&inside, file_type.is_dir()) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return;
            }
            let path = entry.path();
            // A link is followed for the state of its target only: a target inside the folder is visited by itself, and
            // one outside does not belong to the library.
            let metadata = if file_type.is_symlink() { fs::metadata(&path) } else { entry.metadata() };
            self.add(&path, metadata);
            if file_type.is_dir() {
                self.folder(&path, &inside, depth + 1);
            }
        }
    }

    fn add(&mut self, path: &Path, metadata: std::io::Result<fs::Metadata>) {
        if metadata.as_ref().is_ok_and(|metadata| self.own_output.is(metadata)) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let state = metadata.ok().map(|metadata| FileState::of(&Metadata::from_just_metadata(metadata)));
        state.hash(&mut hasher);
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-67
    #[cfg(unix)]
    #[test]
    fn own_log_changes_no_fingerprint() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, other) = (folder.path().join("server.log"), folder.path().join("a.txt"));
        fs::write(&log, "first line").expect("written");
        fs::write(&other, "first line").expect("written");
        let own = OwnOutput::of_file(&fs::metadata(&log).expect("a file"));
        let poll = || fingerprint(&[folder.path().to_owned()], &own);
        let before = poll();
        fs::write(&log, "first line\nsecond line").expect("written");
        assert_eq!(poll(), before);
        fs::write(&other, "first line\nsecond line").expect("written");
        assert_ne!(poll(), before);
    }
}

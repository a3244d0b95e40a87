//! Filesystem noise becomes one quiet nudge.
//!
//! What exactly happened to a file is deliberately not passed on: events come
//! late, twice, or not at all, so whoever is nudged looks for itself. Only where
//! to look is, so that one edit in a large library costs one file.

mod arm;
mod sweep;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use self::{
    arm::{Armed, Heard},
    sweep::sweep,
};
use crate::{ReloadSignal, WatchGuard};

/// How long nothing has to happen before a nudge is given: the writes of one
/// save come closer together than this.
const QUIET: Duration = Duration::from_millis(20);

/// The longest wait from the first event to the nudge, however much happens
/// meanwhile. A change has to be served a tenth of a second after the write.
const LONGEST: Duration = Duration::from_millis(60);

/// What the longest wait grows to while events never pause, as during a
/// checkout: loading a half of it again and again helps nobody.
const LONGEST_IN_A_STORM: Duration = Duration::from_millis(240);

/// A look at every file may take this part of the time between two looks.
const SHARE: u32 = 100;

/// How changes are noticed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether to listen for the operating system's events.
    pub(crate) listen: bool,
    /// How often to look besides.
    pub(crate) poll: Option<Duration>,
}

impl Default for Options {
    fn default() -> Options {
        Options { listen: true, poll: Some(Duration::from_secs(2)) }
    }
}

/// The folders to watch, which a reading can change while they are watched.
#[derive(Clone, Debug)]
pub(crate) struct Trees(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    paths: Vec<PathBuf>,
    watchers: Vec<Sender<Message>>,
    /// What was heard of before the last nudge, and not taken yet.
    hint: Option<Where>,
}

/// Where something has changed.
#[derive(Debug)]
pub(crate) enum Where {
    /// Nobody knows.
    Anywhere,
    /// At these paths below the first folder, or at none that matter.
    Only(BTreeSet<String>),
}

impl Where {
    fn add(&mut self, other: Where) {
        match (&mut *self, other) {
            (Where::Only(paths), Where::Only(more)) => paths.extend(more),
            _ => *self = Where::Anywhere,
        }
    }
}

impl Trees {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Trees {
        Trees(Arc::new(Mutex::new(State { paths, watchers: Vec::new(), hint: None })))
    }

    /// Watches these from now on.
    pub(crate) fn set(&self, paths: Vec<PathBuf>) {
        self.with(|state| {
            if state.paths != paths {
                state.paths = paths;
                state.watchers.retain(|watcher| watcher.send(Message::Trees).is_ok());
            }
        });
    }

    /// Where to look, for whoever was nudged; anywhere for whoever was not.
    pub(crate) fn take_hint(&self) -> Where {
        self.with(|state| state.hint.take().unwrap_or(Where::Anywhere))
    }

    /// Says where to look the next time.
    pub(crate) fn hint(&self, found: Where) {
        self.with(|state| match &mut state.hint {
            Some(hint) => hint.add(found),
            None => state.hint = Some(found),
        });
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.with(|state| state.paths.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

enum Message {
    Event(notify::Result<notify::Event>),
    /// There are other folders to watch.
    Trees,
    Stop,
}

/// Nudges after every change below the trees, until the result is dropped.
/// Returns when every change from now on will be noticed.
pub(crate) fn follow(trees: &Trees, options: Options, nudge: ReloadSignal) -> WatchGuard {
    let (sender, receiver) = channel();
    trees.with(|state| state.watchers.push(sender.clone()));
    let (ready, is_ready) = channel();
    let watch = {
        let (trees, sender) = (trees.clone(), sender.clone());
        move || {
            let armed = Armed::new(options.listen.then_some(sender));
            let mut watch =
                Watch { trees, armed, options, nudge, seen: 0, longest: LONGEST, pending: None, next_look: None };
            watch.arm();
            watch.look();
            // Of what changed before nothing was heard.
            watch.trees.hint(Where::Anywhere);
            // Whoever waited may have given up; that is no reason to stop.
            ready.send(()).ok();
            watch.run(&receiver);
        }
    };
    match thread::Builder::new().name("promptshelf-watch".to_owned()).spawn(watch) {
        Ok(_) => {
            is_ready.recv().ok();
        }
        Err(error) => tracing::error!("changes of the library will not be noticed: {error}"),
    }
    WatchGuard::until_dropped(Stop(Mutex::new(sender)))
}

struct Stop(Mutex<Sender<Message>>);

impl Drop for Stop {
    fn drop(&mut self) {
        let sender = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        sender.send(Message::Stop).ok();
    }
}

struct Watch {
    trees: Trees,
    armed: Armed,
    options: Options,
    nudge: ReloadSignal,
    /// What the last look gave.
    seen: u64,
    /// The longest wait at present.
    longest: Duration,
    pending: Option<Pending>,
    next_look: Option<Instant>,
}

/// Something has happened that nobody has been nudged for.
struct Pending {
    first: Instant,
    last: Instant,
    place: Where,
}

impl Watch {
    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            let deadline = self.due().into_iter().chain(self.next_look).min();
            let message = match deadline {
                Some(deadline) => messages.recv_timeout(deadline.saturating_duration_since(Instant::now())),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(Message::Event(event)) => match self.armed.takes(event) {
                    Heard::Nothing => {}
                    Heard::Of(paths) => self.note(Where::Only(paths)),
                    Heard::More => self.note(Where::Anywhere),
                },
                Ok(Message::Trees) => {
                    self.arm();
                    self.note(Where::Anywhere);
                }
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if self.next_look.is_some_and(|at| at <= now) {
                let before = self.seen;
                self.look();
                if self.seen != before {
                    // What was not heard of may also be that a watched folder is another one now.
                    self.arm();
                    self.note(Where::Anywhere);
                }
            }
            self.nudge_when_due();
        }
    }

    /// When the next nudge is to be given.
    fn due(&self) -> Option<Instant> {
        let pending = self.pending.as_ref()?;
        Some((pending.last + QUIET).min(pending.first + self.longest))
    }

    fn nudge_when_due(&mut self) {
        let now = Instant::now();
        if self.due().is_some_and(|due| due <= now)
            && let Some(pending) = self.pending.take()
        {
            let is_quiet = pending.last + QUIET <= now;
            self.longest = if is_quiet { LONGEST } else { (self.longest * 2).min(LONGEST_IN_A_STORM) };
            self.trees.hint(pending.place);
            self.nudge.give();
        }
    }

    fn arm(&mut self) {
        let paths = self.trees.paths();
        self.armed.sync(paths.iter().map(PathBuf::as_path));
    }

    fn note(&mut self, place: Where) {
        let now = Instant::now();
        match &mut self.pending {
            Some(pending) => {
                pending.last = now;
                pending.place.add(place);
            }
            None => self.pending = Some(Pending { first: now, last: now, place }),
        }
    }

    /// Looks at the state of every file, and says when to look again.
    fn look(&mut self) {
        let Some(every) = self.options.poll else { return };
        let start = Instant::now();
        self.seen = sweep(&self.trees.paths());
        self.next_look = Some(Instant::now() + every.max(start.elapsed() * SHARE));
    }
}

//! A seeded simulation of replicas: followers, their copies on disk and subscriptions, on a clock that stands still while
//! they work, against a store in memory.
//!
//! The seed decides when each read of the store is carried out and answered, what is lost, and every publish, restore,
//! partition and restart. After each event, everything that the replicas serve is compared with the revisions that existed.
//! `PROMPTSHELF_SEED` replays one seed and prints its events. `REPLICA_STEPS` and `REPLICA_MINUTES` go on for longer, on all
//! processors, from the seeds of `REPLICA_SEED` on.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Weak, mpsc as blocking},
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http_body::Body as _;
use parking_lot::Mutex;
use promptshelf_core::{BoxFuture, Catalog};
use promptshelf_mcp::{HttpBody, HttpOptions};
use promptshelf_source::Files;
use promptshelf_store::{
    ChannelName, CheckSummary, Delta, Digest, Epoch, FileEntry, Head, HistoryQuery, RevisionKind, Served, StoreError,
    StoreUrl,
};
use promptshelf_testkit::{Random, amount, figure};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout},
};
use tower::ServiceExt as _;

use super::{
    follower::Follower,
    store_handle::{Answer, ChannelReader, Connect, Contents},
};
use crate::{Library, ReplicaMonitor};

/// The first two have a copy on disk. The first does not show versions.
const REPLICAS: usize = 3;

const STEPS: u64 = 100_000;
const STEPS_OF_A_SEED: u64 = 5_000;

/// The longest time of a comparison with everything that follows from it, in milliseconds, while nothing is slow.
const FOLLOWED: u64 = 400;

/// The longest time between two comparisons.
const PAUSE: u64 = 1_200;

/// The time after which a process that ended is started again.
const RESTARTED: u64 = 1_000;

/// The time after which opening a store fails by itself.
const OPENED: u64 = 10_000;

const BROKEN: &str = "version = [";

#[derive(Debug)]
struct Revision {
    number: u64,
    digest: Option<Digest>,
    files: BTreeMap<String, String>,
    live: BTreeMap<String, (u64, Digest, u64)>,
    approver: Option<String>,
}

impl Revision {
    fn is_loadable(&self) -> bool {
        !self.files.values().any(|text| text == BROKEN)
    }

    fn digests(&self) -> BTreeMap<String, Digest> {
        self.files.iter().map(|(path, text)| (path.clone(), Digest::of(text.as_bytes()))).collect()
    }
}

/// The revisions between two restores. The first one is the empty channel.
#[derive(Clone, Debug)]
struct History {
    epoch: Epoch,
    oldest: u64,
    revisions: Vec<Arc<Revision>>,
}

impl History {
    fn newest(&self) -> &Arc<Revision> {
        self.revisions.last().expect("the empty channel")
    }

    fn head_of(&self, revision: &Revision) -> Head {
        Head { epoch: self.epoch.clone(), revision: revision.number, digest: revision.digest }
    }

    fn get(&self, number: u64) -> Option<&Arc<Revision>> {
        self.revisions.get(usize::try_from(number).ok()?).filter(|_| number >= self.oldest)
    }

    fn delta(&self, since: Option<&Head>, is_damaged: bool) -> Delta {
        let newest = self.newest();
        let base = since.and_then(|since| self.get(since.revision).filter(|base| self.head_of(base) == *since));
        let is_new = |path: &str, text: &String| base.is_none_or(|base| base.files.get(path) != Some(text));
        let entry = |(path, text): (&String, &String)| FileEntry {
            path: path.clone(),
            digest: Digest::of(text.as_bytes()),
            size: text.len() as u64,
        };
        let mut files: Vec<FileEntry> =
            newest.files.iter().filter(|(path, text)| is_new(path, text)).map(entry).collect();
        if is_damaged {
            files.pop();
        }
        let gone = base.into_iter().flat_map(|base| base.files.keys()).filter(|path| !newest.files.contains_key(*path));
        Delta {
            head: self.head_of(newest),
            tree: newest.digest.map(|_| Digest::of_tree(&newest.digests())),
            is_complete: base.is_none(),
            files,
            removed: gone.cloned().collect(),
        }
    }

    fn blobs(&self, digests: &[Digest]) -> Result<Contents, StoreError> {
        let kept = self.revisions.iter().rev().take_while(|revision| revision.number >= self.oldest);
        let mut texts = HashMap::new();
        for text in kept.flat_map(|revision| revision.files.values()) {
            if texts.len() < digests.len() {
                let digest = Digest::of(text.as_bytes());
                if digests.contains(&digest) {
                    texts.entry(digest).or_insert_with(|| Arc::from(text.as_bytes()));
                }
            }
        }
        let missing = || StoreError::NotFound { what: "a content".to_owned() };
        digests.iter().map(|digest| Ok((*digest, texts.get(digest).cloned().ok_or_else(missing)?))).collect()
    }

    fn served(&self, number: u64) -> Result<Vec<Served>, StoreError> {
        let missing = || StoreError::NotFound { what: format!("revision {number}") };
        let live = self.get(number).ok_or_else(missing)?.live.iter();
        let served = |(name, (version, digest, since)): (&String, &(u64, Digest, u64))| Served {
            name: name.clone(),
            version: *version,
            digest: *digest,
            since: *since,
            until: None,
        };
        Ok(live.map(served).collect())
    }

    fn listed(&self, query: &HistoryQuery) -> Vec<promptshelf_store::Revision> {
        let before = query.before.unwrap_or(u64::MAX);
        let found = self.revisions.iter().rev().filter(|revision| revision.number > 0 && revision.number < before);
        let found = found.take_while(|revision| revision.number >= self.oldest).take(query.limit);
        let revision = |revision: &Arc<Revision>| promptshelf_store::Revision {
            number: revision.number,
            digest: revision.digest,
            kind: RevisionKind::Publish,
            author: "ada".to_owned(),
            message: String::new(),
            at: jiff::Timestamp::UNIX_EPOCH,
            proposal: revision.number,
            approved_by: revision.approver.iter().cloned().collect(),
            emergency: None,
            checks: CheckSummary { errors: 0, warnings: 0, tests: None },
            policy: None,
            clock_ahead: None,
            prompts: Vec::new(),
        };
        found.map(revision).collect()
    }
}

/// What a call waits for, and so when it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    Open,
    Head,
    Read,
    Listen,
}

impl CallKind {
    fn limit(self) -> u64 {
        match self {
            CallKind::Open => OPENED,
            CallKind::Head => 3_000,
            CallKind::Read => 60_000,
            CallKind::Listen => 0,
        }
    }
}

/// Sends an answer, or tells that the connection was cut.
type Reply = Box<dyn FnOnce(bool)>;

/// Carries a call out: on the store as it is then, damaged or not, or not at all.
type Work = Box<dyn FnOnce(Option<(&History, bool)>) -> Reply + Send>;

struct Call {
    replica: usize,
    connection: u64,
    kind: CallKind,
    /// Gone as soon as nobody waits for the answer.
    waiting: Weak<()>,
    work: Work,
}

/// The store as a replica sees it.
#[derive(Clone)]
struct Remote(Arc<RemoteParts>);

struct RemoteParts {
    replica: usize,
    url: StoreUrl,
    is_open: tokio::sync::Mutex<bool>,
    calls: mpsc::UnboundedSender<Call>,
    pauses: Mutex<Random>,
    line: Arc<Mutex<Line>>,
}

/// The connections of a process, by number.
#[derive(Default)]
struct Line {
    newest: u64,
    /// Those up to this one were cut, and will never tell.
    dead: u64,
    hints: Vec<(u64, mpsc::UnboundedSender<()>)>,
}

impl Line {
    fn is_dead(&self) -> bool {
        self.newest > 0 && self.newest <= self.dead
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.0.replica)
    }
}

fn cut() -> StoreError {
    StoreError::Unreachable { reason: "cut".to_owned(), source: None }
}

impl Remote {
    fn ask<T: Send + 'static>(
        &self,
        kind: CallKind,
        read: impl FnOnce(&History, bool) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        let (sender, answer) = oneshot::channel();
        let waits = Arc::new(());
        let waiting = Arc::downgrade(&waits);
        let work = Box::new(move |store: Option<(&History, bool)>| {
            let result = store.ok_or_else(cut).and_then(|(history, is_damaged)| read(history, is_damaged));
            Box::new(move |is_cut| _ = sender.send(if is_cut { Err(cut()) } else { result }).ok()) as Reply
        });
        let calls = self.0.calls.clone();
        let (replica, connection) = (self.0.replica, self.0.line.lock().newest);
        Box::pin(async move {
            calls.send(Call { replica, connection, kind, waiting, work }).ok();
            let answer = answer.await.unwrap_or_else(|_| Err(cut()));
            drop(waits);
            answer
        })
    }
}

impl ChannelReader for Remote {
    fn head<'a>(&'a self, _: &'a ChannelName) -> Answer<'a, Head> {
        self.ask(CallKind::Head, |history, _| Ok(history.head_of(history.newest())))
    }

    fn delta<'a>(&'a self, _: &'a ChannelName, since: Option<&'a Head>) -> Answer<'a, Delta> {
        let since = since.cloned();
        self.ask(CallKind::Read, move |history, is_damaged| Ok(history.delta(since.as_ref(), is_damaged)))
    }

    fn blobs<'a>(&'a self, digests: &'a [Digest]) -> Answer<'a, Contents> {
        let digests = digests.to_vec();
        self.ask(CallKind::Read, move |history, _| history.blobs(&digests))
    }

    fn served<'a>(&'a self, _: &'a ChannelName, revision: u64) -> Answer<'a, Vec<Served>> {
        self.ask(CallKind::Read, move |history, _| history.served(revision))
    }

    fn history<'a>(
        &'a self,
        _: &'a ChannelName,
        query: &'a HistoryQuery,
    ) -> Answer<'a, Vec<promptshelf_store::Revision>> {
        let query = query.clone();
        self.ask(CallKind::Read, move |history, _| Ok(history.listed(&query)))
    }

    /// A connection that listens begins with a hint.
    fn hints<'a>(&'a self, _: &'a ChannelName) -> BoxFuture<'a, BoxStream<'static, ()>> {
        let remote = self.clone();
        Box::pin(async move {
            let first = stream::once(async move {
                while remote.ask(CallKind::Listen, |_, _| Ok(())).await.is_err() {
                    sleep(Duration::from_millis(PAUSE)).await;
                }
                let (sender, hints) = mpsc::unbounded_channel();
                sender.send(()).ok();
                let mut line = remote.0.line.lock();
                let connection = line.newest;
                line.hints.push((connection, sender));
                drop(line);
                stream::unfold(hints, async |mut hints| Some((hints.recv().await?, hints)))
            });
            first.flatten().boxed()
        })
    }
}

impl Connect for Remote {
    fn url(&self) -> &StoreUrl {
        &self.0.url
    }

    /// As the handle of a real store does: whoever opens it holds a lock.
    fn get(&self) -> Answer<'_, Arc<dyn ChannelReader>> {
        Box::pin(async {
            let mut is_open = self.0.is_open.lock().await;
            if !*is_open {
                let opened = timeout(Duration::from_millis(OPENED), self.ask(CallKind::Open, |_, _| Ok(())));
                opened.await.unwrap_or_else(|_| Err(cut()))?;
                *is_open = true;
                self.0.line.lock().newest += 1;
            }
            Ok(Arc::new(self.clone()) as Arc<dyn ChannelReader>)
        })
    }

    fn reset(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { *self.0.is_open.lock().await = false })
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(800 + self.0.pauses.lock().below(PAUSE - 800 + 1))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Link {
    Good,
    Refused,
    /// Nothing is answered, and nobody is told.
    Silent,
}

/// A number of a history, and one of a revision.
type Place = (usize, u64);

struct Replica {
    link: Link,
    cache: Option<tempfile::TempDir>,
    life: Option<Life>,
    line: Arc<Mutex<Line>>,
    pending: Vec<Pending>,
    /// Calls to listen, which a connection that was cut repeats.
    unheard: Vec<Call>,
    /// What the copy on disk has at least.
    cached: Option<Place>,
    /// When it has to serve the newest revision, with the reason.
    deadline: Option<(u64, &'static str)>,
}

struct Pending {
    kind: CallKind,
    since: u64,
    waiting: Weak<()>,
    /// `None` if the answer was lost.
    answered: Option<u64>,
    /// What was lost: nobody is told that it is.
    lost: Option<Box<dyn std::any::Any>>,
}

/// A process, from its start to its end.
struct Life {
    task: JoinHandle<()>,
    begun: Arc<Mutex<Option<Result<Begun, String>>>>,
    /// Nothing was answered so far.
    is_cut_off: bool,
    served: Option<Place>,
    list: Vec<Listed>,
}

/// A prompt as lists show it: name, description, and the version with its approvers if they are shown.
type Listed = (String, String, Option<(u64, String, Vec<String>)>);

struct Begun {
    library: Library,
    source: Files,
    monitor: ReplicaMonitor,
    stream: HttpBody,
    catalogs: Arc<Mutex<Vec<Arc<Catalog>>>>,
}

enum Event {
    Work(Call, u64, bool),
    Reply(usize, Weak<()>, Reply),
    Notify(usize),
    Publish,
    Trouble,
    Heal(usize),
    Start(usize),
    Turn,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Work(call, ..) => write!(f, "{:?} of {}", call.kind, call.replica),
            Event::Reply(replica, ..) => write!(f, "late answer to {replica}"),
            Event::Notify(replica) => write!(f, "notification to {replica}"),
            Event::Publish => f.write_str("publish"),
            Event::Trouble => f.write_str("trouble"),
            Event::Heal(replica) => write!(f, "{replica} is connected again"),
            Event::Start(replica) => write!(f, "{replica} starts"),
            Event::Turn => f.write_str("turn"),
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    steps: u64,
    publishes: u64,
    restores: u64,
    restarts: u64,
    cuts: u64,
    list_changes: u64,
    trace: u64,
}

struct Simulation {
    seed: u64,
    is_told: bool,
    random: Random,
    begun: Instant,
    now: u64,
    histories: Vec<History>,
    replicas: Vec<Replica>,
    calls: mpsc::UnboundedReceiver<Call>,
    sender: mpsc::UnboundedSender<Call>,
    events: BTreeMap<(u64, u64), Event>,
    number: u64,
    is_stormy: bool,
    quiet_until: u64,
    counts: Counts,
    trace: DefaultHasher,
}

/// In memory where there is such a folder: what a copy on disk costs is `sync_all`.
fn folder() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.expect("a folder")
}

fn epoch(number: u64) -> Epoch {
    serde_json::from_value(serde_json::json!(format!("epoch-{number}"))).expect("a text")
}

impl Simulation {
    fn new(seed: u64, is_told: bool) -> Simulation {
        let (sender, calls) = mpsc::unbounded_channel();
        let replica = |number| Replica {
            link: Link::Good,
            cache: (number < 2).then(folder),
            life: None,
            line: Arc::default(),
            pending: Vec::new(),
            unheard: Vec::new(),
            cached: None,
            deadline: None,
        };
        let empty = Revision { number: 0, digest: None, files: BTreeMap::new(), live: BTreeMap::new(), approver: None };
        let mut simulation = Simulation {
            seed,
            is_told,
            random: Random::new(seed),
            begun: Instant::now(),
            now: 0,
            histories: vec![History { epoch: epoch(0), oldest: 0, revisions: vec![Arc::new(empty)] }],
            replicas: (0..REPLICAS).map(replica).collect(),
            calls,
            sender,
            events: BTreeMap::new(),
            number: 0,
            is_stormy: false,
            quiet_until: 0,
            counts: Counts::default(),
            trace: DefaultHasher::new(),
        };
        (0..REPLICAS).for_each(|replica| simulation.schedule(1, Event::Start(replica)));
        simulation.schedule(5, Event::Publish);
        simulation.schedule(2_000, Event::Turn);
        simulation
    }

    fn fail(&self, what: &str) -> ! {
        let (seed, steps, now) = (self.seed, self.counts.steps, self.now);
        panic!(
            "{what}\nseed {seed}, step {steps}, after {now} ms; again: \
             PROMPTSHELF_SEED={seed} cargo test -p promptshelf-server --lib simulation:: -- --nocapture"
        );
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.number += 1;
        self.events.insert((self.now + after, self.number), event);
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.random.below(most - least + 1)
    }

    fn history(&self) -> &History {
        self.histories.last().expect("the first history")
    }

    async fn run(mut self, steps: u64) -> Counts {
        while self.counts.steps < steps {
            self.step().await;
        }
        for replica in &self.replicas {
            replica.life.iter().for_each(|life| life.task.abort());
        }
        self.counts.trace = self.trace.finish();
        self.counts
    }

    async fn step(&mut self) {
        let at = loop {
            while let Ok(call) = self.calls.try_recv() {
                self.plan(call);
            }
            let (at, _) = self.events.first_key_value().expect("there is always a turn").0;
            // Each event has a moment for itself: the clock goes on when nobody has work left.
            let at = (*at).max(self.now + 1);
            tokio::select! {
                biased;
                Some(call) = self.calls.recv() => {
                    self.now = u64::try_from(self.begun.elapsed().as_millis()).expect("a short time");
                    self.plan(call);
                }
                () = sleep_until(self.begun + Duration::from_millis(at)) => break at,
            }
        };
        self.now = at;
        for replica in 0..REPLICAS {
            self.check(replica);
        }
        let (_, event) = self.events.pop_first().expect("there is always a turn");
        self.counts.steps += 1;
        let text = event.to_string();
        (at, &text).hash(&mut self.trace);
        if self.is_told {
            let newest = self.history().newest().number;
            println!("{at:>8} ms: {text} (history {}, revision {newest})", self.histories.len());
        }
        match event {
            Event::Work(call, delay, is_damaged) => self.work(call, delay, is_damaged),
            Event::Reply(replica, waiting, reply) => self.reply(replica, &waiting, reply),
            Event::Notify(replica) => {
                if self.replicas[replica].link == Link::Good {
                    let mut line = self.replicas[replica].line.lock();
                    let dead = line.dead;
                    line.hints.retain(|(connection, hints)| *connection > dead && hints.send(()).is_ok());
                }
            }
            Event::Publish => self.publish(),
            Event::Trouble => self.trouble(),
            Event::Heal(replica) => self.heal(replica),
            Event::Start(replica) => self.start(replica),
            Event::Turn => self.turn(),
        }
    }

    /// Decides when a call is carried out and answered.
    fn plan(&mut self, call: Call) {
        let replica = call.replica;
        let fate = if self.is_stormy { self.random.below(100) } else { 0 };
        let (soon, then) = (self.between(1, 12), self.between(0, 5));
        let (soon, then) = match fate {
            0..84 => (soon, then),
            84..90 => (soon, self.random.below(9_000)),
            90 => (soon, self.random.below(70_000)),
            91..93 => (self.random.below(2_500) + 1, then),
            _ => (soon, then),
        };
        let is_lost = fate == 99;
        let (now, link) = (self.now, self.replicas[replica].link);
        let is_dead = call.kind != CallKind::Open && call.connection <= self.replicas[replica].line.lock().dead;
        let is_silent = link == Link::Silent || is_lost || is_dead;
        let answered = (!is_silent).then_some(now + soon + then);
        let pending = Pending { kind: call.kind, since: now, waiting: call.waiting.clone(), answered, lost: None };
        self.replicas[replica].pending.push(pending);
        if call.kind == CallKind::Listen && link != Link::Good && !is_dead {
            self.replicas[replica].unheard.push(call);
        } else if (link == Link::Refused && !is_dead) || (93..97).contains(&fate) {
            let reply = (call.work)(None);
            self.schedule(soon, Event::Reply(replica, call.waiting, reply));
        } else if !is_silent {
            self.schedule(soon, Event::Work(call, then, (97..99).contains(&fate)));
        } else if let Some(pending) = self.replicas[replica].pending.last_mut() {
            pending.lost = Some(Box::new(call.work));
        }
    }

    fn work(&mut self, call: Call, delay: u64, is_damaged: bool) {
        let history = self.histories.last().expect("the first history");
        let reply = (call.work)(Some((history, is_damaged)));
        if delay == 0 {
            self.reply(call.replica, &call.waiting, reply);
        } else {
            self.schedule(delay, Event::Reply(call.replica, call.waiting, reply));
        }
    }

    fn reply(&mut self, replica: usize, waiting: &Weak<()>, reply: Reply) {
        let found = &mut self.replicas[replica];
        if found.link == Link::Silent {
            if let Some(pending) = found.pending.iter_mut().find(|pending| pending.waiting.ptr_eq(waiting)) {
                pending.answered = None;
                pending.lost = Some(Box::new(reply));
            }
            return;
        }
        if let Some(life) = &mut found.life {
            life.is_cut_off &= found.link != Link::Good;
        }
        reply(found.link == Link::Refused);
    }

    fn publish(&mut self) {
        let pause = if self.is_stormy { self.between(20, 3_000) } else { self.between(300, 4_000) };
        self.schedule(pause, Event::Publish);
        if self.now < self.quiet_until {
            return;
        }
        let newest = Arc::clone(self.history().newest());
        let mut files = newest.files.clone();
        for _ in 0..self.between(1, 3) {
            let name = ["a", "b", "c", "d", "e"][self.random.below(5) as usize];
            let (about, text) = (self.random.below(3), self.random.below(40));
            if self.random.below(4) == 0 {
                files.remove(&format!("{name}.md"));
            } else {
                let text = format!("---\ndescription: About {about}\n---\nText {text}.\n");
                files.insert(format!("{name}.md"), text);
            }
        }
        if self.random.below(12) == 0 {
            files.insert("promptshelf.toml".to_owned(), BROKEN.to_owned());
        } else {
            files.remove("promptshelf.toml");
        }
        if files == newest.files {
            return;
        }
        let number = newest.number + 1;
        let mut live = BTreeMap::new();
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
            let (name, digest) = (path.trim_end_matches(".md").to_owned(), Digest::of(text.as_bytes()));
            let version = match newest.live.get(&name) {
                Some(same) if same.1 == digest => *same,
                _ => {
                    let all = self.history().revisions.iter().filter_map(|revision| revision.live.get(&name));
                    (all.map(|(version, ..)| *version).max().unwrap_or(0) + 1, digest, number)
                }
            };
            live.insert(name, version);
        }
        let approver = [None, Some("ben"), Some("cleo")][self.random.below(3) as usize].map(str::to_owned);
        let digests: BTreeMap<&String, Digest> =
            files.iter().map(|(path, text)| (path, Digest::of(text.as_bytes()))).collect();
        let tree = Digest::of_tree(&digests);
        let chained = format!("{} {number} {tree} {:?}", self.histories.len(), newest.digest);
        let digest = Some(Digest::of(chained.as_bytes()));
        let revision = Arc::new(Revision { number, digest, files, live, approver });
        self.histories.last_mut().expect("the first history").revisions.push(revision);
        self.counts.publishes += 1;
        let settled: Vec<bool> = (0..REPLICAS).map(|replica| self.is_settled(replica)).collect();
        self.committed(&settled);
    }

    /// Whether a replica waits for a notification, which it will receive.
    fn is_settled(&self, replica: usize) -> bool {
        let found = &self.replicas[replica];
        let line = found.line.lock();
        let is_listening = line.hints.iter().any(|(connection, hints)| *connection > line.dead && !hints.is_closed())
            && !line.is_dead();
        // Not one that still waits for what was lost or slow.
        let is_quick = |pending: &Pending| pending.answered.is_some_and(|answered| answered < self.now + 20);
        let is_quick = found.pending.iter().filter(|pending| pending.waiting.strong_count() > 0).all(is_quick);
        !self.is_stormy
            && is_listening
            && is_quick
            && found.deadline.is_none()
            && self.begun(replica, |_| true) == Some(true)
    }

    /// Sends notifications, and sets the time by which each replica has to be current.
    fn committed(&mut self, settled: &[bool]) {
        for (replica, is_settled) in settled.iter().enumerate() {
            let late = self.random.below(5_000);
            let (soon, fate) = (self.between(1, 10), self.random.below(100));
            match fate {
                _ if !self.is_stormy => self.schedule(soon, Event::Notify(replica)),
                0..25 => {}
                25..40 => {
                    self.schedule(soon, Event::Notify(replica));
                    self.schedule(late, Event::Notify(replica));
                }
                40..65 => self.schedule(late, Event::Notify(replica)),
                _ => self.schedule(soon, Event::Notify(replica)),
            }
            if *is_settled {
                // A comparison may be under way, and the next one is the one that counts.
                self.expect(replica, 10 + 2 * FOLLOWED - FOLLOWED / 2, "after a notification");
            } else if !self.is_stormy {
                self.expect_by_comparing(replica);
            }
        }
    }

    fn expect(&mut self, replica: usize, after: u64, why: &'static str) {
        let at = self.now + after;
        let found = &mut self.replicas[replica];
        if found.deadline.is_none_or(|(other, _)| other < at) {
            found.deadline = Some((at, why));
        }
    }

    /// Expects the newest revision after what a replica waits for in vain, and a comparison.
    fn expect_by_comparing(&mut self, replica: usize) {
        let now = self.now;
        let pending = self.replicas[replica].pending.iter().filter(|pending| pending.waiting.strong_count() > 0);
        let until = |pending: &Pending| {
            let limit = pending.since + pending.kind.limit();
            pending.answered.map_or(limit, |answered| answered.min(limit))
        };
        let free = pending.map(until).max().unwrap_or(now).max(now);
        // A connection that is dead is noticed by the next comparison.
        let is_dead = self.replicas[replica].line.lock().is_dead();
        let free = if is_dead { free.max(now + PAUSE + CallKind::Head.limit()) } else { free };
        self.expect(replica, free - now + PAUSE + RESTARTED + 2 * FOLLOWED, "by comparing");
    }

    fn trouble(&mut self) {
        if !self.is_stormy {
            return;
        }
        let pause = self.between(50, 2_500);
        self.schedule(pause, Event::Trouble);
        let replica = self.random.below(REPLICAS as u64) as usize;
        match self.random.below(10) {
            0..4 => {
                self.replicas[replica].link = if self.random.below(2) == 0 { Link::Refused } else { Link::Silent };
                if self.replicas[replica].link == Link::Silent {
                    self.replicas[replica].pending.iter_mut().for_each(|pending| pending.answered = None);
                    if self.random.below(2) == 0 {
                        let mut line = self.replicas[replica].line.lock();
                        line.dead = line.newest;
                    }
                }
                let until = self.between(100, 20_000);
                self.schedule(until, Event::Heal(replica));
                self.counts.cuts += 1;
            }
            4..8 => self.end(replica),
            8 => self.restore(),
            _ => {
                let (oldest, newest) = (self.history().oldest, self.history().newest().number);
                let oldest = self.between(oldest, newest);
                self.histories.last_mut().expect("the first history").oldest = oldest;
            }
        }
    }

    /// Goes back to a backup. A copied file has the epoch of the store, and a restored archive has another one.
    fn restore(&mut self) {
        let present = self.history().clone();
        let back = self.between(present.oldest, present.newest().number);
        let mut restored = History { revisions: present.revisions[..=back as usize].to_vec(), ..present };
        if self.random.below(2) == 0 {
            restored.epoch = epoch(self.histories.len() as u64);
        }
        self.histories.push(restored);
        self.counts.restores += 1;
        self.committed(&[false; REPLICAS]);
    }

    fn end(&mut self, replica: usize) {
        let keeps_cache = self.random.below(3) > 0;
        let found = &mut self.replicas[replica];
        let Some(life) = found.life.take() else { return };
        life.task.abort();
        if let Some(cache) = found.cache.as_mut().filter(|_| !keeps_cache) {
            *cache = folder();
            found.cached = None;
        }
        *found.line.lock() = Line::default();
        self.counts.restarts += 1;
        let after = self.between(1, RESTARTED);
        self.schedule(after, Event::Start(replica));
    }

    fn heal(&mut self, replica: usize) {
        self.replicas[replica].link = Link::Good;
        for call in std::mem::take(&mut self.replicas[replica].unheard) {
            self.plan(call);
        }
    }

    fn turn(&mut self) {
        if self.is_stormy {
            self.is_stormy = false;
            for replica in 0..REPLICAS {
                self.heal(replica);
                self.expect_by_comparing(replica);
            }
            self.schedule(5_000, Event::Turn);
        } else if self.replicas.iter().all(|replica| replica.deadline.is_none()) && self.random.below(3) > 0 {
            self.is_stormy = true;
            self.replicas.iter_mut().for_each(|replica| replica.deadline = None);
            self.schedule(1, Event::Trouble);
            let until = self.between(3_000, 30_000);
            self.schedule(until, Event::Turn);
        } else {
            match self.random.below(4) {
                0 => {
                    let replica = self.random.below(REPLICAS as u64) as usize;
                    self.end(replica);
                    self.expect_by_comparing(replica);
                }
                1 => {
                    // The next publish would hide that a replica has not noticed it.
                    self.quiet_until = self.now + 4_500;
                    self.restore();
                }
                _ => {}
            }
            self.schedule(5_000, Event::Turn);
        }
    }

    fn start(&mut self, replica: usize) {
        let pauses = Mutex::new(Random::new(self.random.below(u64::MAX)));
        let found = &mut self.replicas[replica];
        let remote = Remote(Arc::new(RemoteParts {
            replica,
            url: "sqlite:simulated.db".parse().expect("a URL"),
            is_open: tokio::sync::Mutex::new(false),
            calls: self.sender.clone(),
            pauses,
            line: Arc::clone(&found.line),
        }));
        let cache = found.cache.as_ref().map(|folder| folder.path().to_owned());
        let begun = Arc::default();
        let task = tokio::spawn(live(remote, cache, replica > 0, Arc::clone(&begun)));
        let is_cut_off = found.link != Link::Good;
        found.life = Some(Life { task, begun, is_cut_off, served: None, list: Vec::new() });
    }

    fn begun<T>(&self, replica: usize, look: impl FnOnce(&Begun) -> T) -> Option<T> {
        let begun = self.replicas[replica].life.as_ref()?.begun.lock();
        Some(look(begun.as_ref()?.as_ref().ok()?))
    }

    /// Compares everything that a replica has served since the event before with what existed.
    fn check(&mut self, replica: usize) {
        self.replicas[replica].pending.retain(|pending| pending.waiting.strong_count() > 0);
        let Some(life) = &self.replicas[replica].life else { return };
        let failure = match &*life.begun.lock() {
            None => return,
            Some(Err(failure)) => Some(failure.clone()),
            Some(Ok(_)) => None,
        };
        if let Some(failure) = failure {
            let is_served = self.replicas[replica].cached.is_some() && life.is_cut_off;
            if is_served {
                self.fail(&format!("replica {replica} cannot start from its copy on disk: {failure}"));
            }
            self.replicas[replica].life = None;
            self.schedule(RESTARTED, Event::Start(replica));
            return;
        }
        let catalogs = self.begun(replica, |begun| std::mem::take(&mut *begun.catalogs.lock())).unwrap_or_default();
        let is_first = life.served.is_none();
        let mut is_changed = false;
        for catalog in catalogs {
            is_changed |= self.replaced(replica, &catalog);
        }
        let expected = usize::from(is_changed && !is_first);
        let received = self.received(replica);
        if received != expected {
            self.fail(&format!("replica {replica} sent {received} times `list_changed` instead of {expected} times"));
        }
        self.counts.list_changes += received as u64;
        let found = &mut self.replicas[replica];
        let is_idle = !found.pending.iter().any(|pending| pending.kind != CallKind::Listen);
        if is_idle && found.cache.is_some() {
            found.cached = found.life.as_ref().and_then(|life| life.served);
        }
        // Other causes of a load need files that can be loaded.
        let is_broken =
            |begun: &Begun| begun.source.in_memory().is_none_or(|tree| tree.get("promptshelf.toml").is_some());
        if is_idle && self.begun(replica, is_broken) == Some(true) {
            self.fail(&format!("replica {replica} keeps files that cannot be loaded"));
        }
        let Some((deadline, why)) = self.replicas[replica].deadline else { return };
        if self.is_current(replica) {
            self.replicas[replica].deadline = None;
        } else if self.now > deadline {
            let status = self.begun(replica, |begun| begun.monitor.status());
            let newest = self.history().head_of(self.history().newest());
            self.fail(&format!("replica {replica} is not current in time {why}: {status:?} instead of {newest:?}"));
        }
    }

    /// Checks a catalog that a replica serves. Returns whether its lists differ from those before.
    fn replaced(&mut self, replica: usize, catalog: &Catalog) -> bool {
        let provenance = catalog.provenance().expect("a revision");
        let number = provenance.provenance.revision().expect("a revision");
        let digest = provenance.provenance.revision_digest();
        let life = self.replicas[replica].life.as_ref().expect("it serves");
        // A copy on disk that is all there is is the newest that it was.
        let copied = self.replicas[replica].cached.filter(|_| life.is_cut_off);
        let (of, last) = life.served.or(copied).unwrap_or((0, 0));
        let found = (of..self.histories.len()).find_map(|at| {
            let revision = self.histories[at].revisions.get(number as usize)?;
            let is_it = revision.digest.map(|digest| digest.to_string()).as_deref() == digest;
            (is_it && (at > of || number >= last)).then(|| (at, Arc::clone(revision)))
        });
        let Some((at, revision)) = found else {
            self.fail(&format!(
                "replica {replica} serves revision {number} ({digest:?}) after {:?}",
                life.served.or(copied)
            ));
        };
        let mut list = Vec::new();
        let served: BTreeMap<String, String> = catalog
            .prompts()
            .iter()
            .map(|prompt| (prompt.source().path.clone(), prompt.source().text.to_string()))
            .collect();
        let files: BTreeMap<String, String> = revision.files.clone();
        if served != files {
            self.fail(&format!("replica {replica} serves revision {number} as {served:?} instead of {files:?}"));
        }
        let oldest = self.history().oldest;
        for prompt in catalog.prompts() {
            let name = prompt.name().to_string();
            let version = provenance.prompt(prompt).expect("a version");
            let (expected, digest, since) = revision.live[&name];
            let approver = self.histories[at].revisions[since as usize].approver.clone();
            let is_approved =
                version.approved_by() == approver.as_slice() || (version.approved_by().is_empty() && since < oldest);
            if version.version() != expected || version.digest() != digest.to_string() || !is_approved {
                self.fail(&format!("replica {replica} says of {name} of revision {number}: {version:?}"));
            }
            let shown = (version.version(), version.digest(), version.approved_by().to_vec());
            let text = &revision.files[&format!("{name}.md")];
            let about = text.lines().nth(1).expect("a description").to_owned();
            list.push((name, about, (replica > 0).then_some(shown)));
        }
        let life = self.replicas[replica].life.as_mut().expect("it serves");
        life.served = Some((at, number));
        std::mem::replace(&mut life.list, list) != life.list
    }

    /// Returns how many notifications of changed lists a client has received.
    fn received(&mut self, replica: usize) -> usize {
        let life = self.replicas[replica].life.as_ref().expect("it serves");
        let mut begun = life.begun.lock();
        let Some(Ok(begun)) = begun.as_mut() else { return 0 };
        let mut received = String::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut begun.stream).poll_frame(&mut context) {
            received += &frame.into_data().map(|data| String::from_utf8_lossy(&data).into_owned()).unwrap_or_default();
        }
        received.matches("list_changed").count()
    }

    fn is_current(&self, replica: usize) -> bool {
        let newest = self.history().newest();
        let Some((status, catalog)) = self.begun(replica, |begun| (begun.monitor.status(), begun.library.catalog()))
        else {
            // A revision that cannot be loaded cannot be started with.
            return !newest.is_loadable();
        };
        if !newest.is_loadable() {
            return status.refused == Some(newest.number);
        }
        let digest = newest.digest.map(|digest| digest.to_string());
        let served = catalog.provenance().and_then(|found| found.provenance.revision_digest().map(str::to_owned));
        status.epoch == Some(self.history().epoch.to_string())
            && (status.revision, &status.digest) == (Some(newest.number), &digest)
            && served == digest
            && status.degraded_since.is_none()
    }
}

/// The process of a replica.
async fn live(
    remote: Remote,
    cache: Option<PathBuf>,
    shows_versions: bool,
    begun: Arc<Mutex<Option<Result<Begun, String>>>>,
) {
    let channel = ChannelName::production();
    let monitor = ReplicaMonitor::new(channel.as_str());
    let follower = match Follower::start_on(Arc::new(remote), channel, cache, monitor.clone()).await {
        Ok(follower) => follower,
        Err(error) => return *begun.lock() = Some(Err(error.to_string())),
    };
    follower.source().show_provenance(shows_versions);
    let library = match Library::builder().source(follower.source().clone()).build() {
        Ok(library) => library,
        Err(error) => return *begun.lock() = Some(Err(error.to_string())),
    };
    let handle = library.loader().handle();
    let catalogs = Arc::new(Mutex::new(vec![handle.current()]));
    let (seen, serving) = (Arc::clone(&catalogs), handle.clone());
    handle.observe(move |_| seen.lock().push(serving.current()));
    let request = http::Request::get("/mcp").header("host", "localhost").header("accept", "text/event-stream");
    let request = request.header("mcp-protocol-version", "2025-06-18").body(axum::body::Body::empty());
    let response = library.server().http(HttpOptions::default()).oneshot(request.expect("a request")).await;
    let stream = response.expect("a service without failures").into_body();
    let (loader, source) = (library.loader().clone(), follower.source().clone());
    *begun.lock() = Some(Ok(Begun { library, source, monitor, stream, catalogs }));
    follower.run(loader).await;
}

fn simulate(seed: u64, steps: u64, is_told: bool) -> Counts {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(async { Simulation::new(seed, is_told).run(steps).await })
}

// req: S-530, S-531
#[test]
fn replicas_serve_revisions_in_order_and_reach_the_newest_one() {
    if let Some(seed) = amount("PROMPTSHELF_SEED") {
        println!("{:?}", simulate(seed, STEPS_OF_A_SEED, true));
        return;
    }
    let begun = std::time::Instant::now();
    let minutes = amount("REPLICA_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let steps = amount("REPLICA_STEPS").unwrap_or(STEPS);
    let first = 1 + 1_000_000 * amount("REPLICA_SEED").unwrap_or_default();
    let is_long = minutes.is_some() || steps > STEPS;
    let threads = if is_long { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
    let (sender, results) = blocking::channel();
    let next = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let turn = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let is_over = minutes.map_or(turn * STEPS_OF_A_SEED >= steps, |minutes| begun.elapsed() >= minutes);
                    if is_over {
                        return;
                    }
                    sender.send(simulate(first + turn, STEPS_OF_A_SEED, false)).expect("the results are collected");
                }
            });
        }
    });
    drop(sender);
    let all: Vec<Counts> = results.iter().collect();
    let sum = |count: fn(&Counts) -> u64| all.iter().map(count).sum::<u64>();
    figure(&format!(
        "replicas: {} seeds from {first}, {} steps, {} publishes, {} restores, {} restarts, {} partitions, {} changed lists, {} s",
        all.len(),
        sum(|counts| counts.steps),
        sum(|counts| counts.publishes),
        sum(|counts| counts.restores),
        sum(|counts| counts.restarts),
        sum(|counts| counts.cuts),
        sum(|counts| counts.list_changes),
        begun.elapsed().as_secs(),
    ));
}

#[test]
fn seed_decides_everything() {
    assert_eq!(simulate(7, 2_000, false), simulate(7, 2_000, false));
}

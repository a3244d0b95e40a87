//! Several sources in one server, each loaded by itself.
//!
//! A member has a loader, access rules and a name of its own. It is opened and loaded by its own task, so that a source that hangs, fails or is slow neither delays nor hides the others; while it cannot be read, its last
//! good prompts stay.

mod member;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use promptshelf_core::{Access, AccessRule, CatalogPart, Definitions, Timestamp};
use tokio::{runtime::Handle, sync::watch, task::JoinSet, time::timeout};

use self::member::Member;
use crate::{
    error::SourceError,
    source::{Fingerprint, ReloadSignal, Snapshot, Source, WatchGuard, Watchers},
};

pub use self::member::{Following, MemberOptions, OpenSource, OpenedSource};

/// The time that a reload waits for members. Later ones appear when they have been read.
const RELOAD_WAIT: Duration = Duration::from_secs(2);

/// Several sources as one [`Source`], whose catalogs a [`Loader`](crate::Loader) joins. Clones are the same set.
///
/// ```
/// # #[tokio::main]
/// # async fn main() {
/// use promptshelf_core::{BoxFuture, PromptDefinition};
/// use promptshelf_source::{Fixed, Loader, MemberOptions, OpenSource, OpenedSource, SourceError, SourceSet};
///
/// struct Hello(&'static str);
///
/// impl OpenSource for Hello {
///     fn kind(&self) -> &'static str {
///         "code"
///     }
///
///     fn open(&self) -> BoxFuture<'_, Result<OpenedSource, SourceError>> {
///         let prompt = PromptDefinition::template("hello", self.0);
///         let source = Fixed::new([prompt].into_iter().collect());
///         Box::pin(async { Ok(OpenedSource::new(source)) })
///     }
/// }
///
/// let members = [("team", "Hi!"), ("home", "Hello!")];
/// let members = members.map(|(name, text)| MemberOptions::new(name, Box::new(Hello(text))));
/// let set = SourceSet::open(members, &[]);
/// set.settled(std::time::Duration::from_secs(10)).await;
/// let loader = Loader::open(vec![Box::new(set)]).unwrap();
/// assert!(loader.handle().current().find("team-hello").is_some());
/// # }
/// ```
#[derive(Clone)]
pub struct SourceSet(Arc<Inner>);

type Relay = Box<dyn Fn(&str) + Send + Sync>;

/// The served names that several members have, each with the places of these members.
type Collisions = BTreeMap<String, BTreeSet<usize>>;

struct Inner {
    members: Vec<Arc<Member>>,
    shared: Arc<Shared>,
    runtime: Handle,
    relay: OnceLock<Relay>,
    /// The names that several members have, for one version.
    collisions: Mutex<Option<(u64, Arc<Collisions>)>>,
    /// Whether the members belong to another set, which ends them.
    is_part: bool,
}

pub(super) struct Shared {
    /// Counts the changes of all members.
    version: AtomicU64,
    watchers: Watchers,
    /// The number of members that have been read, or have failed, for the first time.
    settled: watch::Sender<usize>,
}

impl Shared {
    /// Requests a load of the joined catalog. The catalog of a member is not read again if it `is_same`.
    pub(super) fn note_change(&self, is_same: bool) {
        if !is_same {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        self.watchers.request();
    }

    pub(super) fn note_settled(&self) {
        self.settled.send_modify(|settled| *settled += 1);
    }
}

impl SourceSet {
    /// Begins to open all members, each in a task of its own. `rules` bind all of them, by the names under which
    /// prompts are served.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn open(members: impl IntoIterator<Item = MemberOptions>, rules: &[AccessRule]) -> SourceSet {
        let shared =
            Shared { version: AtomicU64::new(0), watchers: Watchers::default(), settled: watch::Sender::new(0) };
        let (shared, runtime) = (Arc::new(shared), Handle::current());
        let members: Vec<_> =
            members.into_iter().map(|options| Member::start(options, rules, &shared, &runtime)).collect();
        SourceSet::of(members, shared, runtime, false)
    }

    fn of(members: Vec<Arc<Member>>, shared: Arc<Shared>, runtime: Handle, is_part: bool) -> SourceSet {
        let (relay, collisions) = (OnceLock::new(), Mutex::default());
        SourceSet(Arc::new(Inner { members, shared, runtime, relay, collisions, is_part }))
    }

    /// Returns the other members of the set, for another library. They are still those of this set, which has to be kept.
    #[must_use]
    pub fn without(&self, name: &str) -> SourceSet {
        let members = self.0.members.iter().filter(|member| member.name() != name).cloned().collect();
        let (shared, runtime) = (Arc::clone(&self.0.shared), self.0.runtime.clone());
        SourceSet::of(members, shared, runtime, true)
    }

    /// Replaces the rules that bind all members, and loads them again. A member that cannot be loaded in a few seconds is
    /// not served until it has been: the new rules could be stricter.
    pub async fn replace_rules(&self, rules: &[AccessRule]) {
        self.0.members.iter().for_each(|member| member.replace_rules(rules));
        let mut loads = JoinSet::new();
        for member in &self.0.members {
            let Some(loader) = member.loader() else { continue };
            let member = member.clone();
            loads.spawn(async move {
                // The load goes on without a waiter.
                let load = tokio::spawn(async move { loader.reload().await });
                if !matches!(timeout(RELOAD_WAIT, load).await, Ok(Ok(Ok(_)))) {
                    member.withhold();
                }
            });
        }
        loads.join_all().await;
    }

    /// Returns the state of each member.
    #[must_use]
    pub fn statuses(&self) -> Vec<SourceStatus> {
        let collisions = self.collisions();
        let names = |places: &BTreeSet<usize>| {
            places.iter().map(|at| self.0.members[*at].name()).collect::<Vec<_>>().join(", ")
        };
        let status = |(at, member): (usize, &Arc<Member>)| {
            let own = collisions.iter().filter(|(_, places)| places.contains(&at));
            let unserved = own.map(|(name, places)| {
                format!("the prompt `{name}` is in several sources ({}), and none of them serves it", names(places))
            });
            member.status(unserved.collect())
        };
        self.0.members.iter().enumerate().map(status).collect()
    }

    fn collisions(&self) -> Arc<Collisions> {
        let mut known = self.0.collisions.lock();
        let version = self.0.shared.version.load(Ordering::SeqCst);
        if let Some((_, collisions)) = known.as_ref().filter(|(of, _)| *of == version) {
            return Arc::clone(collisions);
        }
        let parts: Vec<_> = self.0.members.iter().map(|member| member.part()).collect();
        let mut collisions = Collisions::new();
        let pairs = (0..parts.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        for (a, b) in pairs {
            let (Some(one), Some(other)) = (&parts[a], &parts[b]) else { continue };
            // Otherwise no name is one of both.
            let (short, long) = if one.prefix.len() <= other.prefix.len() { (one, other) } else { (other, one) };
            let Some(rest) = long.prefix.strip_prefix(&*short.prefix) else { continue };
            for prompt in long.catalog.prompts().iter() {
                if short.catalog.find(&format!("{rest}{}", prompt.name())).is_some() {
                    collisions.entry(format!("{}{}", long.prefix, prompt.name())).or_default().extend([a, b]);
                }
            }
        }
        Arc::clone(&known.insert((version, Arc::new(collisions))).1)
    }

    /// Waits until each member has been read or has failed once, at most for this time.
    pub async fn settled(&self, most: Duration) {
        let mut settled = self.0.shared.settled.subscribe();
        let all = self.0.members.len();
        timeout(most, settled.wait_for(|settled| *settled >= all)).await.map(drop).ok();
    }

    /// Sets a function that passes the names of refreshed members on to other replicas, without blocking. The first call
    /// counts.
    pub fn relay_refreshes(&self, relay: impl Fn(&str) + Send + Sync + 'static) {
        self.0.relay.set(Box::new(relay)).ok();
    }

    /// Reads a member again, here and on the other replicas that are known. Returns `false` if no member has this name.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn refresh(&self, name: &str) -> bool {
        let is_found = self.refresh_here(name);
        if let Some(relay) = self.0.relay.get().filter(|_| is_found) {
            relay(name);
        }
        is_found
    }

    /// Reads a member of this process again. Returns `false` if no member has this name.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn refresh_here(&self, name: &str) -> bool {
        let member = self.0.members.iter().find(|member| member.name() == name);
        member.inspect(|member| member.refresh()).is_some()
    }

    /// Reads all members again, and waits for those that answer within the time of a start.
    pub async fn reload(&self) {
        self.0.members.iter().for_each(|member| member.request_open());
        let loaders = self.0.members.iter().filter_map(|member| member.loader());
        let mut loads = JoinSet::new();
        for loader in loaders {
            loads.spawn(async move { loader.reload().await.map(drop) });
        }
        // A source that hangs is loaded when it can be read. Its task goes on without a waiter.
        timeout(RELOAD_WAIT, async { while loads.join_next().await.is_some() {} }).await.ok();
        loads.detach_all();
    }
}

impl fmt::Debug for SourceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.members.iter().map(|member| member.name())).finish()
    }
}

impl Source for SourceSet {
    fn read(&self) -> Result<Snapshot, SourceError> {
        // Read before the catalogs: a later change causes another load.
        let version = Fingerprint::new(self.0.shared.version.load(Ordering::SeqCst));
        let parts: Vec<CatalogPart> = self.0.members.iter().filter_map(|member| member.part()).collect();
        Ok(Snapshot::new(version, Definitions::default()).with_parts(parts))
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        let watcher = self.0.shared.watchers.add(signal);
        self.0.members.iter().for_each(|member| member.follow(&self.0.runtime));
        WatchGuard::new((watcher, Unfollow(self.clone())))
    }
}

/// Ends the following when the last watcher is gone.
struct Unfollow(SourceSet);

impl Drop for Unfollow {
    fn drop(&mut self) {
        let SourceSet(set) = &self.0;
        if set.shared.watchers.is_empty() {
            set.members.iter().for_each(|member| member.unfollow());
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_part {
            self.members.iter().for_each(|member| member.close());
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}

/// The state of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceState {
    /// It has not been read yet.
    Starting,
    /// Its newest state is served.
    Current,
    /// Its newest state cannot be read or is not accepted, and the last good one is served.
    Behind,
    /// It could not be read so far, and nothing of it is served.
    Failed,
}

impl SourceState {
    /// Returns the state as a word: `starting`, `current`, `behind` or `failed`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SourceState::Starting => "starting",
            SourceState::Current => "current",
            SourceState::Behind => "behind",
            SourceState::Failed => "failed",
        }
    }
}

impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a source that follows something else than files, as its opener reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The number of the served state, such as the revision of a channel.
    pub revision: Option<u64>,
    /// The served commit.
    pub commit: Option<String>,
    /// The reason why the newest state is not served, without secrets.
    pub problem: Option<String>,
    /// The beginning of the problem.
    pub behind_since: Option<Timestamp>,
    /// What the place has and the source does not, each with the reason.
    pub left_out: Vec<String>,
    /// What an operator should change although the newest state is served, such as a loop between servers.
    pub warning: Option<String>,
}

/// A source and its state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceStatus {
    /// The configured name.
    pub name: String,
    /// The kind of source, such as `folder`.
    pub kind: &'static str,
    /// The state.
    pub state: SourceState,
    /// The number of the served state, if the source has one.
    pub revision: Option<u64>,
    /// The served commit, if the source has one.
    pub commit: Option<String>,
    /// The number of its prompts that are served.
    pub prompts: usize,
    /// The time since which the newest state is not served.
    pub behind_since: Option<Timestamp>,
    /// The reason, without secrets.
    pub problem: Option<String>,
    /// What is not served of the newest state, each with the reason: the first ones, and the number of the others.
    pub left_out: Vec<String>,
    /// What an operator should change although the newest state is served, such as a loop between servers.
    pub warning: Option<String>,
    /// What callers have to meet ([`MemberOptions::access`]).
    pub access: Option<Arc<Access>>,
}

/// The most entries of [`SourceStatus::left_out`].
const MAX_LEFT_OUT: usize = 20;

fn shortened(mut left_out: Vec<String>) -> Vec<String> {
    if let Some(more @ 1..) = left_out.len().checked_sub(MAX_LEFT_OUT) {
        left_out.truncate(MAX_LEFT_OUT);
        left_out.push(format!("and {more} more"));
    }
    left_out
}

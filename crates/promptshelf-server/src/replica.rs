//! The state of a replica: a library in memory that follows a channel of a store.
//!
//! Readiness and metrics read it; the follower writes it. Following itself is deliberately elsewhere.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use promptshelf_core::Timestamp;

/// The state of one replica, shared by its clones.
///
/// ```
/// use promptshelf_server::ReplicaMonitor;
///
/// let monitor = ReplicaMonitor::new("production");
/// monitor.set_served("first", 7, Some("3f5a".to_owned()));
/// monitor.set_degraded();
/// let status = monitor.status();
/// assert_eq!((status.revision, status.degraded_since.is_some()), (Some(7), true));
/// ```
#[derive(Clone, Debug)]
pub struct ReplicaMonitor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    channel: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    head: Option<(String, u64, Option<String>)>,
    compared: Instant,
    degraded_since: Option<SystemTime>,
    refused: Option<u64>,
}

/// The state of a replica at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplicaStatus {
    /// The name of the channel.
    pub channel: String,
    /// The epoch of the store that the served revision belongs to.
    pub epoch: Option<String>,
    /// The revision that is served; `None` before the first one.
    pub revision: Option<u64>,
    /// The digest of the revision that is served: replicas with equal digests serve the same. `None` for a revision by an
    /// earlier release.
    pub digest: Option<String>,
    /// The time since the served revision was last known to be the newest one; since the start if it never was.
    pub lag: Duration,
    /// The beginning of the outage, while the store cannot be read or its newest revision cannot be loaded. The last
    /// good revision is served in the meantime.
    pub degraded_since: Option<Timestamp>,
    /// The newest revision of the store, while it cannot be loaded.
    pub refused: Option<u64>,
}

impl ReplicaMonitor {
    /// Creates the monitor of a replica that serves nothing yet.
    #[must_use]
    pub fn new(channel: impl Into<String>) -> ReplicaMonitor {
        let state = State { head: None, compared: Instant::now(), degraded_since: None, refused: None };
        ReplicaMonitor(Arc::new(Inner { channel: channel.into(), state: Mutex::new(state) }))
    }

    /// The name of the channel.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.0.channel
    }

    /// Records that a revision is served from now on.
    pub fn set_served(&self, epoch: impl Into<String>, revision: u64, digest: Option<String>) {
        self.with(|state| state.head = Some((epoch.into(), revision, digest)));
    }

    /// Records that the served revision is the newest one of the store. Ends an outage.
    pub fn set_current(&self) {
        self.with(|state| {
            state.compared = Instant::now();
            state.degraded_since = None;
            state.refused = None;
        });
    }

    /// Records the beginning of an outage; without effect during one.
    pub fn set_degraded(&self) {
        self.with(|state| {
            state.degraded_since.get_or_insert_with(SystemTime::now);
        });
    }

    /// Records that the newest revision cannot be loaded.
    pub fn set_refused(&self, revision: u64) {
        self.with(|state| state.refused = Some(revision));
    }

    /// Returns the state at this moment.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.with(|state| ReplicaStatus {
            channel: self.0.channel.clone(),
            epoch: state.head.as_ref().map(|(epoch, ..)| epoch.clone()),
            revision: state.head.as_ref().map(|(_, revision, _)| *revision),
            digest: state.head.as_ref().and_then(|(.., digest)| digest.clone()),
            lag: state.compared.elapsed(),
            degraded_since: state.degraded_since.and_then(timestamp),
            refused: state.refused,
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock())
    }
}

/// Whole seconds: fractions would only make the text longer.
fn timestamp(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Timestamp::from_unix(i64::try_from(since.as_secs()).ok()?, 0).ok()
}

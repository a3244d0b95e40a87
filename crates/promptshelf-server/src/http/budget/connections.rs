//! Open connections, and which of them is closed when there are too many.
//!
//! A connection without an admitted request costs a client nothing to open and nothing to lose. It gives way to a new
//! one: first those that have never had an admitted request, then those between two requests, then those that are
//! still sending a body; the oldest first. A connection whose request is being answered is never closed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::http::idle::Idle;

/// The part of the connections that have had no admitted request that is closed together, so that a flood of new
/// connections does not search for each one.
const BATCH: usize = 32;

/// The most connections that are closed together for a new one. Closing one takes 25 µs, for which requests that have
/// arrived meanwhile wait.
const MAX_BATCH: usize = 8;

/// The number of ending connections at which a new one waits for the end of another. They exist in addition to the limit,
/// at most twice as many for a moment: half of the descriptors that are left free for files under the usual limit of
/// 1,024.
const MAX_ENDING: usize = 32;

const CLOSING: Duration = Duration::from_secs(1);

/// The time between two lines of the log about connections that were closed or refused.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Activity {
    /// No request has been admitted yet.
    New = 0,
    Idle = 1,
    Reading = 2,
    Answering = 3,
}

/// The position of the activity above the milliseconds at which it began: the smallest number is closed first.
const ACTIVITY: u32 = 60;
const ANSWERING: u64 = (Activity::Answering as u64) << ACTIVITY;

#[derive(Debug)]
pub(in crate::http) struct Connection {
    /// `None` for a trusted proxy and in an application that does not report addresses.
    address: Option<String>,
    activity: AtomicU64,
    idle: Idle,
    closing: CancellationToken,
}

impl Connection {
    pub(in crate::http) fn set(&self, activity: Activity) {
        let began = match activity {
            // It is not closed, so that its age does not matter.
            Activity::Answering => 0,
            _ => self.idle.now(),
        };
        self.store(activity, began);
    }

    fn store(&self, activity: Activity, began: u64) {
        self.activity.store(((activity as u64) << ACTIVITY) | began, Ordering::Relaxed);
    }

    /// Counts a request whose head has arrived.
    pub(super) fn begin(&self) {
        self.idle.begin();
    }

    /// Ends a request. The connection is idle if it was the only one, and new still if none has ever been admitted.
    pub(super) fn end(&self) {
        if let Some(now) = self.idle.end()
            && self.order() >> ACTIVITY != Activity::New as u64
        {
            self.store(Activity::Idle, now);
        }
    }

    pub(super) fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    fn order(&self) -> u64 {
        self.activity.load(Ordering::Relaxed)
    }
}

/// All open connections. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: Mutex<Open>,
    ended: Notify,
    started: Instant,
    max: AtomicUsize,
    max_per_address: AtomicUsize,
    refused: AtomicU64,
    refused_by_address: AtomicU64,
    refused_suspended: AtomicU64,
    closed: AtomicU64,
    closed_suspended: AtomicU64,
    logged: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Open {
    /// Without those that are giving way.
    by_id: HashMap<u64, Arc<Connection>>,
    by_address: HashMap<String, usize>,
    ending: usize,
    next: u64,
    is_suspended: bool,
}

impl Open {
    /// Removes a connection; `false` if it was giving way.
    fn remove(&mut self, id: u64) -> bool {
        let Some(connection) = self.by_id.remove(&id) else { return false };
        if let Some(address) = &connection.address {
            match self.by_address.get_mut(address) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.by_address.remove(address)),
            }
        }
        true
    }
}

/// The place of a connection; dropping it ends the connection for the budget.
#[derive(Debug)]
pub(in crate::http) struct Place {
    connections: Connections,
    id: u64,
    connection: Arc<Connection>,
}

impl Place {
    pub(in crate::http) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Waits until the connection has to give way.
    pub(in crate::http) async fn evicted(&self) {
        self.connection.closing.cancelled().await;
    }

    /// Waits until the connection has had no request for `limit`.
    pub(in crate::http) async fn expired(&self, limit: Duration) {
        self.connection.idle.expired(limit).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        if !open.remove(self.id) {
            open.ending -= 1;
        }
        drop(open);
        self.connections.0.ended.notify_one();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Full {
    Suspended,
    All,
    Address,
}

impl Default for Connections {
    fn default() -> Connections {
        Connections(Arc::new(Inner {
            open: Mutex::default(),
            ended: Notify::new(),
            started: Instant::now(),
            max: AtomicUsize::default(),
            max_per_address: AtomicUsize::default(),
            refused: AtomicU64::default(),
            refused_by_address: AtomicU64::default(),
            refused_suspended: AtomicU64::default(),
            closed: AtomicU64::default(),
            closed_suspended: AtomicU64::default(),
            logged: Mutex::default(),
        }))
    }
}

impl Connections {
    pub(super) fn set(&self, max: usize, max_per_address: usize) {
        self.0.max.store(max, Ordering::Relaxed);
        self.0.max_per_address.store(max_per_address, Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        let open = self.lock();
        open.by_id.len() + open.ending
    }

    pub(super) fn refused(&self) -> Vec<(&'static str, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![
            ("connections", read(&self.0.refused)),
            ("connections-per-address", read(&self.0.refused_by_address)),
            ("open-files", read(&self.0.refused_suspended)),
        ]
    }

    pub(super) fn closed(&self) -> Vec<(&'static str, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![("idle", read(&self.0.closed)), ("open-files", read(&self.0.closed_suspended))]
    }

    /// Finds a place for a connection, if necessary by closing another one. Waits only while many connections are ending.
    pub(super) async fn admit(&self, address: Option<String>) -> Result<Place, &'static str> {
        let deadline = Instant::now() + CLOSING;
        loop {
            let (limit, scope, count) = match self.open(address.clone()) {
                Ok(place) => return Ok(place),
                Err(Full::Suspended) => {
                    self.0.refused_suspended.fetch_add(1, Ordering::Relaxed);
                    return Err("open-files");
                }
                Err(Full::All) => ("connections", None, &self.0.refused),
                Err(Full::Address) => ("connections-per-address", address.as_deref(), &self.0.refused_by_address),
            };
            self.log(limit);
            let must_wait = self.lock().ending >= MAX_ENDING;
            let has_place = match must_wait {
                true => timeout_at(deadline, self.0.ended.notified()).await.is_ok(),
                false => self.evict(scope),
            };
            if !has_place {
                count.fetch_add(1, Ordering::Relaxed);
                return Err(limit);
            }
        }
    }

    /// Logs that a limit is reached, at most once a minute, because a crowd could fill the log.
    fn log(&self, limit: &'static str) {
        let mut last = self.0.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < LOG_INTERVAL) {
            return;
        }
        *last = Some(Instant::now());
        drop(last);
        let (closed, refused) = (self.closed()[0].1, self.refused().iter().map(|(_, count)| count).sum::<u64>());
        tracing::info!(limit, closed, refused, "a limit of connections is reached; the numbers are those so far");
    }

    fn open(&self, address: Option<String>) -> Result<Place, Full> {
        let mut open = self.lock();
        if open.is_suspended {
            return Err(Full::Suspended);
        }
        let of_address = address.as_ref().and_then(|address| open.by_address.get(address)).copied().unwrap_or_default();
        if of_address >= self.0.max_per_address.load(Ordering::Relaxed) {
            return Err(Full::Address);
        }
        if open.by_id.len() >= self.0.max.load(Ordering::Relaxed) {
            return Err(Full::All);
        }
        if let Some(address) = &address {
            *open.by_address.entry(address.clone()).or_default() += 1;
        }
        let closing = CancellationToken::new();
        let idle = Idle::new(self.0.started);
        let connection = Connection { address, activity: AtomicU64::default(), idle, closing };
        connection.set(Activity::New);
        let connection = Arc::new(connection);
        let id = open.next;
        open.next += 1;
        open.by_id.insert(id, Arc::clone(&connection));
        Ok(Place { connections: self.clone(), id, connection })
    }

    /// Closes connections that can be closed, of one address or of all. Returns whether there was one.
    fn evict(&self, address: Option<&str>) -> bool {
        let new_ones =
            |activity: &[u64]| activity.iter().filter(|order| *order >> ACTIVITY == Activity::New as u64).count();
        self.close(address, |candidates| new_ones(candidates).div_ceil(BATCH).clamp(1, MAX_BATCH)) > 0
    }

    /// Closes a part of the connections that can be closed, because the process has no descriptor left.
    pub(super) fn shed(&self) {
        self.close(None, |candidates| candidates.len().div_ceil(BATCH));
    }

    /// Closes the first of the connections whose requests are not being answered. Returns their number.
    fn close(&self, address: Option<&str>, count: impl Fn(&[u64]) -> usize) -> usize {
        let mut open = self.lock();
        let in_scope = |connection: &Arc<Connection>| address.is_none() || connection.address() == address;
        let of = |(id, connection): (&u64, &Arc<Connection>)| (connection.order(), *id);
        let open_ones = open.by_id.iter().filter(|(_, connection)| in_scope(connection)).map(of);
        let mut candidates: Vec<(u64, u64)> = open_ones.filter(|(order, _)| *order < ANSWERING).collect();
        let count = count(&candidates.iter().map(|(order, _)| *order).collect::<Vec<_>>());
        if count < candidates.len() {
            candidates.select_nth_unstable(count);
            candidates.truncate(count);
        }
        for (_, id) in &candidates {
            if let Some(connection) = open.by_id.get(id) {
                connection.closing.cancel();
            }
            open.remove(*id);
            open.ending += 1;
        }
        self.0.closed.fetch_add(candidates.len() as u64, Ordering::Relaxed);
        candidates.len()
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        let mut open = self.lock();
        // Under the lock, so that no connection is accepted between the two steps.
        open.is_suspended = is_suspended;
        if !is_suspended {
            return;
        }
        open.by_id.values().for_each(|connection| connection.closing.cancel());
        self.0.closed_suspended.fetch_add(open.by_id.len() as u64, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(max: usize, max_per_address: usize) -> Connections {
        let connections = Connections::default();
        connections.set(max, max_per_address);
        connections
    }

    /// Ends a connection as soon as it has to give way, as its task does.
    fn follow(place: Place) -> Arc<Connection> {
        let connection = Arc::clone(place.connection());
        tokio::spawn(async move {
            place.evicted().await;
            drop(place);
        });
        connection
    }

    async fn open(connections: &Connections, address: &str) -> Result<Arc<Connection>, &'static str> {
        connections.admit(Some(address.to_owned())).await.map(follow)
    }

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn connections_give_way_in_order_of_activity_and_age() {
        let connections = connections(4, 4);
        let mut open_ones = Vec::new();
        for activity in [Activity::Reading, Activity::Idle, Activity::New, Activity::Answering] {
            let connection = open(&connections, "192.0.2.1").await.expect("a place");
            connection.set(activity);
            open_ones.push(connection);
        }
        for expected in [2, 1, 0] {
            let newest = open(&connections, "192.0.2.2").await.expect("another one gives way");
            newest.set(Activity::Answering);
            for (at, connection) in open_ones.iter().enumerate() {
                let has_given_way = at < 3 && at >= expected;
                assert_eq!(connection.closing.is_cancelled(), has_given_way, "{at} after {expected}");
            }
        }
        assert_eq!(open(&connections, "192.0.2.3").await.err(), Some("connections"), "all requests are being answered");
        while connections.len() > 4 {
            tokio::task::yield_now().await;
        }
        assert_eq!(connections.closed()[0], ("idle", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_requests_do_not_make_a_connection_an_old_one() {
        let connections = connections(2, 2);
        let used = open(&connections, "192.0.2.1").await.expect("a place");
        used.begin();
        used.set(Activity::Answering);
        used.end();
        let refused = open(&connections, "192.0.2.1").await.expect("a place");
        refused.begin();
        refused.end();
        assert!(open(&connections, "192.0.2.2").await.is_ok(), "a connection gives way");
        assert!(refused.closing.is_cancelled() && !used.closing.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn pipelined_request_keeps_its_connection_after_the_one_before() {
        let connections = connections(1, 1);
        let connection = open(&connections, "192.0.2.1").await.expect("a place");
        // The second request is admitted while the client takes the response to the first.
        connection.begin();
        connection.set(Activity::Answering);
        connection.begin();
        connection.set(Activity::Answering);
        connection.end();
        assert_eq!(open(&connections, "192.0.2.2").await.err(), Some("connections"));
        connection.end();
        assert!(open(&connections, "192.0.2.2").await.is_ok(), "the first connection is idle");
        assert!(connection.closing.is_cancelled());
    }

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn new_connections_do_not_wait_for_the_end_of_others() {
        let connections = connections(1, 1_000);
        let mut open = Vec::new();
        for _ in 0..=MAX_ENDING {
            // None of these ends, although all but the last have to.
            open.push(connections.admit(Some("192.0.2.1".to_owned())).await.expect("the one before gives way"));
        }
        assert_eq!(connections.len(), MAX_ENDING + 1);
        let refused = connections.admit(Some("192.0.2.1".to_owned())).await;
        assert_eq!(refused.err(), Some("connections"), "too many are still ending");
        drop(open);
        assert_eq!(connections.len(), 0);
        assert!(connections.admit(Some("192.0.2.1".to_owned())).await.is_ok());
    }

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn full_address_closes_only_its_own_connections() {
        let connections = connections(10, 2);
        let others = open(&connections, "192.0.2.9").await.expect("a place");
        let first = open(&connections, "192.0.2.1").await.expect("a place");
        let second = open(&connections, "192.0.2.1").await.expect("a place");
        second.set(Activity::Answering);
        let third = open(&connections, "192.0.2.1").await.expect("the first one gives way");
        third.set(Activity::Answering);
        assert!(first.closing.is_cancelled() && !others.closing.is_cancelled() && !second.closing.is_cancelled());
        assert_eq!(open(&connections, "192.0.2.1").await.err(), Some("connections-per-address"));
        assert!(connections.admit(None).await.is_ok(), "a trusted proxy has no address");
        assert!(open(&connections, "192.0.2.2").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn suspended_server_closes_and_refuses_all() {
        let connections = connections(10, 10);
        let working = open(&connections, "192.0.2.1").await.expect("a place");
        working.set(Activity::Answering);
        connections.shed();
        assert!(!working.closing.is_cancelled(), "a request in progress is answered");
        connections.suspend(true);
        assert!(working.closing.is_cancelled());
        assert_eq!(open(&connections, "192.0.2.1").await.err(), Some("open-files"));
        connections.suspend(false);
        assert!(open(&connections, "192.0.2.1").await.is_ok());
    }
}

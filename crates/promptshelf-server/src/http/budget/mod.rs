//! The budget of the HTTP server: connections (in all and by client address), bytes of request bodies in flight, and
//! bytes of responses that clients have not taken yet.
//!
//! The memory that clients can occupy is at most the sum of
//!
//! - 128 KiB for each connection: hyper's buffers for a head, the connection's task, and a body or response of
//!   [`FREE_BYTES`];
//! - twice [`ConnectionLimits::request_bytes`], because the buffer of a body grows by doubling;
//! - [`ConnectionLimits::response_bytes`], or the largest single response if that is larger.
//!
//! Besides, rendering takes memory for each prompt that is rendered at the same time (`promptshelf_core`).
//!
//! `connections` decides which connection is closed when there are too many, `pool` counts bytes, `exchange` follows
//! one request and its response, `stream` closes connections whose peer takes nothing, and `open_files` bounds
//! connections by the process's file descriptors.

mod connections;
mod exchange;
mod open_files;
mod pool;
mod stream;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use promptshelf_service::address_key;

pub use self::open_files::{is_out_of_files, raise_open_files};
use self::{
    connections::Connections,
    pool::{Pool, Reservation},
};
pub(super) use self::{
    connections::{Connection, Place},
    exchange::{Exchange, RequestBody, ResponseBody},
    stream::Progressing,
};

/// The bytes of a body or a response that are not counted. Nearly all are smaller, so that they are never refused; the
/// number of connections bounds them.
const FREE_BYTES: usize = 32 << 10;

/// The bytes that a peer has to send or take within [`ConnectionLimits::progress_timeout`], unless it completes.
const MIN_PROGRESS: usize = 32 << 10;

/// Limits of connections, and of the memory that clients can occupy.
///
/// ```
/// use promptshelf_server::http::{ConnectionLimits, Options};
///
/// let mut options = Options::default();
/// options.limits.connections = 10_000;
/// assert_eq!(ConnectionLimits::default().connections, 4_096);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionLimits {
    /// Open connections, 4,096 by default; fewer if the process can open fewer files. When there are more, the
    /// connection is closed that has been idle longest, first of those whose client has not been authenticated.
    pub connections: usize,
    /// Open connections of one client address, 1,024 by default, closed in the same order. Trusted proxies are exempt.
    pub connections_per_address: usize,
    /// Bytes of request bodies in flight, 64 MiB by default; a quarter of them for each address. Bodies up to 32 KiB are
    /// not counted.
    pub request_bytes: usize,
    /// Bytes of responses that clients have not taken yet, 128 MiB by default; a quarter of them for each address.
    /// Responses up to 32 KiB are not counted.
    pub response_bytes: usize,
    /// The time in which a client has to send or take 32 KiB of a body or response, or the rest of it. 30 seconds by
    /// default.
    pub progress_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            connections: 4_096,
            connections_per_address: 1_024,
            request_bytes: 64 << 20,
            response_bytes: 128 << 20,
            progress_timeout: Duration::from_secs(30),
        }
    }
}

/// Refusals and closed connections, by reason; each reason is one of a closed set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Usage {
    /// Open connections.
    pub connections: usize,
    /// Counted bytes of request bodies in flight.
    pub request_bytes: usize,
    /// Counted bytes of responses that clients have not taken yet.
    pub response_bytes: usize,
    /// Refused connections and requests, by limit.
    pub refused: Vec<(&'static str, u64)>,
    /// Connections that the server closed before their time, by reason.
    pub closed: Vec<(&'static str, u64)>,
}

/// The budget of a server. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    connections: Connections,
    request_bytes: Pool,
    response_bytes: Pool,
    /// In milliseconds.
    progress_timeout: AtomicU64,
    /// Connections closed because their peer made no progress.
    stalled: AtomicU64,
}

impl Budget {
    pub(super) fn new(limits: &ConnectionLimits) -> Budget {
        let budget = Budget(Arc::new(Inner {
            connections: Connections::default(),
            request_bytes: Pool::default(),
            response_bytes: Pool::default(),
            progress_timeout: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
        }));
        budget.set(limits);
        budget
    }

    /// Replaces the limits. Open connections and reservations still count.
    pub(super) fn set(&self, limits: &ConnectionLimits) {
        let connections = limits.connections.min(open_files::max_connections());
        self.0.connections.set(connections, limits.connections_per_address);
        self.0.request_bytes.set(limits.request_bytes);
        self.0.response_bytes.set(limits.response_bytes);
        let timeout = u64::try_from(limits.progress_timeout.as_millis()).unwrap_or(u64::MAX).max(1);
        self.0.progress_timeout.store(timeout, Ordering::Relaxed);
    }

    /// Finds a place for a connection from `address`; `None` for a trusted proxy, whose clients have many addresses.
    ///
    /// # Errors
    ///
    /// The limit that refuses it.
    pub(super) async fn admit(&self, address: Option<IpAddr>) -> Result<Place, &'static str> {
        self.0.connections.admit(address.map(address_key)).await
    }

    /// Closes a part of the idle connections, because the system has no file descriptor left.
    pub(super) fn shed(&self) {
        self.0.connections.shed();
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        self.0.connections.suspend(is_suspended);
    }

    pub(super) fn usage(&self) -> Usage {
        let Inner { connections, request_bytes, response_bytes, .. } = &*self.0;
        let mut refused = connections.refused();
        refused.push(("request-bytes", request_bytes.refused()));
        refused.push(("response-bytes", response_bytes.refused()));
        let mut closed = connections.closed();
        closed.push(("stalled", self.0.stalled.load(Ordering::Relaxed)));
        Usage {
            connections: connections.len(),
            request_bytes: request_bytes.used(),
            response_bytes: response_bytes.used(),
            refused,
            closed,
        }
    }

    fn progress_timeout(&self) -> Duration {
        Duration::from_millis(self.0.progress_timeout.load(Ordering::Relaxed))
    }

    fn stalled(&self) {
        self.0.stalled.fetch_add(1, Ordering::Relaxed);
    }
}

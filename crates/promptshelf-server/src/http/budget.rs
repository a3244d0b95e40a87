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
//! Rendering takes additional memory for each prompt that is rendered at the same time (`promptshelf_core`).
//!
//! A connection without an admitted request costs a client nothing to open and nothing to lose. It gives way to a new
//! one: first those that have never had an admitted request, then those between two requests, then those that are
//! still sending a body; the oldest first. A connection whose request is being answered is never closed.

use std::{
    collections::HashMap,
    fmt, io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use promptshelf_service::{Seldom, SlotHolder, address_key};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::CancellationToken;

use super::open_files;

/// The bytes of a body or a response that are not counted. Nearly all are smaller, so that they are never refused; the
/// number of connections bounds them.
const FREE_BYTES: usize = 32 << 10;

/// The bytes that a peer has to send or take within [`ConnectionLimits::progress_timeout`], unless it completes.
const MIN_PROGRESS: usize = 32 << 10;

/// The part of the connections that is closed together when the system has no descriptor left.
const SHED_PART: usize = 32;

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
    /// Bytes of request bodies in flight, 64 MiB by default, of one client address at most half of them. Bodies up to
    /// 32 KiB are not counted. Trusted proxies are exempt from the share.
    pub request_bytes: usize,
    /// Bytes of responses that clients have not taken yet, 128 MiB by default, with the same share. Responses up to 32 KiB
    /// are not counted.
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
pub(super) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Mutex<ConnectionLimits>,
    open: Mutex<Open>,
    request_bytes: Pool,
    response_bytes: Pool,
    refused: AtomicU64,
    refused_by_address: AtomicU64,
    refused_suspended: AtomicU64,
    gave_way: AtomicU64,
    closed_suspended: AtomicU64,
    stalled: AtomicU64,
    logged: Seldom,
}

/// The open connections, without those that have to give way.
#[derive(Debug, Default)]
struct Open {
    by_id: HashMap<u64, Arc<Connection>>,
    by_address: HashMap<String, usize>,
    next: u64,
    is_suspended: bool,
}

impl Open {
    fn remove(&mut self, id: u64) {
        let Some(address) = self.by_id.remove(&id).and_then(|connection| connection.address.clone()) else { return };
        match self.by_address.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.by_address.remove(&address)),
        }
    }

    fn first(&self, count: usize, filter: impl Fn(&Connection) -> bool) -> Vec<u64> {
        let closable = self.by_id.iter().filter(|(_, connection)| filter(connection));
        let mut orders: Vec<_> =
            closable.filter_map(|(id, connection)| Some((connection.order()?, *id))).collect::<Vec<_>>();
        if count < orders.len() {
            orders.select_nth_unstable(count);
            orders.truncate(count);
        }
        orders.into_iter().map(|(_, id)| id).collect()
    }

    fn close(&mut self, ids: &[u64]) {
        for id in ids {
            if let Some(connection) = self.by_id.get(id) {
                connection.closing.cancel();
            }
            self.remove(*id);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    /// No request has been admitted yet.
    New,
    Idle,
    Reading,
    Answering,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// `None` for a trusted proxy and in an application that does not report addresses.
    address: Option<String>,
    state: Mutex<State>,
    closing: CancellationToken,
}

#[derive(Debug)]
struct State {
    activity: Activity,
    /// The time of the activity, or of the end of a request that was not admitted.
    since: Instant,
    /// More than one with pipelining: the next one can begin before the client has taken the response.
    requests: usize,
}

impl Connection {
    /// Counts a request whose head has arrived.
    fn begin(&self) {
        lock(&self.state).requests += 1;
    }

    fn end(&self) {
        let mut state = lock(&self.state);
        state.requests -= 1;
        if state.requests == 0 {
            state.since = Instant::now();
            state.activity = state.activity.min(Activity::Idle);
        }
    }

    fn set(&self, activity: Activity) {
        let mut state = lock(&self.state);
        state.activity = activity;
        state.since = Instant::now();
    }

    /// `None` while a request is being answered.
    fn order(&self) -> Option<(Activity, Instant)> {
        let state = lock(&self.state);
        (state.activity < Activity::Answering).then_some((state.activity, state.since))
    }

    fn is_idle_for(&self, limit: Duration) -> bool {
        let state = lock(&self.state);
        state.requests == 0 && state.since.elapsed() >= limit
    }
}

/// The place of a connection; dropping it ends the connection for the budget.
#[derive(Debug)]
pub(super) struct Place {
    budget: Budget,
    id: u64,
    connection: Arc<Connection>,
}

impl Place {
    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Waits until the connection has to give way, or has been idle too long.
    pub(super) async fn closing(&self) {
        self.connection.closing.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.budget.0.open).remove(self.id);
    }
}

impl Budget {
    pub(super) fn new(limits: &ConnectionLimits) -> Budget {
        let budget = Budget(Arc::new(Shared {
            limits: Mutex::new(*limits),
            open: Mutex::default(),
            request_bytes: Pool::default(),
            response_bytes: Pool::default(),
            refused: AtomicU64::default(),
            refused_by_address: AtomicU64::default(),
            refused_suspended: AtomicU64::default(),
            gave_way: AtomicU64::default(),
            closed_suspended: AtomicU64::default(),
            stalled: AtomicU64::default(),
            logged: Seldom::default(),
        }));
        budget.set(limits);
        budget
    }

    /// Replaces the limits. Open connections and reservations still count.
    pub(super) fn set(&self, limits: &ConnectionLimits) {
        let connections = limits.connections.min(open_files::max_connections());
        *lock(&self.0.limits) = ConnectionLimits { connections, ..*limits };
        self.0.request_bytes.0.max.store(limits.request_bytes, Ordering::Relaxed);
        self.0.response_bytes.0.max.store(limits.response_bytes, Ordering::Relaxed);
    }

    /// Finds a place for a connection from `address`, if necessary by closing another one; `None` for a trusted proxy,
    /// whose clients have many addresses.
    pub(super) fn admit(&self, address: Option<IpAddr>) -> Result<Place, &'static str> {
        let address = address.map(address_key);
        let limits = *lock(&self.0.limits);
        let mut open = lock(&self.0.open);
        if open.is_suspended {
            self.0.refused_suspended.fetch_add(1, Ordering::Relaxed);
            return Err("open-files");
        }
        let of_address = address.as_ref().and_then(|address| open.by_address.get(address)).copied().unwrap_or_default();
        let (limit, refused, victims) = if of_address >= limits.connections_per_address {
            let victims = open.first(1, |connection| connection.address == address);
            ("connections-per-address", &self.0.refused_by_address, victims)
        } else if open.by_id.len() >= limits.connections {
            ("connections", &self.0.refused, open.first(1, |_| true))
        } else {
            return Ok(self.place(&mut open, address));
        };
        if victims.is_empty() {
            refused.fetch_add(1, Ordering::Relaxed);
        } else {
            open.close(&victims);
            self.0.gave_way.fetch_add(victims.len() as u64, Ordering::Relaxed);
        }
        let place = (!victims.is_empty()).then(|| self.place(&mut open, address)).ok_or(limit);
        drop(open);
        self.log(limit);
        place
    }

    fn place(&self, open: &mut Open, address: Option<String>) -> Place {
        if let Some(address) = &address {
            *open.by_address.entry(address.clone()).or_default() += 1;
        }
        let state = State { activity: Activity::New, since: Instant::now(), requests: 0 };
        let connection = Connection { address, state: Mutex::new(state), closing: CancellationToken::new() };
        let (id, connection) = (open.next, Arc::new(connection));
        open.next += 1;
        open.by_id.insert(id, Arc::clone(&connection));
        Place { budget: self.clone(), id, connection }
    }

    /// Logs that a limit is reached, at most once a minute, because a crowd could fill the log.
    fn log(&self, limit: &'static str) {
        if self.0.logged.is_due() {
            let refused: u64 = self.usage().refused.iter().map(|(_, count)| count).sum();
            let closed = self.0.gave_way.load(Ordering::Relaxed);
            tracing::info!(limit, closed, refused, "a limit of connections is reached; the numbers are those so far");
        }
    }

    /// Closes connections without a request for `limit`, however many bytes of the next head have arrived. It is called
    /// again and again: a timer for each connection would take an allocation for each request.
    pub(super) fn close_idle(&self, limit: Duration) {
        let mut open = lock(&self.0.open);
        let idle = open.by_id.iter().filter(|(_, connection)| connection.is_idle_for(limit)).map(|(id, _)| *id);
        let idle: Vec<u64> = idle.collect();
        open.close(&idle);
    }

    /// Closes a part of the idle connections, because the system has no file descriptor left.
    pub(super) fn shed(&self) {
        let mut open = lock(&self.0.open);
        let victims = open.first(open.by_id.len().div_ceil(SHED_PART), |_| true);
        open.close(&victims);
        self.0.gave_way.fetch_add(victims.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn suspend(&self, is_suspended: bool) {
        let mut open = lock(&self.0.open);
        // Under the lock, so that no connection is accepted between the two steps.
        open.is_suspended = is_suspended;
        if is_suspended {
            open.by_id.values().for_each(|connection| connection.closing.cancel());
            self.0.closed_suspended.fetch_add(open.by_id.len() as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let shared = &*self.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Usage {
            connections: lock(&shared.open).by_id.len(),
            request_bytes: shared.request_bytes.used(),
            response_bytes: shared.response_bytes.used(),
            refused: vec![
                ("connections", read(&shared.refused)),
                ("connections-per-address", read(&shared.refused_by_address)),
                ("open-files", read(&shared.refused_suspended)),
                ("request-bytes", read(&shared.request_bytes.0.refused)),
                ("response-bytes", read(&shared.response_bytes.0.refused)),
            ],
            closed: vec![
                ("idle", read(&shared.gave_way)),
                ("open-files", read(&shared.closed_suspended)),
                ("stalled", read(&shared.stalled)),
            ],
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Bytes that can be reserved, up to a maximum. Clones share the pool.
#[derive(Clone, Debug, Default)]
struct Pool(Arc<Bounded>);

#[derive(Debug, Default)]
struct Bounded {
    max: AtomicUsize,
    used: Mutex<Used>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Used {
    all: usize,
    /// By address, without those that have none.
    by_address: HashMap<String, usize>,
}

impl Pool {
    fn used(&self) -> usize {
        lock(&self.0.used).all
    }
}

/// Reserved bytes; dropping them returns them to the pool.
#[derive(Debug)]
struct Reservation {
    pool: Pool,
    /// Who may have a share of the pool; `None` for everybody's.
    address: Option<String>,
    bytes: usize,
}

impl Reservation {
    fn new(pool: &Pool, address: Option<&String>) -> Reservation {
        Reservation { pool: pool.clone(), address: address.cloned(), bytes: 0 }
    }

    /// Reserves more bytes, if the pool has them and the address has not taken half of it. The only reservation, of all and
    /// of an address, is granted whatever its size: the largest message has to pass, however small the pool is.
    fn grow(&mut self, bytes: usize) -> bool {
        let Bounded { max, used, refused } = &*self.pool.0;
        let max = max.load(Ordering::Relaxed);
        let mut used = lock(used);
        let of_address = self.address.as_ref().and_then(|address| used.by_address.get(address)).copied();
        let fits = |used: usize, max: usize| used == self.bytes || used.saturating_add(bytes) <= max;
        let grown = fits(used.all, max) && fits(of_address.unwrap_or(self.bytes), max / 2);
        if grown {
            used.all += bytes;
            self.bytes += bytes;
            if let Some(address) = &self.address {
                match used.by_address.get_mut(address) {
                    Some(own) => *own += bytes,
                    None => _ = used.by_address.insert(address.clone(), bytes),
                }
            }
        } else {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        grown
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut used = lock(&self.pool.0.used);
        used.all -= self.bytes;
        if let Some(address) = &self.address
            && let Some(own) = used.by_address.get_mut(address)
        {
            *own -= self.bytes;
            if *own == 0 {
                used.by_address.remove(address);
            }
        }
    }
}

/// A request and its response. It ends when the request has been answered and the client has taken the response.
///
/// It is an extension of the request, so that authentication can report that the request is admitted.
pub(super) struct Exchange {
    budget: Budget,
    connection: Arc<Connection>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    is_admitted: bool,
    slot: Option<SlotHolder>,
    failure: Option<Failure>,
    body: Option<Reservation>,
    response: Option<Reservation>,
}

/// Why the body of a request was not read to its end.
#[derive(Clone, Copy)]
enum Failure {
    Stalled,
    Refused,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Exchange {
    pub(super) fn new(budget: &Budget, connection: &Arc<Connection>) -> Arc<Exchange> {
        connection.begin();
        let (budget, connection) = (budget.clone(), Arc::clone(connection));
        Arc::new(Exchange { budget, connection, held: Mutex::default() })
    }

    /// Reports that the caller is authenticated: the connection no longer gives way until the exchange ends, which keeps
    /// the slot of a concurrent request.
    pub(super) fn admit(&self, slot: Option<SlotHolder>) {
        let mut held = lock(&self.held);
        held.is_admitted = true;
        held.slot = slot;
        self.connection.set(Activity::Answering);
    }

    fn set(&self, activity: Activity) {
        if lock(&self.held).is_admitted {
            self.connection.set(activity);
        }
    }

    /// Turns the response into one that is counted until the client has taken it, or into a refusal.
    pub(super) fn respond(self: &Arc<Exchange>, response: Response) -> Response<ResponseBody> {
        self.set(Activity::Answering);
        let mut held = lock(&self.held);
        held.body = None;
        let mut response = match held.failure {
            Some(Failure::Stalled) => {
                (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time\n").into_response()
            }
            Some(Failure::Refused) => unavailable("Too many bytes of requests are in flight; try again later\n"),
            None => response,
        };
        let bytes = response.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        if let Some(bytes) = bytes.filter(|bytes| *bytes > FREE_BYTES) {
            let address = self.connection.address.as_ref();
            let reservation = held.response.insert(Reservation::new(&self.budget.0.response_bytes, address));
            if !reservation.grow(bytes) {
                response = unavailable("Too many bytes of responses wait for their clients; try again later\n");
            }
        }
        drop(held);
        response.map(|body| ResponseBody { body, exchange: Arc::clone(self) })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection.end();
    }
}

fn unavailable(message: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], message).into_response()
}

/// A time in which a peer has to send or take [`MIN_PROGRESS`].
#[derive(Debug)]
struct Progress {
    end: Pin<Box<Sleep>>,
    length: Duration,
    /// The bytes at the beginning of the time.
    from: usize,
}

impl Progress {
    fn begin(budget: &Budget, bytes: usize) -> Progress {
        let length = lock(&budget.0.limits).progress_timeout.max(Duration::from_millis(1));
        Progress { end: Box::pin(sleep(length)), length, from: bytes }
    }

    /// Waits for the end of a time without enough progress.
    fn poll_stalled(&mut self, bytes: usize, budget: &Budget, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.end.as_mut().poll(cx));
            if bytes - self.from < MIN_PROGRESS {
                budget.0.stalled.fetch_add(1, Ordering::Relaxed);
                return Poll::Ready(());
            }
            self.from = bytes;
            self.end.as_mut().reset(Instant::now() + self.length);
        }
    }
}

/// The body of a request, which fails when the client stops sending or the budget has no bytes left.
#[derive(Debug)]
pub(super) struct RequestBody<B> {
    body: B,
    exchange: Arc<Exchange>,
    received: usize,
    waiting: Option<Progress>,
}

impl<B> RequestBody<B> {
    pub(super) fn new(body: B, exchange: &Arc<Exchange>) -> RequestBody<B> {
        RequestBody { body, exchange: Arc::clone(exchange), received: 0, waiting: None }
    }

    fn fail(&self, failure: Failure) -> axum::BoxError {
        lock(&self.exchange.held).failure = Some(failure);
        io::Error::from(io::ErrorKind::TimedOut).into()
    }

    /// Counts received bytes, without those that are free.
    fn count(&mut self, bytes: usize) -> bool {
        let before = self.received.max(FREE_BYTES);
        self.received += bytes;
        let counted = self.received.saturating_sub(before);
        let (pool, address) = (&self.exchange.budget.0.request_bytes, self.exchange.connection.address.as_ref());
        let new = || Reservation::new(pool, address);
        counted == 0 || lock(&self.exchange.held).body.get_or_insert_with(new).grow(counted)
    }
}

impl<B> HttpBody for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            let (exchange, received) = (&this.exchange, this.received);
            let waiting = this.waiting.get_or_insert_with(|| {
                exchange.set(Activity::Reading);
                Progress::begin(&exchange.budget, received)
            });
            ready!(waiting.poll_stalled(received, &exchange.budget, cx));
            return Poll::Ready(Some(Err(this.fail(Failure::Stalled))));
        };
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        if !this.count(bytes) {
            return Poll::Ready(Some(Err(this.fail(Failure::Refused))));
        }
        if frame.is_none() && this.waiting.take().is_some() {
            this.exchange.set(Activity::Answering);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response, which keeps its exchange until the client has taken it.
#[derive(Debug)]
pub(super) struct ResponseBody {
    body: Body,
    exchange: Arc<Exchange>,
}

/// A part of a response. hyper drops the body as soon as it has its parts, and a part when it is written.
struct Unsent {
    bytes: Bytes,
    _exchange: Arc<Exchange>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let exchange = &self.exchange;
        // The system takes a short part at once.
        let keep = |bytes: Bytes| {
            if bytes.len() <= FREE_BYTES {
                return bytes;
            }
            Bytes::from_owner(Unsent { bytes, _exchange: Arc::clone(exchange) })
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(keep))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose writes fail with [`io::ErrorKind::TimedOut`] if the peer takes less than [`MIN_PROGRESS`] within the
/// budget's progress time-out. Reading is not bounded here, because an idle connection reads nothing either.
#[derive(Debug)]
pub(super) struct Progressing<S> {
    stream: S,
    budget: Budget,
    written: usize,
    /// From the first write that has to wait until everything is written. Boxed: most streams never wait.
    blocked: Option<Box<Progress>>,
}

impl<S> Progressing<S> {
    pub(super) fn new(stream: S, budget: &Budget) -> Progressing<S> {
        Progressing { stream, budget: budget.clone(), written: 0, blocked: None }
    }

    fn follow<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        count: impl Fn(&T) -> usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = written {
            self.written = self.written.wrapping_add(written.as_ref().map_or(0, count));
            return Poll::Ready(written);
        }
        let Progressing { budget, written, blocked, .. } = self;
        let blocked = blocked.get_or_insert_with(|| Box::new(Progress::begin(budget, *written)));
        ready!(blocked.poll_stalled(*written, budget, cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progressing<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progressing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.follow(written, |bytes| *bytes, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.follow(written, |bytes| *bytes, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        let flushed = ready!(self.follow(flushed, |()| 0, cx));
        self.blocked = None;
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.follow(ended, |()| 0, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::advance,
    };

    use super::*;

    fn budget(connections: usize, connections_per_address: usize) -> Budget {
        Budget::new(&ConnectionLimits { connections, connections_per_address, ..ConnectionLimits::default() })
    }

    fn open(budget: &Budget, address: &str) -> Result<Place, &'static str> {
        budget.admit(Some(address.parse().expect("an address")))
    }

    fn gives_way(place: &Place) -> bool {
        place.connection.closing.is_cancelled()
    }

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn connections_give_way_in_order_of_activity_and_age() {
        let budget = budget(4, 4);
        let mut open_ones = Vec::new();
        for activity in [Activity::Reading, Activity::Idle, Activity::New, Activity::Answering] {
            let place = open(&budget, "192.0.2.1").expect("a place");
            place.connection.set(activity);
            open_ones.push(place);
            advance(Duration::from_millis(1)).await;
        }
        let mut newest = Vec::new();
        for expected in [2, 1, 0] {
            let place = open(&budget, "192.0.2.2").expect("another one gives way");
            place.connection.set(Activity::Answering);
            newest.push(place);
            for (at, place) in open_ones.iter().enumerate() {
                assert_eq!(gives_way(place), at < 3 && at >= expected, "{at} after {expected}");
            }
        }
        assert_eq!(open(&budget, "192.0.2.3").err(), Some("connections"), "all requests are being answered");
        let usage = budget.usage();
        assert_eq!((usage.connections, usage.closed[0], usage.refused[0]), (4, ("idle", 3), ("connections", 1)));
        drop((open_ones, newest));
        assert_eq!(budget.usage().connections, 0);
        assert!(lock(&budget.0.open).by_address.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn refused_requests_do_not_make_a_connection_an_old_one() {
        let budget = budget(2, 2);
        let used = open(&budget, "192.0.2.1").expect("a place");
        let request = Exchange::new(&budget, used.connection());
        request.admit(None);
        drop(request);
        advance(Duration::from_secs(1)).await;
        let refused = open(&budget, "192.0.2.1").expect("a place");
        drop(Exchange::new(&budget, refused.connection()));
        let _newest = open(&budget, "192.0.2.2").expect("a connection gives way");
        assert!(gives_way(&refused) && !gives_way(&used));
    }

    #[tokio::test(start_paused = true)]
    async fn pipelined_request_keeps_its_connection_after_the_one_before() {
        let budget = budget(1, 1);
        let place = open(&budget, "192.0.2.1").expect("a place");
        // The second request is admitted while the client takes the response to the first.
        let first = Exchange::new(&budget, place.connection());
        first.admit(None);
        let second = Exchange::new(&budget, place.connection());
        second.admit(None);
        drop(first);
        assert_eq!(open(&budget, "192.0.2.2").err(), Some("connections"));
        drop(second);
        assert!(open(&budget, "192.0.2.2").is_ok() && gives_way(&place), "the first connection is idle");
    }

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn full_address_closes_only_its_own_connections() {
        let budget = budget(10, 2);
        let others = open(&budget, "192.0.2.9").expect("a place");
        let first = open(&budget, "192.0.2.1").expect("a place");
        let second = open(&budget, "192.0.2.1").expect("a place");
        second.connection.set(Activity::Answering);
        let third = open(&budget, "192.0.2.1").expect("the first one gives way");
        third.connection.set(Activity::Answering);
        assert!(gives_way(&first) && !gives_way(&others) && !gives_way(&second));
        assert_eq!(open(&budget, "192.0.2.1").err(), Some("connections-per-address"));
        assert!(budget.admit(None).is_ok(), "a trusted proxy has no address");
        assert!(open(&budget, "192.0.2.2").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn suspended_server_closes_and_refuses_all() {
        let budget = budget(10, 10);
        let working = open(&budget, "192.0.2.1").expect("a place");
        working.connection.set(Activity::Answering);
        budget.shed();
        assert!(!gives_way(&working), "a request in progress is answered");
        budget.suspend(true);
        assert!(gives_way(&working));
        assert_eq!(open(&budget, "192.0.2.1").err(), Some("open-files"));
        budget.suspend(false);
        assert!(open(&budget, "192.0.2.1").is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_counts_from_the_end_of_the_last_request() {
        const LIMIT: Duration = Duration::from_secs(10);
        let budget = budget(10, 10);
        let place = open(&budget, "192.0.2.1").expect("a place");
        let request = Exchange::new(&budget, place.connection());
        advance(100 * LIMIT).await;
        budget.close_idle(LIMIT);
        assert!(!gives_way(&place), "a request is in progress");
        drop(request);
        advance(LIMIT - Duration::from_millis(1)).await;
        budget.close_idle(LIMIT);
        assert!(!gives_way(&place));
        advance(Duration::from_millis(1)).await;
        budget.close_idle(LIMIT);
        assert!(gives_way(&place));
        assert_eq!(budget.usage().closed[0], ("idle", 0), "it had its whole time");
    }

    #[test]
    fn pool_is_never_exceeded_but_by_a_single_message() {
        let pool = Pool::default();
        pool.0.max.store(400, Ordering::Relaxed);
        let mut first = Reservation::new(&pool, None);
        assert!(first.grow(60) && first.grow(500), "a single message is never refused for its size");
        let mut second = Reservation::new(&pool, None);
        assert!(!second.grow(1), "the pool is empty");
        drop(first);
        assert!(second.grow(400) && !Reservation::new(&pool, None).grow(1));
        assert_eq!((pool.used(), pool.0.refused.load(Ordering::Relaxed)), (400, 2));
        drop(second);
        assert_eq!(pool.used(), 0);
    }

    // req: S-552
    #[test]
    fn one_address_has_half_of_a_pool() {
        let pool = Pool::default();
        pool.0.max.store(400, Ordering::Relaxed);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(str::to_owned);
        let mut held: Vec<Reservation> = (0..5).map(|_| Reservation::new(&pool, Some(&one))).collect();
        let grown: Vec<bool> = held.iter_mut().map(|reservation| reservation.grow(50)).collect();
        assert_eq!(grown, [true, true, true, true, false]);
        assert!(Reservation::new(&pool, Some(&other)).grow(200), "others have the rest");
        held.truncate(2);
        assert!(held[0].grow(100) && !held[0].grow(1) && Reservation::new(&pool, None).grow(200));
        held.clear();
        assert!(Reservation::new(&pool, Some(&one)).grow(4_000), "a single message is never refused for its size");
        assert!(pool.used() == 0 && lock(&pool.0.used).by_address.is_empty());
    }

    // req: S-58
    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_too_little_is_given_up() {
        let budget = Budget::new(&ConnectionLimits::default());
        let patience = ConnectionLimits::default().progress_timeout;
        let answer = vec![b'x'; 10 * MIN_PROGRESS];
        for (bytes, is_enough) in [(0, false), (1_000, false), (MIN_PROGRESS, true)] {
            let (mut client, server) = duplex(1_000);
            let mut server = Progressing::new(server, &budget);
            let reading = tokio::spawn(async move {
                let mut buffer = vec![0; bytes];
                loop {
                    sleep(patience / 2).await;
                    if bytes > 0 && client.read_exact(&mut buffer).await.is_err() {
                        return;
                    }
                }
            });
            let begun = Instant::now();
            let written = async {
                server.write_all(&answer).await?;
                server.flush().await
            };
            let written = written.await;
            assert_eq!(written.is_ok(), is_enough, "{bytes} bytes: {written:?} after {:?}", begun.elapsed());
            assert!(is_enough || begun.elapsed() < patience + Duration::from_secs(1), "{:?}", begun.elapsed());
            // A connection that was slow once has the whole time for its next response.
            assert!(!is_enough || server.blocked.is_none());
            reading.abort();
        }
        assert_eq!(budget.usage().closed.last(), Some(&("stalled", 2)));
    }
}

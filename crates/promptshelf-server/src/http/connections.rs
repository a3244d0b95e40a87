//! Connections, from the listener to their end: handshake, HTTP/1.1 within bounds, graceful shutdown.
//!
//! `axum::serve` is not used because it bounds none of these: the size of a request's head, the time
//! that the head and an idle connection may take, TLS handshakes (which must not delay the next
//! `accept`), and the time from the beginning of a shutdown to its end.
//!
//! HTTP/1.1 only: detecting the version from the first bytes would wait for a silent client.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::yield_now,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout_at},
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tower::Service as _;

use super::{
    app::App,
    budget::{Place, Progressing},
};

/// The bytes after which no more of an incomplete head is read. hyper reads in steps, so that a
/// complete one can be up to twice as large. It also bounds the output buffered for a slow reader. The
/// longest token has 16 KiB.
const MAX_HEAD_BYTES: usize = 32 << 10;

const MAX_OPERATOR_CONNECTIONS: usize = 64;

/// The time before the next attempt to accept a connection when the system cannot.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// The connections that are accepted before other tasks of the thread run. Each one takes 20 µs, and a flood brings
/// hundreds at once.
const ACCEPT_TURN: usize = 8;

/// The transport below HTTP: plain TCP or TLS.
pub(super) trait Handshake: Clone + Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Completes when HTTP can begin. Must be bounded in time, however little the client sends.
    fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plain;

impl Handshake for Plain {
    type Stream = TcpStream;

    async fn handshake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<TcpStream> {
        Ok(stream)
    }
}

/// Serves `routes` without TLS and without a graceful shutdown, until the future is dropped. For a
/// separate listener of an operator, such as one for metrics. A connection over the 64th is closed.
pub async fn serve_routes(listener: TcpListener, routes: Router, idle_timeout: Duration) {
    let mut http = protocol();
    http.timer(TokioTimer::new()).header_read_timeout(idle_timeout);
    let places = Arc::new(Semaphore::new(MAX_OPERATOR_CONNECTIONS));
    let dropped = CancellationToken::new();
    let _serving = dropped.clone().drop_guard();
    let mut is_failing = false;
    loop {
        let (stream, _) = accept(&listener, &mut is_failing, || {}).await;
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (http, routes, dropped) = (http.clone(), routes.clone(), dropped.clone());
        drop(tokio::spawn(async move {
            let service = service_fn(async |request| routes.clone().call(request).await);
            // Connection errors belong to the peer and are not logged.
            let _ = dropped.run_until_cancelled(http.serve_connection(TokioIo::new(stream), service)).await;
            drop(place);
        }));
    }
}

/// Serves until `shutdown` completes, and then until every connection has ended, at most
/// [`Options::shutdown_timeout`](super::Options::shutdown_timeout).
pub(super) async fn serve(
    app: &App,
    listener: TcpListener,
    handshake: impl Handshake,
    shutdown: impl Future<Output = ()>,
) {
    let connections = TaskTracker::new();
    let ending = CancellationToken::new();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let _serving = Serving { ending: ending.clone(), is_dropped: Arc::clone(&is_dropped) };
    let acceptor = Acceptor {
        app: app.clone(),
        listener,
        handshake,
        connections: connections.clone(),
        http: protocol(),
        idle_timeout: app.options().idle_timeout,
        ending: ending.clone(),
        is_dropped,
    };
    // A task takes turns with those of the connections. The future of `block_on` has a thread of its own, and under a
    // flood of connections the system would give it whole time slices, 4 ms on many kernels.
    let mut accepting = AbortOnDropHandle::new(tokio::spawn(acceptor.run()));
    let ended = tokio::select! {
        biased;
        () = shutdown => {
            accepting.abort();
            // From here on connections are refused by the system.
            accepting.await
        }
        ended = &mut accepting => ended,
    };
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
    app.site().shutdown();
    ending.cancel();
    connections.close();
    connections.wait().await;
}

struct Acceptor<H> {
    app: App,
    listener: TcpListener,
    handshake: H,
    connections: TaskTracker,
    http: http1::Builder,
    idle_timeout: Duration,
    ending: CancellationToken,
    is_dropped: Arc<AtomicBool>,
}

impl<H: Handshake> Acceptor<H> {
    async fn run(self) {
        let Acceptor { app, listener, handshake, connections, http, idle_timeout, ending, is_dropped } = self;
        let budget = app.budget().clone();
        let _idle = AbortOnDropHandle::new(tokio::spawn(async move {
            let mut turns = interval((idle_timeout / 4).clamp(Duration::from_millis(10), Duration::from_secs(1)));
            turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                turns.tick().await;
                budget.close_idle(idle_timeout);
            }
        }));
        let mut is_failing = false;
        for number in 1_usize.. {
            if number.is_multiple_of(ACCEPT_TURN) {
                yield_now().await;
            }
            let (stream, peer) = accept(&listener, &mut is_failing, || app.budget().shed()).await;
            let place = match app.budget().admit(app.counted_address(peer)) {
                Ok(place) => place,
                Err(limit) => {
                    tracing::debug!(%peer, limit, "refused a connection");
                    continue;
                }
            };
            let (app, http, ending) = (app.clone(), http.clone(), ending.clone());
            let connection = Connection { app, peer, place, http, ending, is_dropped: Arc::clone(&is_dropped) };
            connections.spawn(connection.serve(stream, handshake.clone()));
        }
    }
}

struct Connection {
    app: App,
    peer: SocketAddr,
    place: Place,
    http: http1::Builder,
    ending: CancellationToken,
    is_dropped: Arc<AtomicBool>,
}

/// Ends connections when the future that serves is dropped.
struct Serving {
    ending: CancellationToken,
    is_dropped: Arc<AtomicBool>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        self.ending.cancel();
    }
}

impl Connection {
    async fn serve(self, stream: TcpStream, handshake: impl Handshake) {
        let Connection { app, peer, place, http, ending, is_dropped } = self;
        let stream = tokio::select! {
            biased;
            () = place.closing() => return,
            () = ending.cancelled() => return,
            stream = handshake.handshake(stream, peer) => stream,
        };
        let Ok(stream) = stream else { return };
        let stream = TokioIo::new(Progressing::new(stream, app.budget()));
        // Boxed: hyper keeps the space of a future for as long as the connection is open, and this one has 2 kB.
        let service = service_fn(|request| Box::pin(app.call(request, peer, place.connection())));
        let mut connection = http.serve_connection(stream, service);
        tokio::select! {
            biased;
            // Connection errors belong to the peer and are not logged.
            _ = &mut connection => {}
            () = place.closing() => {}
            () = ending.cancelled() => if !is_dropped.load(Ordering::Relaxed) {
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                let deadline = Instant::now() + app.options().shutdown_timeout;
                let _ = timeout_at(deadline, &mut connection).await;
            }
        }
        // The socket is closed last, so that a client that sees the end can open a stream in place of this one.
        drop(connection.into_parts().io);
    }
}

/// Accepts the next connection. When the process or the system has no file descriptor or memory left, `shed` is
/// called, which closes other connections. Each outage is logged once.
async fn accept(listener: &TcpListener, is_failing: &mut bool, shed: impl Fn()) -> (TcpStream, SocketAddr) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match listener.accept().await {
            // A small response in several packets would wait for the acknowledgment of the first one. An
            // error means that the client has disconnected.
            Ok((stream, peer)) if stream.set_nodelay(true).is_ok() => {
                *is_failing = false;
                return (stream, peer);
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) => {}
            Err(error) => {
                if !std::mem::replace(is_failing, true) {
                    tracing::warn!("cannot accept a connection, closing idle ones: {error}");
                }
                shed();
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

fn protocol() -> http1::Builder {
    let mut http = http1::Builder::new();
    // The most headers of a request are the 100 of hyper: setting them makes every request allocate.
    http.header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES);
    http
}

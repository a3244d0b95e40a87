//! Connections, from the listener to their end: handshake, HTTP/1.1 within bounds, graceful shutdown.
//!
//! `axum::serve` is not used because it bounds none of these: the size of a request's head, the time
//! that the head and an idle connection may take, TLS handshakes (which must not delay the next
//! `accept`), and the time from the beginning of a shutdown to its end.
//!
//! HTTP/1.1 only: detecting the version from the first bytes would wait for a silent client.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use axum::{Router, serve::Listener as _};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::app::App;

/// The bytes after which no more of an incomplete head is read. hyper reads in steps, so that a
/// complete one can be up to twice as large. It also bounds the output buffered for a slow reader.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The most headers of a request.
const MAX_HEADERS: usize = 100;

/// The transport below HTTP: plain TCP or TLS.
pub(super) trait Handshake: Clone + Send + Sync + 'static {
    /// The stream that carries HTTP.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Completes when HTTP can begin. Must be bounded in time, however little the client sends.
    fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Plain TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain;

impl Handshake for Plain {
    type Stream = TcpStream;

    async fn handshake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<TcpStream> {
        Ok(stream)
    }
}

/// Serves `routes` without TLS and without a graceful shutdown, until the future is dropped. For a
/// separate listener of an operator, such as one for metrics.
pub async fn serve_routes(mut listener: TcpListener, routes: Router, idle_timeout: Duration) {
    let http = protocol(idle_timeout);
    let service = TowerToHyperService::new(routes);
    loop {
        let (stream, _) = accept(&mut listener).await;
        drop(tokio::spawn(http.serve_connection(TokioIo::new(stream), service.clone())));
    }
}

/// Serves until `shutdown` completes, and then until every connection has ended, at most
/// [`Options::shutdown_timeout`](super::Options::shutdown_timeout).
pub(super) async fn serve(
    app: &App,
    mut listener: TcpListener,
    handshake: impl Handshake,
    shutdown: impl Future<Output = ()>,
) {
    let http = protocol(app.options().idle_timeout);
    let connections = TaskTracker::new();
    let ending = CancellationToken::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            accepted = accept(&mut listener) => accepted,
        };
        let connection = Connection { app: app.clone(), peer, http: http.clone(), ending: ending.clone() };
        connections.spawn(connection.serve(stream, handshake.clone()));
    }
    // From here on connections are refused by the system.
    drop(listener);
    app.library().server().shutdown();
    ending.cancel();
    connections.close();
    connections.wait().await;
}

struct Connection {
    app: App,
    peer: SocketAddr,
    http: http1::Builder,
    ending: CancellationToken,
}

impl Connection {
    async fn serve(self, stream: TcpStream, handshake: impl Handshake) {
        let Connection { app, peer, http, ending } = self;
        let Some(Ok(stream)) = ending.run_until_cancelled(handshake.handshake(stream, peer)).await else { return };
        let service = service_fn(|request| app.call(request, peer));
        let mut connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            biased;
            // Connection errors belong to the peer and are not logged.
            _ = &mut connection => {}
            () = ending.cancelled() => {
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                let deadline = Instant::now() + app.options().shutdown_timeout;
                drop(timeout_at(deadline, &mut connection).await);
            }
        }
        // The socket is closed last, so that a client that sees the end can open a stream in place of this one.
        drop(connection.into_parts().io);
    }
}

/// Accepts the next connection. When the process has no file descriptor left, `Listener::accept`
/// waits until connections have ended.
async fn accept(listener: &mut TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        let (stream, peer) = listener.accept().await;
        // A small response in several packets would wait for the acknowledgment of the first one. An
        // error means that the client has disconnected.
        if stream.set_nodelay(true).is_ok() {
            return (stream, peer);
        }
    }
}

fn protocol(idle_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(idle_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS);
    http
}

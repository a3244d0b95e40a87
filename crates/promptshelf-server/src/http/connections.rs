//! Connections, from the listener to their end: what a client says first, HTTP/1.1
//! within bounds, and a shutdown that lets answers be finished.
//!
//! hyper speaks HTTP/1.1; which version a client means is not guessed from its
//! first bytes, because those would be waited for as long as it likes.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use axum::{Router, serve::Listener as _};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use promptshelf_core::BoxFuture;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{App, detached::Streams};

/// No more is read of a request's head that is still not whole at this many
/// bytes. It is read in steps, so a whole one can be up to twice as large.
const HEAD_BYTES: usize = 64 << 10;

/// The most headers of a request.
const HEADERS: usize = 100;

/// What comes before HTTP on a connection.
pub(super) trait Handshake: Clone + Send + Sync + 'static {
    /// What HTTP is spoken on.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Ready when HTTP can begin. It ends by itself, however little the client says.
    fn shake(&self, stream: TcpStream, peer: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Nothing comes before HTTP.
#[derive(Clone, Copy, Debug)]
struct Plain;

impl Handshake for Plain {
    type Stream = TcpStream;

    async fn shake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<TcpStream> {
        Ok(stream)
    }
}

/// A listener whose connections are answered, until it is told to end.
pub(super) struct Serving {
    app: App,
    ending: CancellationToken,
    running: BoxFuture<'static, ()>,
}

// These two are neither generic nor `async`: such functions are compiled in the crate that calls
// them, and with them all that a connection is made of, as that crate is to be optimised.

pub(super) fn plainly(app: &App, listener: TcpListener) -> Serving {
    Serving::new(app, listener, Plain)
}

#[cfg(feature = "tls")]
pub(super) fn over_tls(app: &App, listener: TcpListener, tls: &super::tls::Tls) -> Serving {
    Serving::new(app, listener, tls.handshakes())
}

/// Serves routes of one's own in the same way, until the future is dropped.
pub fn serve_routes(mut listener: TcpListener, routes: Router, idle_timeout: Duration) -> BoxFuture<'static, ()> {
    let http = protocol(idle_timeout);
    let service = TowerToHyperService::new(routes);
    Box::pin(async move {
        loop {
            let (stream, _) = accept(&mut listener).await;
            drop(tokio::spawn(http.serve_connection(TokioIo::new(stream), service.clone())));
        }
    })
}

impl Serving {
    fn new(app: &App, listener: TcpListener, handshake: impl Handshake) -> Serving {
        let ending = CancellationToken::new();
        let running = Box::pin(run(app.clone(), listener, handshake, ending.clone()));
        Serving { app: app.clone(), ending, running }
    }

    /// Serves until `shutdown` is ready, and then until everything has ended.
    pub(super) async fn until(mut self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = &mut self.running => return,
            () = shutdown => {}
        }
        self.app.library().server().shutdown();
        self.ending.cancel();
        self.running.await;
    }
}

async fn run(app: App, mut listener: TcpListener, handshake: impl Handshake, ending: CancellationToken) {
    let http = protocol(app.options().idle_timeout);
    let streams = Streams::default();
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = ending.cancelled() => break,
            accepted = accept(&mut listener) => accepted,
        };
        let (http, handshake, ending) = (http.clone(), handshake.clone(), ending.clone());
        let (app, streams) = (app.clone(), streams.clone());
        streams.clone().track(async move {
            let shaken = ending.run_until_cancelled(handshake.shake(stream, peer)).await;
            let Some(Ok(stream)) = shaken else { return };
            let (socket, connection) = app.connection(stream, peer, &streams);
            let mut serving = std::pin::pin!(http.serve_connection(TokioIo::new(socket), connection));
            tokio::select! {
                biased;
                // Whoever left in the middle of something knows.
                _ = serving.as_mut() => return,
                () = ending.cancelled() => {}
            }
            serving.as_mut().graceful_shutdown();
            drop(timeout_at(deadline(&app), serving).await);
        });
    }
    // Who comes now is refused at once.
    drop(listener);
    streams.end(deadline(&app)).await;
}

/// The next connection. When there are no more files for one, some may be closed in a while.
async fn accept(listener: &mut TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        let (stream, peer) = listener.accept().await;
        // A small answer in several packets would wait for what acknowledges the first one. Where that
        // cannot be said, the client has gone.
        if stream.set_nodelay(true).is_ok() {
            return (stream, peer);
        }
    }
}

fn protocol(idle_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle_timeout).max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    http
}

/// Until when what is open may end by itself.
fn deadline(app: &App) -> Instant {
    Instant::now() + app.options().shutdown_timeout
}

//! The HTTP application: every route on one screen, and the loop that serves it.
//!
//! What a request to `/mcp` means is not here but in `promptshelf_mcp`.

mod app;
#[cfg(feature = "sign-in")]
pub mod auth;
mod callers;
mod detached;
mod layers;
pub mod proxy;
#[cfg(feature = "tls")]
pub mod tls;

use std::{future::Future, io, net::SocketAddr, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use axum_server::{
    Handle,
    accept::{Accept, NoDelayAcceptor},
};
use hyper_util::rt::TokioTimer;
use promptshelf_core::BoxFuture;
use promptshelf_mcp::{HttpOptions, HttpService, Server};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tower_layer::Layer;

pub use self::app::App;
use self::{
    app::{Connection, Connections},
    callers::TellApart,
    detached::{Detaching, Streams},
};
use crate::Library;
#[cfg(feature = "web")]
use crate::web;

/// No more is read of a request's head that is still not whole at this many
/// bytes. It is read in steps, so a whole one can be up to twice as large.
const HEAD_BYTES: usize = 64 << 10;

/// The most headers of a request.
const HEADERS: usize = 100;

/// How a server is served over HTTP.
#[derive(Clone, Debug)]
pub struct Options {
    /// The MCP endpoint's own bounds and checks.
    pub mcp: HttpOptions,
    /// How callers sign in. Without it they are anonymous.
    #[cfg(feature = "sign-in")]
    pub sign_in: Option<auth::SignIn>,
    /// The proxies whose word is taken for where a request comes from.
    pub proxies: proxy::Proxies,
    /// How long a request may take until its answer begins. Streams may last longer.
    pub request_timeout: Duration,
    /// How long a connection may be idle, and how long the head of a request may take.
    pub idle_timeout: Duration,
    /// How long open connections may take to end at a shutdown.
    pub shutdown_timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mcp: HttpOptions::default(),
            #[cfg(feature = "sign-in")]
            sign_in: None,
            proxies: proxy::Proxies::default(),
            request_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            shutdown_timeout: Duration::from_secs(5),
        }
    }
}

/// Every route.
pub fn router(library: &Library, options: &Options) -> Router {
    routes(library, library.server().http(options.mcp.clone()), options)
}

/// Every route, with the endpoint.
fn routes(library: &Library, endpoint: HttpService, options: &Options) -> Router {
    let server = library.server().clone();
    let layers = layers::layers(options);
    let callers = TellApart::new(&server, options);
    // `/library/…`
    #[cfg(feature = "web")]
    let beside = web::beside(library, &endpoint).route_layer(callers.clone());
    let routes = Router::new()
        .route("/healthz", get(healthy))
        .route("/readyz", get(move || std::future::ready(readiness(&server))))
        .fallback(layers::nothing_here);
    // `/`, `/assets/…` and `/sign-in` are for everybody: they hold nothing of the library.
    #[cfg(feature = "web")]
    let routes = routes.merge(web::page(&endpoint, page_sign_in(options))).merge(beside);
    #[cfg(feature = "sign-in")]
    let routes = match &options.sign_in {
        Some(sign_in) => routes.merge(callers::metadata(sign_in)),
        None => routes,
    };
    let routes = routes.layer(layers.clone());
    // The layers are put around the endpoint itself: one box for a request, and not one for each.
    let routes = routes.route_service("/mcp", (layers, callers).layer(endpoint));
    proxy::around(layers::logged(routes), &options.proxies)
}

/// How people sign in on the page.
#[cfg(feature = "web")]
fn page_sign_in(options: &Options) -> web::PageSignIn {
    #[cfg(feature = "sign-in")]
    if let Some(sign_in) = &options.sign_in {
        return sign_in.on_page();
    }
    let _ = options;
    web::PageSignIn::default()
}

/// The answer to whether the program is alive, and that is that it answers.
pub async fn healthy() -> &'static str {
    "ok\n"
}

/// The answer to whether a server wants requests: from its first catalog to its
/// shutdown.
#[must_use]
pub fn readiness(server: &Server) -> (StatusCode, &'static str) {
    match server.is_shut_down() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "the server is ending\n"),
        false => (StatusCode::OK, "ready\n"),
    }
}

/// Serves until `shutdown` is ready; then streams end as the protocol asks for,
/// requests that are being answered are answered, and what is still open after
/// [`Options::shutdown_timeout`] is closed.
///
/// # Errors
///
/// When the listener cannot be used.
pub async fn serve(
    listener: TcpListener,
    library: &Library,
    options: &Options,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    App::new(library, options).serve(listener, shutdown).await
}

impl App {
    /// Serves as [`serve`] does.
    ///
    /// # Errors
    ///
    /// When the listener cannot be used.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        self.plainly(listener).until(shutdown).await
    }

    /// Serves over TLS.
    ///
    /// # Errors
    ///
    /// When the listener cannot be used.
    #[cfg(feature = "tls")]
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        tls: &tls::Tls,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.over_tls(listener, tls).until(shutdown).await
    }

    // These two are neither generic nor `async`: such functions are compiled in the crate that calls
    // them, and with them all that a connection is made of, as that crate is to be optimised.
    fn plainly(&self, listener: TcpListener) -> Serving {
        self.over(listener, NoDelayAcceptor)
    }

    #[cfg(feature = "tls")]
    fn over_tls(&self, listener: TcpListener, tls: &tls::Tls) -> Serving {
        self.over(listener, tls.acceptor())
    }

    fn over<A>(&self, listener: TcpListener, acceptor: A) -> Serving
    where
        A: Accept<TcpStream, Connection, Service = Connection> + Clone + Send + Sync + 'static,
        A::Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        A::Future: Send + 'static,
    {
        let streams = Streams::default();
        let handle = Handle::<SocketAddr>::new();
        // Which version a client speaks would be guessed from its first bytes, and those
        // would be waited for as long as it likes.
        let mut http = axum_server::Server::<SocketAddr>::from_listener(listener)
            .acceptor(Detaching { acceptor, streams: streams.clone() })
            .handle(handle.clone())
            .http1_only();
        http.http_builder()
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options().idle_timeout)
            .max_buf_size(HEAD_BYTES)
            .max_headers(HEADERS);
        let accepting = Box::pin(http.serve(Connections(self.clone())));
        Serving { app: self.clone(), accepting, handle, streams }
    }
}

/// A listener whose connections are answered.
struct Serving {
    app: App,
    accepting: BoxFuture<'static, io::Result<()>>,
    handle: Handle<SocketAddr>,
    streams: Streams,
}

impl Serving {
    async fn until(mut self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        tokio::pin!(shutdown);
        tokio::select! {
            ended = &mut self.accepting => return ended,
            () = &mut shutdown => {}
        }
        self.app.library().server().shutdown();
        let limit = self.app.options().shutdown_timeout;
        let deadline = Instant::now() + limit;
        self.handle.graceful_shutdown(Some(limit));
        let ended = self.accepting.await;
        self.streams.end(deadline).await;
        ended
    }
}

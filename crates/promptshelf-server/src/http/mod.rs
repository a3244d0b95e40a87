//! The HTTP application: routes, connections, authentication, proxies and TLS.
//!
//! Messages sent to `/mcp` are parsed and answered by `promptshelf_mcp`.

mod app;
mod around;
#[cfg(feature = "sign-in")]
pub mod auth;
mod authenticate;
#[cfg(feature = "channels")]
mod basic;
mod budget;
mod busy;
mod connections;
mod discovery;
mod open_files;
mod options;
pub mod proxy;
mod routes;
mod site;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "git")]
mod webhooks;

use std::{future::Future, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use tokio::net::TcpListener;

#[cfg(feature = "channels")]
pub(crate) use self::site::Gate;
#[cfg(feature = "git")]
pub use self::webhooks::{Webhook, Webhooks};
pub use self::{
    app::App,
    budget::{ConnectionLimits, Usage},
    connections::serve_routes,
    discovery::Discovery,
    open_files::{is_out_of_files, raise_open_files},
    options::Options,
    routes::healthy,
    site::Channel,
};
use crate::library::Library;

/// Builds a router with every route, to be merged into an application of its own, which then has no fallback of its
/// own: this one has the routes `/mcp`, `/healthz`, `/readyz` and, with the page, `/` and `/assets`. The page does not
/// work below another path; use a host name of its own for it.
///
/// Changes of folders are followed while the task of `library.loader().spawn()` is kept. A
/// [`Caller`](promptshelf_service::Caller) among the extensions of a request authenticates it, unless [`Options`] have
/// sign-in.
///
/// Limits by address need `ConnectInfo<SocketAddr>` among the extensions of a request, as
/// `Router::into_make_service_with_connect_info` puts it there. [`Options::limits`] belong to connections, and apply to
/// [`serve`] and [`App`] only.
///
/// ```
/// use promptshelf_server::{Library, http};
///
/// # fn main() -> Result<(), promptshelf_server::OpenError> {
/// let library = Library::builder().build()?;
/// let router: axum::Router = http::router(&library, &http::Options::default());
/// # Ok(())
/// # }
/// ```
pub fn router(library: &Library, options: &Options) -> Router {
    with_surroundings(&site::Site::new(library, &options.mcp), options)
}

/// Builds a router like [`router`] for channels of one store, as [`App::with_channels`] serves them.
pub fn router_with_channels(default: &Channel, others: &[Channel], options: &Options) -> Router {
    with_surroundings(&site::Site::with_channels(default, others, &options.mcp), options)
}

fn with_surroundings(site: &site::Site, options: &Options) -> Router {
    type Surroundings = Arc<(Options, Library)>;
    async fn pass(State(shared): State<Surroundings>, request: Request, next: Next) -> Response {
        let (options, library) = &*shared;
        around::around(options, library.server().request_number(), request, |request| next.run(request)).await
    }
    let shared: Surroundings = Arc::new((options.clone(), site.library.clone()));
    routes::routes(site, options).layer(middleware::from_fn_with_state(shared, pass))
}

/// Serves `library`, and follows changes of its folders, until `shutdown` completes, or the future is dropped, which
/// closes all connections. After `shutdown` the listener closes, streams end as the protocol asks for, requests in
/// progress are answered, and connections that are still open after [`Options::shutdown_timeout`] are closed.
pub async fn serve(listener: TcpListener, library: &Library, options: &Options, shutdown: impl Future<Output = ()>) {
    let _follower = library.loader().spawn();
    App::new(library, options).serve(listener, shutdown).await;
}

impl Library {
    /// Serves `/mcp` and the page on `listener` with default options, until the future is dropped.
    ///
    /// Requests whose `Host` is not this machine (`localhost`, `127.0.0.1`, `[::1]`) are refused, as a
    /// local server should; [`serve`] takes options and a shutdown signal.
    ///
    /// ```no_run
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let library = promptshelf_server::Library::builder().folder("prompts").build()?;
    /// library.serve_http(tokio::net::TcpListener::bind("127.0.0.1:8000").await?).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_http(self, listener: TcpListener) {
        serve(listener, &self, &Options::default(), std::future::pending()).await;
    }
}

impl App {
    /// Serves over plain TCP; the shutdown is that of [`serve`].
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        connections::serve(self, listener, connections::Plain, shutdown).await;
    }

    /// Serves over TLS; the shutdown is that of [`serve`].
    #[cfg(feature = "tls")]
    pub async fn serve_tls(&self, listener: TcpListener, tls: &tls::Tls, shutdown: impl Future<Output = ()>) {
        connections::serve(self, listener, tls.handshakes(), shutdown).await;
    }
}

//! The HTTP application: every route on one screen.
//!
//! What a request to `/mcp` means is not here but in `promptshelf_mcp`.

mod app;
#[cfg(feature = "sign-in")]
pub mod auth;
mod callers;
mod connections;
mod detached;
mod layers;
pub mod proxy;
#[cfg(feature = "tls")]
pub mod tls;

use std::{future::Future, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use promptshelf_mcp::{HttpOptions, HttpService, Server};
use tokio::net::TcpListener;
use tower_layer::Layer;

pub use self::{app::App, connections::serve_routes};
use self::{callers::AuthLayer, layers::Layers};
use crate::Library;
#[cfg(feature = "web")]
use crate::web;

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
    routes(library, library.server().http(options.mcp.clone()), options).router
}

/// Where the endpoint is.
const ENDPOINT: &str = "/mcp";

struct Routes {
    router: Router,
    /// Most requests are for the endpoint, and need not be looked up and boxed on their way there;
    /// `None` when something stands around the router.
    endpoint: Option<Endpoint>,
}

/// The endpoint, with what stands around every route.
type Endpoint = <(Layers, AuthLayer) as Layer<HttpService>>::Service;

/// Every route, with the endpoint.
fn routes(library: &Library, endpoint: HttpService, options: &Options) -> Routes {
    let server = library.server().clone();
    let layers = layers::layers(options);
    let callers = AuthLayer::new(&server, options);
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
    let endpoint = (layers, callers).layer(endpoint);
    let routes = routes.route_service(ENDPOINT, endpoint.clone());
    let is_bare = !layers::is_logged() && !options.proxies.is_any();
    Routes { router: proxy::around(layers::logged(routes), &options.proxies), endpoint: is_bare.then_some(endpoint) }
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
pub async fn serve(listener: TcpListener, library: &Library, options: &Options, shutdown: impl Future<Output = ()>) {
    App::new(library, options).serve(listener, shutdown).await;
}

impl App {
    /// Serves as [`serve`] does.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        connections::plainly(self, listener).until(shutdown).await;
    }

    /// Serves over TLS.
    #[cfg(feature = "tls")]
    pub async fn serve_tls(&self, listener: TcpListener, tls: &tls::Tls, shutdown: impl Future<Output = ()>) {
        connections::over_tls(self, listener, tls).until(shutdown).await;
    }
}

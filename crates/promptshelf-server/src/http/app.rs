//! The HTTP application, replaceable while it runs: settings change without closing a connection.

use std::{convert::Infallible, fmt, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use axum::{
    Router,
    extract::{ConnectInfo, Request},
    routing::future::RouteFuture,
};
use hyper::body::Incoming;
use promptshelf_mcp::HttpService;
use tower_service::Service as _;

use super::{options::Options, routes::routes};
use crate::library::Library;

/// The HTTP application. Clones share their options.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    library: Library,
    endpoint: HttpService,
    current: ArcSwap<Current>,
}

struct Current {
    router: Router,
    options: Options,
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("options", &self.options).finish_non_exhaustive()
    }
}

impl App {
    /// Creates an application that serves `library`.
    #[must_use]
    pub fn new(library: &Library, options: &Options) -> App {
        let endpoint = library.server().http(options.mcp.clone());
        let router = routes(library, endpoint.clone(), options);
        let current = ArcSwap::from_pointee(Current { router, options: options.clone() });
        App(Arc::new(Inner { library: library.clone(), endpoint, current }))
    }

    /// Applies other options to every later request. Requests and streams that have begun are not
    /// affected, and [`Options::idle_timeout`] only applies to servers that start later.
    pub fn replace(&self, options: &Options) {
        let endpoint = self.0.endpoint.with_options(&options.mcp);
        let router = routes(&self.0.library, endpoint, options);
        self.0.current.store(Arc::new(Current { router, options: options.clone() }));
    }

    /// Returns the options in use.
    #[must_use]
    pub fn options(&self) -> Options {
        self.0.current.load().options.clone()
    }

    pub(super) fn library(&self) -> &Library {
        &self.0.library
    }

    /// Answers one request of the peer at `peer`.
    pub(super) fn call(&self, mut request: Request<Incoming>, peer: SocketAddr) -> RouteFuture<Infallible> {
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router is always ready.
        self.0.current.load().router.clone().call(request)
    }
}

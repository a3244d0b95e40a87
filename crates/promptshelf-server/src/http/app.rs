//! What answers requests, replaceable while it does: settings can change
//! without a connection ending.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arc_swap::ArcSwap;
use axum::{
    body::Body,
    extract::ConnectInfo,
    http::{Request, Version},
    response::Response,
    routing::future::RouteFuture,
};
use hyper::{body::Incoming, service::Service};
use pin_project_lite::pin_project;
use promptshelf_mcp::HttpService;
use tower_service::Service as _;

use super::{
    ENDPOINT, Endpoint, Options, Routes,
    detached::{Handover, Socket, Streams},
    routes,
};
use crate::Library;

/// What answers requests. Clones are the same application.
#[derive(Clone, Debug)]
pub struct App {
    library: Library,
    endpoint: HttpService,
    current: Arc<ArcSwap<Current>>,
}

struct Current {
    routes: Routes,
    options: Options,
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("options", &self.options).finish_non_exhaustive()
    }
}

impl App {
    /// An application that serves a library.
    #[must_use]
    pub fn new(library: &Library, options: &Options) -> App {
        let endpoint = library.server().http(options.mcp.clone());
        let routes = routes(library, endpoint.clone(), options);
        let current = Arc::new(ArcSwap::from_pointee(Current { routes, options: options.clone() }));
        App { library: library.clone(), endpoint, current }
    }

    /// Takes other options for every request from now on. Requests and streams
    /// that have begun go on as they did. How long connections may be idle is
    /// settled when serving begins.
    pub fn replace(&self, options: &Options) {
        let endpoint = self.endpoint.with_options(&options.mcp);
        let routes = routes(&self.library, endpoint, options);
        self.current.store(Arc::new(Current { routes, options: options.clone() }));
    }

    /// The options as they are now.
    #[must_use]
    pub fn options(&self) -> Options {
        self.current.load().options.clone()
    }

    /// What it serves.
    pub(super) fn library(&self) -> &Library {
        &self.library
    }

    /// What HTTP is spoken on with `peer`, and what answers there.
    pub(super) fn connection<S>(&self, stream: S, peer: SocketAddr, streams: &Streams) -> (Socket<S>, Connection) {
        let handover = Handover::default();
        let connection = Connection { app: self.clone(), peer, handover: handover.clone() };
        (Socket::new(stream, handover, streams.clone()), connection)
    }
}

/// One connection's way to the application.
#[derive(Debug)]
pub(super) struct Connection {
    app: App,
    peer: SocketAddr,
    handover: Handover,
}

impl Service<Request<Incoming>> for Connection {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let (handover, version) = (self.handover.clone(), request.version());
        let current = self.app.current.load();
        // Both are always ready.
        let way = match &current.routes.endpoint {
            Some(endpoint) if request.uri().path() == ENDPOINT => Way::Direct { way: endpoint.clone().call(request) },
            _ => Way::Routed { way: current.routes.router.clone().call(request) },
        };
        Answering { way, handover, version }
    }
}

pin_project! {
    /// An answer on its way.
    pub(super) struct Answering {
        #[pin]
        way: Way,
        // The way that it goes if it is a stream.
        handover: Handover,
        version: Version,
    }
}

pin_project! {
    #[project = OnTheWay]
    enum Way {
        Direct { #[pin] way: <Endpoint as tower_service::Service<Request<Incoming>>>::Future },
        Routed { #[pin] way: RouteFuture<Infallible> },
    }
}

impl Future for Answering {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match this.way.project() {
            OnTheWay::Direct { way } => way.poll(context).map_ok(|response| response.map(Body::new)),
            OnTheWay::Routed { way } => way.poll(context),
        };
        answer.map_ok(|response| this.handover.detach(response, *this.version))
    }
}

//! What answers requests, replaceable while it does: settings can change
//! without a connection ending.

use std::{
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arc_swap::ArcSwap;
use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
    http::Version,
    response::Response,
    routing::future::RouteFuture,
};
use hyper::{body::Incoming, service::Service};
use promptshelf_mcp::HttpService;
use tower_service::Service as _;

use super::{
    Options,
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

#[derive(Debug)]
struct Current {
    router: Router,
    options: Options,
}

impl App {
    /// An application that serves a library.
    #[must_use]
    pub fn new(library: &Library, options: &Options) -> App {
        let endpoint = library.server().http(options.mcp.clone());
        let router = routes(library, endpoint.clone(), options);
        let current = Arc::new(ArcSwap::from_pointee(Current { router, options: options.clone() }));
        App { library: library.clone(), endpoint, current }
    }

    /// Takes other options for every request from now on. Requests and streams
    /// that have begun go on as they did. How long connections may be idle is
    /// settled when serving begins.
    pub fn replace(&self, options: &Options) {
        let endpoint = self.endpoint.with_options(&options.mcp);
        let router = routes(&self.library, endpoint, options);
        self.current.store(Arc::new(Current { router, options: options.clone() }));
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

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let (handover, version) = (self.handover.clone(), request.version());
        let mut router = self.app.current.load().router.clone();
        Answering { route: router.call(request), handover, version }
    }
}

/// An answer on its way.
pub(super) struct Answering {
    route: RouteFuture<Infallible>,
    /// The way that it goes if it is a stream.
    handover: Handover,
    version: Version,
}

impl Future for Answering {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.route).poll(context);
        answer.map_ok(|response| self.handover.detach(response, self.version))
    }
}

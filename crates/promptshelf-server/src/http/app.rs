//! The HTTP application, replaceable while it runs: settings change without closing a connection.

use std::{
    convert::Infallible,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use arc_swap::ArcSwap;
use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
    http::StatusCode,
    response::Response,
};
use hyper::body::Incoming;
use tower::Service as _;

use super::{
    around::around,
    budget::{Budget, Connection, Exchange, RequestBody, ResponseBody, Usage},
    options::Options,
    routes::{Needed, readiness, routes},
    site::{Channel, Site},
};
use crate::library::Library;

/// The HTTP application. Clones share their options.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    site: Site,
    budget: Budget,
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
    /// Creates an application that serves `library`. Changes of folders are followed while the task of
    /// `library.loader().spawn()` is kept.
    #[must_use]
    pub fn new(library: &Library, options: &Options) -> App {
        App::of(Site::new(library, &options.mcp), options)
    }

    /// Creates an application that serves channels of one store: the first one at `/mcp`, and each at
    /// `/channels/NAME/mcp`. [`Options::channel_access`] can restrict each of them.
    #[must_use]
    pub fn with_channels(default: &Channel, others: &[Channel], options: &Options) -> App {
        App::of(Site::with_channels(default, others, &options.mcp), options)
    }

    fn of(site: Site, options: &Options) -> App {
        let router = routes(&site, options);
        let current = ArcSwap::from_pointee(Current { router, options: options.clone() });
        let budget = Budget::new(&options.limits);
        App(Arc::new(Inner { site, budget, current }))
    }

    /// Applies other options to every later request. Requests and streams that have begun are not
    /// affected; streams of tokens that no longer hold end if the sign-in is made by `SignIn::replaced_by`.
    /// [`Options::idle_timeout`] only applies to servers that start later.
    pub fn replace(&self, options: &Options) {
        let router = routes(&self.0.site.with_options(&options.mcp), options);
        self.0.budget.set(&options.limits);
        self.0.current.store(Arc::new(Current { router, options: options.clone() }));
    }

    /// Returns the options in use.
    #[must_use]
    pub fn options(&self) -> Options {
        self.0.current.load().options.clone()
    }

    /// Returns the sign-in in use.
    #[cfg(feature = "sign-in")]
    #[must_use]
    pub fn sign_in(&self) -> Option<super::auth::SignIn> {
        self.0.current.load().options.sign_in.clone()
    }

    /// Returns whether requests are accepted, as a response to a readiness probe for operators: that of `/readyz`, with all
    /// channels, and the reason why callers cannot sign in.
    #[must_use]
    pub fn readiness(&self) -> (StatusCode, String) {
        let needed = Needed::of(&self.0.current.load().options);
        let (status, mut body) =
            readiness(self.0.site.library.server(), &self.0.site.monitors(), needed.missing(), needed.is_full());
        needed.warnings().for_each(|(source, warning)| body.push_str(&format!("source {source}: {warning}\n")));
        (status, body)
    }

    /// Returns the open connections, and the refusals by [`Options::limits`].
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.budget.usage()
    }

    /// Closes idle connections, because the process or the system has no file descriptor left.
    pub fn shed_connections(&self) {
        self.0.budget.shed();
    }

    /// Closes all connections and refuses new ones until it is called with `false`: for a server that cannot read
    /// whose tokens are still valid.
    pub fn set_suspended(&self, is_suspended: bool) {
        self.0.budget.suspend(is_suspended);
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Returns the address that a connection counts for; `None` for a trusted proxy.
    pub(super) fn counted_address(&self, peer: SocketAddr) -> Option<IpAddr> {
        Some(peer.ip()).filter(|address| !self.0.current.load().options.proxies.trusts(*address))
    }

    pub(super) fn site(&self) -> &Site {
        &self.0.site
    }

    /// Answers one request of the peer at `peer`.
    pub(super) async fn call(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
        connection: &Arc<Connection>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        let exchange = Exchange::new(&self.0.budget, connection);
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Arc::clone(&exchange));
        let request = request.map(|body| Body::new(RequestBody::new(body, &exchange)));
        let Current { router, options } = &*self.0.current.load_full();
        let number = self.0.site.library.server().request_number();
        let response = around(options, number, request, async |request| {
            // A router is always ready, and never fails.
            match router.clone().call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        });
        Ok(exchange.respond(response.await))
    }
}

//! The endpoint of Streamable HTTP, as a tower service.
//!
//! [`Server::http`] makes a [`HttpService`] that any tower-based HTTP server can
//! mount at a path. `ladder` decides what a request gets, one rung after the
//! other; `gate` holds the first rung, which hosts and origins are served at all.
//!
//! There are no sessions, in either era: a `Mcp-Session-Id` is never given out
//! and never looked at. An id would grant nothing here, so a client that brings
//! one from another server or replica is simply served.
//!
//! What is deliberately not here: sockets, TLS, paths, timeouts, and who a
//! caller is. Whoever has found that out puts a [`Caller`] into the request's
//! extensions, or a [`Denial`]; without either the caller is anonymous.
//!
//! [`Caller`]: promptshelf_service::Caller

mod body;
mod events;
mod gate;
mod header;
mod ladder;
mod reply;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, request::Parts};
use http_body::Body;
use tokio::sync::Semaphore;

pub use body::HttpBody;
pub use reply::{Denial, RequiredScopes};

use crate::{Server, http::gate::Gate};

/// Bounds and quirks of the endpoint.
///
/// ```
/// use promptshelf_mcp::HttpOptions;
///
/// let options = HttpOptions {
///     allowed_hosts: vec!["prompts.example.com".to_owned()],
///     ..HttpOptions::default()
/// };
/// assert_eq!(options.max_body_bytes, 4 * 1024 * 1024);
/// ```
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The host names that the server answers to, with a port where only that
    /// one is meant. Empty, as by default: `localhost`, `127.0.0.1` and `[::1]`
    /// on any port. A name that is not here is refused, because a web page could
    /// make its own name point at this machine.
    pub allowed_hosts: Vec<String>,
    /// The origins of web pages that may use the server, such as
    /// `https://app.example.com`, besides `http` and `https` pages on an allowed
    /// host. The origin `null` is refused unless it is here.
    pub allowed_origins: Vec<String>,
    /// The largest message that is read, in bytes. 4 MiB by default.
    pub max_body_bytes: usize,
    /// How long a stream may be quiet before a comment line shows that it is
    /// still there. 15 seconds by default; between one second and one day.
    pub keep_alive: Duration,
    /// The most streams that are open at once. 20 000 by default.
    pub max_streams: usize,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 * 1024 * 1024,
            keep_alive: Duration::from_secs(15),
            max_streams: 20_000,
        }
    }
}

/// The endpoint. Cheap to clone; clones are the same endpoint and share its
/// bounds.
#[derive(Clone, Debug)]
pub struct HttpService {
    endpoint: Arc<Endpoint>,
}

#[derive(Debug)]
struct Endpoint {
    server: Server,
    gate: Gate,
    max_body_bytes: usize,
    keep_alive: Duration,
    /// One permit a stream.
    streams: Arc<Semaphore>,
}

impl Server {
    /// The server's endpoint for Streamable HTTP.
    #[must_use]
    pub fn http(&self, options: HttpOptions) -> HttpService {
        HttpService { endpoint: Arc::new(self.endpoint(&options)) }
    }

    fn endpoint(&self, options: &HttpOptions) -> Endpoint {
        Endpoint {
            server: self.clone(),
            gate: Gate::new(options),
            max_body_bytes: options.max_body_bytes,
            keep_alive: options.keep_alive.clamp(Duration::from_secs(1), Duration::from_hours(24)),
            streams: Arc::new(Semaphore::new(options.max_streams.min(Semaphore::MAX_PERMITS))),
        }
    }
}

impl HttpService {
    /// The same endpoint with other options. Streams that are open stay, and
    /// count as open; only how many there can be stays as it was.
    #[must_use]
    pub fn with_options(&self, options: &HttpOptions) -> HttpService {
        let before = &self.endpoint;
        let endpoint = Endpoint { streams: Arc::clone(&before.streams), ..before.server.endpoint(options) };
        HttpService { endpoint: Arc::new(endpoint) }
    }

    /// Whether a request for something else on the same server, such as a page,
    /// comes to a host and from an origin that the endpoint serves.
    ///
    /// # Errors
    ///
    /// Why not, as a sentence that whoever asks may read. The answer is a 403.
    pub fn admit(&self, head: &Parts) -> Result<(), &'static str> {
        self.endpoint.gate.admit(head).map(|_| ())
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<HttpBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = Arc::clone(&self.endpoint);
        Box::pin(async move { Ok(endpoint.respond(request).await) })
    }
}

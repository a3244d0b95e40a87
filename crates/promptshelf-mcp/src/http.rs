//! The endpoint for Streamable HTTP, as a tower service.
//!
//! [`Server::http`] returns a [`HttpService`] that any tower-based HTTP server can mount at a path. `handler`
//! validates and handles a request, `host_check` checks its `Host` and `Origin`, and `header` its protocol headers.
//!
//! Both eras are served without sessions. Legacy clients receive an `Mcp-Session-Id` that has no state and grants
//! nothing (`session`); a client that sends one from another server or replica is served like any other.
//!
//! Elsewhere: sockets, TLS, paths, timeouts and authentication (`promptshelf-server`). Authentication adds a
//! [`Caller`] or a [`Denial`] to the request's extensions; without either the caller is anonymous.
//!
//! [`Caller`]: promptshelf_service::Caller

mod body;
mod handler;
mod header;
mod host_check;
mod reply;
mod session;

use std::{
    convert::Infallible,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Parts};
use http_body::Body;
use promptshelf_service::Few;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::ReusableBoxFuture;

use self::{host_check::HostCheck, session::EndedSessions};
use crate::{Server, jsonrpc::Fault, profile::Profile, subscription::Subscription};

pub use body::HttpBody;
pub use reply::{Denial, ForeignRequest, RequiredScopes};

/// Bounds, allowed hosts and allowed origins of the endpoint.
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
    /// The host names that the server answers to, with a port to allow only that one. Empty by default, which means
    /// `localhost`, `127.0.0.1` and `[::1]` on any port. Other names are refused, because a web page could point its
    /// own host name at this machine (DNS rebinding).
    pub allowed_hosts: Vec<String>,
    /// The origins of web pages that may use the server, such as `https://app.example.com`, in addition to `http` and
    /// `https` pages on an allowed host. The origin `null` is refused unless it is listed.
    pub allowed_origins: Vec<String>,
    /// Maximum size of a message, in bytes. 4 MiB by default.
    pub max_body_bytes: usize,
    /// The time until an answer must begin, 60 seconds by default; later it is an error with status 504. Streams may last
    /// longer.
    pub request_timeout: Duration,
    /// Interval of comment lines on an idle stream. 15 seconds by default; between one second and one day.
    pub keep_alive: Duration,
    /// Maximum number of open streams. 20,000 by default.
    pub max_streams: usize,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 * 1024 * 1024,
            request_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            max_streams: 20_000,
        }
    }
}

/// The endpoint. Cheap to clone; clones share its bounds.
#[derive(Clone, Debug)]
pub struct HttpService {
    endpoint: Arc<Endpoint>,
}

#[derive(Debug)]
struct Endpoint {
    server: Server,
    host_check: HostCheck,
    max_body_bytes: usize,
    request_timeout: Duration,
    keep_alive: Duration,
    streams: Arc<Semaphore>,
    ended_sessions: Arc<EndedSessions>,
    refused_hosts: Arc<Few>,
}

impl Server {
    /// Returns the server's endpoint for Streamable HTTP.
    #[must_use]
    pub fn http(&self, options: HttpOptions) -> HttpService {
        HttpService { endpoint: Arc::new(self.endpoint(&options)) }
    }

    fn endpoint(&self, options: &HttpOptions) -> Endpoint {
        Endpoint {
            server: self.clone(),
            host_check: HostCheck::new(options),
            max_body_bytes: options.max_body_bytes,
            request_timeout: options.request_timeout,
            keep_alive: options.keep_alive.clamp(Duration::from_secs(1), Duration::from_hours(24)),
            streams: Arc::new(Semaphore::new(options.max_streams.min(Semaphore::MAX_PERMITS))),
            ended_sessions: Arc::default(),
            refused_hosts: Arc::default(),
        }
    }
}

impl HttpService {
    /// Returns the endpoint with other options. Open streams stay open and still count; `max_streams` stays
    /// unchanged.
    #[must_use]
    pub fn with_options(&self, options: &HttpOptions) -> HttpService {
        let current = &self.endpoint;
        let endpoint = Endpoint {
            streams: Arc::clone(&current.streams),
            ended_sessions: Arc::clone(&current.ended_sessions),
            refused_hosts: Arc::clone(&current.refused_hosts),
            ..current.server.endpoint(options)
        };
        HttpService { endpoint: Arc::new(endpoint) }
    }

    /// Returns an endpoint of the same server with a delivery profile. It shares the bounds of this one.
    #[must_use]
    pub fn with_profile(&self, profile: Profile) -> HttpService {
        let current = &self.endpoint;
        let endpoint = Endpoint {
            server: current.server.with_profile(profile),
            host_check: current.host_check.clone(),
            max_body_bytes: current.max_body_bytes,
            request_timeout: current.request_timeout,
            keep_alive: current.keep_alive,
            streams: Arc::clone(&current.streams),
            ended_sessions: Arc::clone(&current.ended_sessions),
            refused_hosts: Arc::clone(&current.refused_hosts),
        };
        HttpService { endpoint: Arc::new(endpoint) }
    }

    /// Answers a request. The caller is the [`Caller`](promptshelf_service::Caller) among its extensions, or anonymous; a
    /// [`Denial`] among them refuses it.
    ///
    /// The future is boxed because it has 6 kB, which callers would copy.
    pub fn answer<B>(&self, request: Request<B>) -> Pin<Box<dyn Future<Output = Response<HttpBody>> + Send>>
    where
        B: Body + Send + 'static,
    {
        let endpoint = Arc::clone(&self.endpoint);
        Box::pin(async move { endpoint.respond(request).await })
    }

    /// Checks the host and origin of a request for something else on the same server, such as a web page.
    ///
    /// # Errors
    ///
    /// The reason, as a sentence for the response, whose status is 403.
    pub fn admit(&self, head: &Parts) -> Result<(), &'static str> {
        self.endpoint.host_check.admit(head).map(|_| ())
    }

    /// Reads the body of a request for something else on the same server, under the rules of messages: its media type, its
    /// coding and [`HttpOptions::max_body_bytes`].
    ///
    /// # Errors
    ///
    /// The refusal: 400, 413 or 415.
    pub async fn read_body<B: Body>(&self, head: &Parts, body: B, media_type: &str) -> Result<Bytes, Denial> {
        let mut body = pin!(body);
        let read = async {
            self.endpoint.admit_body(head, body.as_mut(), media_type).await?;
            self.endpoint.read_body(head, body).await
        };
        read.await.map_err(|fault: Fault| {
            let status = StatusCode::from_u16(fault.error.status).unwrap_or(StatusCode::BAD_REQUEST);
            Denial::new(status, fault.error.message)
        })
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

// A stream of server-sent events with the notifications of one subscription.
// Dropping the stream ends the subscription. An idle stream sends comment lines, which keep proxies from closing it
// and detect a peer that has disappeared.

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

struct Events {
    /// The first bytes of the stream.
    opening: Option<Bytes>,
    /// Waits for notifications; kept between polls, so that no wait is interrupted.
    waiting: ReusableBoxFuture<'static, (Subscription, Option<Vec<Bytes>>)>,
    period: Duration,
    keep_alive: Pin<Box<Sleep>>,
    ended: bool,
    /// Counts the stream as open until dropped.
    _permit: OwnedSemaphorePermit,
}

impl Events {
    /// Creates the stream, with an optional first message. Without one it starts with a comment, because some proxies
    /// hold back the response head until the body starts.
    fn new(
        subscription: Subscription,
        first: Option<&Bytes>,
        keep_alive: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Events {
        Events {
            opening: Some(first.map_or(COMMENT, |message| write(std::slice::from_ref(message)))),
            waiting: ReusableBoxFuture::new(wait(subscription)),
            period: keep_alive,
            keep_alive: Box::pin(sleep(keep_alive)),
            ended: false,
            _permit: permit,
        }
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let bytes = match self.waiting.poll(context) {
            Poll::Ready((subscription, Some(messages))) => {
                self.waiting.set(wait(subscription));
                write(&messages)
            }
            Poll::Ready((subscription, None)) => {
                self.ended = true;
                return Poll::Ready(subscription.end().map(|end| write(&[end])));
            }
            Poll::Pending => {
                ready!(self.keep_alive.as_mut().poll(context));
                COMMENT
            }
        };
        self.keep_alive.as_mut().reset(Instant::now() + self.period);
        Poll::Ready(Some(bytes))
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("ended", &self.ended).finish_non_exhaustive()
    }
}

async fn wait(mut subscription: Subscription) -> (Subscription, Option<Vec<Bytes>>) {
    let messages = subscription.next().await;
    (subscription, messages)
}

/// Encodes messages as events. The JSON of this crate has no line breaks, so each message is one `data` line.
fn write(messages: &[Bytes]) -> Bytes {
    const BEFORE: &[u8] = b"event: message\ndata: ";
    const AFTER: &[u8] = b"\n\n";
    let frame = BEFORE.len() + AFTER.len();
    let mut out = Vec::with_capacity(messages.iter().map(|message| message.len() + frame).sum());
    for message in messages {
        out.extend_from_slice(BEFORE);
        out.extend_from_slice(message);
        out.extend_from_slice(AFTER);
    }
    out.into()
}

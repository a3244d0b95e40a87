//! The redirect URI of a sign-in: an HTTP server on a loopback port that listens until the user has signed in
//! (RFC 8252, section 7.3).

use std::{convert::Infallible, io, net::Ipv4Addr, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};
use url::{Url, form_urlencoded};

use crate::error::ClientError;

const LAST_PAGE_TIMEOUT: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections at once. Any program and any page can connect to the port.
const MAX_CONNECTIONS: usize = 16;

pub(super) struct Redirect {
    listener: TcpListener,
    pub(super) uri: String,
}

pub(super) struct Listening {
    uri: String,
    callbacks: mpsc::Receiver<Callback>,
    accepting: JoinHandle<()>,
}

pub(super) struct Redirected {
    pub(super) url: String,
    /// The error of the authorization server, if it granted nothing.
    pub(super) error: Option<String>,
    page: oneshot::Sender<bool>,
    accepting: JoinHandle<()>,
}

/// A request with the expected state: its query, and whether the sign-in succeeded, for the page in the browser.
type Callback = (String, oneshot::Sender<bool>);

struct Expected {
    state: String,
    callbacks: mpsc::Sender<Callback>,
}

impl Redirect {
    /// Binds the port of the previous sign-in, so that its client registration stays valid, or any free port.
    pub(super) async fn bind(previous: Option<&str>) -> io::Result<Redirect> {
        let port = previous.and_then(|uri| Url::parse(uri).ok()?.port()).unwrap_or(0);
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(_) if port > 0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            listener => listener?,
        };
        let uri = format!("http://{}/callback", listener.local_addr()?);
        Ok(Redirect { listener, uri })
    }

    /// Accepts connections until the request with this state arrives. All other requests are rejected.
    pub(super) fn listen(self, state: String) -> Listening {
        let (sender, callbacks) = mpsc::channel(1);
        let expected = Arc::new(Expected { state, callbacks: sender });
        let accepting = tokio::spawn(accept(self.listener, expected));
        Listening { uri: self.uri, callbacks, accepting }
    }
}

impl Listening {
    pub(super) async fn redirected(mut self) -> Result<Redirected, ClientError> {
        let Some((query, page)) = self.callbacks.recv().await else {
            return Err(ClientError::sign_in_failed("the port of the redirect URI is closed"));
        };
        let parameter = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let error = parameter("error").map(|error| match parameter("error_description") {
            Some(description) => format!("the authorization server returned {error}: {description}"),
            None => format!("the authorization server returned {error}"),
        });
        let url = format!("{}?{query}", self.uri);
        // `self` is taken apart manually: dropping it would stop the server before the last page.
        let accepting = std::mem::replace(&mut self.accepting, tokio::spawn(std::future::ready(())));
        Ok(Redirected { url, error, page, accepting })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Redirected {
    pub(super) async fn finish(mut self, signed_in: bool) {
        self.page.send(signed_in).ok();
        tokio::time::timeout(LAST_PAGE_TIMEOUT, &mut self.accepting).await.ok();
        self.accepting.abort();
    }
}

/// Accepts connections until one of them has answered the expected request. Dropping the set ends the others.
async fn accept(listener: TcpListener, expected: Arc<Expected>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if permits.available_permits() > 0 => {
                let (Ok((stream, _)), Ok(permit)) = (accepted, Arc::clone(&permits).try_acquire_owned()) else { continue };
                let expected = Arc::clone(&expected);
                connections.spawn(async move {
                    let _permit = permit;
                    serve(stream, expected).await
                });
            }
            Some(Ok(true)) = connections.join_next() => return,
        }
    }
}

/// Answers one request. Returns whether it was the expected one.
async fn serve(stream: TcpStream, expected: Arc<Expected>) -> bool {
    let (done, mut is_done) = mpsc::unbounded_channel();
    let service = service_fn(|request: Request<Incoming>| {
        let (expected, done) = (Arc::clone(&expected), done.clone());
        async move {
            let (response, is_expected) = respond(&request, &expected).await;
            if is_expected {
                done.send(()).ok();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    connection.await.ok();
    is_done.try_recv().is_ok()
}

async fn respond(request: &Request<Incoming>, expected: &Expected) -> (Response<String>, bool) {
    let query = request.uri().query().unwrap_or_default();
    let is_callback = request.method() == Method::GET && request.uri().path() == "/callback";
    let has_state =
        form_urlencoded::parse(query.as_bytes()).any(|(name, state)| name == "state" && state == expected.state);
    let (page, signed_in) = oneshot::channel();
    let is_expected = is_callback && has_state && expected.callbacks.try_send((query.to_owned(), page)).is_ok();
    let signed_in = if is_expected { signed_in.await.ok() } else { None };
    let (status, text) = match signed_in {
        Some(true) => (StatusCode::OK, "You are signed in. You can close this page and return to the terminal."),
        Some(false) => (StatusCode::OK, "Sign-in failed. The terminal shows the reason; you can close this page."),
        None => (StatusCode::BAD_REQUEST, "No sign-in is in progress at this address."),
    };
    let mut response = Response::new(format!("<!doctype html><title>promptshelf</title><p>{text}</p>\n"));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The URL of this page contains the authorization code.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    (response, is_expected)
}

//! Where the browser comes back to: a port of this machine that listens for as
//! long as somebody signs in (RFC 8252, 7.3).

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse},
    routing::get,
};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use url::{Url, form_urlencoded};

use crate::ClientError;

/// How long the browser may take to fetch the last page.
const GOODBYE: Duration = Duration::from_secs(2);

/// A port that can be listened on.
pub(super) struct Redirect {
    listener: TcpListener,
    /// What the authorization server sends the browser back to.
    pub(super) uri: String,
}

/// A port that is listened on.
pub(super) struct Waiting {
    uri: String,
    said: mpsc::Receiver<(String, oneshot::Sender<bool>)>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// What the browser came back with.
pub(super) struct Answer {
    /// The address that the browser was sent to.
    pub(super) url: String,
    /// Why there is no code, in the words of the authorization server.
    pub(super) refused: Option<String>,
    page: oneshot::Sender<bool>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

struct Expected {
    state: String,
    say: mpsc::Sender<(String, oneshot::Sender<bool>)>,
}

impl Redirect {
    /// Takes the port of the last time where it is free, so that a client that
    /// was registered with it can be used again, and any other where it is not.
    pub(super) async fn open(before: Option<&str>) -> io::Result<Redirect> {
        let port = before.and_then(|uri| Url::parse(uri).ok()?.port()).unwrap_or(0);
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Err(_) if port > 0 => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
            listener => listener?,
        };
        let uri = format!("http://{}/callback", listener.local_addr()?);
        Ok(Redirect { listener, uri })
    }

    /// Listens for the one answer that has this state. Whatever else comes is
    /// turned away: any program and any page can reach the port.
    pub(super) fn wait(self, state: String) -> Waiting {
        let (say, said) = mpsc::channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        let app = Router::new().route("/callback", get(callback)).with_state(Arc::new(Expected { state, say }));
        let serving = tokio::spawn(async move {
            let server = axum::serve(self.listener, app).with_graceful_shutdown(async {
                stopped.await.ok();
            });
            server.await.ok();
        });
        Waiting { uri: self.uri, said, stop, serving }
    }
}

impl Waiting {
    pub(super) async fn answer(mut self) -> Result<Answer, ClientError> {
        let Some((query, page)) = self.said.recv().await else {
            return Err(ClientError::SignInFailed("the port for the answer is gone".to_owned()));
        };
        let named = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let refused = named("error").map(|error| match named("error_description") {
            Some(description) => format!("the authorization server says: {error}: {description}"),
            None => format!("the authorization server says: {error}"),
        });
        let url = format!("{}?{query}", self.uri);
        Ok(Answer { url, refused, page, stop: self.stop, serving: self.serving })
    }
}

impl Answer {
    /// Tells the person in the browser how it went, and stops listening.
    pub(super) async fn reply(self, signed_in: bool) {
        self.page.send(signed_in).ok();
        self.stop.send(()).ok();
        let abort = self.serving.abort_handle();
        if tokio::time::timeout(GOODBYE, self.serving).await.is_err() {
            abort.abort();
        }
    }
}

async fn callback(State(expected): State<Arc<Expected>>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let query = query.unwrap_or_default();
    let is_ours =
        form_urlencoded::parse(query.as_bytes()).any(|(name, state)| name == "state" && state == expected.state);
    let (page, answer) = oneshot::channel();
    let heard = is_ours && expected.say.try_send((query, page)).is_ok();
    let (status, sentence) = match if heard { answer.await.ok() } else { None } {
        Some(true) => (StatusCode::OK, "You are signed in. You can close this page and go back to the terminal."),
        Some(false) => (StatusCode::OK, "That did not work. The terminal says why; you can close this page."),
        None => (StatusCode::BAD_REQUEST, "Nobody waits for this."),
    };
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONNECTION, "close"),
        // The address of this page holds a code.
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (status, headers, Html(format!("<!doctype html><title>promptshelf</title><p>{sentence}</p>\n")))
}

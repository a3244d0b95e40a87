//! Webhooks of forges, at `/api/v1/hooks/{source}`. A verified one requests a poll of its source, and nothing else: its
//! body is not even parsed.
//!
//! The address limit, the limit of the source and the size come before anything is computed.

use std::{
    collections::HashMap,
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::to_bytes,
    extract::{ConnectInfo, Path, Request, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use parking_lot::Mutex;
use promptshelf_git::{MAX_WEBHOOK_BYTES, WebhookError, verify_webhook};
use promptshelf_service::Service;

/// The number of requests for one source in [`WINDOW`]. More would only cost the time of their verification: one is
/// enough for a poll.
const MAX_REQUESTS: u32 = 20;

const WINDOW: Duration = Duration::from_secs(1);

/// The webhooks of an application, by the names of their sources. Empty by default. Clones share the limits.
///
/// ```
/// use promptshelf_server::http::{Options, Webhook, Webhooks};
///
/// let mut options = Options::default();
/// let nudge = || println!("the source is polled soon");
/// options.webhooks = Webhooks::new([("platform", Webhook::new("the secret of the forge", nudge))]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Webhooks(Arc<HashMap<String, Webhook>>);

/// The webhook of one source. `Debug` does not show the secret.
pub struct Webhook {
    secret: Box<[u8]>,
    nudge: Box<dyn Fn() + Send + Sync>,
    admitted: Mutex<Option<(Instant, u32)>>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook")
    }
}

impl Webhook {
    /// Creates a webhook from the secret of the forge, and a function that requests a poll and must not block. With an
    /// empty secret every request is refused.
    pub fn new(secret: impl AsRef<[u8]>, nudge: impl Fn() + Send + Sync + 'static) -> Webhook {
        Webhook { secret: secret.as_ref().into(), nudge: Box::new(nudge), admitted: Mutex::default() }
    }

    fn admit(&self) -> bool {
        let now = Instant::now();
        let mut admitted = self.admitted.lock();
        match &mut *admitted {
            Some((begun, count)) if now.duration_since(*begun) < WINDOW => {
                *count += 1;
                *count <= MAX_REQUESTS
            }
            window => {
                *window = Some((now, 1));
                true
            }
        }
    }
}

impl Webhooks {
    /// Creates webhooks for sources, by name.
    pub fn new(webhooks: impl IntoIterator<Item = (impl Into<String>, Webhook)>) -> Webhooks {
        Webhooks(Arc::new(webhooks.into_iter().map(|(name, webhook)| (name.into(), webhook)).collect()))
    }

    pub(super) fn routes(&self, service: &Service) -> Router {
        if self.0.is_empty() {
            return Router::new();
        }
        Router::new().route("/api/v1/hooks/{source}", post(receive)).with_state((self.clone(), service.clone()))
    }
}

async fn receive(
    State((webhooks, service)): State<(Webhooks, Service)>,
    Path(source): Path<String>,
    request: Request,
) -> Response {
    let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    if address.is_some_and(|address| service.admit_address(address).is_err()) {
        return too_many();
    }
    let Some(webhook) = webhooks.0.get(&source) else { return refused_source() };
    if !webhook.admit() {
        return too_many();
    }
    let (head, body) = request.into_parts();
    let declared = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: u64| length > MAX_WEBHOOK_BYTES as u64) {
        return refused(WebhookError::TooLarge);
    }
    let Ok(body) = to_bytes(body, MAX_WEBHOOK_BYTES).await else { return refused(WebhookError::TooLarge) };
    let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    if let Err(error) = verify_webhook(&webhook.secret, headers, &body) {
        tracing::warn!(source, "a webhook was refused: {error}");
        return refused(error);
    }
    (webhook.nudge)();
    (StatusCode::ACCEPTED, "The source is polled soon.\n").into_response()
}

/// The connection ends after an answer to a request whose body was not read. Without the header, a sender would use it again.
const CLOSE: [(HeaderName, &str); 1] = [(header::CONNECTION, "close")];

fn refused(error: WebhookError) -> Response {
    let message = format!("Refused: {error}.\n");
    match error {
        WebhookError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, CLOSE, message).into_response(),
        _ => (StatusCode::UNAUTHORIZED, message).into_response(),
    }
}

fn refused_source() -> Response {
    (StatusCode::NOT_FOUND, CLOSE, "No source with this name accepts webhooks.\n").into_response()
}

fn too_many() -> Response {
    let message = "Too many webhooks; the source is polled anyway.\n";
    (StatusCode::TOO_MANY_REQUESTS, CLOSE, [(header::RETRY_AFTER, "1")], message).into_response()
}

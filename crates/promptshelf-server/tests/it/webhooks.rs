//! Webhooks of forges: verified, bounded, and limited.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use promptshelf_git::MAX_WEBHOOK_BYTES;
use promptshelf_server::http::{self, Options, Webhook, Webhooks};
use tower::Service as _;

use crate::{library, text};

const SECRET: &str = "secret of the forge";
/// Made with `openssl dgst -sha256 -hmac`.
const SIGNATURE: &str = "sha256=cd42114b6facb676e0e6192b1b4226200f3b48faa2e49d4a6ceed772b0b01f0a";
const BODY: &str = "Hello, World!";

// req: S-146
#[tokio::test]
async fn only_signed_webhooks_request_a_poll() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let nudge = move || {
        counter.fetch_add(1, Ordering::SeqCst);
    };
    let mut options = Options::default();
    options.webhooks = Webhooks::new([("platform", Webhook::new(SECRET, nudge)), ("open", Webhook::new("", || ()))]);
    let router = http::router(&library().build().expect("a library"), &options);
    let send = async |path: &str, header: Option<(&str, &str)>, body: Body| {
        let mut request = Request::post(path).header("host", "prompts.example");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = router.clone().call(request.body(body).expect("a request")).await.expect("a router never fails");
        let (head, body) = response.into_parts();
        // The body is not read: the sender must not use the connection again.
        let is_unread = matches!(head.status.as_u16(), 404 | 413 | 429);
        assert_eq!(head.headers.get("connection").is_some_and(|value| value == "close"), is_unread, "{head:?}");
        (head.status, text(body).await)
    };
    let (path, github) = ("/api/v1/hooks/platform", Some(("X-Hub-Signature-256", SIGNATURE)));
    // The second one is a repetition, which polls once more and changes nothing.
    for count in 1..=2 {
        assert_eq!(send(path, github, BODY.into()).await.0, StatusCode::ACCEPTED);
        assert_eq!(polls.load(Ordering::SeqCst), count);
    }
    for (header, body, message) in [
        (None, BODY, "has no signature"),
        (github, "Hello, World?", "is wrong"),
        (Some(("X-Gitlab-Token", "guess")), BODY, "is wrong"),
    ] {
        let (status, text) = send(path, header, body.into()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(text.contains(message) && !text.contains(SECRET), "{text}");
    }
    assert_eq!(send("/api/v1/hooks/open", Some(("X-Gitlab-Token", "")), BODY.into()).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(send("/api/v1/hooks/other", github, BODY.into()).await.0, StatusCode::NOT_FOUND);
    // A body without a length, and a declared length: neither is read.
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 1 << 16]));
    assert_eq!(send(path, github, Body::from_stream(endless)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let length = (MAX_WEBHOOK_BYTES + 1).to_string();
    let declared = send(path, Some(("content-length", &length)), Body::empty()).await;
    assert_eq!(declared.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(polls.load(Ordering::SeqCst), 2);
    // A thousand more within a second, or within several on a slow machine: most are refused.
    let mut refused = 0;
    let begun = std::time::Instant::now();
    for _ in 0..1_000 {
        refused += usize::from(send(path, None, Body::empty()).await.0 == StatusCode::TOO_MANY_REQUESTS);
    }
    let seconds = usize::try_from(begun.elapsed().as_secs()).expect("a short time");
    assert!(refused + (seconds + 2) * 20 >= 1_000, "{refused} in {seconds} s");
}

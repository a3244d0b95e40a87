//! Deliveries from a real store to real sockets.

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use promptshelf_source::MemoryTree;
use promptshelf_store::{
    Actor, Change, CheckReport, Checker, DeadLetter, Digest, Effect, Publish, RevisionKind, StoreUrl, Trees,
    WebhookEvent,
};
use promptshelf_testkit::receiver::{Answer, Receiver, Request};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;

/// A check without findings.
struct NoCheck;

impl Checker for NoCheck {
    fn check(&self, _: &MemoryTree, _: bool) -> CheckReport {
        CheckReport::default()
    }

    fn check_replacement(&self, _: &Trees, _: bool) -> (CheckReport, Vec<Effect>) {
        Default::default()
    }
}

async fn publish(store: &Store, to: &str, revision: u64) {
    let text = |number: u64| format!("text {number}").into_bytes();
    let before = revision.checked_sub(2).map(|_| Digest::of(&text(revision - 1)));
    let change = Change { path: "a.md".to_owned(), before, after: Some(text(revision).into()) };
    let publish = Publish {
        channel: to.parse().expect("a name"),
        base: revision - 1,
        kind: RevisionKind::Publish,
        message: "a change".to_owned(),
        proposal: None,
        expected: None,
        emergency: None,
        changes: vec![change],
        dry_run: false,
    };
    let ada = Actor { name: "ada".to_owned(), may_publish: true, may_administer: true, review_roles: None };
    store.publish(publish, &ada, Arc::new(NoCheck)).await.expect("published");
}

// req: S-589
#[tokio::test]
async fn events_for_a_url_that_was_corrected_are_named() {
    let folder = TempDir::new().expect("a folder");
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    let store = Store::create(&url).await.expect("a store");
    let webhook = |id: &str| Webhook {
        id: id.to_owned(),
        label: format!("https://{id}"),
        events: [WebhookEvent::Published].into(),
    };
    store.register_webhooks(&[webhook("old"), webhook("kept")]).await.expect("registered");
    let own = [webhook("new"), webhook("kept")];
    let named = async || -> Vec<String> {
        left_behind(&store.webhooks().await.expect("queues"), &own).map(|queue| queue.label.clone()).collect()
    };
    assert!(named().await.is_empty(), "nothing waits");
    publish(&store, "production", 1).await;
    assert_eq!(named().await, ["https://old"]);
}

struct Sending {
    store: Store,
    deliveries: Deliveries,
    running: JoinHandle<()>,
    _folder: TempDir,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Sending {
    async fn start(targets: Vec<WebhookTarget>, lookup: &Lookup, timeout: Duration) -> Sending {
        let folder = TempDir::new().expect("a folder");
        let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
        let store = Store::create(&url).await.expect("a store");
        let pace = Pace {
            interval: Duration::from_millis(20),
            timeout,
            retry: (Duration::from_millis(10), Duration::from_millis(40)),
        };
        let deliveries = Deliveries::with(StoreHandle::new(url), targets, lookup, pace).expect("a client");
        // So that the first publish is announced.
        let webhooks: Vec<_> = deliveries.0.senders.values().map(|sender| sender.target.webhook.clone()).collect();
        store.register_webhooks(&webhooks).await.expect("registered");
        let runner = deliveries.clone();
        let running = tokio::spawn(async move { runner.run(&[]).await });
        Sending { store, deliveries, running, _folder: folder }
    }

    async fn publish(&self, to: &str, revision: u64) {
        publish(&self.store, to, revision).await;
    }

    /// Waits until something is a dead letter.
    async fn dead(&self) -> DeadLetter {
        let begun = Instant::now();
        loop {
            if let Some(letter) = self.store.dead_letters().await.expect("a list").pop() {
                return letter;
            }
            assert!(begun.elapsed() < promptshelf_testkit::PATIENCE, "no dead letter");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn target(url: &str, allows_private: bool) -> WebhookTarget {
    WebhookTarget::new(url, WebhookEvent::ALL, allows_private).expect("a target").secret("a secret of the team")
}

async fn wait_for(receiver: &Receiver, count: usize) -> Vec<Request> {
    tokio::task::block_in_place(|| receiver.wait_for(count))
}

fn revisions(requests: &[Request]) -> Vec<u64> {
    let revision = |request: &Request| {
        let body: Value = serde_json::from_str(&request.body).expect("JSON");
        body["revision"].as_u64().expect("a number")
    };
    requests.iter().map(revision).collect()
}

// req: S-191
#[tokio::test(flavor = "multi_thread")]
async fn event_is_repeated_in_order_until_it_is_accepted() {
    let elsewhere = Receiver::start([]);
    let receiver = Receiver::start([
        Answer::Status(503),
        Answer::Redirect(elsewhere.url()),
        Answer::Hang,
        Answer::Close,
        Answer::Endless,
    ]);
    let sending =
        Sending::start(vec![target(&receiver.url(), true)], &system_lookup(), Duration::from_millis(300)).await;
    for revision in 1..=3 {
        sending.publish("production", revision).await;
    }
    let received = wait_for(&receiver, 7).await;
    assert_eq!(revisions(&received), [1, 1, 1, 1, 1, 2, 3]);
    let first = &received[0];
    for again in &received[1..5] {
        assert_eq!(again.body, first.body);
        for name in ["idempotency-key", "x-promptshelf-signature", "x-promptshelf-event"] {
            assert_eq!(again.headers[name], first.headers[name], "{name}");
        }
    }
    let body: Value = serde_json::from_str(&first.body).expect("JSON");
    assert_eq!(first.headers["idempotency-key"], body["id"]);
    assert_ne!(received[5].headers["idempotency-key"], body["id"]);
    assert_eq!(first.headers["x-promptshelf-event"], "published");
    assert_eq!(elsewhere.connections(), 0, "a redirect is not followed");
    // An attempt is counted after its answer is recorded.
    let begun = Instant::now();
    while sending.deliveries.counts().delivered < 3 {
        assert!(begun.elapsed() < promptshelf_testkit::PATIENCE, "{:?}", sending.deliveries.counts());
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((sending.deliveries.counts().failed, sending.deliveries.counts().given_up), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_webhook_delays_neither_others_nor_their_channels() {
    let (silent, other) = (Receiver::start(vec![Answer::Hang; 100]), Receiver::start([]));
    let targets = vec![target(&silent.url(), true), target(&other.url(), true)];
    let sending = Sending::start(targets, &system_lookup(), Duration::from_secs(60 * 60)).await;
    sending.publish("production", 1).await;
    wait_for(&silent, 1).await;
    for revision in 2..=4 {
        sending.publish("production", revision).await;
    }
    assert_eq!(revisions(&wait_for(&other, 4).await), [1, 2, 3, 4]);
    assert_eq!(silent.received().len(), 1, "later events of the channel wait");
}

// req: S-190
#[tokio::test(flavor = "multi_thread")]
async fn name_is_resolved_once_for_each_connection_to_a_checked_address() {
    let receiver = Receiver::start([]);
    let lookups = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&lookups);
    let lookup: Lookup = Arc::new(move |name| {
        counter.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match name.as_str() {
                "rebinding.example" => Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))]),
                _ => Err(io::Error::other("an unknown name")),
            }
        })
    });
    let url = |scheme: &str| format!("{scheme}://rebinding.example:{}/", receiver.address().port());
    let zero = Duration::from_secs(0);
    let refused = target(&url("https"), false).retry_for(zero);
    let sending = Sending::start(vec![refused], &lookup, Duration::from_secs(20)).await;
    sending.publish("production", 1).await;
    let letter = sending.dead().await;
    assert!(letter.problem.contains("127.0.0.1") && letter.problem.contains("allow-private"), "{letter:?}");
    assert_eq!((receiver.connections(), lookups.load(Ordering::Relaxed) as u64), (0, letter.attempts));
    drop(sending);
    let allowed = Sending::start(vec![target(&url("http"), true)], &lookup, Duration::from_secs(20)).await;
    allowed.publish("production", 1).await;
    let received = wait_for(&receiver, 1).await;
    assert!(received[0].headers["host"].starts_with("rebinding.example"), "{received:?}");
    assert_eq!(lookups.load(Ordering::Relaxed) as u64, letter.attempts + 1);
    drop(allowed);
    let unknown = target("https://unknown.example/", false).retry_for(zero);
    let sending = Sending::start(vec![unknown], &lookup, Duration::from_secs(20)).await;
    sending.publish("production", 1).await;
    assert_eq!(sending.dead().await.problem, "the name of the host cannot be resolved");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letter_is_delivered_again_on_request() {
    let receiver = Receiver::start(vec![Answer::Status(500); 2]);
    let slack = target(&receiver.url(), true).format(WebhookFormat::Slack).retry_for(Duration::from_secs(0));
    let sending = Sending::start(vec![slack], &system_lookup(), Duration::from_secs(20)).await;
    sending.publish("production", 1).await;
    let letter = sending.dead().await;
    assert_eq!((letter.problem.as_str(), letter.attempts), ("the status 500", 2));
    sending.store.redeliver(letter.id).await.expect("queued");
    let received = wait_for(&receiver, 3).await;
    assert_eq!(received[2].body, r#"{"text":"*production*: ada published revision 1: a change"}"#);
    assert_eq!(received[2].headers["idempotency-key"], letter.key);
    assert_eq!(sending.deliveries.counts().given_up, 1);
    // The requests that have begun are recorded.
    sending.deliveries.stop();
    let begun = Instant::now();
    while !sending.running.is_finished() {
        assert!(begun.elapsed() < promptshelf_testkit::PATIENCE, "it stops");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sending.store.webhooks().await.expect("a list")[0].pending, 0);
}

//! The outbox of webhooks.

use std::{collections::BTreeSet, time::Duration};

use promptshelf_store::{
    DeadLetter, Delivery, DeliveryAttempt, PolicyGuard, Publish, Store, StoreError, Verdict, Webhook, WebhookEvent,
};
use serde_json::Value;

use crate::sample::{actor, change, channel, checker, policy, publish, request, review, rollback};

fn webhook(id: &str, events: &[WebhookEvent]) -> Webhook {
    Webhook { id: id.to_owned(), label: format!("https://{id}.example"), events: events.iter().copied().collect() }
}

async fn register(store: &Store, id: &str) {
    store.register_webhooks(&[webhook(id, &WebhookEvent::ALL)]).await.unwrap();
}

async fn due(store: &Store, id: &str) -> Vec<Delivery> {
    store.due_deliveries(&[id.to_owned()]).await.unwrap()
}

/// Receives everything that waits, the oldest first in each channel.
async fn receive(store: &Store, id: &str) -> Vec<Delivery> {
    let mut received = Vec::new();
    loop {
        let due = due(store, id).await;
        if due.is_empty() {
            return received;
        }
        for delivery in due {
            store.delivered(delivery.id).await.unwrap();
            received.push(delivery);
        }
    }
}

fn parse(body: &str) -> Value {
    serde_json::from_str(body).unwrap()
}

fn names(deliveries: &[Delivery]) -> Vec<&'static str> {
    deliveries.iter().map(|delivery| delivery.event.as_str()).collect()
}

fn attempt(retry_in: u64, retry_for: u64) -> DeliveryAttempt {
    DeliveryAttempt {
        problem: "answered with status 503".to_owned(),
        retry_in: Duration::from_secs(retry_in),
        retry_for: Duration::from_secs(retry_for),
        min_attempts: 2,
    }
}

async fn demand(store: &Store, approvals: u32) {
    let policy = policy(approvals, false);
    store.set_policy(&channel("c"), &policy, &PolicyGuard::Any, "", &actor("root")).await.unwrap();
}

pub(crate) async fn changes_queue_events_in_the_order_of_commits(store: Store) {
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    register(&store, "all").await;
    store.register_webhooks(&[webhook("some", &[WebhookEvent::Reviewed])]).await.unwrap();
    demand(&store, 2).await;
    assert!(publish(&store, "c", 1, &[("a.md", "other", "A2")]).await.is_err());
    let dry = Publish { dry_run: true, ..request("c", 1, vec![change("a.md", "A", "A2")]) };
    store.publish(dry, &actor("ada"), checker()).await.unwrap();
    let changed = receive(&store, "all").await;
    assert_eq!(names(&changed), ["policy-changed"], "earlier changes, refused ones and trials are not announced");
    let body = parse(&changed[0].body);
    assert_eq!((&body["author"], &body["policy"]["byOperator"]), (&"root".into(), &true.into()));
    assert_eq!((&body["policy"]["before"]["approvals"], &body["policy"]["after"]["approvals"]), (&0.into(), &2.into()));
    let proposal = publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap().proposal.id;
    for reviewer in ["ben", "ben", "cleo"] {
        review(&store, proposal, Verdict::Approve, "fine", None, reviewer).await.unwrap();
        if reviewer == "ben" {
            assert_eq!(due(&store, "all").await.len(), 1, "the others of the channel wait");
        }
    }
    demand(&store, 0).await;
    store.rollback(&rollback("c", 1, None), &actor("ada"), checker()).await.unwrap();
    publish(&store, "d", 0, &[("b.md", "", "B")]).await.unwrap();
    let received = receive(&store, "all").await;
    let of = |name: &str| received.iter().filter(|one| one.channel == name).cloned().collect::<Vec<_>>();
    assert_eq!(names(&of("c")), ["proposed", "reviewed", "reviewed", "published", "policy-changed", "rolled-back"]);
    assert_eq!(names(&of("d")), ["published"]);
    let keys: BTreeSet<&str> = received.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys.len(), 7);
    let reviewed = receive(&store, "some").await;
    assert_eq!(names(&reviewed), ["reviewed", "reviewed"]);
    assert_eq!((&reviewed[0].key, &reviewed[0].body), (&of("c")[1].key, &of("c")[1].body));
    let body = parse(&of("c")[3].body);
    assert_eq!(
        (&body["id"], &body["event"], &body["channel"], &body["revision"], &body["author"], &body["approvedBy"]),
        (
            &of("c")[3].key.as_str().into(),
            &"published".into(),
            &"c".into(),
            &2.into(),
            &"ada".into(),
            &vec!["ben", "cleo"].into()
        )
    );
    assert_eq!((&body["prompts"][0]["name"], &body["prompts"][0]["version"]), (&"a".into(), &2.into()));
    let body = parse(&reviewed[1].body);
    assert_eq!((&body["review"]["reviewer"], &body["review"]["verdict"]), (&"cleo".into(), &"approve".into()));
    // Many writers at the same time.
    let writers = (0..6).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { publish(&store, "e", 0, &[(&format!("{number}.md"), "", "x")]).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    let revisions: Vec<u64> =
        receive(&store, "all").await.iter().map(|one| parse(&one.body)["revision"].as_u64().unwrap()).collect();
    assert_eq!(revisions, [1, 2, 3, 4, 5, 6]);
}

pub(crate) async fn failed_delivery_waits_dies_and_is_queued_again(store: Store) {
    register(&store, "hook").await;
    publish(&store, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    publish(&store, "c", 1, &[("a.md", "A", "A2")]).await.unwrap();
    publish(&store, "d", 0, &[("a.md", "", "A")]).await.unwrap();
    let first = due(&store, "hook").await.remove(0);
    assert!(!store.delivery_failed(first.id, &attempt(3_600, 86_400)).await.unwrap());
    let next = due(&store, "hook").await;
    assert_eq!(next.len(), 1, "a later event of the channel does not overtake");
    assert_eq!(next[0].channel, "d");
    // The least number of attempts counts from the first.
    assert!(!store.delivery_failed(next[0].id, &attempt(0, 0)).await.unwrap());
    assert!(store.delivery_failed(first.id, &attempt(3_600, 0)).await.unwrap());
    assert_eq!(due(&store, "hook").await.iter().map(|one| one.attempts).collect::<BTreeSet<_>>(), [0, 1].into());
    let dead = store.dead_letters().await.unwrap();
    let [DeadLetter { id, label, attempts: 2, problem, event: WebhookEvent::Published, .. }] = &dead[..] else {
        panic!("{dead:?}")
    };
    assert_eq!((*id, label.as_str(), problem.as_str()), (first.id, "https://hook.example", "answered with status 503"));
    let queue = store.webhooks().await.unwrap().remove(0);
    assert_eq!((queue.pending, queue.dead), (2, 1));
    store.redeliver(first.id).await.unwrap();
    let again = due(&store, "hook").await.remove(0);
    assert_eq!(again, first, "with the same key and body, before later events");
    for unknown in [first.id, 9_999, u64::MAX] {
        assert!(matches!(store.redeliver(unknown).await.unwrap_err(), StoreError::NotFound { .. }));
    }
    assert!(store.dead_letters().await.unwrap().is_empty());
}

pub(crate) async fn one_store_at_a_time_delivers(store: Store) {
    let other = Store::open(store.url()).await.unwrap();
    let mut lock = store.lock_deliveries().await.unwrap().expect("the lock is free");
    assert!(other.lock_deliveries().await.unwrap().is_none());
    assert!(lock.is_held().await);
    // Neither publishers nor maintenance wait for it.
    publish(&other, "c", 0, &[("a.md", "", "A")]).await.unwrap();
    other.gc().await.unwrap();
    lock.release().await;
    drop(other.lock_deliveries().await.unwrap().expect("it was released"));
    // A dropped lock is released with its connection.
    let deadline = std::time::Instant::now() + promptshelf_testkit::PATIENCE;
    while store.lock_deliveries().await.unwrap().is_none() {
        assert!(std::time::Instant::now() < deadline, "the lock is released");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn broken_revision_is_announced_once(store: Store) {
    demand(&store, 1).await;
    register(&store, "hook").await;
    let urgent = Publish { emergency: Some("now".to_owned()), ..request("c", 0, vec![change("a.md", "", "error")]) };
    store.publish(urgent, &actor("ada"), checker()).await.unwrap();
    let received = receive(&store, "hook").await;
    assert_eq!(names(&received), ["published", "broken"]);
    let body = parse(&received[1].body);
    assert_eq!((&body["findings"][0], &body["emergency"]), (&"a.md:1: error".into(), &"now".into()));
    let c = channel("c");
    // Every replica finds it out.
    store.report_broken(&c, 1, "it cannot be loaded").await.unwrap();
    demand(&store, 0).await;
    publish(&store, "c", 1, &[("a.md", "error", "A")]).await.unwrap();
    store.report_broken(&c, 1, "it cannot be loaded").await.unwrap();
    for _ in 0..2 {
        store.report_broken(&c, 2, "it cannot be loaded").await.unwrap();
    }
    let received = receive(&store, "hook").await;
    assert_eq!(names(&received), ["policy-changed", "published", "broken"]);
    assert_eq!(parse(&received[2].body)["revision"], 2);
    assert!(matches!(store.report_broken(&channel("no"), 1, "").await.unwrap_err(), StoreError::NotFound { .. }));
}

//! ETags, preconditions and concurrent changes.

use axum::http::Method;
use serde_json::{Value, json};

use super::{
    Answer, BYE, HELLO, Server, at, digest,
    document::{operations, reads},
    policy_of, proposal, refused,
};

#[tokio::test]
async fn unchanged_answers_are_not_sent_again() {
    let server = Server::prepared(&policy_of(1)).await;
    server.propose(BYE).await;
    let operations = operations(&server).await;
    let paths = reads(&operations).into_iter().map(|(_, path)| path);
    // Programs may keep prompts for a while.
    let paths = paths.filter(|path| !path.starts_with("/prompts"));
    for path in ["/openapi.json"].into_iter().chain(paths) {
        let answer = server.get("admin", path).await.expect(200);
        assert_eq!(answer.header("cache-control"), "private, no-cache", "{path}");
        let tag = answer.etag();
        let known = server.send(&Method::GET, &at(path), "admin", &[("If-None-Match", &tag)], b"").await.expect(304);
        assert_eq!((known.etag(), known.body.len()), (tag.clone(), 0), "{path}");
        let other = server.send(&Method::GET, &at(path), "admin", &[("If-None-Match", "\"x\"")], b"").await;
        assert_eq!(other.body, answer.body, "{path}");
        let head = server.send(&Method::HEAD, &at(path), "admin", &[], b"").await.expect(200);
        assert_eq!((head.etag(), head.body.len()), (tag, 0), "{path}");
        let expected = server.send(&Method::GET, &at(path), "admin", &[("If-Match", "\"x\"")], b"").await;
        assert_eq!(expected.problem(), refused(412, "precondition-failed"), "{path}");
    }
    let file = server.get("reader", "/channels/production/files/hello.md").await;
    assert_eq!(file.etag(), format!("\"{}\"", digest(HELLO)));
}

#[tokio::test]
async fn changes_need_the_present_version() {
    let server = Server::prepared(&policy_of(1)).await;
    let (proposed, tag) = server.propose(BYE).await;
    let path = format!("/proposals/{}", proposed["id"]);
    assert_eq!(server.get("ada", &path).await.etag(), tag);
    let body = proposal(1, &[("hello.md", Some(HELLO), Some("Third.\n"))]);
    let policy = policy_of(2);
    for (condition, expected) in [
        (("", ""), refused(428, "precondition-required")),
        (("If-Match", "\"x\""), refused(412, "precondition-failed")),
        (("If-Match", &*format!("W/{tag}")), refused(412, "precondition-failed")),
        (("If-Match", "x"), refused(400, "invalid-request")),
    ] {
        assert_eq!(server.put("ada", &path, condition, &body).await.problem(), expected);
        let headers = [condition];
        let headers = if condition.0.is_empty() { &[][..] } else { &headers };
        assert_eq!(server.send(&Method::DELETE, &at(&path), "ada", headers, b"").await.problem(), expected);
        let refusal = server.put("admin", "/channels/production/policy", condition, &policy).await;
        assert_eq!(refusal.problem(), expected);
    }
    assert_eq!(server.get("ada", &path).await.etag(), tag);
    // Optional where the body already names the version, or nothing can be overwritten.
    let stale = [("Content-Type", "application/json"), ("If-Match", "\"x\"")];
    let body_of_publish = json!({ "digest": super::digest("") }).to_string();
    let refusal =
        server.send(&Method::POST, &at(&format!("{path}/publish")), "paul", &stale, body_of_publish.as_bytes()).await;
    assert_eq!(refusal.problem(), refused(412, "precondition-failed"));

    let changed = server.put("ada", &path, ("If-Match", &tag), &body).await.expect(200);
    assert_ne!(changed.etag(), tag);
    assert_eq!(server.get("ada", &path).await.etag(), changed.etag());
    assert_eq!(
        server.put("ada", &path, ("If-Match", &tag), &body).await.problem(),
        refused(412, "precondition-failed")
    );
}

#[tokio::test]
async fn channel_is_created_once() {
    let server = Server::start().await;
    let path = "/channels/beta/policy";
    let missing = server.put("admin", path, ("If-Match", "*"), &policy_of(0)).await;
    assert_eq!(missing.problem(), refused(412, "precondition-failed"));
    let created = server.put("admin", path, ("If-None-Match", "*"), &policy_of(1)).await.expect(201);
    let again = server.put("admin", path, ("If-None-Match", "*"), &policy_of(0)).await;
    assert_eq!(again.problem(), refused(412, "precondition-failed"));
    let present = server.get("reader", path).await.expect(200);
    assert_eq!((present.json(), present.etag()), (policy_of(1), created.etag()));
    // Proposing makes no channel without the scope for it.
    let body = proposal(0, &[("hello.md", None, Some(HELLO))]);
    let refusal = server.post("without-admin", "/channels/gamma/proposals", &body).await;
    assert_eq!(refusal.problem(), refused(404, "not-found"));
    let channels = server.get("reader", "/channels").await.expect(200).json();
    assert_eq!(channels["items"].as_array().map(Vec::len), Some(1));
}

// req: S-103
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_changes_of_one_version_succeeds() {
    let server = Server::prepared(&policy_of(1)).await;
    change_at_the_same_time(&server).await;
}

/// Changes one proposal and one policy many times at once.
pub(super) async fn change_at_the_same_time(server: &Server) {
    let (proposed, tag) = server.propose(BYE).await;
    let path = format!("/proposals/{}", proposed["id"]);
    let policy_tag = server.get("admin", "/channels/production/policy").await.etag();
    let change = async |number: u32| {
        let text = format!("---\ndescription: Greets\n---\nText {number}.\n");
        let body = proposal(1, &[("hello.md", Some(HELLO), Some(&text))]);
        server.put("ada", &path, ("If-Match", &tag), &body).await.status
    };
    let set_policy = async |number: u32| {
        let policy = policy_of(number + 2);
        server.put("admin", "/channels/production/policy", ("If-Match", &policy_tag), &policy).await.status
    };
    let changes = futures_util::future::join_all((0..8).map(change));
    let policies = futures_util::future::join_all((0..8).map(set_policy));
    let (mut changes, mut policies) = tokio::join!(changes, policies);
    changes.sort_unstable();
    policies.sort_unstable();
    let expected = [200, 412, 412, 412, 412, 412, 412, 412];
    // A change of the policy changes what the proposal lacks, and with it its version.
    assert!(changes == expected || changes == [412; 8], "{changes:?}");
    assert_eq!(policies, expected);
    assert_eq!(server.revision().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_publishes_of_one_file_conflict_and_make_one_revision() {
    let server = Server::prepared(&policy_of(0)).await;
    let publish = async |number: u32| {
        let text = format!("---\ndescription: Greets\n---\nText {number}.\n");
        let body = proposal(1, &[("hello.md", Some(HELLO), Some(&text))]);
        let answer = server.post("paul", "/channels/production/proposals", &body).await;
        if answer.status == 409 {
            assert_eq!(answer.problem(), refused(409, "conflict"));
        }
        answer.status
    };
    let mut statuses = futures_util::future::join_all((0..6).map(publish)).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
    assert_eq!(server.revision().await, 2);
    let history = server.get("reader", "/channels/production/revisions").await.expect(200).json();
    assert_eq!(history["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(history["next"], json!(null));
}

/// Sends a change with a key.
async fn keyed(server: &Server, caller: &str, key: &str, path: &str, body: &Value) -> Answer {
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    server.send(&Method::POST, &at(path), caller, &headers, body.to_string().as_bytes()).await
}

// req: S-431
#[tokio::test]
async fn change_with_a_key_happens_once_for_its_caller() {
    let server = Server::prepared(&policy_of(0)).await;
    let body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    let path = "/channels/production/proposals";
    let first = keyed(&server, "admin", "k1", path, &body).await.expect(201);
    assert_eq!(server.revision().await, 2);
    let again = keyed(&server, "admin", "k1", path, &body).await.expect(201);
    assert_eq!((again.json(), again.etag()), (first.json(), first.etag()));
    assert_eq!((again.header("idempotency-replayed"), again.header("content-type")), ("true", "application/json"));
    assert_eq!(server.revision().await, 2);
    let records = server.records.all();
    let repeated: Vec<_> = records.iter().filter(|record| record["repeated"] == "k1").collect();
    assert_eq!(repeated.len(), 1, "{records:?}");

    let other = proposal(2, &[("hello.md", Some(BYE), Some(HELLO))]);
    let reused = keyed(&server, "admin", "k1", path, &other).await;
    assert_eq!(reused.problem(), refused(422, "key-reused"));
    let elsewhere = keyed(&server, "admin", "k1", "/channels/other/proposals", &body).await;
    assert_eq!(elsewhere.problem(), refused(422, "key-reused"));
    assert_eq!(server.revision().await, 2);

    // A refusal changes nothing, so that it can be sent again; the key of another caller is another one.
    for _ in 0..2 {
        let conflict = keyed(&server, "admin", "k2", path, &body).await;
        assert_eq!(conflict.problem(), refused(409, "unchanged"));
    }
    let theirs = keyed(&server, "paul", "k1", path, &other).await.expect(201);
    assert_eq!(theirs.header("idempotency-replayed"), "");
    assert_eq!(server.revision().await, 3);
    // Rights are checked before keys.
    assert_eq!(keyed(&server, "reader", "k1", path, &body).await.problem(), refused(403, "insufficient-scope"));
    let long = "k".repeat(256);
    assert_eq!(keyed(&server, "admin", &long, path, &body).await.problem(), refused(400, "invalid-request"));
}

#[tokio::test]
async fn every_answer_has_the_version_of_the_api() {
    let server = Server::prepared(&policy_of(0)).await;
    let version = server.get("reader", "/channels").await.expect(200).header("promptshelf-api-version").to_owned();
    assert_eq!(version.len(), "2026-11-26".len());
    for (sent, status) in [(version.as_str(), 200), ("2020-01-01", 400)] {
        let headers = [("Promptshelf-Api-Version", sent)];
        let answer = server.send(&Method::GET, &at("/channels"), "reader", &headers, b"").await.expect(status);
        assert_eq!(answer.header("promptshelf-api-version"), version);
    }
}

//! Proposals, reviews, publishing, promotion and rollback.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use axum::http::Method;
use promptshelf_core::BoxFuture;
use promptshelf_server::{
    Builder,
    api::Api,
    channels::{LibraryChecker, StoreHandle},
    http::Options,
};
use promptshelf_service::Recorder;
use promptshelf_source::MemoryTree;
use promptshelf_store::{CheckReport, Checker, Effect, Store, StoreUrl, Trees};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::{BYE, HELLO, Server, at, changes, digest, policy_of, proposal, refused, sign_in};

#[tokio::test]
async fn proposal_is_reviewed_published_promoted_and_rolled_back() {
    let server = Server::prepared(&policy_of(1)).await;
    let (proposed, _) = server.propose(BYE).await;
    assert_eq!((&proposed["state"], &proposed["author"]), (&json!("open"), &json!("ada")));
    assert_eq!(server.revision().await, 1);
    let path = format!("/proposals/{}", proposed["id"]);

    // rita may review and not publish: the proposal waits for a publisher.
    let review = json!({ "verdict": "approve", "digest": proposed["digest"], "note": "Good" });
    let reviewed = server.post("rita", &format!("{path}/reviews"), &review).await.expect(200).json();
    assert_eq!(reviewed["proposal"]["state"], "open");
    assert_eq!(reviewed["proposal"]["lacks"], json!([]));
    let seen = json!({ "digest": proposed["digest"] });
    let published = server.post("paul", &format!("{path}/publish"), &seen).await.expect(200).json();
    assert_eq!(published["proposal"]["state"], "published");
    assert_eq!(published["proposal"]["revision"], 2);
    assert_eq!(published["prompts"], json!([{ "name": "hello", "version": 2, "previous": 1, "change": "changed" }]));
    let revision = server.get("reader", "/channels/production/revisions/2").await.expect(200).json();
    assert_eq!(revision["author"], "ada");
    assert_eq!(revision["approvedBy"], json!(["rita"]));

    // Promotion is a proposal like any other, and needs the channel.
    let promote = json!({ "from": "production", "message": "To the stable channel" });
    let missing = server.post("paul", "/channels/stable/promote", &promote).await;
    assert_eq!(missing.problem(), refused(404, "not-found"));
    server.create("stable", &policy_of(0)).await;
    let promoted = server.post("paul", "/channels/stable/promote", &promote).await.expect(201).json();
    assert_eq!(
        (&promoted["proposal"]["kind"], &promoted["proposal"]["state"]),
        (&json!("promote"), &json!("published"))
    );
    assert_eq!(server.get("reader", "/channels/stable/files/hello.md").await.expect(200).text(), BYE);

    // A rollback of a proposer waits for its approval; a dry run stores nothing.
    let rollback = json!({ "to": 1, "message": "Back", "dryRun": true });
    let dry = server.post("ada", "/channels/production/rollback", &rollback).await.expect(200).json();
    assert_eq!(dry["proposal"]["id"], 0);
    let rollback = json!({ "to": 1, "message": "Back" });
    let proposed = server.post("ada", "/channels/production/rollback", &rollback).await.expect(201).json();
    assert_eq!((&proposed["proposal"]["kind"], &proposed["proposal"]["state"]), (&json!("rollback"), &json!("open")));
    let review = json!({ "verdict": "approve", "digest": proposed["proposal"]["digest"] });
    let path = format!("/proposals/{}/reviews", proposed["proposal"]["id"]);
    let published = server.post("paul", &path, &review).await.expect(200).json();
    assert_eq!(published["proposal"]["state"], "published");
    assert_eq!(server.get("reader", "/channels/production/files/hello.md").await.expect(200).text(), HELLO);
    assert_eq!(server.revision().await, 3);
}

/// Scopes can be given out one by one.
// req: S-100
#[tokio::test]
async fn proposing_does_not_publish_without_the_scope() {
    let server = Server::prepared(&policy_of(0)).await;
    let (proposed, _) = server.propose(BYE).await;
    assert_eq!((&proposed["state"], &proposed["lacks"]), (&json!("open"), &json!([])));
    let path = format!("/proposals/{}/publish", proposed["id"]);
    let seen = json!({ "digest": proposed["digest"] });
    assert_eq!(server.post("ada", &path, &seen).await.problem(), refused(403, "insufficient-scope"));
    assert_eq!(server.revision().await, 1);
    server.post("paul", &path, &seen).await.expect(200);
    let other = proposal(2, &[("hello.md", Some(BYE), Some(HELLO))]);
    let published = server.post("paul", "/channels/production/proposals", &other).await.expect(201).json();
    assert_eq!(published["proposal"]["state"], "published");
}

// req: S-102
#[tokio::test]
async fn review_counts_for_the_changes_that_the_reviewer_saw() {
    let server = Server::prepared(&policy_of(1)).await;
    let (seen, tag) = server.propose(BYE).await;
    let path = format!("/proposals/{}", seen["id"]);
    let body = proposal(1, &[("hello.md", Some(HELLO), Some("---\ndescription: Greets\n---\nShout.\n"))]);
    let changed = server.put("ada", &path, ("If-Match", &tag), &body).await.expect(200).json();
    assert_ne!(changed["proposal"]["digest"], seen["digest"]);

    let review = json!({ "verdict": "approve", "digest": seen["digest"] });
    let stale = server.post("rita", &format!("{path}/reviews"), &review).await;
    assert_eq!(stale.problem(), refused(409, "stale-review"));
    let present = server.get("reader", &path).await.expect(200).json();
    assert_eq!((&present["state"], &present["reviews"]), (&json!("open"), &json!([])));
    let without = server.post("rita", &format!("{path}/reviews"), &json!({ "verdict": "approve" })).await;
    assert_eq!(without.problem(), refused(400, "invalid-request"));
}

#[tokio::test]
async fn approvals_are_void_after_a_change() {
    let server = Server::prepared(&policy_of(1)).await;
    let (seen, _) = server.propose(BYE).await;
    let path = format!("/proposals/{}", seen["id"]);
    let review = json!({ "verdict": "approve", "digest": seen["digest"] });
    let approved = server.post("rita", &format!("{path}/reviews"), &review).await.expect(200);
    let body = proposal(1, &[("hello.md", Some(HELLO), Some("---\ndescription: Greets\n---\nShout.\n"))]);
    server.put("ada", &path, ("If-Match", &approved.etag()), &body).await.expect(200);
    let publish = async |digest: &serde_json::Value| {
        server.post("paul", &format!("{path}/publish"), &json!({ "digest": digest })).await
    };
    assert_eq!(publish(&seen["digest"]).await.problem(), refused(409, "stale-review"));
    let present = server.get("reader", &path).await.json();
    let refusal = publish(&present["digest"]).await;
    assert_eq!(refusal.problem(), refused(409, "policy"));
    assert_eq!(refusal.json()["lacks"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.revision().await, 1);
}

#[tokio::test]
async fn two_edits_of_one_file_conflict_and_of_two_files_do_not() {
    let server = Server::prepared(&policy_of(0)).await;
    let path = "/channels/production/proposals";
    let first = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    let other = proposal(1, &[("other.md", None, Some(HELLO))]);
    server.post("paul", path, &first).await.expect(201);
    server.post("paul", path, &other).await.expect(201);
    let late = proposal(1, &[("hello.md", Some(HELLO), Some("---\ndescription: x\n---\nShout.\n"))]);
    let refusal = server.post("paul", path, &late).await;
    assert_eq!(refusal.problem(), refused(409, "conflict"));
    assert_eq!(refusal.json()["paths"], json!(["hello.md"]));
    assert_eq!(refusal.json()["revision"], 3);
    assert_eq!(server.get("reader", "/channels/production/files/hello.md").await.expect(200).text(), BYE);
}

#[tokio::test]
async fn emergency_needs_a_reason_and_an_administrator() {
    let server = Server::prepared(&policy_of(2)).await;
    let (proposed, _) = server.propose(BYE).await;
    let path = format!("/proposals/{}/publish", proposed["id"]);
    let digest = &proposed["digest"];
    let emergency = json!({ "digest": digest, "emergency": "The old text is harmful" });
    let refusal = server.post("paul", &path, &emergency).await;
    assert_eq!(refusal.problem(), refused(403, "insufficient-scope"));
    assert_eq!(server.post("admin", &path, &json!({ "digest": digest })).await.problem(), refused(409, "policy"));
    let empty = server.post("admin", &path, &json!({ "digest": digest, "emergency": "" })).await;
    assert_eq!(empty.problem(), refused(400, "invalid-request"));
    assert_eq!(server.revision().await, 1);
    server.post("admin", &path, &emergency).await.expect(200);
    let revision = server.get("reader", "/channels/production/revisions/2").await.expect(200).json();
    assert_eq!(revision["emergency"], "The old text is harmful");
}

/// Four eyes would be two if one person could write what another one proposed, and approve it.
// req: S-101
#[tokio::test]
async fn only_the_author_changes_and_withdraws_a_proposal() {
    let server = Server::prepared(&policy_of(1)).await;
    let (proposed, tag) = server.propose(BYE).await;
    let path = format!("/proposals/{}", proposed["id"]);
    let body = proposal(1, &[("hello.md", Some(HELLO), Some("Mine.\n"))]);
    for caller in ["bob", "admin"] {
        let refusal = server.put(caller, &path, ("If-Match", &tag), &body).await;
        assert_eq!(refusal.problem(), refused(403, "not-author"));
        let refusal = server.send(&Method::DELETE, &at(&path), caller, &[("If-Match", &tag)], b"").await;
        assert_eq!(refusal.problem(), refused(403, "not-author"));
    }
    let withdrawn = server.send(&Method::DELETE, &at(&path), "ada", &[("If-Match", &tag)], b"").await.expect(200);
    assert_eq!(withdrawn.json()["state"], "withdrawn");
    let again = server.send(&Method::DELETE, &at(&path), "ada", &[("If-Match", &withdrawn.etag())], b"").await;
    assert_eq!(again.problem(), refused(409, "state"));
}

#[tokio::test]
async fn author_cannot_approve_with_four_eyes() {
    let server = Server::prepared(&policy_of(1)).await;
    let body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    let proposed = server.post("paul", "/channels/production/proposals", &body).await.expect(201).json();
    let review = json!({ "verdict": "approve", "digest": proposed["proposal"]["digest"] });
    let path = format!("/proposals/{}/reviews", proposed["proposal"]["id"]);
    assert_eq!(server.post("paul", &path, &review).await.problem(), refused(409, "policy"));
    assert_eq!(server.revision().await, 1);
}

/// A reviewer who may not check changes sees what keeps a proposal out, and is not offered an approval that publishes nothing.
// req: S-520
#[tokio::test]
async fn proposal_names_its_errors_failed_tests_and_conflicts() {
    let mut policy = policy_of(1);
    policy["tests"] = json!(true);
    let server = Server::prepared(&policy).await;
    let broken = "---\ndescription: Breaks\n---\n{{ nobody }}\n";
    let tested = "---\ndescription: Parts\ntests: [{ name: short, contains: [farewell] }]\n---\nGoodbye.\n";
    let files =
        [("broken.md", None, Some(broken)), ("bye.md", None, Some(tested)), ("hello.md", Some(HELLO), Some(BYE))];
    let created = server.post("ada", "/channels/production/proposals", &proposal(1, &files)).await.expect(201);
    let path = format!("/proposals/{}", created.json()["proposal"]["id"]);
    let read = server.get("rita", &path).await.expect(200);
    assert_eq!(read.etag(), created.etag());
    let told = read.json();
    let found: Vec<&str> = told["findings"].as_array().expect("a list").iter().filter_map(|one| one.as_str()).collect();
    assert!(found.iter().any(|found| found.starts_with("broken.md:4:") && found.contains("nobody")), "{found:?}");
    assert!(found.iter().any(|found| found.starts_with("bye.md:3:") && found.contains("bye / short")), "{found:?}");
    let listed = server.get("rita", "/proposals?state=open").await.expect(200).json();
    assert_eq!((listed["items"][0]["id"].as_u64(), listed["items"][0].get("findings")), (Some(2), None));
    let offered = async || {
        let permissions = server.get("rita", &format!("{path}/permissions")).await.expect(200).json();
        let reviews = server.get("rita", "/reviews").await.expect(200).json();
        (permissions["approve"]["allowed"].clone(), reviews["items"][0]["reviewWanted"].clone())
    };
    assert_eq!(offered().await, (json!(true), json!(true)));
    let mut fixed = proposal(1, &[("hello.md", Some(HELLO), Some("---\ndescription: Greets\n---\nHi.\n"))]);
    fixed["emergency"] = json!("an outage");
    server.post("admin", "/channels/production/proposals", &fixed).await.expect(201);
    let told = server.get("rita", &path).await.expect(200).json();
    assert_eq!(told["reasons"][0]["code"], "changed-since", "{told}");
    let permissions = server.get("rita", &format!("{path}/permissions")).await.expect(200).json();
    assert_eq!(permissions["approve"]["reasons"][0]["code"], "changed-since", "{permissions}");
    // Other changes replace the findings.
    let tag = server.get("ada", &path).await.etag();
    let body = proposal(2, &[("bye.md", None, Some("---\ndescription: Parts\n---\nGoodbye.\n"))]);
    server.put("ada", &path, ("If-Match", &tag), &body).await.expect(200);
    assert_eq!(server.get("rita", &path).await.expect(200).json().get("findings"), None);
}

#[tokio::test]
async fn check_shows_findings_and_renderings_and_stores_nothing() {
    let server = Server::prepared(&policy_of(0)).await;
    let broken = "---\ndescription: Breaks\n---\n{{ nothing(\n";
    let body = json!({
        "channel": "production",
        "changes": changes(&[
            ("hello.md", Some(HELLO), Some(BYE)),
            ("new.md", None, Some("---\ndescription: New\narguments: [{name: who, required: true}]\n---\nHi {{ who }}\n")),
            ("broken.md", None, Some(broken)),
        ]),
    });
    let checked = server.post("ada", "/check", &body).await.expect(200).json();
    assert_eq!(checked["revision"], 1);
    assert!(checked["summary"]["errors"].as_u64() >= Some(1), "{checked}");
    assert!(checked["findings"][0].as_str().is_some_and(|finding| finding.contains("broken.md:4")), "{checked}");
    let hello = json!({
        "name": "hello",
        "change": "changed",
        "before": { "text": "[user] text\nSay hello.\n" },
        "after": { "text": "[user] text\nSay goodbye.\n" },
    });
    let new = json!({
        "name": "new",
        "change": "added",
        "before": null,
        "after": { "text": "[user] text\nHi ‹who›\n" },
    });
    assert_eq!(checked["prompts"], json!([hello, new]));
    let removal = json!({ "channel": "production", "changes": changes(&[("hello.md", Some(HELLO), None)]) });
    let checked = server.post("ada", "/check", &removal).await.expect(200).json();
    assert_eq!((&checked["prompts"][0]["change"], &checked["prompts"][0]["after"]), (&json!("removed"), &json!(null)));
    let stale = json!({ "channel": "production", "changes": changes(&[("hello.md", Some(BYE), None)]) });
    assert_eq!(server.post("ada", "/check", &stale).await.problem(), refused(409, "conflict"));
    assert_eq!(server.revision().await, 1);
    let proposals = server.get("reader", "/channels/production/proposals").await.expect(200).json();
    assert_eq!(proposals["items"].as_array().map(Vec::len), Some(1));
}

/// The identity comes from sign-in alone.
// req: S-101
#[tokio::test]
async fn author_is_the_authenticated_caller() {
    let server = Server::prepared(&policy_of(0)).await;
    let mut body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    body["author"] = json!("admin");
    let refusal = server.post("ada", "/channels/production/proposals", &body).await;
    assert_eq!(refusal.problem(), refused(400, "invalid-request"));
    assert!(refusal.json()["detail"].as_str().is_some_and(|detail| detail.contains("unknown field `author`")));
    assert_eq!(server.propose(BYE).await.0["author"], "ada");
}

#[tokio::test]
async fn contents_of_a_proposal_are_text_or_base64() {
    let server = Server::prepared(&policy_of(1)).await;
    let body = serde_json::json!({
        "base": 1,
        "message": "A change",
        "changes": [
            { "path": "bytes.bin", "before": null, "content": { "base64": "AP8B" } },
            { "path": "hello.md", "before": digest(HELLO), "content": { "text": BYE } },
            { "path": "x.txt", "before": null, "content": { "text": "x" } },
        ],
    });
    let proposed = server.post("ada", "/channels/production/proposals", &body).await.expect(201).json();
    let path = format!("/proposals/{}/contents", proposed["proposal"]["id"]);
    let first = server.get("reader", &format!("{path}?limit=2")).await.expect(200).json();
    assert_eq!(
        first["items"],
        json!([
            { "path": "bytes.bin", "before": null, "after": { "base64": "AP8B" } },
            { "path": "hello.md", "before": { "text": HELLO }, "after": { "text": BYE } },
        ])
    );
    assert_eq!(first["digest"], proposed["proposal"]["digest"]);
    let next = first["next"].as_str().expect("a cursor");
    let last = server.get("reader", &format!("{path}?limit=2&cursor={next}")).await.expect(200).json();
    assert_eq!((&last["items"][0]["path"], &last["next"]), (&json!("x.txt"), &json!(null)));
    let one = server.get("reader", &format!("{path}?path=hello.md")).await.expect(200).json();
    assert_eq!(one["items"], json!([first["items"][1]]));
}

/// Waits in the check of a tree with `slow.md`, until it is released.
struct SlowChecker {
    started: Mutex<Option<oneshot::Sender<()>>>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl SlowChecker {
    fn wait(&self, tree: &MemoryTree) {
        if tree.get("slow.md").is_some() {
            if let Some(started) = self.started.lock().expect("not poisoned").take() {
                started.send(()).expect("the test waits");
            }
            // An error, too, is a release.
            self.released.lock().expect("not poisoned").recv().ok();
        }
    }
}

impl Checker for SlowChecker {
    fn check(&self, tree: &MemoryTree, run_tests: bool) -> CheckReport {
        self.wait(tree);
        LibraryChecker::new().check(tree, run_tests)
    }

    fn check_replacement(&self, trees: &Trees, run_tests: bool) -> (CheckReport, Vec<Effect>) {
        self.wait(&trees.after);
        LibraryChecker::new().check_replacement(trees, run_tests)
    }
}

/// A proposal whose check took 20 seconds kept everybody else's publish to the channel waiting.
// req: S-276
#[tokio::test]
async fn authors_do_not_wait_for_the_checks_of_others() {
    let folder = TempDir::new().expect("a folder");
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    Store::create(&url).await.expect("a store");
    let ((started, is_started), (release, released)) = (oneshot::channel(), mpsc::channel());
    let checker = Arc::new(SlowChecker { started: Mutex::new(Some(started)), released: Mutex::new(released) });
    let of = url.clone();
    let options = move |options: &mut Options| {
        options.sign_in = Some(sign_in());
        options.api = Some(Api::new(StoreHandle::new(of.clone()), Arc::clone(&checker) as Arc<dyn Checker>));
    };
    let server = Arc::new(Server::on(url, folder, |builder| builder, options).await);
    server.prepare(&policy_of(0)).await;
    let slow = {
        let (server, body) = (Arc::clone(&server), proposal(1, &[("slow.md", None, Some(BYE))]));
        tokio::spawn(async move { server.post("ada", "/channels/production/proposals", &body).await })
    };
    is_started.await.expect("the check has started");
    let change = [("hello.md", Some(HELLO), Some(BYE))];
    let check = json!({ "channel": "production", "changes": changes(&change) });
    server.post("bob", "/check", &check).await.expect(200);
    server
        .post("bob", "/channels/production/analysis", &json!({ "path": "hello.md", "changes": [] }))
        .await
        .expect(200);
    let published = server.post("paul", "/channels/production/proposals", &proposal(1, &change)).await.expect(201);
    assert_eq!(published.json()["proposal"]["state"], "published");
    assert_eq!(server.revision().await, 2);
    assert!(!slow.is_finished());
    drop(release);
    let slow = slow.await.expect("no panic").expect(201).json();
    assert_eq!(slow["proposal"]["state"], "open", "ada may not publish: {slow}");
}

// req: S-351
#[tokio::test]
async fn what_is_not_published_has_a_quota() {
    let change = |options: &mut Options| {
        options.sign_in = Some(sign_in());
        options.api = options.api.take().map(|api| api.unpublished_bytes(1_000));
    };
    let server = Server::with(|builder| builder, change).await;
    server.prepare(&policy_of(1)).await;
    let upload = async |letter: &str| {
        let body = json!({ "contents": [{ "text": letter.repeat(600) }] });
        server.post("ada", "/channels/production/uploads", &body).await
    };
    upload("a").await.expect(200);
    let refused_upload = upload("b").await;
    assert_eq!(refused_upload.problem(), refused(429, "quota"));
    assert!(refused_upload.text().contains("may have 1000 bytes for each caller, and with these you have 1200"));
    let large = proposal(1, &[("b.md", None, Some(&"b".repeat(600)))]);
    assert_eq!(server.post("ada", "/channels/production/proposals", &large).await.problem(), refused(429, "quota"));
    server.post("bob", "/channels/production/proposals", &large).await.expect(201);
    upload("a").await.expect(200);
}

// req: S-351
#[tokio::test]
async fn full_disk_is_507_and_readiness_says_so() {
    let folder = TempDir::new().expect("a folder");
    let url: StoreUrl = format!("sqlite:{}", folder.path().join("team.db").display()).parse().expect("a URL");
    Store::create(&url).await.expect("a store");
    let handle = StoreHandle::new(url.clone());
    let of = handle.clone();
    let options = move |options: &mut Options| {
        options.api = Some(Api::new(of.clone(), Arc::new(LibraryChecker::new())));
    };
    let server = Server::on(url, folder, |builder| builder, options).await;
    server.prepare(&policy_of(0)).await;
    let store = handle.get().await.expect("a store");
    let ready = async || server.send(&Method::GET, "/readyz", "", &[], b"").await.expect(200).text().to_owned();
    let upload = json!({ "contents": [{ "text": "x".repeat(2_000_000) }] });
    let upload = async || server.post("", "/channels/production/uploads", &upload).await;
    assert_eq!(ready().await, "ready\n");
    store.limit_pages(300).await.expect("a limit");
    assert_eq!(upload().await.problem(), refused(507, "store-full"));
    assert_eq!(ready().await, "degraded: the disk of the store is full, and nothing can be published\n");
    assert_eq!(server.get("", "/channels/production/files/hello.md").await.expect(200).text(), HELLO);
    store.limit_pages(1_000_000).await.expect("a limit");
    upload().await.expect(200);
    assert_eq!(ready().await, "ready\n");
}

/// An audit whose disk has room for some records, and whose losses refuse requests.
#[derive(Debug, Default)]
struct SmallDisk {
    room: AtomicUsize,
    lost: Arc<AtomicUsize>,
}

impl Recorder for SmallDisk {
    fn record(&self, _: String) {
        let taken = self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |room| room.checked_sub(1));
        if taken.is_err() {
            self.lost.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn confirmation(&self) -> Option<BoxFuture<'static, bool>> {
        let (before, lost) = (self.lost.load(Ordering::SeqCst), Arc::clone(&self.lost));
        Some(Box::pin(async move { lost.load(Ordering::SeqCst) == before }))
    }
}

// req: S-582
#[tokio::test]
async fn change_that_cannot_be_recorded_is_not_made() {
    let disk = Arc::new(SmallDisk::default());
    disk.room.store(1_000, Ordering::SeqCst);
    let audit = Arc::clone(&disk);
    let build = move |builder: Builder| builder.audit(Arc::clone(&audit) as Arc<dyn Recorder>);
    let server = Server::with(build, |options| options.sign_in = Some(sign_in())).await;
    server.prepare(&policy_of(0)).await;
    let revision = async || {
        let store = server.store().await;
        let revision = store.head(&"production".parse().expect("a name")).await.expect("a head").revision;
        store.close().await;
        revision
    };
    let change = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    // Without room nothing is made; with room for the beginning alone the answer says that the change was made.
    for (room, made, word) in [(0, 1, "Requests cannot be recorded"), (1, 2, "The change was made")] {
        disk.room.store(room, Ordering::SeqCst);
        let answer = server.post("admin", "/channels/production/proposals", &change).await;
        assert!(answer.text().contains(word), "{}", answer.text());
        assert_eq!((answer.problem(), revision().await), (refused(503, "not-recorded"), made));
    }
    disk.room.store(0, Ordering::SeqCst);
    let created = server.post("admin", "/tokens", &json!({ "name": "ci", "scopes": ["library:read"] })).await;
    assert_eq!(created.problem(), refused(503, "not-recorded"));
    let read = server.get("admin", "/channels/production").await;
    assert_eq!(read.problem(), refused(503, "not-recorded"));
    disk.room.store(1_000, Ordering::SeqCst);
    assert_eq!(server.get("admin", "/tokens").await.json()["items"], json!([]));
}

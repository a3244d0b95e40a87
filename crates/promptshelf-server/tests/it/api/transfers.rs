//! Many contents in one request, and what commands need beyond single files: dry runs, emergencies, new channels.

use axum::http::Method;
use promptshelf_store::Digest;
use serde_json::{Value, json};

use super::{BYE, HELLO, Server, digest, policy_of, proposal, refused};

const PROPOSALS: &str = "/channels/production/proposals";

#[tokio::test]
async fn uploaded_contents_are_proposed_by_digest() {
    let server = Server::prepared(&policy_of(0)).await;
    let uploads = "/channels/production/uploads";
    let contents = json!({ "contents": [{ "text": BYE }, { "base64": "AP8=" }] });
    let uploaded = server.post("paul", uploads, &contents).await.expect(200).json();
    assert_eq!(uploaded["digests"][0], digest(BYE));
    let mut body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE)), ("bytes.bin", None, Some(""))]);
    body["changes"][0]["content"] = json!({ "digest": digest(BYE) });
    body["changes"][1]["content"] = json!({ "digest": uploaded["digests"][1] });
    server.post("paul", PROPOSALS, &body).await.expect(201);
    let wanted = json!({ "paths": ["hello.md", "bytes.bin"] });
    let read = server.post("reader", "/channels/production/contents", &wanted).await.expect(200).json();
    assert_eq!((&read["revision"], &read["files"][0]["content"]), (&json!(2), &json!({ "text": BYE })));
    assert_eq!(read["files"][1]["content"], json!({ "base64": "AP8=" }));
    // A content that the store lacks.
    body["changes"] = json!([{ "path": "new.md", "before": null, "content": { "digest": digest("missing") } }]);
    assert_eq!(server.post("paul", PROPOSALS, &body).await.problem(), refused(404, "not-found"));
    assert_eq!(server.revision().await, 2);
    // Reading alone does not permit an upload, and no upload is without its channel.
    assert_eq!(server.post("reader", uploads, &contents).await.problem(), refused(403, "insufficient-scope"));
    let other = server.post("ada", "/channels/other/uploads", &contents).await;
    assert_eq!(other.problem(), refused(404, "not-found"));
    for (paths, expected) in [
        (json!(["missing.md"]), refused(404, "not-found")),
        (json!(["../hello.md"]), refused(404, "not-found")),
        (Value::Array(vec![json!("hello.md"); 5_001]), refused(400, "invalid-request")),
    ] {
        let answer = server.post("reader", "/channels/production/contents", &json!({ "paths": paths })).await;
        assert_eq!(answer.problem(), expected);
    }
}

// req: S-521
#[tokio::test]
async fn large_content_is_uploaded_in_parts_of_raw_bytes() {
    let server = Server::prepared(&policy_of(0)).await;
    let content: Vec<u8> = (0..1_500_000_u32).flat_map(u32::to_le_bytes).take(1_000_000).collect();
    let digest = Digest::of(&content).to_string();
    let path = format!("/channels/production/uploads/{digest}");
    let put = async |caller: &str, offset: usize, part: &[u8]| {
        let path = super::at(&format!("{path}?offset={offset}&size={}", content.len()));
        server.send(&Method::PUT, &path, caller, &[("Content-Type", "application/octet-stream")], part).await
    };
    let too_large = put("paul", 0, &content[..(768 << 10) + 1]).await;
    assert_eq!(too_large.problem(), refused(413, "too-large"));
    let first = put("paul", 0, &content[..768 << 10]).await.expect(200).json();
    assert_eq!(first, json!({ "received": 768 << 10, "isComplete": false }));
    assert_eq!(server.get("paul", &path).await.expect(200).json(), first);
    assert_eq!(put("paul", 800_000, &content[800_000..]).await.problem(), refused(409, "state"));
    // Nobody continues, sees or completes the upload of another caller.
    assert_eq!(server.get("ada", &path).await.expect(200).json()["received"], 0);
    assert_eq!(put("ada", 768 << 10, &content[768 << 10..]).await.problem(), refused(409, "state"));
    assert_eq!(put("reader", 0, b"x").await.problem(), refused(403, "insufficient-scope"));
    let last = put("paul", 768 << 10, &content[768 << 10..]).await.expect(200).json();
    assert_eq!(last, json!({ "received": content.len(), "isComplete": true }));
    let mut body = proposal(1, &[("bytes.bin", None, Some(""))]);
    body["changes"][0]["content"] = json!({ "digest": digest });
    server.post("paul", PROPOSALS, &body).await.expect(201);
    assert!(server.get("reader", "/channels/production/files/bytes.bin").await.expect(200).body == content);
    // Bytes that do not fit the digest are forgotten.
    let wrong = format!("/channels/production/uploads/{}?offset=0&size=1", Digest::of(b"y"));
    let raw = [("Content-Type", "application/octet-stream")];
    let answer = server.send(&Method::PUT, &super::at(&wrong), "paul", &raw, b"x").await;
    assert_eq!(answer.problem(), refused(422, "digest-mismatch"));
    let json = server.put("paul", &wrong, ("", ""), &json!({})).await;
    assert_eq!(json.problem(), refused(415, "unsupported-media-type"));
}

#[tokio::test]
async fn dry_run_of_a_proposal_stores_nothing() {
    let server = Server::prepared(&policy_of(1)).await;
    let mut body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    body["dryRun"] = json!(true);
    let checked = server.post("paul", PROPOSALS, &body).await.expect(200).json();
    assert_eq!((&checked["proposal"]["id"], &checked["prompts"][0]["name"]), (&json!(0), &json!("hello")));
    assert!(checked["proposal"]["lacks"].as_array().is_some_and(|lacks| !lacks.is_empty()), "{checked}");
    let all = server.get("reader", "/proposals").await.expect(200).json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1), "{all}");
}

#[tokio::test]
async fn emergency_needs_publish_and_admin() {
    let server = Server::prepared(&policy_of(1)).await;
    let mut body = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]);
    body["emergency"] = json!("a leak");
    for caller in ["ada", "paul", "without-publish", "without-admin"] {
        let answer = server.post(caller, PROPOSALS, &body).await;
        assert_eq!(answer.problem(), refused(403, "insufficient-scope"), "{caller}");
    }
    assert_eq!(server.revision().await, 1);
    let published = server.post("admin", PROPOSALS, &body).await.expect(201).json();
    assert_eq!(published["proposal"]["revision"], 2);
    let revision = server.get("reader", "/channels/production/revisions/2").await.expect(200).json();
    assert_eq!(revision["emergency"], "a leak");
}

#[tokio::test]
async fn only_administrators_make_a_channel_by_proposing_to_it() {
    let server = Server::prepared(&policy_of(0)).await;
    let body = proposal(0, &[("hello.md", None, Some(HELLO))]);
    let copy = json!({ "from": "production", "message": "Copy" });
    for caller in ["paul", "without-admin"] {
        for (path, body) in [("/channels/new/proposals", &body), ("/channels/copy/promote", &copy)] {
            assert_eq!(server.post(caller, path, body).await.problem(), refused(404, "not-found"), "{caller} {path}");
        }
    }
    server.post("admin", "/channels/new/proposals", &body).await.expect(201);
    server.post("admin", "/channels/copy/promote", &copy).await.expect(201);
    let channels = server.get("reader", "/channels").await.expect(200).json();
    let names: Vec<&Value> = channels["items"].as_array().expect("channels").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["copy", "new", "production"]);
    // One list has the proposals of all of them, in pages.
    let first = server.get("reader", "/proposals?limit=2").await.expect(200).json();
    let ids = |page: &Value| -> Vec<u64> {
        page["items"].as_array().expect("proposals").iter().filter_map(|one| one["id"].as_u64()).collect()
    };
    assert_eq!(ids(&first), [3, 2]);
    let next = first["next"].as_str().expect("a cursor");
    let rest = server.get("reader", &format!("/proposals?limit=2&cursor={next}")).await.expect(200).json();
    assert_eq!((ids(&rest), &rest["next"]), (vec![1], &json!(null)));
    let of_copy = server.get("reader", "/proposals?channel=copy").await.expect(200).json();
    assert_eq!(of_copy["items"][0]["kind"], "promote");
}

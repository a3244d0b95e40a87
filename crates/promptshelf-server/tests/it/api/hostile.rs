//! Malformed, huge and foreign requests: a clear refusal, and nothing changes.

use axum::http::Method;
use serde_json::json;

use super::{BYE, HELLO, Server, at, digest, policy_of, proposal, refused, sign_in};

const PROPOSALS: &str = "/channels/production/proposals";
const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let server = Server::prepared(&policy_of(0)).await;
    let good = proposal(1, &[("hello.md", Some(HELLO), Some(BYE))]).to_string();
    let change = |change: serde_json::Value| json!({ "base": 1, "message": "x", "changes": [change] }).to_string();
    for body in [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "[".repeat(100_000),
        good.replace("\"base\":1", "\"base\":-1"),
        good.replace("\"base\":1", "\"base\":1.5"),
        good.replace("\"base\":1", "\"base\":18446744073709551616"),
        good.replace("\"base\":1", "\"base\":1,\"base\":1"),
        good.replace("\"base\":1", "\"base\":1,\"state\":true"),
        format!("{good} x"),
        change(json!({ "path": "a.md", "before": null })),
        change(json!({ "path": "a.md", "content": { "text": "x" } })),
        change(json!({ "path": "a.md", "before": "abc", "content": { "text": "x" } })),
        change(json!({ "path": "a.md", "before": null, "content": { "text": "x", "base64": "eA==" } })),
        change(json!({ "path": "a.md", "before": null, "content": { "base64": "e" } })),
        change(json!({ "path": "a.md", "before": null, "content": "x" })),
    ] {
        let answer = server.send(&Method::POST, &at(PROPOSALS), "paul", &[JSON], body.as_bytes()).await;
        let shown = &body[..body.len().min(80)];
        assert_eq!(answer.problem(), refused(400, "invalid-request"), "{shown}");
    }
    let not_utf8 = server.send(&Method::POST, &at(PROPOSALS), "paul", &[JSON], b"{\"base\":\"\xff\"}").await;
    assert_eq!(not_utf8.problem(), refused(400, "invalid-request"));
    assert_eq!(server.revision().await, 1);
}

#[tokio::test]
async fn paths_outside_of_a_library_are_refused() {
    let server = Server::prepared(&policy_of(0)).await;
    let long = format!("{}.md", "a/".repeat(2_000));
    for path in [
        "",
        "../a.md",
        "/a.md",
        "a/../b.md",
        "a//b.md",
        "./a.md",
        "a\0.md",
        "con.md",
        "a\\b.md",
        "C:/a.md",
        ".git/config",
        &long,
    ] {
        let body = proposal(1, &[(path, None, Some("x"))]);
        assert_eq!(server.post("paul", PROPOSALS, &body).await.problem(), refused(400, "invalid-request"), "{path:?}");
        let check = json!({ "channel": "production", "changes": body["changes"] });
        let refusal = server.post("paul", "/check", &check).await;
        assert_eq!(refusal.problem(), refused(400, "invalid-request"), "{path:?}");
        assert!(refusal.body.len() < 2_000);
    }
    assert_eq!(server.revision().await, 1);
    for path in ["../../etc/passwd", "%2e%2e%2fhello.md", "%2fetc%2fpasswd", "%00", "none"] {
        let answer = server.get("reader", &format!("/channels/production/files/{path}")).await;
        assert!(matches!(answer.problem().0, 400 | 404), "{path} {answer:?}");
    }
    assert_eq!(server.get("reader", "/channels/production/files/%ff").await.problem(), refused(400, "invalid-request"));
}

#[tokio::test]
async fn malformed_paths_and_queries_are_refused() {
    let server = Server::prepared(&policy_of(0)).await;
    for path in [
        "/channels/UPPER",
        "/channels/%2e%2e",
        "/channels/a%20b",
        "/proposals/abc",
        "/proposals/-1",
        "/proposals/18446744073709551616",
        "/channels/production/revisions/0x1",
        "/channels/production/tree?limit=0",
        "/channels/production/tree?limit=10001",
        "/channels/production/tree?limit=a",
        "/channels/production/tree?revisoin=1",
        "/channels/production/tree?revision=1&revision=2",
        "/channels/production/revisions?at=tuesday",
        "/channels/production/proposals?state=closed",
        "/channels/production/diff",
    ] {
        assert_eq!(server.get("reader", path).await.problem(), refused(400, "invalid-request"), "{path}");
    }
    for path in ["", "/", "/nothing", "/channels/production/files/", "/v2"] {
        assert_eq!(server.get("reader", path).await.problem(), refused(404, "not-found"), "{path}");
    }
    // The numbers of SQL databases are signed.
    for path in ["/proposals/18446744073709551615", "/channels/production/revisions/9223372036854775808"] {
        let (status, _) = server.get("reader", path).await.problem();
        assert!(matches!(status, 400 | 404), "{path}");
    }
    let wrong = server.send(&Method::PATCH, &at("/channels"), "reader", &[], b"").await;
    assert_eq!(wrong.problem(), refused(405, "method-not-allowed"));
    assert_eq!(wrong.header("allow"), "GET,HEAD");
}

/// A form of another site sends no JSON without asking first, and its origin otherwise.
// req: S-99
#[tokio::test]
async fn foreign_pages_cannot_use_the_api() {
    let server = Server::with(|builder| builder, |_| {}).await;
    let body = policy_of(0).to_string();
    let path = at("/channels/production/policy");
    let creation = ("If-None-Match", "*");
    for (name, value) in [("Origin", "https://evil.example"), ("Origin", "null")] {
        let answer = server.send(&Method::PUT, &path, "", &[JSON, creation, (name, value)], body.as_bytes()).await;
        assert_eq!(answer.problem(), refused(403, "foreign-request"));
    }
    let rebound = format!("GET {} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", at("/channels"));
    assert_eq!(server.raw(rebound.as_bytes()).await.problem(), refused(403, "foreign-request"));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json2"] {
        let headers = [("Content-Type", kind), creation];
        let answer = server.send(&Method::PUT, &path, "", &headers, body.as_bytes()).await;
        assert_eq!(answer.problem(), refused(415, "unsupported-media-type"), "{kind}");
    }
    let missing = server.send(&Method::PUT, &path, "", &[creation], body.as_bytes()).await;
    assert_eq!(missing.problem(), refused(415, "unsupported-media-type"));
    let coded = server.send(&Method::PUT, &path, "", &[JSON, creation, ("Content-Encoding", "gzip")], b"x").await;
    assert_eq!(coded.problem(), refused(415, "unsupported-media-type"));
    assert_eq!(server.get("", "/channels").await.expect(200).json(), json!({ "items": [], "next": null }));
    let own = [JSON, creation, ("Origin", "http://localhost:8080")];
    server.send(&Method::PUT, &path, "", &own, body.as_bytes()).await.expect(201);
}

#[tokio::test]
async fn large_bodies_are_refused_unread() {
    let server = Server::with(
        |builder| builder,
        |options| {
            options.sign_in = Some(sign_in());
            options.mcp.max_body_bytes = 10_000;
        },
    )
    .await;
    server.create("production", &policy_of(0)).await;
    let large = "x".repeat(20_000);
    let body = proposal(0, &[("a.txt", None, Some(&large))]);
    assert_eq!(server.post("paul", PROPOSALS, &body).await.problem(), refused(413, "too-large"));
    // Scopes come first.
    assert_eq!(server.post("reader", PROPOSALS, &body).await.problem(), refused(403, "insufficient-scope"));
    let small = proposal(0, &[("a.txt", None, Some("x"))]);
    server.post("paul", PROPOSALS, &small).await.expect(201);
}

/// A file of a library is never a page of the server.
#[tokio::test]
async fn files_do_not_run_in_a_browser() {
    let server = Server::prepared(&policy_of(0)).await;
    let body = json!({
        "base": 1,
        "message": "A page",
        "changes": [
            { "path": "page.html", "before": null, "content": { "text": "<script>alert(1)</script>" } },
            { "path": "bytes.bin", "before": null, "content": { "base64": "AP8B" } },
        ],
    });
    server.post("paul", PROPOSALS, &body).await.expect(201);
    let page = server.get("reader", "/channels/production/files/page.html").await.expect(200);
    assert_eq!(page.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("content-disposition"), "attachment");
    assert!(page.header("content-security-policy").contains("sandbox"));
    let bytes = server.get("reader", "/channels/production/files/bytes.bin").await.expect(200);
    assert_eq!((bytes.header("content-type"), &*bytes.body), ("application/octet-stream", &[0, 255, 1][..]));
    assert_eq!(bytes.etag().len(), digest("").len() + 2);
}

#[tokio::test]
async fn missing_store_is_reported_without_its_address() {
    let folder = tempfile::TempDir::new().expect("a folder");
    // A port on which nothing listens: one that was free a moment ago.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let url = format!("postgres://ada:hunter2@127.0.0.1:{port}/secret_database").parse().expect("a URL");
    let server = Server::on(url, folder, |builder| builder, |_| {}).await;
    let answer = server.get("", "/channels").await;
    assert_eq!(answer.problem(), refused(503, "store-unreachable"));
    assert!(answer.headers.contains_key("retry-after"));
    for secret in ["hunter2", "secret_database", "127.0.0.1"] {
        assert!(!answer.text().contains(secret), "{answer:?}");
    }
}

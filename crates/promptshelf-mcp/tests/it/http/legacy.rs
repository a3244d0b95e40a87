//! Requests of the legacy revisions.

use promptshelf_mcp::HttpOptions;
use serde_json::json;

use super::endpoint::{Ask, Endpoint, MODERN, VERSION, greet, initialize, piece};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

// req: L33, M2
#[tokio::test]
async fn initialize_negotiates_revision_of_body() {
    let endpoint = Endpoint::new();
    for revision in LEGACY {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(revision) });
        // `initialize` is independent of the header.
        for ask in [Ask::message(&message), Ask::message(&message).header(VERSION, "v999")] {
            let answer = endpoint.ask(ask).await;
            assert_eq!(answer.result()["protocolVersion"], revision);
            assert_eq!(answer.header("mcp-session-id").map(str::len), Some(32));
        }
    }
    for revision in [MODERN, "v999"] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(revision) });
        assert_eq!(endpoint.ask(Ask::message(&message)).await.result()["protocolVersion"], "2025-11-25");
    }
}

// req: DC1, L37, L38, L45, M18
#[tokio::test]
async fn response_uses_revision_of_header() {
    let endpoint = Endpoint::new();
    for revision in LEGACY {
        let list = endpoint.ask(Ask::legacy(revision, "prompts/list", &json!({}))).await.result();
        let titled = matches!(revision, "2025-06-18" | "2025-11-25");
        assert_eq!(list["prompts"][0].get("title").is_some(), titled, "{revision}");
        assert_eq!(list.get("resultType"), None);
        assert_eq!(endpoint.ask(Ask::legacy(revision, "ping", &json!({}))).await.result(), json!({}));
    }
    let unnamed = endpoint.ask(Ask::legacy("", "prompts/list", &json!({})).without(VERSION)).await.result();
    assert_eq!(unnamed["prompts"][0].get("title"), None);
}

// req: L37
#[tokio::test]
async fn unsupported_version_lists_supported() {
    let endpoint = Endpoint::new();
    for version in ["v999", "", "2025-11-25, 2025-11-25", "2025-11-26", "é"] {
        let answer = endpoint.ask(Ask::legacy(version, "prompts/list", &json!({}))).await;
        assert_eq!(answer.error(), (400, -32600, None), "{version}");
    }
    let twice = Ask::legacy("2025-11-25", "prompts/list", &json!({})).also(VERSION, "2025-11-25");
    assert_eq!(endpoint.ask(twice).await.error(), (400, -32600, None));
    let answer = endpoint.ask(Ask::legacy("v999", "prompts/list", &json!({}))).await;
    assert!(answer.json()["error"]["message"].to_string().contains("2025-11-25"));
    assert_eq!(endpoint.ask(Ask::get_stream().header(VERSION, "v999")).await.error(), (400, -32600, None));
}

// req: M10
#[tokio::test]
async fn modern_header_makes_request_modern() {
    let answer = Endpoint::new().ask(Ask::legacy(MODERN, "initialize", &initialize("2025-11-25"))).await;
    assert_eq!(answer.error(), (400, -32602, Some(json!(1))));
}

// req: J5, N3, N5
#[tokio::test]
async fn legacy_errors_have_status_200_and_legacy_codes() {
    let endpoint = Endpoint::new();
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("server/discover", json!({}), -32601),
        ("subscriptions/listen", json!({ "notifications": {} }), -32601),
        ("prompts/get", json!({ "name": "nobody" }), -32602),
        ("prompts/get", json!([]), -32602),
        ("resources/read", json!({ "uri": "docs://nothing" }), -32002),
        ("logging/setLevel", json!({ "level": "loud" }), -32602),
    ] {
        let answer = endpoint.ask(Ask::legacy("2025-11-25", method, &params)).await;
        assert_eq!(answer.error(), (200, code, Some(json!(1))), "{method}");
    }
}

// req: R-8
#[tokio::test]
async fn foreign_session_id_is_ignored() {
    let endpoint = Endpoint::new();
    let ask = Ask::legacy("2025-11-25", "prompts/get", &greet()).header("mcp-session-id", "of another server");
    let answer = endpoint.ask(ask).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None);
    let stream = Ask::get_stream().header("mcp-session-id", "x").header("last-event-id", "7");
    let mut body = endpoint.open(stream.request()).await.into_body();
    assert_eq!(piece(&mut body).await.as_deref(), Some(":\n\n"));
}

#[tokio::test]
async fn subscribe_and_log_level_work_without_session() {
    let endpoint = Endpoint::new();
    for (method, params) in [
        ("resources/subscribe", json!({ "uri": "docs://note" })),
        ("resources/unsubscribe", json!({ "uri": "docs://note" })),
        ("logging/setLevel", json!({ "level": "warning" })),
    ] {
        assert_eq!(endpoint.ask(Ask::legacy("2025-06-18", method, &params)).await.result(), json!({}));
    }
}

fn initializing() -> Ask {
    let params = initialize("2025-11-25");
    Ask::message(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
}

fn with_session(id: &str) -> Ask {
    Ask::legacy("2025-11-25", "ping", &json!({})).header("mcp-session-id", id)
}

// req: L33, R-8, S-70
#[tokio::test]
async fn session_ids_are_random_and_grant_nothing() {
    let endpoint = Endpoint::new();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let answer = endpoint.ask(initializing()).await;
        let id = answer.header("mcp-session-id").expect("a session id").to_owned();
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
        // The response has the same content with and without an id.
        let (with, without) = (with_session(&id), Ask::legacy("2025-11-25", "ping", &json!({})));
        assert_eq!(endpoint.ask(with).await.body, endpoint.ask(without).await.body);
        ids.insert(id);
    }
    assert_eq!(ids.len(), 100);
    // A failed handshake begins no session.
    let failed = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    assert_eq!(endpoint.ask(Ask::message(&failed)).await.header("mcp-session-id"), None);
}

// req: L35, L36, N18, S-70
#[tokio::test]
async fn ended_session_is_not_found_and_unknown_ones_are_served() {
    let endpoint = Endpoint::new();
    let delete = |id: &str| Ask::verb(http::Method::DELETE).header("mcp-session-id", id);
    let begun = endpoint.ask(initializing()).await;
    let id = begun.header("mcp-session-id").expect("a session id");
    assert_eq!(endpoint.ask(with_session(id)).await.status, 200);
    let ended = endpoint.ask(delete(id)).await;
    assert_eq!((ended.status, ended.body.len()), (204, 0));

    let stream = Ask::get_stream().header("mcp-session-id", id);
    let batch = Ask::raw(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#).header("mcp-session-id", id);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let notification = Ask::message(&initialized).header("mcp-session-id", id);
    let response = Ask::raw(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).header("mcp-session-id", id);
    for ask in [with_session(id), stream, batch, notification, response, delete(id)] {
        assert_eq!(endpoint.ask(ask).await.error(), (404, -32600, None));
    }
    // A reload of the settings does not revive it.
    let reloaded = Endpoint { service: endpoint.service.with_options(&HttpOptions::default()), ..endpoint };
    assert_eq!(reloaded.ask(with_session(id)).await.status, 404);
    // The modern era has no sessions, and another handshake begins another one.
    let modern = Ask::modern("prompts/get", greet()).header("mcp-session-id", id);
    assert_eq!(reloaded.ask(modern).await.status, 200);
    assert_eq!(reloaded.ask(delete(id).header(VERSION, MODERN)).await.status, 405);
    assert_eq!(reloaded.ask(initializing().header("mcp-session-id", id)).await.status, 200);

    for unknown in ["guessed", "6f1c2a4e000040008000000000000000"] {
        assert_eq!(reloaded.ask(with_session(unknown)).await.status, 200);
    }
    assert_eq!(reloaded.ask(delete("guessed")).await.status, 204);
    assert_eq!(reloaded.ask(with_session("guessed")).await.status, 200);
    assert_eq!(reloaded.ask(delete("guessed").header(VERSION, "v999")).await.error(), (400, -32600, None));
}

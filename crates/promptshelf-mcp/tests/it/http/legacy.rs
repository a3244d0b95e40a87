//! Requests of the legacy revisions.

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
            assert_eq!(answer.header("mcp-session-id"), None);
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

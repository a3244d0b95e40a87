//! The empty list of tools, and the setting that removes it.

use promptshelf_mcp::{RequestOptions, ToolMode};
use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, MODERN, initialize};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

fn ask(revision: &str, method: &str, params: &Value) -> Ask {
    match revision {
        MODERN => Ask::modern(method, params.clone()),
        legacy => Ask::legacy(legacy, method, params),
    }
}

async fn capabilities(endpoint: &Endpoint, revision: &str) -> Value {
    let ask = match revision {
        MODERN => Ask::modern("server/discover", json!({})),
        legacy => Ask::legacy(legacy, "initialize", &initialize(legacy)),
    };
    endpoint.ask(ask).await.result()["capabilities"].clone()
}

// req: A21
#[tokio::test]
async fn tools_are_declared_and_their_list_is_empty() {
    let endpoint = Endpoint::new();
    for revision in REVISIONS {
        assert_eq!(capabilities(&endpoint, revision).await["tools"], json!({}), "{revision}");
        let list = endpoint.ask(ask(revision, "tools/list", &json!({}))).await.result();
        assert_eq!(list["tools"], json!([]), "{revision}");
        assert_eq!(list.get("nextCursor"), None);
        match revision {
            MODERN => {
                assert_eq!((&list["resultType"], &list["cacheScope"]), (&json!("complete"), &json!("public")));
                assert!(list["ttlMs"].is_u64(), "{list}");
            }
            _ => assert_eq!(list, json!({ "tools": [] }), "{revision}"),
        }
        // The list has one page, so this server has never sent a cursor.
        for cursor in [json!(""), json!("AAAA"), json!(5)] {
            let answer = endpoint.ask(ask(revision, "tools/list", &json!({ "cursor": cursor }))).await;
            assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{revision} {cursor}");
        }
    }
}

// req: A21, N5
#[tokio::test]
async fn every_tool_is_unknown() {
    let endpoint = Endpoint::new();
    for revision in REVISIONS {
        for name in ["greet", "../x"] {
            let answer = endpoint.ask(ask(revision, "tools/call", &json!({ "name": name }))).await;
            assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{revision}");
            assert_eq!(answer.json()["error"]["message"], format!("Unknown tool: {name}"));
        }
        let long = "x".repeat(10_000);
        let answer = endpoint.ask(ask(revision, "tools/call", &json!({ "name": long }))).await;
        assert!(answer.body.len() < 300, "{revision}: the answer repeats a name of any length");
        for nameless in [json!({}), json!({ "name": 5 })] {
            let answer = endpoint.ask(ask(revision, "tools/call", &nameless)).await;
            assert_eq!(answer.error().1, -32602, "{revision} {nameless}");
            assert!(answer.json()["error"]["message"].to_string().contains("`name`"), "{nameless}");
        }
    }
    let other = Ask::modern("tools/call", json!({ "name": "greet" })).header("mcp-name", "other");
    assert_eq!(endpoint.ask(other).await.error(), (400, -32020, Some(json!(1))));
}

// req: A13, A21, N3
#[tokio::test]
async fn disabled_tools_are_not_declared_and_not_found() {
    let endpoint = Endpoint::new();
    endpoint.server.set_request_options(RequestOptions::with_tools(ToolMode::Disabled));
    for revision in REVISIONS {
        assert_eq!(capabilities(&endpoint, revision).await.get("tools"), None, "{revision}");
        let status = if revision == MODERN { 404 } else { 200 };
        for method in ["tools/list", "tools/call"] {
            let answer = endpoint.ask(ask(revision, method, &json!({ "name": "greet" }))).await;
            assert_eq!(answer.error(), (status, -32601, Some(json!(1))), "{revision} {method}");
        }
    }
    endpoint.server.set_request_options(RequestOptions::with_tools(ToolMode::Off));
    assert_eq!(endpoint.ask(Ask::modern("tools/list", json!({}))).await.result()["tools"], json!([]));
}

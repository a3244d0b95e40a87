//! Negotiating the revision, over a pipe.

use std::time::Duration;

use promptshelf_client::ConnectOptions;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fake_server::{Reply, connect, connect_with};

fn initialized(params: &Value, capabilities: &Value) -> Option<Reply> {
    let info = json!({ "name": "old", "version": "1" });
    let version = &params["protocolVersion"];
    Some(Reply::Result(json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info })))
}

#[tokio::test(start_paused = true)]
async fn ignored_discovery_takes_a_third_of_the_timeout_and_a_second() {
    let began = Instant::now();
    let options = ConnectOptions::new().timeout(Duration::from_secs(6));
    let (client, received) = connect_with(options, |method, params| match method {
        "server/discover" => Some(Reply::Silence),
        "initialize" => initialized(params, &json!({ "prompts": {} })),
        _ => None,
    })
    .await;
    assert_eq!((client.revision().as_deref(), began.elapsed().as_secs()), (Some("2025-11-25"), 3));
    assert_eq!(received.with_method("initialize").len(), 1);
}

#[tokio::test]
async fn refused_revision_that_is_listed_is_sent_again_once() {
    for (refusals, succeeds) in [(1, true), (2, false)] {
        let mut refused = 0;
        let (client, received) = connect(move |method, _| match method {
            "prompts/list" if refused < refusals => {
                refused += 1;
                let data = json!({ "supported": ["2025-11-25", "2026-07-28"], "requested": "2026-07-28" });
                Some(Reply::Error { code: -32022, message: "unsupported", data })
            }
            "prompts/list" => Some(Reply::Result(json!({ "prompts": [] }))),
            _ => None,
        })
        .await;
        assert_eq!(client.all_prompts().await.is_ok(), succeeds);
        assert_eq!(received.with_method("prompts/list").len(), 2);
    }
}

#[tokio::test]
async fn undeclared_prompts_of_an_older_server_are_not_requested() {
    let options = ConnectOptions::new().legacy(true);
    let (client, received) = connect_with(options, |method, params| match method {
        "initialize" => initialized(params, &json!({ "tools": {} })),
        _ => None,
    })
    .await;
    assert_eq!(client.all_prompts().await.expect("an empty list"), []);
    assert!(received.with_method("prompts/list").is_empty());
}

#[tokio::test]
async fn batches_and_odd_values_are_read() {
    let options = ConnectOptions::new().timeout(Duration::from_secs(10));
    let (client, _) = connect_with(options, |method, _| match method {
        "server/discover" => {
            let odd = json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "prompts": {} }, "ttlMs": -1, "cacheScope": "x",
            });
            Some(Reply::Result(odd))
        }
        "prompts/list" => {
            let result = json!({ "prompts": [{ "name": "a", "icons": [{ "src": "x", "theme": "sepia" }] }] });
            let batch = json!([{ "jsonrpc": "2.0", "id": 1, "result": result }]);
            Some(Reply::Raw(batch.to_string()))
        }
        _ => None,
    })
    .await;
    assert_eq!(client.revision().as_deref(), Some("2026-07-28"));
    assert_eq!(client.all_prompts().await.expect("a list").len(), 1);
}

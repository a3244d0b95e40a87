//! Both eras in one conversation, and messages that each era must not get.

use serde_json::{Value, json};

use super::{Client, modern};
use crate::library;

// req: DC8, K13
#[tokio::test]
async fn change_is_notified_to_each_era_in_its_form() {
    let mut client = Client::legacy("2025-11-25").await;
    let filter = json!({ "notifications": { "promptsListChanged": true } });
    client.request(modern(&json!(1), "subscriptions/listen", filter.clone())).await;
    client.request(modern(&json!("two"), "subscriptions/listen", filter)).await;
    client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    client.handle.replace(library::catalog("Greets everybody", "first"));
    let mut tags = Vec::new();
    for _ in 0..3 {
        let message = client.receive().await;
        assert_eq!(message["method"], "notifications/prompts/list_changed");
        tags.push(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].to_string());
    }
    tags.sort();
    assert_eq!(tags, ["\"two\"", "1", "null"]);
    assert_eq!(client.request(json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await["id"], 3);
}

// req: H9, K5, O10, O15
#[tokio::test]
async fn modern_client_gets_no_log_messages_and_no_requests() {
    let mut client = Client::start();
    let mut listen =
        modern(&json!(1), "subscriptions/listen", json!({ "notifications": { "promptsListChanged": true } }));
    listen["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    client.request(listen).await;
    client.handle.replace(library::catalog("Greets everybody", "other"));
    assert_eq!(client.receive().await["method"], "notifications/prompts/list_changed");
    let mut get = modern(&json!(2), "prompts/get", json!({ "name": "quiet" }));
    get["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    assert_eq!(client.request(get).await["id"], 2);
    assert_eq!(client.end().await, Vec::<Value>::new());
}

/// Progress notifications are optional, and this server has none to send.
// req: O7, O8
#[tokio::test]
async fn progress_token_is_accepted_without_notifications() {
    for mut client in [Client::start(), Client::legacy("2025-11-25").await] {
        for (id, token) in [(10, json!("t")), (11, json!(7)), (12, json!(1_u64 << 60))] {
            let mut get = modern(&json!(id), "prompts/get", json!({ "name": "quiet" }));
            get["params"]["_meta"]["progressToken"] = token.clone();
            assert_eq!(client.request(get).await["id"], id);
            let legacy = json!({ "_meta": { "progressToken": token } });
            client.request(json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": legacy })).await;
        }
        assert_eq!(client.end().await, Vec::<Value>::new());
    }
}

// req: N15, O1, O2, O6
#[tokio::test]
async fn cancelling_finished_or_unknown_requests_is_ignored() {
    let mut client = Client::start();
    let cancel = |params: Value| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.notify(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    client.notify(&cancel(json!({ "requestId": 0, "reason": "too late" }))).await;
    assert_eq!(client.receive().await["result"]["protocolVersion"], "2025-06-18");
    for params in [
        json!({ "requestId": 0 }),
        json!({ "requestId": "never" }),
        json!({ "requestId": null }),
        json!({ "requestId": {} }),
        json!({}),
        json!([]),
        json!("x"),
    ] {
        client.notify(&cancel(params)).await;
    }
    client.notify(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" })).await;
    // Legacy clients do not reuse an ID, but a finished one is free.
    assert_eq!(client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" })).await["result"], json!({}));
}

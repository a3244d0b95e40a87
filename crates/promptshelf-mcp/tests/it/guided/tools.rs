//! Guided prompts as tools.

use promptshelf_core::{CatalogHandle, check};
use promptshelf_mcp::{RequestOptions, Server, ToolMode};
use promptshelf_service::Service;
use serde_json::{Value, json};

use super::{accept, forms, key};
use crate::{library, stdio::Client};

fn start() -> Client {
    let mut definitions = library::guided();
    for prompt in &mut definitions.prompts {
        std::sync::Arc::make_mut(prompt).tool = true;
    }
    let handle = CatalogHandle::new(check(definitions, None).catalog);
    let server = Server::with_state_key(Service::new(handle.clone()), key());
    server.set_request_options(RequestOptions::with_tools(ToolMode::Search));
    Client::of(server, handle)
}

fn call(id: u32, mut params: Value, capabilities: &Value) -> Value {
    params["name"] = json!("use_prompt");
    params["arguments"] = json!({ "name": "setup", "arguments": { "project": "shelf" } });
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

// req: I2, I3
#[tokio::test]
async fn tool_asks_the_user_in_rounds() {
    let mut client = start();
    let mut answer = client.request(call(1, json!({}), &forms())).await;
    for (id, key, content) in [
        (2, "basics", json!({ "language": "rust", "tests": true })),
        (3, "step_2", json!({ "workers": 3 })),
        (4, "more", json!({})),
    ] {
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        assert!(answer["result"]["inputRequests"].get(key).is_some(), "{answer}");
        let params =
            json!({ "inputResponses": { key: accept(&content) }, "requestState": answer["result"]["requestState"] });
        answer = client.request(call(id, params, &forms())).await;
    }
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("shelf: rust, true"), "{answer}");
    // A forged state is a protocol error: the model cannot correct it.
    let forged = client.request(call(5, json!({ "requestState": "x", "inputResponses": {} }), &forms())).await;
    assert_eq!(forged["error"]["code"], -32602);
}

#[tokio::test]
async fn tool_without_forms_names_the_missing_arguments() {
    let mut client = start();
    let answer = client.request(call(1, json!({}), &json!({}))).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(
        answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("`language`")),
        "{answer}"
    );
}

// req: I14
#[tokio::test]
async fn older_client_is_asked_on_the_connection() {
    let mut client = start();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" } });
    client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    let params = json!({ "name": "use_prompt", "arguments": { "name": "setup", "arguments": { "project": "shelf" } } });
    client.notify(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    let question = client.receive().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    client.notify(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } })).await;
    let answer = client.receive().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("declined")), "{answer}");
}

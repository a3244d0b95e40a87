//! Guided prompts over HTTP.

use std::sync::Arc;

use promptshelf_mcp::{HttpOptions, StateKey};
use promptshelf_service::{Caller, Identity};
use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, modern};
use crate::library;

fn endpoint() -> Endpoint {
    let (server, handle) = library::guided_server(StateKey::from_secret(b"shared"));
    Endpoint::of(server, handle, HttpOptions::default())
}

/// A request for the guided prompt from a client that supports forms.
fn ask(params: &Value) -> Ask {
    let mut message = modern(&json!(1), "prompts/get", params.clone());
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    Ask::modern("prompts/get", json!({ "name": "setup" })).body(&message)
}

/// X20: the message is the same whatever is invalid about a state.
// req: I19, X20
#[tokio::test]
async fn foreign_states_are_refused() {
    let endpoint = endpoint();
    let required = endpoint.ask(ask(&json!({ "name": "setup" }))).await.result();
    let state = required["requestState"].as_str().expect("a state").to_owned();
    let (server, handle) = library::guided_server(StateKey::random());
    let foreign = Endpoint::of(server, handle, HttpOptions::default()).ask(ask(&json!({ "name": "setup" }))).await;
    let mut refusals = Vec::new();
    for bad in [
        json!(format!("A{state}")),
        json!(state[..state.len() / 2]),
        json!(""),
        json!({}),
        json!("a".repeat(3 << 20)),
        foreign.result()["requestState"].clone(),
    ] {
        refusals.push(endpoint.ask(ask(&json!({ "name": "setup", "requestState": bad }))).await);
    }
    let other_arguments = json!({ "name": "setup", "arguments": { "project": "x" }, "requestState": state });
    refusals.push(endpoint.ask(ask(&other_arguments)).await);
    // The same state from another caller, and from one with a question of its own.
    let known = |key: &str| {
        Caller::authenticated(Arc::new(Identity { key: key.into(), name: "ada".into(), ..Identity::default() }))
    };
    let (ada, other_ada) = (known("1"), known("2"));
    let by = |caller: &Caller, params: &Value| {
        let mut request = ask(params).request();
        request.extensions_mut().insert(caller.clone());
        endpoint.send(request)
    };
    let hers = by(&ada, &json!({ "name": "setup" })).await.result()["requestState"].clone();
    for (caller, state) in [(&Caller::local(), &json!(state)), (&ada, &json!(state)), (&other_ada, &hers)] {
        refusals.push(by(caller, &json!({ "name": "setup", "requestState": state })).await);
    }
    assert_eq!(by(&ada, &json!({ "name": "setup", "requestState": hers })).await.status, 200);
    for refused in &refusals {
        assert_eq!(refused.error(), (200, -32602, Some(json!(1))));
        assert_eq!(refused.body, refusals[0].body);
    }
    assert_eq!(endpoint.ask(ask(&json!({ "name": "setup", "requestState": state }))).await.status, 200);
}

/// X21: malformed answers are refused, invalid ones are asked for again, and a refusal ends the prompt.
// req: X21
#[tokio::test]
async fn answers_are_checked() {
    let endpoint = endpoint();
    for responses in [
        json!([]),
        json!("x"),
        json!({ "basics": [] }),
        json!({ "basics": { "action": "maybe" } }),
        json!({ "basics": { "action": "decline" } }),
        json!({ "basics": { "action": "cancel" } }),
    ] {
        let answer = endpoint.ask(ask(&json!({ "name": "setup", "inputResponses": responses }))).await;
        assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{responses}");
    }
    for responses in [
        json!({}),
        json!({ "other": { "action": "accept" } }),
        json!({ "basics": { "action": "accept" } }),
        json!({ "basics": { "action": "accept", "content": { "language": "cobol" } } }),
    ] {
        let required = endpoint.ask(ask(&json!({ "name": "setup", "inputResponses": responses }))).await.result();
        assert!(required["inputRequests"].get("basics").is_some(), "{responses}: {required}");
    }
}

// req: C1, I8, I12, I13, M6
#[tokio::test]
async fn rounds_need_only_client_state() {
    let required = endpoint().ask(ask(&json!({ "name": "setup" }))).await.result();
    assert_eq!(required["resultType"], "input_required");
    let answer = json!({ "basics": { "action": "accept", "content": { "language": "rust" } } });
    let params = json!({ "name": "setup", "inputResponses": answer, "requestState": required["requestState"] });
    // Like another process, from the client's point of view.
    let required = endpoint().ask(ask(&params)).await.result();
    assert!(required["inputRequests"].get("step_2").is_some());
    // Nothing is consumed: the same state and answers lead to the same question.
    let again = endpoint().ask(ask(&params)).await.result();
    assert_eq!(again["inputRequests"], required["inputRequests"]);
}

// req: I5, L13, N10, X22
#[tokio::test]
async fn missing_capability_is_bad_request() {
    let got = endpoint().ask(Ask::modern("prompts/get", json!({ "name": "setup" }))).await;
    assert_eq!(got.error(), (400, -32021, Some(json!(1))));
    let error = &got.json()["error"];
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": {} }));
    let language = "`language` is required (LANGUAGE); it must be one of rust, python";
    assert!(error["message"].as_str().is_some_and(|message| message.ends_with(language)), "{error}");
    assert_eq!(error["data"]["problems"][0]["argument"], "language");
}

// req: L44
#[tokio::test]
async fn legacy_client_sends_arguments() {
    let got = endpoint().ask(Ask::legacy("2025-11-25", "prompts/get", &json!({ "name": "setup" }))).await;
    assert_eq!(got.error().1, -32602);
    let params = json!({ "name": "setup", "arguments": { "language": "rust" } });
    let got = endpoint().ask(Ask::legacy("2025-11-25", "prompts/get", &params)).await.result();
    assert_eq!(got["messages"][0]["content"]["text"], ": rust, true, , 2, , .");
}

// req: I4, L44, X22
#[tokio::test]
async fn page_that_cannot_be_shown_is_refused_over_http() {
    let endpoint = endpoint();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = endpoint.ask(Ask::legacy(revision, "prompts/get", &json!({ "name": "connect" }))).await;
        assert_eq!(answer.error(), (200, -32602, Some(json!(1))), "{revision}");
    }
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "connect" } },
    ]);
    let answer = endpoint.ask(Ask::message(&batch)).await;
    assert_eq!(answer.json()[0]["error"]["code"], -32602);
    let answer = endpoint.ask(Ask::modern("prompts/get", json!({ "name": "connect" }))).await;
    assert_eq!(answer.error(), (400, -32021, Some(json!(1))));
}

//! Guided prompts: questions, answers, and the state between rounds.

use std::time::Duration;

use promptshelf_mcp::StateKey;
use serde_json::{Value, json};

use crate::{library, stdio::Client};

mod known_problems;
mod pages;
mod tools;

fn key() -> StateKey {
    StateKey::from_secret(b"a secret that servers share")
}

fn start() -> Client {
    let (server, handle) = library::guided_server(key());
    Client::of(server, handle)
}

fn get(id: u32, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "prompts/get", "params": params })
}

fn forms() -> Value {
    json!({ "elicitation": {} })
}

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// Repeats the request for `setup` with answers and a state.
fn again(id: u32, responses: &Value, state: &Value) -> Value {
    let params = json!({ "name": "setup", "arguments": { "project": "shelf" }, "inputResponses": responses, "requestState": state });
    get(id, params, &forms())
}

fn begin() -> Value {
    get(1, json!({ "name": "setup", "arguments": { "project": "shelf" } }), &forms())
}

fn text(answer: &Value) -> &str {
    answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("messages, and not {answer}"))
}

// req: C12, I2, I3, I15, I25, K5
#[tokio::test]
async fn three_steps_with_condition_complete() {
    let mut client = start();
    let first = client.request(begin()).await;
    let result = &first["result"];
    assert_eq!(
        result["inputRequests"],
        json!({ "basics": { "method": "elicitation/create", "params": {
            "mode": "form",
            "message": "What is it written in?",
            "requestedSchema": { "type": "object", "properties": {
                "language": {
                    "type": "string", "title": "Language", "description": "LANGUAGE",
                    "oneOf": [{ "const": "rust", "title": "Rust" }, { "const": "python", "title": "Python" }],
                },
                "tests": { "type": "boolean", "description": "TESTS", "default": true },
            }, "required": ["language"] },
        } } })
    );
    assert_eq!(result["resultType"], "input_required");
    // No cache members, and nothing else besides the question.
    let mut keys: Vec<&str> = result.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["_meta", "inputRequests", "requestState", "resultType"]);

    let answer = json!({ "basics": accept(&json!({ "language": "python", "tests": false })), "unknown": 7 });
    let second = client.request(again(2, &answer, &result["requestState"])).await;
    let form = &second["result"]["inputRequests"]["step_2"]["params"];
    assert_eq!(form["message"], "Setup needs more information.");
    assert_eq!(
        form["requestedSchema"],
        json!({ "type": "object", "required": ["framework"], "properties": {
            "framework": { "type": "string", "enum": ["flask", "django"], "description": "FRAMEWORK" },
        } })
    );

    let answer = json!({ "step_2": accept(&json!({ "framework": "django" })) });
    let third = client.request(again(3, &answer, &second["result"]["requestState"])).await;
    assert_eq!(
        third["result"]["inputRequests"]["more"]["params"]["requestedSchema"]["properties"],
        json!({
            "since": { "type": "string", "format": "date", "description": "SINCE" },
            "topics": { "type": "array", "description": "TOPICS", "items": {
                "anyOf": [{ "const": "speed", "title": "Speed" }, { "const": "style", "title": "style" }],
            } },
        })
    );

    let answer = json!({ "more": accept(&json!({ "since": "2026-01-31", "topics": ["speed"] })) });
    let done = client.request(again(4, &answer, &third["result"]["requestState"])).await;
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(text(&done), "shelf: python, false, django, , 2026-01-31, [\"speed\"].");
}

// req: I13
#[tokio::test]
async fn replica_with_same_key_continues() {
    let mut first = start();
    let question = first.request(begin()).await;
    assert!(first.end().await.is_empty());
    let mut second = start();
    let answer = json!({ "basics": accept(&json!({ "language": "rust" })) });
    let next = second.request(again(2, &answer, &question["result"]["requestState"])).await;
    let workers = &next["result"]["inputRequests"]["step_2"]["params"]["requestedSchema"]["properties"]["workers"];
    assert_eq!(
        *workers,
        json!({ "type": "integer", "description": "WORKERS", "minimum": 1, "maximum": 8, "default": 2 })
    );
}

// req: I6, I7, R-5, X20
#[tokio::test]
async fn invalid_states_get_the_same_error() {
    let mut client = start();
    let question = client.request(begin()).await;
    let state = question["result"]["requestState"].as_str().expect("a state").to_owned();
    let answer = json!({ "basics": accept(&json!({ "language": "rust" })) });
    let flipped = {
        let mut bytes = state.clone().into_bytes();
        bytes[3] = if bytes[3] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).expect("ASCII")
    };
    let other_key = {
        let (server, handle) = library::guided_server(StateKey::random());
        let question = Client::of(server, handle).request(begin()).await;
        question["result"]["requestState"].clone()
    };
    let expired = {
        let (server, handle) = library::guided_server(key().lifetime(Duration::ZERO));
        let question = Client::of(server, handle).request(begin()).await;
        question["result"]["requestState"].clone()
    };
    let refused = json!({ "code": -32602, "message": "Invalid `requestState`; start again without it" });
    let states = [
        json!(flipped),
        json!(state[..state.len() - 1]),
        json!(""),
        json!(7),
        json!("a".repeat(5 << 20)),
        other_key,
        expired,
    ];
    for bad in states {
        let got = client.request(again(2, &answer, &bad)).await;
        assert_eq!(got["error"], refused, "{}", bad.to_string().chars().take(80).collect::<String>());
    }
    let others = [
        json!({ "name": "setup", "arguments": { "project": "other" } }),
        json!({ "name": "setup" }),
        json!({ "name": "connect", "arguments": { "project": "shelf" } }),
    ];
    for mut params in others {
        params["inputResponses"] = answer.clone();
        params["requestState"] = json!(state);
        let both = json!({ "elicitation": { "form": {}, "url": {} } });
        assert_eq!(client.request(get(3, params.clone(), &both)).await["error"], refused, "{params}");
    }
}

// req: I9, I10, I18, R-12, X21
#[tokio::test]
async fn invalid_answers_are_asked_for_again_up_to_a_limit() {
    let mut client = start();
    let mut state = client.request(begin()).await["result"]["requestState"].clone();
    let wrong = [
        (json!({}), None),
        (json!({ "other": accept(&json!({})) }), None),
        (
            json!({ "basics": { "action": "accept" } }),
            Some("`language` is required (LANGUAGE); it must be one of rust, python"),
        ),
        (json!({ "basics": accept(&json!({ "language": "cobol" })) }), Some("`language` must be one of rust, python")),
    ];
    for (responses, reason) in wrong {
        let got = client.request(again(2, &responses, &state)).await;
        let message = got["result"]["inputRequests"]["basics"]["params"]["message"].as_str().expect("a question");
        match reason {
            Some(reason) => assert_eq!(message, format!("What is it written in? ({reason})")),
            None => assert_eq!(message, "What is it written in?"),
        }
        state = got["result"]["requestState"].clone();
    }
    for _ in 0..40 {
        let got = client.request(again(3, &json!({}), &state)).await;
        if let Some(error) = got.get("error") {
            assert_eq!(error["message"], "This prompt asked too many questions; start again");
            return;
        }
        state = got["result"]["requestState"].clone();
    }
    panic!("the questions never end");
}

// req: I11, X21
#[tokio::test]
async fn malformed_answers_are_refused() {
    let mut client = start();
    let state = client.request(begin()).await["result"]["requestState"].clone();
    for responses in [
        json!([]),
        json!("yes"),
        json!({ "basics": { "action": "maybe" } }),
        json!({ "basics": [] }),
        json!({ "basics": accept(&json!({ "language": {} })) }),
        json!({ "basics": accept(&json!(["rust"])) }),
    ] {
        let got = client.request(again(2, &responses, &state)).await;
        assert_eq!(got["error"]["code"], -32602, "{responses}: {got}");
    }
}

// req: I14, X21
#[tokio::test]
async fn decline_and_cancel_follow_declaration() {
    let mut client = start();
    let state = client.request(begin()).await["result"]["requestState"].clone();
    for action in ["decline", "cancel"] {
        let got = client.request(again(2, &json!({ "basics": { "action": action } }), &state)).await;
        assert_eq!(got["error"]["code"], -32602);
    }
    let answer = json!({ "basics": accept(&json!({ "language": "rust" })) });
    let state = client.request(again(3, &answer, &state)).await["result"]["requestState"].clone();
    let state =
        client.request(again(4, &json!({ "step_2": accept(&json!({})) }), &state)).await["result"]["requestState"]
            .clone();
    let done = client.request(again(5, &json!({ "more": { "action": "decline" } }), &state)).await;
    assert_eq!(text(&done), "shelf: rust, true, , 2, , .");
}

#[tokio::test]
async fn complete_answers_need_no_state() {
    let mut client = start();
    let responses = json!({
        "basics": accept(&json!({ "language": "rust" })),
        "step_2": accept(&json!({ "workers": 4 })),
        "more": accept(&json!({})),
    });
    let done = client.request(get(1, json!({ "name": "setup", "inputResponses": responses }), &forms())).await;
    assert_eq!(text(&done), ": rust, true, , 4, , .");
}

#[tokio::test]
async fn sent_arguments_are_not_asked_for() {
    let mut client = start();
    let arguments =
        json!({ "language": "python", "tests": "no", "framework": "flask", "since": "2026-01-01", "topics": "style" });
    let done = client.request(get(1, json!({ "name": "setup", "arguments": arguments }), &forms())).await;
    assert_eq!(text(&done), ": python, false, flask, , 2026-01-01, [\"style\"].");
}

// req: I4, I5, X22
#[tokio::test]
async fn missing_capability_names_required_elicitation() {
    let mut client = start();
    for (name, capabilities, required) in [
        ("setup", json!({}), json!({ "elicitation": {} })),
        ("setup", json!({ "elicitation": { "url": {} } }), json!({ "elicitation": {} })),
        ("connect", json!({}), json!({ "elicitation": { "url": {} } })),
        ("connect", json!({ "elicitation": {} }), json!({ "elicitation": { "url": {} } })),
    ] {
        let got = client.request(get(1, json!({ "name": name }), &capabilities)).await;
        assert_eq!(got["error"]["code"], -32021, "{name}, {capabilities}");
        assert_eq!(got["error"]["data"]["requiredCapabilities"], required);
    }
    // Optional questions are skipped.
    let arguments = json!({ "language": "rust" });
    let got = client.request(get(2, json!({ "name": "setup", "arguments": arguments }), &json!({}))).await;
    assert_eq!(text(&got), ": rust, true, , 2, , .");
}

// req: I3, I16
#[tokio::test]
async fn url_elicitation_precedes_prompt() {
    let mut client = start();
    let pages = json!({ "elicitation": { "url": {} } });
    let required = client.request(get(1, json!({ "name": "connect" }), &pages)).await;
    assert_eq!(
        required["result"]["inputRequests"]["page"]["params"],
        json!({ "mode": "url", "message": "Please connect.", "url": "https://example.org/connect" })
    );
    let params = json!({
        "name": "connect", "requestState": required["result"]["requestState"],
        "inputResponses": { "page": { "action": "accept" } },
    });
    assert_eq!(text(&client.request(get(2, params, &pages)).await), "Connected.");
}

#[tokio::test]
async fn asked_arguments_are_listed_as_optional() {
    let mut client = start();
    let mut list = get(1, json!({}), &json!({}));
    list["method"] = json!("prompts/list");
    let listed = client.request(list).await;
    let setup = &listed["result"]["prompts"][1];
    let required: Vec<&Value> = setup["arguments"].as_array().expect("a list").iter().map(|a| &a["required"]).collect();
    assert_eq!(required, [&json!(false); 7]);
}

async fn legacy(revision: &str, capabilities: Value) -> Client {
    let mut client = start();
    let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" } });
    client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    client
}

fn legacy_get(arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "setup", "arguments": arguments } })
}

fn reply(question: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

// req: I23
#[tokio::test]
async fn legacy_stdio_client_receives_elicitation_requests() {
    let mut client = legacy("2025-11-25", forms()).await;
    let basics = client.request(legacy_get(&json!({}))).await;
    assert_eq!(basics["method"], "elicitation/create");
    assert_eq!(basics["params"]["requestedSchema"]["required"], json!(["language"]));
    let again = client.request(reply(&basics, &accept(&json!({ "language": "cobol" })))).await;
    assert!(again["params"]["message"].as_str().is_some_and(|message| message.contains("must be one of")));
    let step_2 = client.request(reply(&again, &accept(&json!({ "language": "rust" })))).await;
    assert!(step_2["params"]["requestedSchema"]["properties"].get("workers").is_some());
    // Other requests continue while a question is open.
    let ping = client.request(json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" })).await;
    assert_eq!(ping["id"], "p");
    let more = client.request(reply(&step_2, &accept(&json!({ "workers": 3 })))).await;
    let done = client.request(reply(&more, &json!({ "action": "decline" }))).await;
    assert_eq!(done["id"], 1);
    assert_eq!(text(&done), ": rust, true, , 3, , .");
    assert!(done["result"].get("resultType").is_none());
}

// req: DC6, I15, I23
#[tokio::test]
async fn forms_of_2025_06_18_use_its_keywords_only() {
    let mut client = legacy("2025-06-18", forms()).await;
    let basics = client.request(legacy_get(&json!({}))).await;
    assert_eq!(
        basics["params"],
        json!({ "message": "What is it written in?", "requestedSchema": { "type": "object", "required": ["language"], "properties": {
            "language": { "type": "string", "title": "Language", "description": "LANGUAGE", "enum": ["rust", "python"], "enumNames": ["Rust", "Python"] },
            "tests": { "type": "boolean", "description": "TESTS", "default": true },
        } } })
    );
    let step_2 = client.request(reply(&basics, &accept(&json!({ "language": "rust", "tests": true })))).await;
    assert!(step_2["params"]["requestedSchema"]["properties"]["workers"].get("default").is_none());
    let more = client.request(reply(&step_2, &accept(&json!({})))).await;
    assert_eq!(
        more["params"]["requestedSchema"]["properties"]["topics"],
        json!({ "type": "string", "description": "TOPICS" })
    );
    let done = client.request(reply(&more, &accept(&json!({ "topics": "speed, style" })))).await;
    assert_eq!(text(&done), ": rust, true, , 2, , [\"speed\",\"style\"].");
}

// req: A15, DC5, I23, X22
#[tokio::test]
async fn legacy_client_without_forms_sends_arguments() {
    for (revision, capabilities) in [("2025-11-25", json!({})), ("2025-03-26", forms()), ("2024-11-05", json!({}))] {
        let mut client = legacy(revision, capabilities).await;
        let missing = client.request(legacy_get(&json!({}))).await;
        assert_eq!(missing["error"]["code"], -32602, "{revision}");
        assert_eq!(missing["error"]["data"]["problems"][0]["argument"], "language");
        let done = client.request(legacy_get(&json!({ "language": "rust", "since": "" }))).await;
        assert_eq!(text(&done), ": rust, true, , 2, , .");
        // Conditions of steps hold without forms, too.
        let missing = client.request(legacy_get(&json!({ "language": "python" }))).await;
        assert_eq!(missing["error"]["data"]["problems"][0]["argument"], "framework");
    }
}

#[tokio::test]
async fn error_or_end_of_input_cancels_question() {
    let mut client = legacy("2025-11-25", forms()).await;
    let question = client.request(legacy_get(&json!({}))).await;
    let error = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no" } });
    assert_eq!(client.request(error).await["error"]["code"], -32602);
    client.request(legacy_get(&json!({}))).await;
    let rest = client.end().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0]["error"]["code"], -32602);
}

// req: O1, O2
#[tokio::test]
async fn cancelled_request_drops_question() {
    let mut client = legacy("2025-11-25", forms()).await;
    let question = client.request(legacy_get(&json!({}))).await;
    client
        .notify(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    // The form would stay open.
    let cancelled = client.receive().await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &question["id"])
    );
    client.notify(&reply(&question, &accept(&json!({ "language": "rust" })))).await;
    assert_eq!(client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await["id"], 2);
}

// req: A10, G2, I2
#[tokio::test]
async fn question_is_not_cacheable() {
    let required = start().request(begin()).await;
    let result = required["result"].as_object().expect("a result");
    assert_eq!(result.keys().collect::<Vec<_>>(), ["resultType", "inputRequests", "requestState", "_meta"]);
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "promptshelf");
}

// req: I4, M5, X22
#[tokio::test]
async fn capabilities_apply_per_request() {
    let mut client = start();
    let state = client.request(begin()).await["result"]["requestState"].clone();
    let params = json!({
        "name": "setup", "arguments": { "project": "shelf" }, "requestState": state,
        "inputResponses": { "basics": accept(&json!({ "language": "python" })) },
    });
    let refused = client.request(get(2, params, &json!({}))).await;
    assert_eq!(refused["error"]["code"], -32021);
}

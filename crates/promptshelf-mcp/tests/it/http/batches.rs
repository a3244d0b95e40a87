//! Batches, which only 2025-03-26 has.

use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, MODERN, VERSION, greet, initialize, modern};

const WITH_BATCHES: &str = "2025-03-26";

fn request(id: i32, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

// req: L32
#[tokio::test]
async fn batch_is_answered_per_request() {
    let endpoint = Endpoint::new();
    let batch = json!([
        request(1, "ping", &json!({})),
        initialized(),
        request(2, "prompts/get", &greet()),
        { "jsonrpc": "2.0", "id": 9, "result": {} },
        request(3, "no/such", &json!({})),
        request(4, "prompts/get", &json!([])),
        { "jsonrpc": "1.0", "id": 5, "method": "ping" },
        17,
    ]);
    for ask in [Ask::message(&batch), Ask::message(&batch).header(VERSION, WITH_BATCHES)] {
        let answer = endpoint.ask(ask).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let answers = answer.json();
        let answers = answers.as_array().expect("an array");
        let ids: Vec<Option<&Value>> = answers.iter().map(|answer| answer.get("id")).collect();
        let expected = [1, 2, 3, 4, 5].map(|id| json!(id));
        assert_eq!(ids[..5], expected.each_ref().map(Some));
        assert_eq!(ids[5..], [None]);
        assert_eq!(answers[0]["result"], json!({}));
        assert_eq!(answers[1]["result"]["messages"][0]["content"]["text"], "Say hello to Ada.");
        let codes: Vec<_> = answers[2..].iter().map(|answer| answer["error"]["code"].as_i64()).collect();
        assert_eq!(codes, [Some(-32601), Some(-32602), Some(-32600), Some(-32600)]);
    }
}

// req: L32
#[tokio::test]
async fn batch_without_requests_is_accepted() {
    let endpoint = Endpoint::new();
    let response = json!({ "jsonrpc": "2.0", "id": 9, "result": {} });
    for batch in [json!([initialized(), initialized()]), json!([response]), json!([response, initialized()])] {
        let answer = endpoint.ask(Ask::message(&batch).header(VERSION, WITH_BATCHES)).await;
        assert_eq!((answer.status, answer.body.len()), (202, 0));
    }
}

// req: L32, X18
#[tokio::test]
async fn invalid_batches_are_refused_as_a_whole() {
    let endpoint = Endpoint::new();
    let ping = request(1, "ping", &json!({}));
    let good = json!([ping]);
    for revision in [MODERN, "2025-11-25", "2025-06-18", "2024-11-05", "v999"] {
        let answer = endpoint.ask(Ask::message(&good).header(VERSION, revision)).await;
        assert_eq!(answer.error(), (400, -32600, None), "{revision}");
    }
    let handshake = json!([ping, request(2, "initialize", &initialize(WITH_BATCHES))]);
    let modern = json!([ping, modern(&json!(2), "prompts/get", greet())]);
    let many = Value::Array(vec![ping; 100_000]);
    for batch in [handshake, modern, many, json!([])] {
        for ask in [Ask::message(&batch).header(VERSION, WITH_BATCHES), Ask::message(&batch)] {
            let answer = endpoint.ask(ask).await;
            assert!(matches!(answer.error(), (400, -32600, None) | (413, -32600, None)), "{answer:?}");
        }
    }
}

// req: X18
#[tokio::test]
async fn batch_response_size_is_bounded() {
    let endpoint = Endpoint::new();
    let batch = Value::Array((0..20).map(|id| request(id, "prompts/get", &json!({ "name": "long" }))).collect());
    let answer = endpoint.ask(Ask::message(&batch)).await;
    assert!(answer.body.len() < 48 << 20, "{} bytes", answer.body.len());
    let answers = answer.json();
    let answered = answers.as_array().expect("an array").iter().filter(|answer| answer.get("result").is_some()).count();
    assert_eq!((answers.as_array().map(Vec::len), answered), (Some(20), 5));
    assert_eq!(
        answers[19],
        json!({ "jsonrpc": "2.0", "id": 19, "error": {
        "code": -32600, "message": "The responses of this batch are too large",
    } })
    );
}

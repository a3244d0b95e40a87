//! Multi round-trip requests.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
};

use promptshelf_client::{
    ClientError, ConnectOptions, Elicitation, ElicitationHandler, ElicitationMode, ElicitationResponse,
};
use serde_json::{Value, json};

use crate::fake_server::{Reply, connect, connect_with, text};

/// Responds in order and records the elicitations.
#[derive(Default)]
struct Script {
    responses: Mutex<Vec<ElicitationResponse>>,
    elicitations: Mutex<Vec<Elicitation>>,
}

impl Script {
    fn new(mut responses: Vec<ElicitationResponse>) -> Arc<Script> {
        responses.reverse();
        Arc::new(Script { responses: Mutex::new(responses), elicitations: Mutex::default() })
    }
}

impl ElicitationHandler for Script {
    fn elicit(&self, elicitation: Elicitation) -> Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
        self.elicitations.lock().expect("no panic while it is locked").push(elicitation);
        let response = self.responses.lock().expect("no panic while it is locked").pop();
        Box::pin(std::future::ready(response.unwrap_or(ElicitationResponse::Cancel)))
    }
}

fn accept(name: &str, value: &str) -> ElicitationResponse {
    ElicitationResponse::Accept([(name.to_owned(), Value::from(value))].into_iter().collect())
}

fn form(field: &str, state: &str) -> Reply {
    let schema = json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    let params = json!({ "mode": "form", "message": format!("Which {field}?"), "requestedSchema": schema });
    let requests = json!({ "q": { "method": "elicitation/create", "params": params } });
    Reply::Result(json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state }))
}

/// A prompt with two forms, the second one after the response to the first one.
fn guided(method: &str, params: &Value) -> Option<Reply> {
    (method == "prompts/get").then(|| match params["requestState"].as_str() {
        None => form("topic", "after-topic"),
        Some("after-topic") => form("tone", "after-tone"),
        _ => text("done"),
    })
}

#[tokio::test]
async fn responses_are_sent_with_the_state() {
    let script = Script::new(vec![accept("topic", "bees"), accept("tone", "kind")]);
    let options = ConnectOptions::new().label("a library").elicitation_handler(script.clone());
    let (client, received) = connect_with(options, guided).await;
    client.get("guided", &[].into()).await.expect("a prompt after two rounds");
    let requests = received.with_method("prompts/get");
    assert_eq!(requests.len(), 3);
    let response = |value: Value| json!({ "q": { "action": "accept", "content": value } });
    assert_eq!(requests[1]["inputResponses"], response(json!({ "topic": "bees" })));
    assert_eq!(requests[2]["inputResponses"], response(json!({ "tone": "kind" })));
    assert_eq!(
        (&requests[1]["requestState"], &requests[2]["requestState"]),
        (&json!("after-topic"), &json!("after-tone"))
    );
    let elicitations = script.elicitations.lock().expect("no panic while it is locked");
    let ElicitationMode::Form(fields) = &elicitations[0].mode else { panic!("expected a form") };
    assert_eq!(
        (elicitations[0].from.as_str(), fields[0].name.as_str(), fields[0].required),
        ("a library", "topic", true)
    );
    assert!(!elicitations[0].can_go_back && elicitations[1].can_go_back);
}

#[tokio::test]
async fn back_repeats_the_previous_form_with_its_values() {
    let responses =
        vec![accept("topic", "bees"), ElicitationResponse::Back, accept("topic", "ants"), accept("tone", "kind")];
    let script = Script::new(responses);
    let (client, received) = connect_with(ConnectOptions::new().elicitation_handler(script.clone()), guided).await;
    client.get("guided", &[].into()).await.expect("a prompt");
    let elicitations = script.elicitations.lock().expect("no panic while it is locked");
    assert_eq!(elicitations[2].previous.as_ref().map(|values| &values["topic"]), Some(&json!("bees")));
    let topics: Vec<Value> = received
        .with_method("prompts/get")
        .iter()
        .filter_map(|params| params["inputResponses"]["q"]["content"].get("topic").cloned())
        .collect();
    assert_eq!(topics, ["bees", "ants"]);
}

#[tokio::test]
async fn cancel_ends_the_request() {
    let script = Script::new(vec![ElicitationResponse::Cancel]);
    let (client, received) = connect_with(ConnectOptions::new().elicitation_handler(script), guided).await;
    assert!(matches!(client.get("guided", &[].into()).await, Err(ClientError::Cancelled)));
    assert_eq!(received.with_method("prompts/get").len(), 1);
}

#[tokio::test]
async fn capability_is_declared_only_with_a_handler() {
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    let declared = |requests: Vec<Value>| requests[0]["_meta"][CAPABILITIES].get("elicitation").is_some();
    let reply = |method: &str, _: &Value| (method == "prompts/get").then(|| text("x"));
    let (client, received) = connect(reply).await;
    client.get("x", &[].into()).await.expect("a prompt");
    assert!(!declared(received.with_method("prompts/get")));
    let options = ConnectOptions::new().elicitation_handler(Script::new(Vec::new()));
    let (client, received) = connect_with(options, reply).await;
    client.get("x", &[].into()).await.expect("a prompt");
    assert!(declared(received.with_method("prompts/get")));
}

#[tokio::test]
async fn endless_rounds_are_ended() {
    let script = Script::new((0..100).map(|_| accept("topic", "bees")).collect());
    let options = ConnectOptions::new().elicitation_handler(script);
    let (client, _) =
        connect_with(options, |method, _| (method == "prompts/get").then(|| form("topic", "again"))).await;
    let error = client.get("guided", &[].into()).await.expect_err("no end");
    assert!(matches!(&error, ClientError::LimitExceeded(reason) if reason.contains("after 50 rounds")), "{error}");
}

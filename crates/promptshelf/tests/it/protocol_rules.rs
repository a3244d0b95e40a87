//! The protocol's requirements for clients, checked with fake servers. The transport is the official SDK's, and its
//! behaviour counts as ours.

mod legacy;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use base64::Engine as _;
use futures_util::TryStreamExt;
use promptshelf::client::{
    Client, ClientError, CompletionTarget, ConnectOptions, Elicitation, ElicitationHandler, ElicitationResponse,
    Endpoint,
};
use serde_json::{Value, json};

use crate::{
    fake_server::FakeServer,
    program::{library, run},
};

/// The requests that a server received: method and parameters, in order.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<(String, Value)>>>);

impl Requests {
    fn record(&self, method: &str, params: &Value) {
        self.0.lock().expect("no panic").push((method.to_owned(), params.clone()));
    }

    /// Removes all recorded requests and returns the parameters of those with a method.
    fn of(&self, wanted: &str) -> Vec<Value> {
        let requests = std::mem::take(&mut *self.0.lock().expect("no panic"));
        requests.into_iter().filter(|(method, _)| method == wanted).map(|(_, params)| params).collect()
    }

    /// Returns the methods of all recorded requests.
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").iter().map(|(method, _)| method.clone()).collect()
    }
}

/// A server that records its requests.
fn recording_server(answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static) -> (FakeServer, Requests) {
    let requests = Requests::default();
    let recorded = requests.clone();
    let server = FakeServer::start(move |method, params| {
        recorded.record(method, params);
        answer(method, params)
    });
    (server, requests)
}

async fn connected(server: &FakeServer) -> Client {
    Client::connect(&Endpoint::url(&server.url)).await.expect("a connection")
}

async fn names(client: &Client) -> Vec<String> {
    let prompts: Vec<_> = client.prompts().try_collect().await.expect("a list");
    prompts.into_iter().map(|prompt| prompt.name).collect()
}

/// Answers every elicitation with the same response.
struct Always(ElicitationResponse);

impl ElicitationHandler for Always {
    fn elicit(&self, _: Elicitation) -> std::pin::Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

fn text(text: &str) -> Value {
    json!([{ "role": "user", "content": { "type": "text", "text": text } }])
}

// req: F3, F4, Q6
#[tokio::test]
async fn empty_cursor_is_a_cursor() {
    let (server, requests) = recording_server(|method, params| match (method, params["cursor"].as_str()) {
        ("prompts/list", None) => Some(json!({ "prompts": [{ "name": "one" }], "nextCursor": "" })),
        ("prompts/list", Some("")) => Some(json!({ "prompts": [{ "name": "two" }], "nextCursor": " \u{e9}=" })),
        ("prompts/list", Some(" \u{e9}=")) => Some(json!({ "prompts": [{ "name": "three" }], "nextCursor": null })),
        _ => None,
    });
    assert_eq!(names(&connected(&server).await).await, ["one", "two", "three"]);
    let cursors: Vec<Value> = requests.of("prompts/list").iter().map(|params| params["cursor"].clone()).collect();
    assert_eq!(cursors, [Value::Null, json!(""), json!(" \u{e9}=")]);
}

// req: G5, G7, Q6
#[tokio::test]
async fn cached_results_are_per_request_and_caller() {
    for scope in ["public", "private"] {
        let cached = move |mut result: Value| {
            result["ttlMs"] = json!(600_000);
            result["cacheScope"] = json!(scope);
            Some(result)
        };
        let (server, requests) = recording_server(move |method, params| match (method, params["cursor"].as_str()) {
            ("prompts/list", None) => cached(json!({ "prompts": [{ "name": "one" }], "nextCursor": "2" })),
            ("prompts/list", Some(_)) => cached(json!({ "prompts": [{ "name": "two" }] })),
            ("resources/list", _) => cached(json!({ "resources": [{ "uri": "docs://a", "name": "a" }] })),
            ("resources/templates/list", _) => cached(json!({ "resourceTemplates": [] })),
            ("resources/read", _) => cached(json!({ "contents": [{ "uri": params["uri"], "text": params["uri"] }] })),
            ("prompts/get", _) => Some(json!({ "messages": text("once") })),
            _ => None,
        });
        let client = connected(&server).await;
        for _ in 0..2 {
            assert_eq!(names(&client).await, ["one", "two"]);
        }
        assert_eq!(requests.of("prompts/list").len(), 2, "each page once, the second time from the cache");
        let resources: Vec<_> = client.resources().try_collect().await.expect("a list");
        assert_eq!(resources[0].uri, "docs://a");
        assert_eq!(client.resource_templates().try_collect::<Vec<_>>().await.expect("a list"), []);
        for uri in ["docs://a", "docs://b", "docs://A", "docs://a"] {
            let read = client.read(uri).await.expect("a resource");
            assert_eq!(read.raw["contents"][0]["text"], uri);
        }
        assert_eq!(requests.of("resources/read").len(), 3, "three addresses, and one of them twice");
        // A result without a hint is not cached.
        for _ in 0..2 {
            client.get("once", &[].into()).await.expect("a prompt");
        }
        assert_eq!(requests.of("prompts/get").len(), 2);
        // Another caller has its own connection, and therefore its own cache.
        let other = Client::connect(&Endpoint::url(&server.url)).await.expect("a connection");
        assert_eq!(names(&other).await, ["one", "two"]);
        assert_eq!(requests.of("prompts/list").len(), 2, "{scope}");
    }
}

// req: G6, I20
#[tokio::test]
async fn multi_round_results_are_not_cached() {
    let form = json!({ "type": "object", "properties": { "word": { "type": "string" } } });
    let question = json!({ "method": "elicitation/create", "params": {
        "mode": "form", "message": "Which word?", "requestedSchema": form,
    } });
    let (server, requests) = recording_server(move |method, params| match method {
        "resources/read" if params.get("inputResponses").is_none() => Some(json!({
            "resultType": "input_required", "inputRequests": { "q": question }, "requestState": "s",
        })),
        "resources/read" => Some(json!({
            "contents": [{ "uri": "docs://a", "text": "closed" }], "ttlMs": 600_000, "cacheScope": "public",
        })),
        _ => None,
    });
    let answer = ElicitationResponse::Accept(json!({ "word": "sesame" }).as_object().cloned().unwrap_or_default());
    let target = Endpoint::url(&server.url);
    let client = ConnectOptions::new()
        .elicitation_handler(Arc::new(Always(answer)))
        .connect(&target)
        .await
        .expect("a connection");
    for _ in 0..2 {
        client.read("docs://a").await.expect("a resource");
        let rounds = requests.of("resources/read");
        assert_eq!(rounds.len(), 2, "{rounds:?}");
        assert_eq!(rounds[1]["requestState"], "s");
        let expected = json!({ "q": { "action": "accept", "content": { "word": "sesame" } } });
        assert_eq!(rounds[1]["inputResponses"], expected);
    }
}

// req: I20, I21, Q4
#[tokio::test]
async fn state_without_elicitation_is_returned_at_once() {
    let (server, requests) = recording_server(|method, params| match method {
        "prompts/get" if params["requestState"].is_null() => {
            Some(json!({ "resultType": "input_required", "requestState": " s\u{e9}\n" }))
        }
        "prompts/get" => Some(json!({ "messages": text("done") })),
        _ => None,
    });
    connected(&server).await.get("slow", &[].into()).await.expect("a prompt");
    let rounds = requests.of("prompts/get");
    assert_eq!((rounds.len(), &rounds[1]["requestState"]), (2, &json!(" s\u{e9}\n")));
    assert_eq!((rounds[1].get("inputResponses"), rounds[0].get("requestState")), (None, None));
}

// req: I22, Q3
#[tokio::test]
async fn missing_result_type_is_complete_and_unknown_is_error() {
    for kind in [Value::Null, json!("complete"), json!("later"), json!("input_required"), json!("")] {
        let is_good = kind.is_null() || kind == "complete";
        let server = FakeServer::start(move |method, _| {
            let mut result = match method {
                "prompts/list" => json!({ "prompts": [{ "name": "one" }] }),
                "resources/list" => json!({ "resources": [] }),
                "resources/templates/list" => json!({ "resourceTemplates": [] }),
                "prompts/get" => json!({ "messages": text("done") }),
                "resources/read" => json!({ "contents": [{ "uri": "docs://a", "text": "a" }] }),
                "completion/complete" => json!({ "completion": { "values": ["one"] } }),
                _ => return None,
            };
            result["resultType"] = kind.clone();
            Some(result)
        });
        let client = connected(&server).await;
        let none = [].into();
        let outcomes = [
            client.prompts().try_collect::<Vec<_>>().await.err(),
            client.resources().try_collect::<Vec<_>>().await.err(),
            client.resource_templates().try_collect::<Vec<_>>().await.err(),
            client.get("one", &none).await.err(),
            client.read("docs://a").await.err(),
            client.complete(CompletionTarget::Prompt("one"), "a", "", &none).await.err(),
        ];
        for (place, outcome) in outcomes.iter().enumerate() {
            let refused = matches!(outcome, Some(ClientError::InvalidResponse { .. }));
            assert!(if is_good { outcome.is_none() } else { refused }, "{place}: {outcome:?}");
        }
    }
}

// req: L19
#[tokio::test]
async fn only_unrepresentable_names_are_encoded() {
    let (server, requests) = recording_server(|method, params| match method {
        "prompts/get" => Some(json!({ "messages": text("done") })),
        "resources/read" => Some(json!({ "contents": [{ "uri": params["uri"], "text": "a" }] })),
        _ => None,
    });
    let client = connected(&server).await;
    let plain = ["review", "a b", "a/b?c=d&e", "=?base64?", "?="];
    let odd =
        ["", " review", "review ", "\treview", "r\u{e9}vision", "\u{30ec}", "a\nb", "a\u{0}b", "=?base64?cmV2aWV3?="];
    for name in plain.into_iter().chain(odd) {
        client.get(name, &[].into()).await.expect("a prompt");
        client.read(name).await.expect("a resource");
        let requests = std::mem::take(&mut *requests.0.lock().expect("no panic"));
        for (method, member) in [("prompts/get", "name"), ("resources/read", "uri")] {
            let (_, params) = requests.iter().find(|(requests, _)| requests == method).expect("a recorded request");
            let header = params["(headers)"]["mcp-name"].as_str().expect("a header");
            assert_eq!((params[member].as_str(), &params["(headers)"]["mcp-method"]), (Some(name), &json!(method)));
            let inside = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
            match plain.contains(&name) || name.is_empty() {
                true => assert_eq!(header, name),
                false => {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(inside.expect("it is encoded"));
                    assert_eq!(bytes.expect("base64"), name.as_bytes());
                }
            }
        }
    }
}

// req: Q5
#[tokio::test]
async fn only_answerable_elicitation_is_declared() {
    let (server, requests) = recording_server(|method, _| (method == "prompts/list").then(|| json!({ "prompts": [] })));
    let declared = |requests: &Requests| {
        let requests = std::mem::take(&mut *requests.0.lock().expect("no panic"));
        let declared: Vec<Value> = requests
            .into_iter()
            .map(|(_, mut params)| params["_meta"]["io.modelcontextprotocol/clientCapabilities"].take())
            .collect();
        assert!(declared.len() >= 2, "the first question and the list: {declared:?}");
        assert!(declared.windows(2).all(|pair| pair[0] == pair[1]), "the same each time: {declared:?}");
        declared[0].clone()
    };
    names(&connected(&server).await).await;
    assert_eq!(declared(&requests), json!({}));
    let target = Endpoint::url(&server.url);
    let client = ConnectOptions::new()
        .elicitation_handler(Arc::new(Always(ElicitationResponse::Decline)))
        .connect(&target)
        .await;
    names(&client.expect("a connection")).await;
    assert_eq!(declared(&requests), json!({ "elicitation": { "form": {}, "url": {} } }));
}

// req: M8, Q2
#[tokio::test]
async fn refused_version_is_replaced_by_a_supported_one() {
    let refuse = |supported: &str| {
        let data = json!({ "supported": [supported], "requested": "2026-07-28" });
        Some(json!({ "rpc-error": { "code": -32022, "message": "no", "data": data } }))
    };
    let first = AtomicBool::new(true);
    let (server, requests) = recording_server(move |method, _| match method {
        "server/discover" if first.swap(false, Ordering::Relaxed) => refuse("2026-07-28"),
        "prompts/list" => Some(json!({ "prompts": [{ "name": "one" }] })),
        _ => None,
    });
    assert_eq!(names(&connected(&server).await).await, ["one"]);
    assert_eq!(requests.of("server/discover").len(), 2);

    let (server, requests) = recording_server(move |_, _| refuse("2031-01-01"));
    let refused = Client::connect(&Endpoint::url(&server.url)).await.expect_err("no connection").to_string();
    assert!(refused.contains("2031-01-01"), "{refused}");
    assert_eq!(requests.all(), ["server/discover"], "and no handshake of another era");
}

// req: J11, N19
#[test]
fn not_found_is_recognized_in_every_revision() {
    let folder = library(&[]);
    for code in [-32002, -32602] {
        let server = FakeServer::start(move |method, _| {
            (method == "resources/read").then(|| json!({ "rpc-error": { "code": code, "message": "no such thing" } }))
        });
        let shown = run(&folder, &["resources", "--url", &server.url, "--read", "docs://nothing"]);
        assert!(shown.starts_with("exit code: 7\n"), "{code}: {shown}");
    }
}

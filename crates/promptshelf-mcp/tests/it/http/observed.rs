//! Metrics and traces of requests.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, StatusCode};
use promptshelf_core::{CatalogHandle, Definitions, PromptDefinition, check};
use promptshelf_mcp::{HttpOptions, Server, http::Denial};
use promptshelf_service::{Observer, Recorder, Service, TraceContext};
use serde_json::json;

use super::endpoint::{Ask, Endpoint, greet};
use crate::library;

#[derive(Debug, Default)]
struct Memory(Mutex<Vec<String>>);

impl Memory {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    fn hear(&self, text: String) {
        self.0.lock().expect("no panic").push(text);
    }
}

impl Observer for Memory {
    fn answered(&self, method: &'static str, outcome: &'static str, _: Duration) {
        self.hear(format!("{method} {outcome}"));
    }

    fn rendered(&self, outcome: &'static str, _: Duration) {
        self.hear(format!("rendered {outcome}"));
    }

    fn set_parent(&self, _: &tracing::Span, trace: &TraceContext<'_>) {
        self.hear(format!("continues {}", trace.parent));
    }
}

fn observed() -> (Endpoint, Arc<Memory>) {
    let memory = Arc::new(Memory::default());
    let mut definitions = library::definitions("Greets someone", "first");
    let waiting = PromptDefinition::new_async("waits", |_| std::future::pending()).description("Waits");
    definitions.prompts.push(waiting.into());
    let handle = CatalogHandle::new(check(definitions, None).catalog);
    let service = Service::new(handle.clone()).with_observer(memory.clone());
    (Endpoint::of(Server::new(service), handle, HttpOptions::default()), memory)
}

// req: S-28
#[tokio::test]
async fn each_request_is_reported_once_with_closed_labels() {
    let (endpoint, memory) = observed();
    let nothing = || json!({ "name": "nothing of this name" });
    for (ask, expected) in [
        (Ask::modern("prompts/get", greet()), vec!["rendered ok", "prompts/get ok"]),
        (Ask::legacy("2025-06-18", "prompts/get", &greet()), vec!["rendered ok", "prompts/get ok"]),
        (
            Ask::modern("prompts/get", json!({ "name": "greet" })),
            vec!["rendered invalid-arguments", "prompts/get invalid-params"],
        ),
        (Ask::modern("prompts/get", nothing()), vec!["prompts/get invalid-params"]),
        (Ask::modern("prompts/list", json!({})), vec!["prompts/list ok"]),
        (Ask::modern("made/up/method", json!({})), vec!["other method-not-found"]),
        (Ask::modern("prompts/list", json!({})).header("mcp-method", "x"), vec!["prompts/list header-mismatch"]),
        (Ask::legacy("1999-01-01", "ping", &json!({})), vec!["ping invalid-request"]),
        (Ask::raw("{"), vec!["none parse-error"]),
        (Ask::raw("[]"), vec!["none invalid-request"]),
        (Ask::verb(Method::DELETE), vec!["none invalid-request"]),
        (Ask::verb(Method::POST).header("host", "elsewhere.example"), vec!["none forbidden"]),
    ] {
        let answer = endpoint.ask(ask).await;
        assert_eq!(memory.take(), expected, "{answer:?}");
        assert!(answer.header("x-request-id").is_some_and(|id| id.len() == 16), "{answer:?}");
    }
    for (status, outcome) in [
        (StatusCode::UNAUTHORIZED, "none unauthorized"),
        (StatusCode::TOO_MANY_REQUESTS, "none too-many-requests"),
        (StatusCode::SERVICE_UNAVAILABLE, "none unavailable"),
    ] {
        let mut request = Ask::modern("prompts/list", json!({})).request();
        request.extensions_mut().insert(Denial::new(status, "no"));
        endpoint.send(request).await;
        assert_eq!(memory.take(), [outcome]);
    }
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "id": 2, "method": "of their own" },
    ]);
    endpoint.ask(Ask::message(&batch).header("mcp-protocol-version", "2025-03-26")).await;
    assert_eq!(memory.take(), ["ping ok", "other method-not-found"]);
}

#[tokio::test]
async fn dropped_request_is_reported_as_cancelled() {
    let (endpoint, memory) = observed();
    {
        let asking = endpoint.ask(Ask::modern("prompts/get", json!({ "name": "waits" })));
        tokio::pin!(asking);
        assert!(futures_util::poll!(asking).is_pending());
    }
    assert_eq!(memory.take(), ["prompts/get cancelled"]);
}

#[derive(Debug, Default)]
struct Records(Mutex<Vec<String>>);

impl Recorder for Records {
    fn record(&self, record: String) {
        self.0.lock().expect("no panic").push(record);
    }
}

#[tokio::test(start_paused = true)]
async fn request_that_takes_too_long_gets_an_error_with_its_id_and_a_record() {
    let records = Arc::new(Records::default());
    let waiting = PromptDefinition::new_async("waits", |_| std::future::pending()).description("Waits");
    let handle = CatalogHandle::new(check(Definitions::from_iter([waiting]), None).catalog);
    let service = Service::new(handle.clone()).with_audit(records.clone());
    let options = HttpOptions { request_timeout: Duration::from_secs(30), ..HttpOptions::default() };
    let endpoint = Endpoint::of(Server::new(service), handle, options);
    let answer = endpoint.ask(Ask::modern("prompts/get", json!({ "name": "waits" }))).await;
    let error = answer.json();
    assert_eq!((answer.status, &error["id"]), (504, &json!(1)), "{error}");
    assert!(error["error"]["message"].as_str().expect("a message").contains("within 30 seconds"), "{error}");
    assert!(answer.header("x-request-id").is_some());
    let records = records.0.lock().expect("no panic");
    assert!(records.len() == 1 && records[0].contains(r#""outcome":"timed-out""#), "{records:?}");
}

// req: S-29
#[tokio::test]
async fn request_ids_are_unique_and_server_assigned() {
    let (endpoint, _) = observed();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = endpoint.ask(Ask::modern("prompts/list", json!({})).header("x-request-id", "mine")).await;
        ids.push(answer.header("x-request-id").expect("an id").to_owned());
    }
    assert!(ids[0] != ids[1] && !ids.contains(&"mine".to_owned()), "{ids:?}");
}

#[tokio::test]
async fn open_subscriptions_are_counted() {
    let (endpoint, _) = observed();
    let listen = || Ask::modern("subscriptions/listen", json!({ "notifications": { "promptsListChanged": true } }));
    let first = endpoint.open(listen().request()).await;
    let second = endpoint.open(Ask::get_stream().request()).await;
    assert_eq!(endpoint.server.subscriptions(), 2);
    drop(first);
    assert_eq!(endpoint.server.subscriptions(), 1);
    drop(second);
    assert_eq!(endpoint.server.subscriptions(), 0);
}

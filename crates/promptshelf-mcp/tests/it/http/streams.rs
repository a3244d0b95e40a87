//! Streams: their notifications and their end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use promptshelf_core::{
    BoxFuture, CatalogHandle, ReadBody, ReadError, ReadResource, ResourceContent, Variables, check,
};
use promptshelf_mcp::{HttpBody, HttpOptions, Server};
use promptshelf_service::Service;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::endpoint::{Ask, Endpoint, MODERN, VERSION, events, greet, meta, piece};
use crate::library;

fn listen(id: &str, notifications: &Value) -> Ask {
    let params = json!({ "notifications": notifications, "_meta": meta(MODERN) });
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#);
    Ask::raw(body).header(VERSION, MODERN).header("mcp-method", "subscriptions/listen")
}

async fn open(endpoint: &Endpoint, ask: Ask) -> HttpBody {
    let response = endpoint.open(ask.request()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body()
}

/// Replaces the catalog by one with other prompts and the same resources.
fn change_prompts(endpoint: &Endpoint, greeting: &str) {
    let catalog = check(library::definitions(greeting, "first"), Some(&endpoint.handle.current())).catalog;
    endpoint.handle.replace(catalog);
}

// req: H3, H5, H12, L3, L14
#[tokio::test]
async fn acknowledgment_precedes_selected_notifications() {
    let endpoint = Endpoint::new();
    let filter = json!({
        "promptsListChanged": true, "toolsListChanged": true,
        "resourceSubscriptions": ["docs://note", "docs://nothing"],
    });
    let mut body = open(&endpoint, listen("7", &filter)).await;
    let tag = json!({ "io.modelcontextprotocol/subscriptionId": 7 });
    assert_eq!(
        events(&mut body).await,
        [json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "notifications": { "promptsListChanged": true, "resourceSubscriptions": ["docs://note"] },
            "_meta": tag,
        } })]
    );
    let catalog = check(library::definitions("Greets another", "second"), None).catalog;
    endpoint.handle.replace(catalog);
    assert_eq!(
        events(&mut body).await,
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed", "params": { "_meta": tag } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
                    "params": { "uri": "docs://note", "_meta": tag } }),
        ]
    );
}

// req: H6
#[tokio::test]
async fn notifications_carry_id_verbatim() {
    let endpoint = Endpoint::new();
    for id in ["1152921504606846976", "123456789012345678901234567890", r#""7""#, "-1"] {
        let mut body = open(&endpoint, listen(id, &json!({ "promptsListChanged": true }))).await;
        let tag = format!(r#""io.modelcontextprotocol/subscriptionId":{id}}}"#);
        assert!(piece(&mut body).await.unwrap().contains(&tag));
        change_prompts(&endpoint, id);
        assert!(piece(&mut body).await.unwrap().contains(&tag));
    }
}

// req: H19
#[tokio::test]
async fn empty_filter_sends_nothing() {
    let endpoint = Endpoint::new();
    let mut body = open(&endpoint, listen("1", &json!({}))).await;
    assert_eq!(events(&mut body).await[0]["params"]["notifications"], json!({}));
    change_prompts(&endpoint, "Greets no one");
    endpoint.server.shutdown();
    // Changes before the end are not sent any more.
    assert_eq!(events(&mut body).await[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn many_changes_are_combined_per_stream() {
    let endpoint = Endpoint::new();
    let mut bodies = Vec::new();
    for id in ["1", "2", "3"] {
        let mut body = open(&endpoint, listen(id, &json!({ "promptsListChanged": true }))).await;
        assert_eq!(events(&mut body).await[0]["method"], "notifications/subscriptions/acknowledged");
        bodies.push(body);
    }
    for change in 0..1_000 {
        change_prompts(&endpoint, &format!("Greets number {change}"));
    }
    endpoint.server.shutdown();
    for (body, id) in bodies.iter_mut().zip(1..) {
        let mut received = 0;
        loop {
            let messages = events(body).await;
            assert_eq!(messages.len(), 1);
            match messages[0].get("result") {
                Some(result) => {
                    assert_eq!(result["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
                    break;
                }
                None => received += 1,
            }
        }
        assert!(received <= 1, "{received} messages");
    }
}

// req: H7, L15, O5
#[tokio::test]
async fn shutdown_ends_streams() {
    let endpoint = Endpoint::new();
    let mut modern = open(&endpoint, listen(r#""a""#, &json!({}))).await;
    let mut legacy = open(&endpoint, Ask::get_stream()).await;
    events(&mut modern).await;
    assert_eq!(piece(&mut legacy).await.as_deref(), Some(":\n\n"));
    endpoint.server.shutdown();
    assert_eq!(
        events(&mut modern).await,
        [json!({ "jsonrpc": "2.0", "id": "a", "result": {
            "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": "a" },
        } })]
    );
    assert_eq!(piece(&mut modern).await, None);
    assert_eq!(piece(&mut modern).await, None);
    assert_eq!(piece(&mut legacy).await, None);
    // Requests are still answered.
    assert_eq!(endpoint.ask(Ask::modern("prompts/get", greet())).await.status, 200);
}

// req: H1, L30, L41
#[tokio::test]
async fn legacy_stream_receives_untagged_changes() {
    let endpoint = Endpoint::new();
    let mut body = open(&endpoint, Ask::get_stream().header(VERSION, "2025-11-25")).await;
    change_prompts(&endpoint, "Greets another");
    assert_eq!(
        events(&mut body).await,
        [json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed", "params": {} })]
    );
    let subscribe = Ask::legacy("2025-11-25", "resources/subscribe", &json!({ "uri": "docs://note" }));
    endpoint.ask(subscribe).await.result();
    endpoint.handle.replace(check(library::definitions("Greets another", "other"), None).catalog);
    assert_eq!(
        events(&mut body).await,
        [json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "docs://note" } })]
    );
}

// req: H13
#[tokio::test(start_paused = true)]
async fn idle_stream_sends_comments() {
    let options = HttpOptions { keep_alive: Duration::from_secs(20), ..HttpOptions::default() };
    let endpoint = Endpoint::with(options);
    for ask in [listen("1", &json!({ "promptsListChanged": true })), Ask::get_stream()] {
        let mut body = open(&endpoint, ask).await;
        piece(&mut body).await;
        let begin = Instant::now();
        for beats in 1..4 {
            assert_eq!(piece(&mut body).await.as_deref(), Some(":\n\n"));
            assert_eq!(begin.elapsed().as_secs(), beats * 20);
        }
        tokio::time::advance(Duration::from_secs(15)).await;
        change_prompts(&endpoint, &format!("{begin:?}"));
        assert_eq!(events(&mut body).await[0]["method"], "notifications/prompts/list_changed");
        // Comments are sent only while the stream is idle.
        let sent = Instant::now();
        assert_eq!(piece(&mut body).await.as_deref(), Some(":\n\n"));
        assert_eq!(sent.elapsed().as_secs(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn zero_keep_alive_does_not_spin() {
    for (keep_alive, seconds) in [(Duration::ZERO, 1), (Duration::MAX, 24 * 60 * 60)] {
        let endpoint = Endpoint::with(HttpOptions { keep_alive, ..HttpOptions::default() });
        let mut body = open(&endpoint, Ask::get_stream()).await;
        piece(&mut body).await;
        let begin = Instant::now();
        piece(&mut body).await;
        assert_eq!(begin.elapsed().as_secs(), seconds);
    }
}

// req: H11, H12, L16, O4
#[tokio::test]
async fn dropped_stream_frees_permit() {
    let endpoint = Endpoint::with(HttpOptions { max_streams: 2, ..HttpOptions::default() });
    let first = open(&endpoint, listen("1", &json!({}))).await;
    let second = open(&endpoint, Ask::get_stream()).await;
    assert_eq!(endpoint.ask(listen("3", &json!({}))).await.error(), (503, -32603, Some(json!(3))));
    assert_eq!(endpoint.ask(Ask::get_stream()).await.error(), (503, -32603, None));
    drop(first);
    let third = open(&endpoint, listen("4", &json!({}))).await;
    drop((second, third));
    // Refused streams do not count.
    for _ in 0..3 {
        assert_eq!(endpoint.ask(listen("5", &json!([]))).await.status, 200);
    }
    let _both = (open(&endpoint, Ask::get_stream()).await, open(&endpoint, Ask::get_stream()).await);
}

#[tokio::test]
async fn followed_resources_are_bounded() {
    let endpoint = Endpoint::new();
    let uris: Vec<String> = (0..10_000).map(|number| format!("docs://{number}")).collect();
    let answer = endpoint.ask(listen("1", &json!({ "resourceSubscriptions": uris }))).await;
    assert_eq!(answer.error(), (200, -32602, Some(json!(1))));
}

// req: L17
#[tokio::test]
async fn last_event_id_is_ignored() {
    let endpoint = Endpoint::new();
    change_prompts(&endpoint, "Greets before anybody listens");
    let ask = listen("1", &json!({ "promptsListChanged": true })).header("last-event-id", "0");
    let mut body = open(&endpoint, ask).await;
    let opening = piece(&mut body).await.expect("an acknowledgment");
    assert!(opening.starts_with("event: message\ndata: {") && opening.contains("acknowledged"), "{opening}");
    change_prompts(&endpoint, "Greets a listener");
    let event = piece(&mut body).await.expect("a change");
    assert!(event.starts_with("event: message\ndata: {") && event.contains("list_changed"), "{event}");
}

/// Counts the calls of `version`.
#[derive(Debug, Default)]
struct Counted {
    looked_at: Arc<AtomicU64>,
    version: Arc<AtomicU64>,
}

impl ReadResource for Counted {
    fn read<'a>(&'a self, _: &'a Variables) -> BoxFuture<'a, Result<ReadBody, ReadError>> {
        Box::pin(async { Err(ReadError::NotFound) })
    }

    fn version<'a>(&'a self, _: &'a Variables) -> BoxFuture<'a, Option<u64>> {
        self.looked_at.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Some(self.version.load(Ordering::Relaxed)) })
    }
}

#[tokio::test]
async fn resource_is_read_once_per_change() {
    let counted = Counted::default();
    let (looked_at, version) = (Arc::clone(&counted.looked_at), Arc::clone(&counted.version));
    let mut definitions = library::definitions("Greets someone", "first");
    definitions.resources[0].content = ResourceContent::Reader(Arc::new(counted));
    let handle = CatalogHandle::new(check(definitions, None).catalog);
    let endpoint = Endpoint::of(Server::new(Service::new(handle.clone())), handle, HttpOptions::default());
    let mut bodies = vec![open(&endpoint, Ask::get_stream()).await];
    piece(&mut bodies[0]).await;
    let subscribe = Ask::legacy("2025-11-25", "resources/subscribe", &json!({ "uri": "docs://note" }));
    endpoint.ask(subscribe).await.result();
    for id in 1..50 {
        let filter = json!({ "resourceSubscriptions": ["docs://note", "docs://note"] });
        let mut body = open(&endpoint, listen(&id.to_string(), &filter)).await;
        events(&mut body).await;
        bodies.push(body);
    }
    assert_eq!(looked_at.load(Ordering::Relaxed), 1);
    for change in 1..4 {
        version.store(change, Ordering::Relaxed);
        endpoint.handle.touch();
        for body in &mut bodies {
            let messages = events(body).await;
            assert_eq!((messages.len(), &messages[0]["params"]["uri"]), (1, &json!("docs://note")));
        }
        assert_eq!(looked_at.load(Ordering::Relaxed), change + 1);
    }
    // Unchanged resources cause no notification, and resources without followers are not read.
    endpoint.handle.touch();
    bodies.truncate(1);
    change_prompts(&endpoint, "Greets another");
    assert_eq!(events(&mut bodies[0]).await[0]["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn too_long_uri_is_not_followed() {
    let endpoint = Endpoint::new();
    let long = format!("docs://{}", "x".repeat(3_000));
    let mut body = open(&endpoint, listen("1", &json!({ "resourceSubscriptions": [long, "docs://note"] }))).await;
    let honoured = json!({ "resourceSubscriptions": ["docs://note"] });
    assert_eq!(events(&mut body).await[0]["params"]["notifications"], honoured);
}

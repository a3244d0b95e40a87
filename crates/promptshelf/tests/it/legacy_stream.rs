//! The notification stream of a legacy server, which the client opens only when needed because it costs a request.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::StreamExt;
use promptshelf::client::{Client, ConnectOptions, Elicitation, ElicitationHandler, ElicitationResponse, Endpoint};
use serde_json::{Value, json};

use crate::{fake_server::FakeServer, program::PATIENCE};

const CHANGED: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;

/// A server of revision 2025-11-25 with one prompt. Counts opened streams.
fn legacy_server() -> (FakeServer, Arc<AtomicUsize>) {
    let streams = Arc::new(AtomicUsize::new(0));
    let app = Router::new().route("/mcp", post(reply).get(stream).delete(async || StatusCode::OK));
    (FakeServer::serving(app.with_state(Arc::clone(&streams))), streams)
}

async fn reply(Json(request): Json<Value>) -> Response {
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "prompts": { "listChanged": true } },
            "serverInfo": { "name": "older", "version": "1" },
        }),
        "prompts/get" => json!({ "messages": [] }),
        method if method.starts_with("notifications/") => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({ "code": -32601, "message": "method not found" });
            return Json(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).into_response();
        }
    };
    let answer = Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    ([("mcp-session-id", "one")], answer).into_response()
}

/// Sends a notification at once, then stays open.
async fn stream(State(streams): State<Arc<AtomicUsize>>) -> Response {
    streams.fetch_add(1, Ordering::SeqCst);
    let events = futures_util::stream::iter([Ok::<_, std::io::Error>(format!("{CHANGED}\n\n"))]);
    let events = Body::from_stream(events.chain(futures_util::stream::pending()));
    ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
}

struct UnusedHandler;

impl ElicitationHandler for UnusedHandler {
    fn elicit(&self, _question: Elicitation) -> Pin<Box<dyn Future<Output = ElicitationResponse> + Send + '_>> {
        Box::pin(std::future::ready(ElicitationResponse::Decline))
    }
}

#[tokio::test]
async fn prompt_needs_no_stream_and_notifications_open_one() {
    let (server, streams) = legacy_server();
    let client = Client::connect(&Endpoint::url(&server.url)).await.expect("a response");
    for _ in 0..20 {
        client.get("hello", &[].into()).await.expect("at least one");
    }
    assert_eq!(streams.load(Ordering::SeqCst), 0);

    let mut changes = client.changes();
    let changed = tokio::time::timeout(PATIENCE, changes.next()).await;
    assert_eq!(changed, Ok(true));
    assert_eq!(streams.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn elicitation_handler_opens_the_stream() {
    let (server, streams) = legacy_server();
    let client = ConnectOptions::new()
        .elicitation_handler(Arc::new(UnusedHandler))
        .connect(&Endpoint::url(&server.url))
        .await
        .expect("a response");
    let opened = async {
        while streams.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, opened).await.is_ok());
    drop(client);
}

//! The HTTP application of this crate, without the command line.

#[cfg(unix)]
mod access_by_file;
mod api;
mod budget;
mod channels;
mod checker;
mod closed;
mod connections;
mod embedded;
mod programs;
mod replicas;
mod requests;
mod sign_in;
mod start;
mod tls;
mod webhooks;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode, request},
};
use promptshelf_core::PromptDefinition;
use promptshelf_server::{Builder, Library};
use promptshelf_service::Recorder;
use serde_json::Value;
use tower::Service as _;

/// The time after which a test fails that waits for something.
const TIMEOUT: Duration = Duration::from_secs(30);

fn library() -> Builder {
    Library::builder().prompt(PromptDefinition::template("greet", "Say hello."))
}

/// A legacy `prompts/list`, which needs no `initialize` over HTTP.
fn list() -> request::Builder {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#;

/// The stream of legacy clients.
fn stream() -> request::Builder {
    Request::get("/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header("mcp-protocol-version", "2025-06-18")
}

fn get(path: &str) -> request::Builder {
    Request::get(path).header("host", "localhost")
}

/// Audit records in memory.
#[derive(Debug, Default)]
struct Records(Mutex<Vec<String>>);

impl Recorder for Records {
    fn record(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

impl Records {
    fn all(&self) -> Vec<Value> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
    }
}

/// Sends a request through the router.
async fn send(router: &Router, request: request::Builder, body: &'static str) -> (StatusCode, HeaderMap, Body) {
    let request = request.body(Body::from(body)).expect("a valid request");
    let response = router.clone().call(request).await.expect("a router never fails");
    let (head, body) = response.into_parts();
    (head.status, head.headers, body)
}

async fn text(body: Body) -> String {
    let bytes = tokio::time::timeout(TIMEOUT, to_bytes(body, usize::MAX)).await.expect("the body ends");
    String::from_utf8(bytes.expect("a complete body").into()).expect("UTF-8")
}

//! The server that all targets send their bytes to: a small library behind the production server, without test
//! doubles.

use std::{cell::RefCell, sync::LazyLock};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use promptshelf_core::{
    ArgumentDefinition, CatalogHandle, CompletionSource, Decline, Definitions, PromptDefinition, StepDefinition, check,
};
use promptshelf_mcp::{HttpOptions, HttpService, Server, StateKey};
use promptshelf_service::Service;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower_service::Service as _;

pub const MODERN: &str = "2026-07-28";

/// A response: its status, and its body unless it is a stream.
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl Answer {
    /// Panics unless the response conforms to the protocol: either empty, or JSON-RPC without a `null` id and without
    /// an internal error, which only a panic causes.
    pub fn check(&self) {
        if self.body.is_empty() {
            assert_eq!(self.status, 202, "an answer without a body");
            return;
        }
        let answer: Value = serde_json::from_slice(&self.body).expect("an answer is JSON");
        for answer in answer.as_array().map_or(std::slice::from_ref(&answer), Vec::as_slice) {
            assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
            assert!(answer.get("id").is_none_or(|id| id.is_string() || id.is_number()), "{answer}");
            assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
            assert_ne!(answer["error"]["code"], -32603, "{answer}");
        }
    }
}

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::new(
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime"),
    );
}

static SERVER: LazyLock<(Server, HttpService)> = LazyLock::new(|| {
    let server = Server::with_state_key(Service::new(CatalogHandle::new(catalog())), StateKey::from_secret(b"fuzz"));
    let endpoint = server.http(HttpOptions::default());
    (server, endpoint)
});

fn catalog() -> promptshelf_core::Catalog {
    let argument = |name: &str| ArgumentDefinition::new(name).description("A value");
    let greet = PromptDefinition::template("greet", "Say {{ word | fence }} to {{ name }}.")
        .description("Greets")
        .argument(argument("name").required().complete(CompletionSource::Values(vec!["Ada".into(), "Grace".into()])))
        .argument(argument("word"));
    let mut ask = PromptDefinition::template("setup", "{{ language }} {{ framework }}.")
        .description("Asks")
        .argument(argument("language").required().choices(["rust", "python"]).ask())
        .argument(argument("framework").required().ask().step(2).when("language == \"python\""));
    ask.steps = vec![StepDefinition {
        number: 1,
        key: Some("basics".into()),
        message: Some("What is it written in?".into()),
        url: None,
        decline: Decline::Stop,
    }];
    let many =
        (0..30).map(|number| PromptDefinition::template(format!("p{number}"), "Text.").description("One of many"));
    let mut definitions = Definitions::from_iter([greet, ask].into_iter().chain(many));
    definitions.policy.page_size = 10;
    check(definitions, None).catalog
}

/// Runs a future to its end on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow(|runtime| runtime.block_on(future))
}

/// Returns the server.
#[must_use]
pub fn server() -> Server {
    SERVER.0.clone()
}

/// Posts a body. Returns `None` if the response is a stream.
#[must_use]
pub fn post(headers: HeaderMap, body: impl Into<Bytes>) -> Option<Answer> {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    wait(async {
        let response = SERVER.1.clone().call(request).await.expect("the service is infallible");
        let (head, body) = response.into_parts();
        if head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            return None;
        }
        let body = body.collect().await.expect("the body is complete").to_bytes();
        Some(Answer { status: head.status.as_u16(), body })
    })
}

/// Returns the headers for a message of a protocol revision.
#[must_use]
pub fn headers(revision: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("host", "localhost".parse().expect("a value"));
    headers.insert("content-type", "application/json".parse().expect("a value"));
    if let Some(revision) = revision {
        headers.insert("mcp-protocol-version", revision.parse().expect("a value"));
    }
    headers
}

/// Returns a modern request and its headers.
#[must_use]
pub fn modern(method: &str, mut params: Value) -> (HeaderMap, String) {
    let mut headers = headers(Some(MODERN));
    headers.insert("mcp-method", method.parse().expect("a value"));
    if let Some(name) = params["name"].as_str() {
        headers.insert("mcp-name", name.parse().expect("a value"));
    }
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    (headers, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

//! Fake MCP server over HTTP in revision 2026-07-28, with the responses that a test chooses.

use std::{sync::Arc, thread};

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};

type Answer = dyn Fn(&str, &Value) -> Option<Value> + Send + Sync;

/// A server that runs until it is dropped.
pub struct FakeServer {
    /// The address of its endpoint.
    pub url: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl FakeServer {
    /// Starts a server that answers a method and its parameters with a result, or with "method not found". A result
    /// `{ "rpc-error": … }` becomes an error.
    pub fn start(answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static) -> FakeServer {
        let answer: Arc<Answer> = Arc::new(answer);
        FakeServer::serving(Router::new().route("/mcp", post(reply)).with_state(answer))
    }

    /// Starts a server with any routes.
    pub fn serving(app: Router) -> FakeServer {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("non-blocking mode");
        let url = format!("http://{}/mcp", listener.local_addr().expect("a bound listener"));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let serve = axum::serve(listener, app);
                tokio::select! { _ = serve => {}, _ = stopped => {} }
            });
        });
        FakeServer { url, stop: Some(stop) }
    }

    /// Starts a server with one list of prompts, and the same messages for each of them.
    pub fn of(prompts: Value, messages: Value) -> FakeServer {
        FakeServer::start(move |method, _| match method {
            "prompts/list" => Some(json!({ "prompts": prompts })),
            "prompts/get" => Some(json!({ "messages": messages })),
            _ => None,
        })
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
    }
}

async fn reply(State(answer): State<Arc<Answer>>, headers: HeaderMap, Json(mut request): Json<Value>) -> Json<Value> {
    // A test gets the headers as one of the parameters.
    let values = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    request["params"]["(headers)"] = values.collect();
    let method = request["method"].as_str().unwrap_or_default();
    let answered = answer(method, &request["params"]).or_else(|| (method == "server/discover").then(discovered));
    Json(match answered {
        Some(mut result) if result.get("rpc-error").is_some() => {
            json!({ "jsonrpc": "2.0", "id": request["id"], "error": result["rpc-error"].take() })
        }
        Some(mut result) => {
            add(&mut result, "resultType", "complete");
            if method.ends_with("/list") || method == "resources/read" {
                add(&mut result, "ttlMs", 0);
                add(&mut result, "cacheScope", "private");
            }
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
        }
        None => {
            let error = json!({ "code": -32601, "message": "method not found" });
            json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })
        }
    })
}

/// Adds a member unless it exists; `null` removes it.
fn add(result: &mut Value, member: &str, value: impl Into<Value>) {
    match result.get(member) {
        None => result[member] = value.into(),
        Some(Value::Null) => drop(result.as_object_mut().and_then(|result| result.remove(member))),
        Some(_) => {}
    }
}

fn discovered() -> Value {
    json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "prompts": {}, "completions": {}, "resources": {} },
        "serverInfo": { "name": "stranger\u{1b}]0;evil\u{7}", "version": "1" },
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

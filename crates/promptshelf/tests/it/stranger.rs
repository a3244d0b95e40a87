//! A foreign server that says whatever a test wants it to say, over HTTP in
//! revision 2026-07-28.

use std::{sync::Arc, thread};

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};

type Answer = dyn Fn(&str, &Value) -> Option<Value> + Send + Sync;

/// A server that runs until it is dropped.
pub(crate) struct Stranger {
    pub(crate) url: String,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Stranger {
    /// Starts a server that answers a method and its parameters with a result,
    /// or with "method not found".
    pub(crate) fn start(answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static) -> Stranger {
        let answer: Arc<Answer> = Arc::new(answer);
        Stranger::serving(Router::new().route("/mcp", post(reply)).with_state(answer))
    }

    /// Starts a server that answers as it likes.
    pub(crate) fn serving(app: Router) -> Stranger {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it can be shared");
        let url = format!("http://{}/mcp", listener.local_addr().expect("it is bound"));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
                let serve = axum::serve(listener, app);
                tokio::select! { _ = serve => {}, _ = stopped => {} }
            });
        });
        Stranger { url, stop: Some(stop) }
    }

    /// A server with one list of prompts and one answer for each of them.
    pub(crate) fn of(prompts: Value, messages: Value) -> Stranger {
        Stranger::start(move |method, _| match method {
            "prompts/list" => Some(json!({ "prompts": prompts })),
            "prompts/get" => Some(json!({ "messages": messages })),
            _ => None,
        })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
    }
}

async fn reply(State(answer): State<Arc<Answer>>, headers: HeaderMap, Json(mut request): Json<Value>) -> Json<Value> {
    // Tests see them as one of the parameters.
    let seen = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    request["params"]["(headers)"] = seen.collect();
    let method = request["method"].as_str().unwrap_or_default();
    let answered = answer(method, &request["params"]).or_else(|| (method == "server/discover").then(discovered));
    Json(match answered {
        Some(mut result) if result.get("rpc-error").is_some() => {
            json!({ "jsonrpc": "2.0", "id": request["id"], "error": result["rpc-error"].take() })
        }
        Some(mut result) => {
            usual(&mut result, "resultType", "complete");
            if method.ends_with("/list") || method == "resources/read" {
                usual(&mut result, "ttlMs", 0);
                usual(&mut result, "cacheScope", "private");
            }
            json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
        }
        None => {
            let error = json!({ "code": -32601, "message": "method not found" });
            json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })
        }
    })
}

/// Adds a member, unless there is one; a test that wants none says `null`.
fn usual(result: &mut Value, member: &str, value: impl Into<Value>) {
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

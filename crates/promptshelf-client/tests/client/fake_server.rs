//! A server of revision 2026-07-28 whose results a test defines.

use std::sync::{Arc, Mutex};

use promptshelf_client::{Client, ConnectOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// The outcome of a request.
pub(crate) enum Reply {
    Result(Value),
    Error {
        code: i32,
        message: &'static str,
        data: Value,
    },
    /// A line that is sent verbatim, apart from `$id`: the identifier of the request.
    Raw(String),
    /// No answer.
    Silence,
    /// The end of the connection.
    Close,
}

/// The requests that a server received, as method and parameters.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<Mutex<Vec<(String, Value)>>>);

impl Received {
    /// Returns the parameters of the requests with a method.
    pub(crate) fn with_method(&self, method: &str) -> Vec<Value> {
        let received = self.0.lock().expect("no panic while it is locked");
        received.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }
}

/// Connects to a server with default options.
pub(crate) async fn connect(reply: impl FnMut(&str, &Value) -> Option<Reply> + Send + 'static) -> (Client, Received) {
    connect_with(ConnectOptions::new(), reply).await
}

/// Connects to a server. `None` is the error for unknown methods, except for `server/discover`.
pub(crate) async fn connect_with(
    options: ConnectOptions,
    mut reply: impl FnMut(&str, &Value) -> Option<Reply> + Send + 'static,
) -> (Client, Received) {
    let received = Received::default();
    let (client_end, server_end) = tokio::io::duplex(1 << 20);
    let log = received.clone();
    tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(server_end);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).expect("the client sends JSON");
            let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) else { continue };
            let params = &request["params"];
            log.0.lock().expect("no panic while it is locked").push((method.to_owned(), params.clone()));
            let discovered = || (method == "server/discover").then(|| Reply::Result(discovery()));
            let answer = match reply(method, params).or_else(discovered) {
                Some(Reply::Result(result)) => json!({ "jsonrpc": "2.0", "id": id, "result": completed(result) }),
                Some(Reply::Error { code, message, data }) => {
                    let error = json!({ "code": code, "message": message, "data": data });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
                Some(Reply::Raw(line)) => {
                    let line = line.replace("$id", &id.to_string());
                    writer.write_all(format!("{line}\n").as_bytes()).await.ok();
                    continue;
                }
                Some(Reply::Silence) => continue,
                Some(Reply::Close) => return,
                None => {
                    let error = json!({ "code": -32601, "message": "method not found" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            };
            writer.write_all(format!("{answer}\n").as_bytes()).await.ok();
        }
    });
    let (reader, writer) = tokio::io::split(client_end);
    let client = options.connect_io(reader, writer).await.expect("a connection");
    (client, received)
}

fn completed(mut result: Value) -> Value {
    for (key, value) in [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))] {
        if result.get(key).is_none() {
            result[key] = value;
        }
    }
    result
}

fn discovery() -> Value {
    json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": { "prompts": {}, "completions": {}, "resources": {} },
        "serverInfo": { "name": "fake", "title": "A fake server", "version": "1" },
    })
}

/// Creates a result with one text message of the user.
pub(crate) fn text(text: &str) -> Reply {
    Reply::Result(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] }))
}

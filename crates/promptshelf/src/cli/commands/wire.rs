//! Asks the server what a client would ask it, and gets what a client would get.

use std::io;

use promptshelf_mcp::Server;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

/// The revision that `--json` speaks.
const NEWEST: &str = "2026-07-28";

/// The result of one request in the newest revision; `None` where the answer is
/// an error.
pub(crate) async fn ask(server: &Server, method: &str, mut params: Value) -> io::Result<Option<Value>> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": { "name": "promptshelf", "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
    let (mut ours, theirs) = tokio::io::duplex(64 << 10);
    let mut answer = Vec::new();
    let (served, read) = tokio::join!(server.serve_stdio(request.as_bytes(), theirs), ours.read_to_end(&mut answer));
    served?;
    read?;
    let mut answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer.get_mut("result").map(Value::take))
}

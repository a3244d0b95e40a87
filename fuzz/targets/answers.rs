//! Arbitrary bytes as what another server answers over a pipe: to the list of its prompts, to a prompt, a completion and the
//! list of its resources. `{id}` in an input stands for the number of the request.

#![no_main]

use std::{cell::RefCell, time::Duration};

use futures_util::StreamExt as _;
use libfuzzer_sys::fuzz_target;
use promptshelf_client::{Arguments, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

thread_local! {
    static RUNTIME: RefCell<tokio::runtime::Runtime> = RefCell::new(
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
    );
}

/// Answers the handshake, and then each request with the input, and with an error so that no request waits.
async fn serve(server: tokio::io::DuplexStream, bytes: Vec<u8>) {
    let (reader, mut writer) = tokio::io::split(server);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = request.get("id") else { continue };
        let answer = match request["method"].as_str() {
            Some("initialize") => {
                let capabilities = json!({ "prompts": {}, "resources": {}, "completions": {} });
                let info = json!({ "name": "other", "version": "1" });
                let version = &request["params"]["protocolVersion"];
                let result = json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info });
                format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_bytes()
            }
            Some("server/discover") => {
                let error = json!({ "code": -32601, "message": "Not here" });
                format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_bytes()
            }
            _ => {
                let text = String::from_utf8_lossy(&bytes).replace("{id}", &id.to_string());
                let error = json!({ "code": -32603, "message": "That was all" });
                format!("{text}\n{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_bytes()
            }
        };
        if writer.write_all(&answer).await.is_err() {
            return;
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    RUNTIME.with_borrow(|runtime| {
        runtime.block_on(async {
            let (client, server) = tokio::io::duplex(1 << 16);
            let serving = tokio::spawn(serve(server, bytes.to_vec()));
            let (reader, writer) = tokio::io::split(client);
            let asked = async {
                let Ok(client) = Client::from_io(reader, writer).await else { return };
                let _ = client.prompts().take(20).collect::<Vec<_>>().await;
                let _ = client.get("greet", &Arguments::default()).await;
                let _ = client.resources().take(20).collect::<Vec<_>>().await;
            };
            tokio::time::timeout(Duration::from_secs(4), asked).await.expect("every request ends");
            serving.abort();
        });
    });
});

//! Conversations over stdio.

use std::time::Duration;

use promptshelf_core::CatalogHandle;
use promptshelf_mcp::Server;
use promptshelf_testkit::{pipe::Pipe, served::Served};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::library;

mod eras;

/// A client of a server in this process.
pub(crate) struct Client {
    pipe: Pipe,
    server: Server,
    pub(crate) handle: CatalogHandle,
}

impl Client {
    fn start() -> Client {
        let (server, handle) = library::server();
        Client::of(server, handle)
    }

    pub(crate) fn of(server: Server, handle: CatalogHandle) -> Client {
        let pipe = Pipe::memory(|input, output| {
            let serving = server.clone();
            let task = tokio::spawn(async move { serving.serve_stdio(input, output).await.expect("a clean end") });
            let stopping = server.clone();
            Served::Task { shutdown: Box::new(move || stopping.shutdown()), task }
        });
        Client { pipe, server, handle }
    }

    async fn legacy(revision: &str) -> Client {
        let mut client = Client::start();
        let params =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer =
            client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        assert_eq!(answer["result"]["protocolVersion"], revision);
        client.notify(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    pub(crate) async fn notify(&mut self, message: &Value) {
        self.pipe.notify(message).await;
    }

    pub(crate) async fn receive(&mut self) -> Value {
        self.pipe.receive().await
    }

    pub(crate) async fn request(&mut self, message: Value) -> Value {
        self.pipe.request(&message).await
    }

    /// Closes the input and returns the remaining messages.
    pub(crate) async fn end(self) -> Vec<Value> {
        self.pipe.end().await
    }
}

fn modern(id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

// req: B1, C4
#[tokio::test]
async fn legacy_client_lists_gets_and_completes() {
    let mut client = Client::legacy("2025-11-25").await;
    let list = client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list" })).await;
    assert_eq!(
        list["result"],
        json!({ "prompts": [
            { "name": "greet", "title": "Greeting", "description": "Greets someone",
              "arguments": [{ "name": "name", "description": "The name to greet", "required": true }] },
            { "name": "quiet", "description": "Asks nothing" },
        ] })
    );
    let params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let got = client.request(json!({ "jsonrpc": "2.0", "id": "x", "method": "prompts/get", "params": params })).await;
    assert_eq!(
        got,
        json!({ "jsonrpc": "2.0", "id": "x", "result": {
            "description": "Greets someone",
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Say hello to Ada." } }],
        } })
    );
    let params =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "g" } });
    let completed =
        client.request(json!({ "jsonrpc": "2.0", "id": 3, "method": "completion/complete", "params": params })).await;
    assert_eq!(completed["result"], json!({ "completion": { "values": ["Grace"], "total": 1, "hasMore": false } }));
    assert_eq!(client.end().await, Vec::<Value>::new());
}

// req: C3
#[tokio::test]
async fn modern_client_needs_no_handshake() {
    let mut client = Client::start();
    let discovered = client.request(modern(&json!(1), "server/discover", json!({}))).await;
    let result = &discovered["result"];
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "promptshelf");
    let got = client.request(modern(&json!(2), "prompts/get", json!({ "name": "quiet" }))).await;
    assert_eq!(got["result"]["resultType"], "complete");
    assert!(got["result"].get("ttlMs").is_none());
}

// req: K13, M5, M9, M11
#[tokio::test]
async fn both_eras_share_one_process() {
    let mut client = Client::start();
    let list = client.request(modern(&json!(1), "prompts/list", json!({}))).await;
    assert_eq!(list["result"]["cacheScope"], "public");
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params })).await;
    let list = client.request(json!({ "jsonrpc": "2.0", "id": 3, "method": "prompts/list" })).await;
    assert!(list["result"].get("cacheScope").is_none());
    let list = client.request(modern(&json!(4), "prompts/list", json!({}))).await;
    assert_eq!(list["result"]["cacheScope"], "public");
}

// req: M1
#[tokio::test]
async fn request_of_neither_era_before_initialize_is_refused() {
    let mut client = Client::start();
    let answer = client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list" })).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().is_some_and(|m| m.contains("io.modelcontextprotocol/protocolVersion")));
    let answer = client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert_eq!(answer["result"], json!({}));
}

// req: M2
#[tokio::test]
async fn initialize_with_unknown_revision_returns_newest_legacy_one() {
    let mut client = Client::start();
    for requested in ["2099-01-01", "2026-07-28", "nonsense"] {
        let params =
            json!({ "protocolVersion": requested, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer =
            client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    }
}

// req: M7
#[tokio::test]
async fn modern_request_of_unknown_revision_is_refused_with_supported_ones() {
    let mut client = Client::start();
    let mut request = modern(&json!(1), "prompts/list", json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v999.0.0");
    let answer = client.request(request).await;
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"], json!({ "supported": ["2026-07-28"], "requested": "v999.0.0" }));
}

// req: O13
#[tokio::test]
async fn removed_methods_are_unknown_in_the_modern_era() {
    let mut client = Client::legacy("2025-11-25").await;
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "roots/list", "__proto__", "prompts/get\n"]
    {
        let answer = client.request(modern(&json!(method), method, json!({}))).await;
        assert_eq!(answer["error"]["code"], -32601, "{method:?}");
        assert_eq!(answer["id"], method);
    }
}

// req: K1, N1
#[tokio::test]
async fn malformed_lines_are_answered_and_the_conversation_continues() {
    let mut client = Client::start();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let cases: &[(&[u8], i32)] = &[
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"{\"jsonrpc\":\"2.0\",\0}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {\"jsonrpc\":\"2.0\"}", -32700),
        (deep.as_bytes(), -32700),
        (b"[]", -32600),
        (b"17", -32600),
        (br#"{"jsonrpc":"1.0","method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","method":7}"#, -32600),
    ];
    for (line, code) in cases {
        client.pipe.send(line).await;
        let answer = client.receive().await;
        assert_eq!(answer["error"]["code"], *code, "{}", String::from_utf8_lossy(line));
        assert!(answer.get("id").is_none(), "{answer}");
    }
    let answer = client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(answer["result"], json!({}));
}

#[tokio::test]
async fn blank_lines_carriage_returns_and_responses_are_ignored() {
    let mut client = Client::start();
    client.pipe.send(b"").await;
    client.pipe.send(b"  \t\r").await;
    client.pipe.send(br#"{"jsonrpc":"2.0","id":5,"result":{}}"#).await;
    client.pipe.send(b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}\r").await;
    assert_eq!(client.receive().await["id"], 6);
}

#[tokio::test]
async fn byte_order_mark_before_the_first_message_is_ignored() {
    let mut client = Client::start();
    client.pipe.send_part(b"\xef\xbb\xbf").await;
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = client.request(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    client.end().await;
}

#[tokio::test]
async fn endless_line_is_refused_without_being_buffered() {
    let mut client = Client::start();
    let chunk = vec![b'a'; 1 << 20];
    for _ in 0..17 {
        client.pipe.send_part(&chunk).await;
    }
    assert_eq!(client.receive().await["error"]["code"], -32700);
    client.pipe.send(b"").await;
    let answer = client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(answer["result"], json!({}));
}

// req: N14
#[tokio::test]
async fn ids_are_returned_unchanged() {
    let mut client = Client::start();
    for id in ["1152921504606846976", "123456789012345678901234567890", "-7", "\"\\u00e4\"", "0"] {
        client.pipe.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes()).await;
        let line = client.pipe.next_line().await.expect("an answer");
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

// req: K4
#[tokio::test]
async fn batches_are_accepted_in_one_revision_only() {
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 3, "method": "prompts/get", "params": { "name": "nobody" } },
    ]);
    let mut client = Client::legacy("2025-03-26").await;
    let answers = client.request(batch.clone()).await;
    assert_eq!(answers[0], json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    assert_eq!(answers[1]["error"]["code"], -32602);
    assert_eq!(answers.as_array().map(Vec::len), Some(2));
    // An invalid batch is refused as a whole.
    let hello =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
    for foreign in [hello, modern(&json!(2), "prompts/list", json!({}))] {
        let refused = client.request(json!([batch[0], foreign])).await;
        assert_eq!((&refused["error"]["code"], refused.get("id")), (&json!(-32600), None), "{refused}");
    }
    assert!(client.request(batch.clone()).await.is_array(), "it is still a conversation of 2025-03-26");
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut client = Client::legacy(revision).await;
        assert_eq!(client.request(batch.clone()).await["error"]["code"], -32600, "{revision}");
    }
}

// req: H1
#[tokio::test]
async fn legacy_client_is_notified_once_of_a_changed_list() {
    let mut client = Client::legacy("2024-11-05").await;
    client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list" })).await;
    client.handle.replace(library::catalog("Greets someone else", "first"));
    assert_eq!(
        client.receive().await,
        json!({ "jsonrpc": "2.0", "method": "notifications/prompts/list_changed", "params": {} })
    );
    // An equal list is not a change.
    client.handle.replace(library::catalog("Greets someone else", "first"));
    let answer = client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert_eq!(answer["id"], 2);
}

// req: H14
#[tokio::test]
async fn legacy_client_is_notified_of_subscribed_resources() {
    let mut client = Client::legacy("2025-11-25").await;
    let params = json!({ "uri": "docs://note" });
    let answer =
        client.request(json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params })).await;
    assert_eq!(answer["result"], json!({}));
    client.handle.replace(library::catalog("Greets someone", "other"));
    assert_eq!(
        client.receive().await,
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params })
    );
    client.request(json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/unsubscribe", "params": params })).await;
    client.handle.replace(library::catalog("Greets someone", "third"));
    assert_eq!(client.request(json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await["id"], 3);
    let unknown = json!({ "uri": "docs://nothing" });
    let answer =
        client.request(json!({ "jsonrpc": "2.0", "id": 4, "method": "resources/subscribe", "params": unknown })).await;
    assert_eq!(
        answer["error"],
        json!({ "code": -32002, "message": "Resource not found: docs://nothing", "data": unknown })
    );
}

// req: O9
#[tokio::test]
async fn legacy_client_gets_log_messages_from_its_level() {
    let mut client = Client::legacy("2025-11-25").await;
    let bad = client
        .request(json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "loud" } }))
        .await;
    assert_eq!(bad["error"]["code"], -32602);
    client
        .request(json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": "info" } }))
        .await;
    client.handle.replace(library::catalog("Greets everybody", "first"));
    assert_eq!(client.receive().await["method"], "notifications/prompts/list_changed");
    let message = client.receive().await;
    assert_eq!(message["params"]["data"], "The library has changed: 2 prompts, 1 resource");
    client
        .request(json!({ "jsonrpc": "2.0", "id": 3, "method": "logging/setLevel", "params": { "level": "error" } }))
        .await;
    client.handle.replace(library::catalog("Greets someone", "first"));
    assert_eq!(client.receive().await["method"], "notifications/prompts/list_changed");
    assert_eq!(client.request(json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" })).await["id"], 4);
}

// req: H5, K6, O3
#[tokio::test]
async fn subscription_is_acknowledged_tagged_filtered_and_cancelled() {
    let mut client = Client::start();
    let id = "123456789012345678901234567890";
    let filter = json!({ "notifications": {
        "promptsListChanged": true, "toolsListChanged": true, "resourceSubscriptions": ["docs://note", "docs://nothing"],
    } });
    let request =
        modern(&json!(0), "subscriptions/listen", filter).to_string().replace("\"id\":0", &format!("\"id\":{id}"));
    client.pipe.send(request.as_bytes()).await;
    let line = client.pipe.next_line().await.expect("an acknowledgment");
    assert!(line.contains(&format!("\"io.modelcontextprotocol/subscriptionId\":{id}")), "{line}");
    let acknowledged: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "promptsListChanged": true, "resourceSubscriptions": ["docs://note"] })
    );
    client.handle.replace(library::catalog("Greets everybody", "other"));
    let received = [client.pipe.next_line().await.expect("one"), client.pipe.next_line().await.expect("two")];
    assert!(received[0].contains("notifications/prompts/list_changed") && received[0].contains(id), "{received:?}");
    assert!(
        received[1].contains("notifications/resources/updated") && received[1].contains("docs://note"),
        "{received:?}"
    );
    // No untagged copy, because there was no `initialize`, and nothing after the cancellation.
    client
        .pipe
        .send(
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
                .as_bytes(),
        )
        .await;
    client.request(modern(&json!(1), "server/discover", json!({}))).await;
    client.handle.replace(library::catalog("Greets someone", "third"));
    assert_eq!(client.request(modern(&json!(2), "server/discover", json!({}))).await["id"], 2);
}

// req: H4
#[tokio::test]
async fn malformed_filter_is_refused() {
    let mut client = Client::start();
    for filter in
        [json!({}), json!({ "notifications": [] }), json!({ "notifications": { "promptsListChanged": "yes" } })]
    {
        let answer = client.request(modern(&json!(1), "subscriptions/listen", filter.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{filter}");
    }
    let many: Vec<String> = (0..1_001).map(|n| format!("docs://{n}")).collect();
    let filter = json!({ "notifications": { "resourceSubscriptions": many } });
    assert_eq!(client.request(modern(&json!(1), "subscriptions/listen", filter)).await["error"]["code"], -32602);
}

// req: M17
#[tokio::test]
async fn id_in_progress_cannot_be_reused() {
    let mut client = Client::start();
    let listen = modern(&json!(7), "subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(client.request(listen).await["method"], "notifications/subscriptions/acknowledged");
    let again = client.request(modern(&json!(7), "prompts/list", json!({}))).await;
    assert_eq!((&again["id"], &again["error"]["code"]), (&json!(7), &json!(-32600)));
}

// req: O5
#[tokio::test]
async fn shutdown_ends_subscriptions_with_a_result() {
    let mut client = Client::start();
    client
        .request(modern(
            &json!("s"),
            "subscriptions/listen",
            json!({ "notifications": { "promptsListChanged": true } }),
        ))
        .await;
    client.server.shutdown();
    let end = client.receive().await;
    assert_eq!(
        end,
        json!({ "jsonrpc": "2.0", "id": "s", "result": {
            "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": "s" },
        } })
    );
    assert_eq!(client.pipe.next_line().await, None);
    assert_eq!(client.end().await, Vec::<Value>::new());
}

#[tokio::test]
async fn requests_before_the_end_of_the_input_are_answered() {
    let mut client = Client::start();
    for id in 0..100 {
        client
            .notify(&modern(&json!(id), "prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })))
            .await;
    }
    let answers = client.end().await;
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().enumerate().all(|(id, answer)| answer["id"] == id));
}

/// The paused clock advances only when every task waits, so that a time-out means a deadlock.
#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_not_read_either() {
    const ASKED: usize = 20_000;
    let mut client = Client::start();
    let mut input = client.pipe.take_input();
    let mut asking = tokio::spawn(async move {
        for id in 0..ASKED {
            let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            input.write_all(ping.as_bytes()).await.expect("the server reads on");
        }
        input
    });
    assert!(tokio::time::timeout(Duration::from_secs(3_600), &mut asking).await.is_err(), "the server has read it all");
    for id in 0..ASKED {
        assert_eq!(client.receive().await["id"], id);
    }
    client.pipe.put_input(asking.await.expect("every request is written"));
    assert_eq!(client.end().await, Vec::<Value>::new());
}

// req: X18
#[tokio::test]
async fn batch_response_is_bounded() {
    let mut client = Client::legacy("2025-03-26").await;
    client.handle.replace(library::catalog("Greets someone", &"x".repeat(5 << 20)));
    let params = json!({ "uri": "docs://note" });
    let read = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
    client.notify(&Value::Array(vec![read; 20])).await;
    let answers = loop {
        let message = client.receive().await;
        if message.is_array() {
            break message;
        }
    };
    let answers = answers.as_array().expect("one answer each");
    let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
    assert_eq!((answers.len(), refused), (20, 13));
}

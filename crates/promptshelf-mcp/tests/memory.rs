//! Peak memory: a bound for each attack on size, and for ten thousand subscriptions.
//!
//! Requests use the tower service and in-memory pipes without sockets, so that only the server's memory is counted.
//! The counter covers the whole process, so the tests run one at a time.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use peak_alloc::PeakAlloc;
use promptshelf_core::{
    ArgumentDefinition, Catalog, CatalogHandle, Definitions, MimeType, Origin, PromptDefinition, ResourceBody,
    ResourceContent, ResourceDefinition, SourceText, check,
};
use promptshelf_mcp::{HttpBody, HttpOptions, HttpService, Server};
use promptshelf_service::Service;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, sync::Mutex};
use tower_service::Service as _;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static ALONE: Mutex<()> = Mutex::const_new(());

const MODERN: &str = "2026-07-28";
const MEGABYTE: usize = 1 << 20;

fn catalog(greeting: &str, note: &str) -> Catalog {
    let greet = PromptDefinition::template("greet", "Say hello to {{ name }}.")
        .description(greeting)
        .argument(ArgumentDefinition::new("name").description("The name to greet").required());
    let mut ask = PromptDefinition::template("ask", "{{ word }}.").description("Asks");
    ask = ask.argument(ArgumentDefinition::new("word").description("A word").required().ask());
    let content = ResourceContent::Fixed(ResourceBody::Text(note.into()));
    let origin = Origin::new(SourceText::new("promptshelf.toml", ""));
    let note = ResourceDefinition::from_source("docs://note", content, origin);
    let note = ResourceDefinition { name: "note".into(), mime_type: Some(MimeType::plain_text()), ..note };
    check(Definitions { resources: vec![note], ..Definitions::from_iter([greet, ask]) }, None).catalog
}

fn server() -> (Server, CatalogHandle) {
    let handle = CatalogHandle::new(catalog("Greets", "first"));
    (Server::new(Service::new(handle.clone())), handle)
}

fn message(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn request(revision: &str, method: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let body = body.into();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = message["params"]["name"].as_str().unwrap_or("greet");
    let request = Request::post("/").header("host", "localhost").header("content-type", "application/json");
    let request = request.header("mcp-protocol-version", revision).header("mcp-method", method);
    let request = if method == "prompts/get" { request.header("mcp-name", name) } else { request };
    request.body(Full::new(body)).expect("a request")
}

/// The status, error code and size of a response, and the peak memory of its request.
async fn cost(endpoint: &HttpService, request: Request<Full<Bytes>>) -> (u16, i64, usize, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let response = endpoint.clone().call(request).await.expect("no request fails");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("no body fails").to_bytes();
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, answer["error"]["code"].as_i64().unwrap_or_default(), body.len(), taken)
}

/// X1, X4, X7, X11, X18, X20, X21 and X23: the server needs little more than the size of the message, and echoes only
/// a bounded part of it.
// req: E8, R-12, S-38, X1, X7, X11, X18, X20
#[tokio::test]
async fn http_message_memory_is_bounded() {
    let _alone = ALONE.lock().await;
    let (server, _handle) = server();
    let large = server.http(HttpOptions { max_body_bytes: 16 * MEGABYTE, ..HttpOptions::default() });
    let usual = server.http(HttpOptions::default());
    let long = "x".repeat(10 * MEGABYTE);
    let many: serde_json::Map<String, Value> = (0..10_000).map(|number| (format!("n{number}"), json!("v"))).collect();
    let mut and_name = many.clone();
    and_name.insert("name".to_owned(), json!("Ada"));
    let uris: Vec<String> = (0..10_000).map(|number| format!("docs://{number}")).collect();
    let completion =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": long } });
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let batch = format!("[{}1]", "1,".repeat(2_000_000));
    let answers: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("k{n}"), json!({ "action": "accept" }))).collect();
    let members = |value: Value| -> serde_json::Map<String, Value> {
        (0..500_000).map(|n| (format!("{n:x}"), value.clone())).collect()
    };
    let texts = members(json!(""));
    let uri_of_each: Vec<String> = (0..500_000).map(|n| format!("{n:x}")).collect();
    let cases = [
        ("a long name", "prompts/list", message("prompts/get", json!({ "name": long })), 400),
        (
            "many arguments",
            "prompts/get",
            message("prompts/get", json!({ "name": "greet", "arguments": and_name })),
            200,
        ),
        (
            "nothing but arguments",
            "prompts/get",
            message("prompts/get", json!({ "name": "greet", "arguments": {} }))
                .replace("\"arguments\":{", &format!("\"arguments\":{{{}\"b\":1", "\"a\":1,".repeat(2_000_000))),
            200,
        ),
        (
            "nothing but context",
            "completion/complete",
            message(
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": "greet" },
                    "argument": { "name": "name", "value": "a" },
                    "context": { "arguments": texts }
                }),
            ),
            200,
        ),
        (
            "nothing but answers",
            "prompts/get",
            message("prompts/get", json!({ "name": "ask", "inputResponses": members(json!(1)) })),
            200,
        ),
        (
            "nothing but capabilities",
            "prompts/get",
            message("prompts/get", json!({ "name": "ask" }))
                .replace("\"elicitation\":{", &format!("\"roots\":[{}1],\"elicitation\":{{", "1,".repeat(2_000_000))),
            200,
        ),
        (
            "nothing but resources",
            "subscriptions/listen",
            message("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uri_of_each } })),
            200,
        ),
        (
            "a long value",
            "prompts/get",
            message("prompts/get", json!({ "name": "greet", "arguments": { "name": long } })),
            200,
        ),
        ("a long cursor", "prompts/list", message("prompts/list", json!({ "cursor": long })), 200),
        ("a long value to complete", "completion/complete", message("completion/complete", completion), 200),
        (
            "many resources",
            "subscriptions/listen",
            message("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } })),
            200,
        ),
        ("a deep message", "prompts/list", nested(100_000), 400),
        ("a deep end", "prompts/list", "{\"a\":".repeat(100_000), 400),
        ("a long batch", "prompts/list", batch, 400),
        ("a long state", "prompts/get", message("prompts/get", json!({ "name": "ask", "requestState": long })), 200),
        (
            "many answers",
            "prompts/get",
            message("prompts/get", json!({ "name": "greet", "inputResponses": answers })),
            200,
        ),
    ];
    for (what, method, body, status) in cases {
        let size = body.len();
        let body = Bytes::from(body);
        let (answered, code, answer_size, taken) = cost(&large, request(MODERN, method, body.clone())).await;
        assert_eq!(answered, status, "{what}: {code}");
        assert!(taken < 4 * size + MEGABYTE, "{what}: {taken} bytes for a message of {size}");
        assert!(answer_size < 2_048 || code == 0, "{what}: an answer of {answer_size} bytes");
        if size > 4 * MEGABYTE {
            let (answered, _, _, taken) = cost(&usual, request(MODERN, method, body)).await;
            assert_eq!(answered, 413, "{what}");
            assert!(taken < 64 << 10, "{what}: {taken} bytes to refuse it");
        }
    }
}

/// X24: a line without end is neither stored nor awaited.
// req: R-12, X24
#[tokio::test]
async fn line_memory_is_bounded() {
    let _alone = ALONE.lock().await;
    let (server, _handle) = server();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let (mut theirs, ours) = tokio::io::duplex(64 << 10);
    let endless = async {
        let piece = vec![b'a'; 64 << 10];
        for _ in 0..100 * MEGABYTE / piece.len() {
            theirs.write_all(&piece).await.expect("the server reads on");
        }
        drop(theirs);
    };
    let (served, ()) = tokio::join!(server.serve_stdio(ours, tokio::io::sink()), endless);
    served.expect("a clean end");
    let taken = MEMORY.peak_usage().saturating_sub(before);
    assert!(taken < 3 * promptshelf_mcp::stdio::MAX_LINE_BYTES + MEGABYTE, "{taken} bytes for a line without end");
}

/// All messages that a stream has ready.
fn messages(body: &mut HttpBody) -> Vec<String> {
    let mut context = Context::from_waker(Waker::noop());
    let mut messages = Vec::new();
    while let Poll::Ready(frame) = pin!(&mut *body).poll_frame(&mut context) {
        let Some(frame) = frame else { break };
        let bytes = frame.expect("no body fails").into_data().expect("no trailers");
        let text = std::str::from_utf8(&bytes).expect("UTF-8");
        messages.extend(text.split_terminator("\n\n").map(str::to_owned));
    }
    messages
}

/// X23: ten thousand subscriptions, a thousand edits, and the end of all streams.
// req: H10, H11, R-12, X23
#[tokio::test]
async fn ten_thousand_subscriptions_are_small_and_freed() {
    const LISTENERS: usize = 10_000;
    const EDITS: usize = 1_000;
    /// Number of edits after which the streams are read.
    const PAUSE: usize = 200;
    /// Maximum memory of one subscription, including its response headers, in bytes.
    const BOUND: usize = 8 << 10;
    let _alone = ALONE.lock().await;
    let (server, handle) = server();
    let endpoint = server.http(HttpOptions { max_streams: LISTENERS, ..HttpOptions::default() });
    let empty = MEMORY.current_usage();
    let mut streams = Vec::with_capacity(LISTENERS);
    for number in 0..LISTENERS {
        // Half of them follow the list, half the same resource.
        let filter = match number % 2 {
            0 => json!({ "promptsListChanged": true }),
            _ => json!({ "resourceSubscriptions": ["docs://note"] }),
        };
        let body = message("subscriptions/listen", json!({ "notifications": filter }));
        let body = body.replacen("\"id\":1,", &format!("\"id\":{number},"), 1);
        let response = endpoint.clone().call(request(MODERN, "subscriptions/listen", body)).await.expect("an answer");
        assert_eq!(response.status(), 200);
        streams.push(response);
    }
    let first = |response: &mut http::Response<HttpBody>| messages(response.body_mut());
    for (number, stream) in streams.iter_mut().enumerate() {
        let opening = first(stream);
        assert_eq!(opening.len(), 1);
        assert!(opening[0].contains("notifications/subscriptions/acknowledged"), "{opening:?}");
        assert!(opening[0].contains(&format!("subscriptionId\":{number}}}")), "{opening:?}");
    }
    let each = MEMORY.current_usage().saturating_sub(empty) / LISTENERS;
    assert!(each < BOUND, "{each} bytes a listener");
    let one_more = message("subscriptions/listen", json!({ "notifications": {} }));
    let refused = cost(&endpoint, request(MODERN, "subscriptions/listen", one_more)).await;
    assert_eq!((refused.0, refused.1), (503, -32603));

    let mut counts = vec![0; LISTENERS];
    for edit in 1..=EDITS {
        handle.replace(catalog(&format!("Greets for the {edit}th time"), &format!("edit {edit}")));
        if edit % PAUSE != 0 {
            continue;
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            let kind = ["notifications/prompts/list_changed", "notifications/resources/updated"][number % 2];
            for message in messages(stream.body_mut()) {
                assert!(message.contains(kind), "{message}");
                assert!(message.contains(&format!("subscriptionId\":{number}}}")), "{message}");
                counts[number] += 1;
            }
            // Polling manually would use up tokio's budget of one turn.
            tokio::task::yield_now().await;
        }
    }
    let rounds = EDITS / PAUSE;
    assert!(counts.iter().all(|count| *count == rounds), "one notification per reading");
    let after = MEMORY.current_usage().saturating_sub(empty) / LISTENERS;
    assert!(after < BOUND, "{after} bytes a listener after the storm");

    drop(streams);
    let left = MEMORY.current_usage().saturating_sub(empty);
    assert!(left < MEGABYTE, "{left} bytes are left of listeners that are gone");
    println!("{each} bytes a listener, {after} after the storm, {left} left of all of them");
}

//! Methods, sizes, content types, and the shape of messages.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, StreamBody};
use promptshelf_core::{ArgumentDefinition, CatalogHandle, Definitions, Message, PromptDefinition, check};
use promptshelf_mcp::{HttpOptions, Server};
use promptshelf_service::Service;
use serde_json::json;
use tower_service::Service as _;

use super::endpoint::{Ask, Endpoint, MODERN, VERSION, greet, meta, modern};

// req: L18, L36
#[tokio::test]
async fn unsupported_methods_list_allowed() {
    let endpoint = Endpoint::new();
    let verbs = [Method::DELETE, Method::PUT, Method::PATCH, Method::HEAD, Method::TRACE];
    for verb in verbs {
        let answer = endpoint.ask(Ask::verb(verb)).await;
        assert_eq!(answer.error(), (405, -32600, None));
        assert_eq!(answer.header("allow"), Some("GET, POST, DELETE, OPTIONS"));
    }
    let modern = endpoint.ask(Ask::get_stream().header(VERSION, MODERN)).await;
    assert_eq!(modern.error(), (405, -32600, None));
    assert_eq!(endpoint.ask(Ask::verb(Method::OPTIONS)).await.status, 204);
}

#[tokio::test]
async fn get_requires_event_stream_in_accept() {
    let endpoint = Endpoint::new();
    for accept in ["*/*", "text/html, */*;q=0.8", "application/json", "text/event-stream;q=0"] {
        let answer = endpoint.ask(Ask::get_stream().header("accept", accept)).await;
        assert_eq!(answer.error(), (406, -32600, None), "{accept}");
    }
    assert_eq!(endpoint.ask(Ask::get_stream().without("accept")).await.status, 406);
}

// req: L22
#[tokio::test]
async fn body_up_to_limit_is_accepted() {
    let ask = Ask::modern("prompts/get", greet());
    let message = modern(&json!(1), "prompts/get", greet()).to_string();
    let exactly = Endpoint::with(HttpOptions { max_body_bytes: message.len(), ..HttpOptions::default() });
    assert_eq!(exactly.ask(ask).await.status, 200);
    let less = Endpoint::with(HttpOptions { max_body_bytes: message.len() - 1, ..HttpOptions::default() });
    assert_eq!(less.ask(Ask::modern("prompts/get", greet())).await.error(), (413, -32600, None));
}

/// A body of unknown size, in chunks.
fn in_pieces(ask: Ask, pieces: Vec<Result<&'static [u8], &'static str>>) -> Request<impl http_body::Body + Send> {
    let frames = pieces.into_iter().map(|piece| piece.map(|bytes| http_body::Frame::data(Bytes::from_static(bytes))));
    ask.request().map(|_| StreamBody::new(futures_util::stream::iter(frames)))
}

#[tokio::test]
async fn chunked_body_is_bounded() {
    let endpoint = Endpoint::with(HttpOptions { max_body_bytes: 64, ..HttpOptions::default() });
    let call = async |pieces| {
        let request = in_pieces(Ask::raw("").header(VERSION, "2025-11-25"), pieces);
        let response = endpoint.service.clone().call(request).await.expect("no request fails");
        let status = response.status().as_u16();
        (status, response.into_body().collect().await.expect("no body fails").to_bytes())
    };
    let (status, body) =
        call(vec![Ok(b""), Ok(br#"{"jsonrpc":"2.0","#), Ok(br#""id":7,"#), Ok(b""), Ok(br#""method":"ping"}"#)]).await;
    assert_eq!((status, &body[..]), (200, &br#"{"jsonrpc":"2.0","id":7,"result":{}}"#[..]));
    assert_eq!(call(vec![Ok(&[b' '; 40]), Ok(&[b' '; 25])]).await.0, 413);
    assert_eq!(call(vec![Ok(b"{"), Err("gone")]).await.0, 400);
}

#[tokio::test]
async fn refused_body_is_discarded_up_to_bound() {
    const PIECE: &[u8] = &[b' '; 1 << 20];
    let endpoint = Endpoint::with(HttpOptions { max_body_bytes: 64, ..HttpOptions::default() });
    for (pieces, asks_first, taken) in [(3, false, 3), (100, false, 17), (100, true, 1)] {
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&seen);
        let stream = futures_util::stream::iter((0..pieces).map(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok::<_, &'static str>(http_body::Frame::data(Bytes::from_static(PIECE)))
        }));
        let mut ask = Ask::raw("").header(VERSION, "2025-11-25");
        if asks_first {
            ask = ask.header("expect", "100-continue");
        }
        let request = ask.request().map(|_| StreamBody::new(stream));
        let response = endpoint.service.clone().call(request).await.expect("no request fails");
        assert_eq!((response.status().as_u16(), seen.load(Ordering::Relaxed)), (413, taken));
    }
}

// req: L22, L43
#[tokio::test]
async fn message_must_be_json() {
    let endpoint = Endpoint::new();
    let ask = |kind| Ask::modern("prompts/get", greet()).header("content-type", kind);
    for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON ;x=y"] {
        assert_eq!(endpoint.ask(ask(kind)).await.status, 200, "{kind}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json", ""] {
        assert_eq!(endpoint.ask(ask(kind)).await.error(), (415, -32600, None), "{kind}");
    }
    let without = Ask::modern("prompts/get", greet()).without("content-type");
    assert_eq!(endpoint.ask(without).await.error(), (415, -32600, None));
}

// req: L22, S-69
#[tokio::test]
async fn content_codings_are_refused_before_the_body_is_parsed() {
    let endpoint = Endpoint::new();
    let ask = |coding| Ask::modern("prompts/get", greet()).header("content-encoding", coding);
    for coding in ["identity", "Identity", "", "identity, identity"] {
        let answer = endpoint.ask(ask(coding)).await;
        assert_eq!((answer.status, answer.header("accept-encoding")), (200, None), "{coding}");
    }
    for coding in ["gzip", "GZIP", "br", "deflate", "zstd", "identity, gzip", "x", "gz\u{fc}ip"] {
        let answer = endpoint.ask(ask(coding)).await;
        assert_eq!(answer.error(), (415, -32600, None), "{coding}");
        assert_eq!(answer.header("accept-encoding"), Some("identity"), "{coding}");
    }
    let twice = ask("identity").also("content-encoding", "gzip");
    assert_eq!(endpoint.ask(twice).await.error(), (415, -32600, None));
    let other_type = endpoint.ask(Ask::modern("prompts/get", greet()).header("content-type", "text/plain")).await;
    assert_eq!((other_type.status, other_type.header("accept-encoding")), (415, None), "RFC 9110, 12.5.3");
}

// req: L2
#[tokio::test]
async fn unacceptable_response_types_are_refused() {
    let endpoint = Endpoint::new();
    let ask = |accept| Ask::modern("prompts/get", greet()).header("accept", accept);
    for accept in [
        "application/json",
        "text/event-stream",
        "*/*",
        "text/html, application/*;q=0.1",
        "application/json;q=0, text/event-stream",
        "APPLICATION/JSON",
    ] {
        assert_eq!(endpoint.ask(ask(accept)).await.status, 200, "{accept}");
    }
    for accept in ["text/html", "application/xml, image/*", "application/json;q=0", "*/*; q=0.000"] {
        assert_eq!(endpoint.ask(ask(accept)).await.error(), (406, -32600, None), "{accept}");
    }
    assert_eq!(endpoint.ask(Ask::modern("prompts/get", greet()).without("accept")).await.status, 200);
    let split = Ask::modern("prompts/get", greet()).header("accept", "text/html").also("accept", "application/json");
    assert_eq!(endpoint.ask(split).await.status, 200);
}

// req: L22, N1
#[tokio::test]
async fn invalid_json_is_parse_error_without_id() {
    let endpoint = Endpoint::new();
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let bodies: [Bytes; 6] = [
        Bytes::new(),
        Bytes::from_static(b"{"),
        Bytes::from_static(b"hello"),
        Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
        Bytes::from_static(b"{} {}"),
        deep.into(),
    ];
    for body in bodies {
        for version in [MODERN, "2025-11-25"] {
            let answer = endpoint.ask(Ask::raw(body.clone()).header(VERSION, version)).await;
            assert_eq!(answer.error(), (400, -32700, None), "{body:?}");
        }
    }
}

// req: M16, N2
#[tokio::test]
async fn invalid_message_is_invalid_request_with_id() {
    let endpoint = Endpoint::new();
    for (body, id) in [
        (r#"5"#, None),
        (r#""hello""#, None),
        (r#"{}"#, None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
        (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, Some(json!(4))),
        (r#"{"id":4,"method":"ping"}"#, Some(json!(4))),
        (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, Some(json!("a"))),
        (r#"{"jsonrpc":"2.0","id":4,"method":"notifications/initialized"}"#, Some(json!(4))),
        (r#"{"jsonrpc":"2.0","id":4}"#, Some(json!(4))),
    ] {
        for version in [MODERN, "2025-11-25"] {
            let answer = endpoint.ask(Ask::raw(body).header(VERSION, version)).await;
            assert_eq!(answer.error(), (400, -32600, id.clone()), "{body}");
        }
    }
}

// req: N14
#[tokio::test]
async fn id_is_returned_verbatim() {
    let endpoint = Endpoint::new();
    for id in ["1152921504606846976", "-9223372036854775809", "123456789012345678901234567890", r#""\u0041 \"x\"""#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let answer = endpoint.ask(Ask::raw(body)).await;
        assert_eq!(answer.body, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"no/such"}}"#);
        let answer = endpoint.ask(Ask::raw(body)).await;
        let text = std::str::from_utf8(&answer.body).expect("UTF-8");
        assert!(text.contains(&format!(r#""id":{id},"#)), "{text}");
    }
}

// req: L4, L31, N15, O4
#[tokio::test]
async fn notifications_get_no_response() {
    let endpoint = Endpoint::new();
    let notification = |method: &str| json!({ "jsonrpc": "2.0", "method": method });
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let tagged = json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "_meta": meta(MODERN) } });
    for (ask, status) in [
        (Ask::message(&notification("notifications/initialized")).header(VERSION, "2025-11-25"), 202),
        (Ask::message(&notification("notifications/initialized")), 202),
        (Ask::message(&notification("prompts/list")), 202),
        (Ask::message(&cancelled).header(VERSION, "2025-06-18"), 202),
        (Ask::message(&notification("notifications/x")).header(VERSION, MODERN), 202),
        (Ask::message(&tagged).header(VERSION, MODERN).header("mcp-method", "notifications/x"), 202),
    ] {
        let answer = endpoint.ask(ask).await;
        assert_eq!((answer.status, answer.body.len()), (status, 0));
    }
    for (ask, code) in [
        (Ask::message(&notification("notifications/x")).header(VERSION, "v999"), -32600),
        (Ask::message(&tagged), -32020),
        (Ask::message(&tagged).header(VERSION, "2025-11-25"), -32020),
        (Ask::message(&tagged).header(VERSION, MODERN).also(VERSION, MODERN), -32020),
        (Ask::message(&tagged).header(VERSION, MODERN).header("mcp-method", "notifications/y"), -32020),
    ] {
        assert_eq!(endpoint.ask(ask).await.error(), (400, code, None));
    }
}

// req: L1, L31
#[tokio::test]
async fn client_responses_are_legacy_only() {
    let endpoint = Endpoint::new();
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for ask in [Ask::message(&response), Ask::message(&response).header(VERSION, "2025-11-25")] {
        let answer = endpoint.ask(ask).await;
        assert_eq!((answer.status, answer.body.len()), (202, 0));
    }
    let answer = endpoint.ask(Ask::message(&response).header(VERSION, MODERN)).await;
    assert_eq!(answer.error(), (400, -32600, None));
}

// req: L15, L54
#[tokio::test]
async fn responses_are_not_cached_or_buffered() {
    let endpoint = Endpoint::new();
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for ask in [
        Ask::modern("prompts/get", greet()),
        Ask::raw("no JSON"),
        Ask::message(&notification),
        Ask::verb(Method::DELETE),
        Ask::verb(Method::OPTIONS),
    ] {
        assert_eq!(endpoint.ask(ask).await.header("cache-control"), Some("no-store"));
    }
    let stream = endpoint.open(Ask::get_stream().request()).await;
    assert_eq!(stream.headers()["cache-control"], "no-store");
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(stream.headers()["x-accel-buffering"], "no");
}

// req: C7, N8
#[tokio::test]
async fn panic_is_internal_error_without_details() {
    let endpoint = Endpoint::new();
    let requests = [
        Ask::modern("prompts/get", json!({ "name": "panics" })),
        Ask::legacy("2025-11-25", "prompts/get", &json!({ "name": "panics" })),
    ];
    for ask in requests {
        let answer = endpoint.ask(ask).await;
        assert_eq!(answer.error(), (200, -32603, Some(json!(1))));
        assert!(!answer.json().to_string().contains("a test wants it"));
    }
    assert_eq!(endpoint.ask(Ask::modern("prompts/get", greet())).await.status, 200);
}

#[tokio::test]
async fn caller_comes_from_request_extension() {
    let endpoint = Endpoint::new();
    let mut request = Ask::modern("prompts/get", greet()).request();
    request.extensions_mut().insert(promptshelf_service::Caller::local());
    assert_eq!(endpoint.send(request).await.result()["messages"][0]["content"]["text"], "Say hello to Ada.");
}

#[test]
fn service_mounts_in_axum() {
    fn takes<S>(_: S)
    where
        S: tower_service::Service<Request<Full<Bytes>>, Error = std::convert::Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
    }
    takes(Endpoint::new().service);
}

/// A small message is not worth a change of threads.
// req: S-55
#[tokio::test]
async fn only_large_messages_are_handled_on_another_thread() {
    let here = || format!("{:?}", std::thread::current().id());
    let thread = PromptDefinition::new_async("thread", move |_| async move { Ok(vec![Message::user(here())]) })
        .description("Names its thread")
        .argument(ArgumentDefinition::new("text").description("Any text"));
    let handle = CatalogHandle::new(check(Definitions::from_iter([thread]), None).catalog);
    let endpoint = Endpoint::of(Server::new(Service::new(handle.clone())), handle, HttpOptions::default());
    for (bytes, is_here) in [(1_000, true), (200_000, false)] {
        let params = json!({ "name": "thread", "arguments": { "text": "x".repeat(bytes) } });
        let rendered = endpoint.ask(Ask::modern("prompts/get", params)).await.result();
        assert_eq!(rendered["messages"][0]["content"]["text"] == here(), is_here, "{bytes} bytes");
    }
}

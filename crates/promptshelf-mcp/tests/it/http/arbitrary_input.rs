//! Arbitrary input gets only protocol messages in response. The fuzz targets check the same for longer.

use http::HeaderValue;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::endpoint::{Ask, Endpoint, MODERN, VERSION, greet};

/// Words with a meaning somewhere in the protocol, in any order.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "null",
    "true",
    "-",
    "1e9",
    "0",
    " ",
    "\n",
    "\u{feff}",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":null",
    "\"id\":\"x\"",
    "\"method\":\"prompts/get\"",
    "\"method\":\"prompts/list\"",
    "\"method\":\"initialize\"",
    "\"method\":\"notifications/cancelled\"",
    "\"method\":\"subscriptions/listen\"",
    "\"method\":\"completion/complete\"",
    "\"params\":{",
    "\"name\":\"greet\"",
    "\"arguments\":{",
    "\"cursor\":\"\"",
    "\"result\":{}",
    "\"error\":{}",
    "\"_meta\":{",
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
    "\"io.modelcontextprotocol/clientCapabilities\":{}",
];

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future)
}

/// Returns whether the bytes are valid responses, and not an internal error.
fn is_answer(body: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return false };
    let answers = answer.as_array().map_or(std::slice::from_ref(&answer), Vec::as_slice);
    answers.iter().all(|answer| {
        answer["jsonrpc"] == "2.0"
            && answer.get("id").is_none_or(|id| id.is_string() || id.is_number())
            && (answer.get("result").is_some() != answer.get("error").is_some())
            && answer["error"]["code"] != -32603
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_body_gets_protocol_response(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..24),
        whole in any::<bool>(),
    ) {
        let words = words.concat();
        let body = if whole { format!("{{\"jsonrpc\":\"2.0\",\"id\":1,{words}}}") } else { words };
        let endpoint = Endpoint::new();
        for version in [Some(MODERN), Some("2025-11-25"), Some("2025-03-26"), None] {
            let ask = Ask::raw(body.clone());
            let ask = if let Some(version) = version { ask.header(VERSION, version) } else { ask };
            let response = wait(endpoint.open(ask.request()));
            if response.headers().get("content-type").is_some_and(|kind| kind == "application/json") {
                let body = wait(http_body_util::BodyExt::collect(response.into_body())).expect("no body fails").to_bytes();
                prop_assert!(is_answer(&body), "{body:?}");
            }
        }
    }

    #[test]
    fn only_equal_name_header_is_accepted(value in prop::collection::vec(any::<u8>(), 0..40), encoded in any::<bool>()) {
        let value = if encoded { [b"=?base64?", value.as_slice(), b"?="].concat() } else { value };
        prop_assume!(HeaderValue::from_bytes(&value).is_ok() && value.trim_ascii() != b"greet");
        let endpoint = Endpoint::new();
        let mut request = Ask::modern("prompts/get", greet()).request();
        request.headers_mut().insert("mcp-name", HeaderValue::from_bytes(&value).expect("a value"));
        let answer = wait(endpoint.send(request));
        prop_assert_eq!(answer.error(), (400, -32020, Some(json!(1))));
    }

    #[test]
    fn arbitrary_cursor_is_refused(text in "\\PC{0,80}|[A-Za-z0-9_-]{0,80}(\\.[A-Za-z0-9_-]{0,60})?") {
        let endpoint = Endpoint::new();
        let listed = wait(endpoint.ask(Ask::modern("prompts/list", json!({ "cursor": text }))));
        prop_assert_eq!(listed.error(), (200, -32602, Some(json!(1))));
    }
}

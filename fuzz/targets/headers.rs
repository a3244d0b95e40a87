//! Arbitrary values in the request headers. A request is accepted only if its headers match its body.

#![no_main]

use http::{HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const NAMES: [&str; 8] =
    ["mcp-name", "mcp-method", "mcp-protocol-version", "accept", "content-type", "origin", "host", "mcp-session-id"];

fuzz_target!(|bytes: &[u8]| {
    let (mut headers, body) = shelf::modern("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } }));
    let mut named = b"greet".to_vec();
    for field in bytes.split(|byte| *byte == b'\n') {
        let Some((which, value)) = field.split_first() else { continue };
        let name = NAMES[usize::from(*which) % NAMES.len()];
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        if name == "mcp-name" {
            named = value.as_bytes().to_vec();
        }
        headers.insert(HeaderName::from_static(name), value);
    }
    let Some(answer) = shelf::post(headers, body) else { return };
    answer.check();
    if answer.status == 200 {
        let named = String::from_utf8_lossy(&named).trim().to_owned();
        assert!(named == "greet" || named.starts_with("=?base64?"), "{named:?} was accepted as greet");
    }
});

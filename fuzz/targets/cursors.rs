//! Arbitrary text as a cursor. An accepted cursor is either one that the server issued or a valid position in the
//! same list; an invalid cursor is rejected and does not return the first page.

#![no_main]

use libfuzzer_sys::fuzz_target;
use promptshelf_core::cursor::{ListKind, decode, encode};
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for list in [ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates] {
        if let Some(key) = decode(list, text) {
            assert_eq!(encode(list, &key), text, "a position has a single cursor");
        }
        assert_eq!(decode(list, &encode(list, text)).as_deref(), Some(text));
    }
    let (headers, body) = shelf::modern("prompts/list", json!({ "cursor": text }));
    let answer = shelf::post(headers, body).expect("no stream");
    answer.check();
    let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(decode(ListKind::Prompts, text).is_some(), answer.get("result").is_some());
});

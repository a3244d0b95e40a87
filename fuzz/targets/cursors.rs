//! Any text as a cursor. What is taken for one is one that was given out, or
//! names a place in the same list; nobody gets a first page for it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use promptshelf_core::cursor::{ListKind, decode, encode};
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for list in [ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates] {
        if let Some(key) = decode(list, text) {
            assert_eq!(encode(list, &key), text, "one place has one cursor");
        }
        assert_eq!(decode(list, &encode(list, text)).as_deref(), (text.len() < 3_000).then_some(text));
    }
    let (headers, body) = shelf::modern("prompts/list", json!({ "cursor": text }));
    let answer = shelf::post(headers, body).expect("no stream");
    answer.check();
    let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(decode(ListKind::Prompts, text).is_some(), answer.get("result").is_some());
});

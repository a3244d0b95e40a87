//! Reading messages of servers that deviate from the protocol where nothing is lost.
//!
//! The SDK refuses a whole message for one optional value. What it recognizes is left as it is; of the rest, batches of
//! revision 2025-03-26 are taken apart, and values that say nothing are replaced by the defaults of the specification.

use rmcp::model::{Annotations, Icon, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::{Map, Value, json};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the messages of a text: one, or those of a batch.
pub(crate) fn messages(text: &[u8]) -> Result<Vec<ServerJsonRpcMessage>, serde_json::Error> {
    match recognized(text) {
        Some(message) => Ok(vec![message]),
        None => repaired(text)?.into_iter().map(serde_json::from_value).collect(),
    }
}

/// Reads a message that needs no tolerance.
pub(crate) fn recognized(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    match serde_json::from_slice(text).ok()? {
        JsonRpcMessage::Response(response) if matches!(response.result, ServerResult::CustomResult(_)) => None,
        message => Some(message),
    }
}

/// Returns the messages of a text in the form that the SDK reads, without the members of a batch that are none.
pub(crate) fn repaired(text: &[u8]) -> Result<Vec<Value>, serde_json::Error> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let value = serde_json::from_slice(text)
        .or_else(|error| serde_json::from_slice(&without_lone_surrogates(text).ok_or(error)?))?;
    match value {
        Value::Array(mut messages) => {
            messages.iter_mut().for_each(tolerate);
            messages.retain(is_message);
            Ok(messages)
        }
        mut message => {
            tolerate(&mut message);
            serde_json::from_value::<ServerJsonRpcMessage>(message.clone())?;
            Ok(vec![message])
        }
    }
}

fn is_message(value: &Value) -> bool {
    serde_json::from_value::<ServerJsonRpcMessage>(value.clone()).is_ok()
}

fn tolerate(message: &mut Value) {
    let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) else { return };
    if let Some(ttl) = result.get_mut("ttlMs") {
        *ttl = json!(milliseconds(ttl));
    }
    if let Some(scope) = result.get_mut("cacheScope").filter(|scope| **scope != "public" && **scope != "private") {
        *scope = json!("private");
    }
    if result.contains_key("supportedVersions") {
        for (member, default) in
            [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))]
        {
            result.entry(member).or_insert(default);
        }
    }
    if let Some(completion) = result.get_mut("completion").and_then(Value::as_object_mut) {
        completion
            .retain(|member, value| member != "total" || value.as_u64().is_some_and(|it| u32::try_from(it).is_ok()));
    }
    drop_odd_hints(result);
}

/// Reads a duration: a negative one is 0, and JSON has no integers, so that `1000.0` is 1000.
fn milliseconds(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| value.as_f64().unwrap_or(0.0) as i64).max(0)
}

/// Removes icons and annotations that the SDK cannot read, wherever they are. They are hints for a display.
fn drop_odd_hints(object: &mut Map<String, Value>) {
    if let Some(Value::Array(icons)) = object.get_mut("icons") {
        for icon in icons.iter_mut().filter_map(Value::as_object_mut) {
            icon.retain(|member, value| member != "theme" || *value == "light" || *value == "dark");
        }
        icons.retain(|icon| serde_json::from_value::<Icon>(icon.clone()).is_ok());
    }
    object.retain(|member, value| match member.as_str() {
        "icons" => value.is_array(),
        "annotations" => serde_json::from_value::<Annotations>(value.clone()).is_ok(),
        _ => true,
    });
    for (member, value) in object.iter_mut() {
        match value {
            _ if member == "_meta" => {}
            Value::Object(object) => drop_odd_hints(object),
            Value::Array(values) => values.iter_mut().filter_map(Value::as_object_mut).for_each(drop_odd_hints),
            _ => {}
        }
    }
}

/// Replaces each half of a surrogate pair without its other half (`\ud800`) by U+FFFD; `None` if there is none. Programs
/// whose strings are UTF-16 write them where they cut a text.
fn without_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut repaired, mut at, mut is_changed) = (Vec::with_capacity(text.len()), 0, false);
    while at < text.len() {
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.extend_from_slice(b"\\ufffd");
                (at, is_changed) = (at + 6, true);
                continue;
            }
            _ if text[at] == b'\\' => 2,
            _ => 1,
        };
        let end = text.len().min(at + length);
        repaired.extend_from_slice(&text[at..end]);
        at = end;
    }
    is_changed.then_some(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(result: &Value) -> ServerResult {
        let text = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
        match messages(text.as_bytes()).expect("a message").remove(0) {
            JsonRpcMessage::Response(response) => response.result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn discovery_needs_only_versions_and_capabilities() {
        let discovery = |more: Value| {
            let mut value = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "prompts": {} } });
            value.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let ServerResult::DiscoverResult(discovery) = result(&value) else { panic!("{value}") };
            discovery.ttl_ms
        };
        for (ttl, expected) in [
            (json!({}), 0),
            (json!({ "ttlMs": 1000.0 }), 1000),
            (json!({ "ttlMs": 1.5 }), 1),
            (json!({ "ttlMs": -1 }), 0),
            (json!({ "ttlMs": 1e30 }), i64::MAX as u64),
            (json!({ "ttlMs": 7, "resultType": "complete", "cacheScope": "shared" }), 7),
        ] {
            assert_eq!(discovery(ttl.clone()), expected, "{ttl}");
        }
    }

    #[test]
    fn odd_optional_values_refuse_no_answer() {
        let icons = json!([{ "src": "https://a.example/i.png", "theme": "sepia" }, { "sizes": 5 }]);
        let ServerResult::ListPromptsResult(list) =
            result(&json!({ "prompts": [{ "name": "a", "icons": icons }], "ttlMs": 1000.0, "cacheScope": "shared" }))
        else {
            panic!("no list");
        };
        assert_eq!((list.prompts[0].icons.as_ref().map(Vec::len), list.ttl_ms), (Some(1), Some(1000)));
        for total in [json!(5_000_000_000u64), json!(-1), json!("many")] {
            let ServerResult::CompleteResult(complete) =
                result(&json!({ "completion": { "values": ["q"], "total": total, "hasMore": true } }))
            else {
                panic!("{total}");
            };
            assert_eq!((complete.completion.total, complete.completion.has_more), (None, Some(true)));
        }
        let text = json!({ "type": "text", "text": "t", "annotations": { "lastModified": "yesterday" } });
        let prompt = result(&json!({ "messages": [{ "role": "user", "content": text }] }));
        assert!(matches!(prompt, ServerResult::GetPromptResult(_)), "{prompt:?}");
    }

    #[test]
    fn batches_are_taken_apart() {
        let batch = json!([
            { "jsonrpc": "2.0", "id": 1, "result": { "prompts": [] } },
            5,
            { "jsonrpc": "2.0", "method": "notifications/prompts/list_changed" },
        ]);
        assert_eq!(messages(batch.to_string().as_bytes()).expect("messages").len(), 2);
        assert!(messages(b"5").is_err() && messages(b"{oops").is_err() && messages(b"[]").is_ok());
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        let repaired =
            |text: &str| without_lone_surrogates(text.as_bytes()).map(|it| String::from_utf8(it).expect("text"));
        assert_eq!(repaired(r#""a\ud800b""#).as_deref(), Some(r#""a\ufffdb""#));
        assert_eq!(repaired(r#""\udc00\uD83D\uDE00\ud83d""#).as_deref(), Some(r#""\ufffd\uD83D\uDE00\ufffd""#));
        for text in [r#""\\ud800""#, r#""\ud83d\ude00""#, r#""\u00"#, r#""\"#] {
            assert_eq!(repaired(text), None, "{text}");
        }
        assert!(messages(br#"{"jsonrpc":"2.0","id":1,"result":{"prompts":[{"name":"a","title":"\ud800"}]}}"#).is_ok());
    }
}

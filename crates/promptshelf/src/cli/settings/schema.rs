//! What the sections take that only this program reads, as JSON Schemas.

use serde_json::{Map, Value, json};
use toml::de::DeTable;

use super::{Layer, SETTINGS, given::Given, proxy, tls};

/// A value of each kind that some setting takes, and how a schema says that kind.
const KINDS: &[(&str, &str)] = &[
    (r#"v = "127.0.0.1:8080""#, r#"{"type":"string"}"#),
    ("v = true", r#"{"type":"boolean"}"#),
    ("v = 1", r#"{"type":"integer","minimum":1}"#),
    (r#"v = ["https://example.com"]"#, r#"{"type":"array","items":{"type":"string"}}"#),
];

/// The sections by their names.
pub(crate) fn schemas() -> [(&'static str, Value); 3] {
    let file = |_: &str| json!({ "type": "string" });
    let of_proxy = |name: &str| match name {
        "trusted" => json!({ "type": "array", "items": { "type": "string" } }),
        _ => json!({ "enum": ["x-forwarded", "forwarded"] }),
    };
    [
        ("http", section("How to serve over HTTP.", SETTINGS, setting)),
        ("tls", section("The certificate to serve with, and its key, as PEM.", tls::SETTINGS, file)),
        ("proxy", section("Whose word is taken for where requests come from.", proxy::SETTINGS, of_proxy)),
    ]
}

fn section(about: &str, settings: &[&str], takes: impl Fn(&str) -> Value) -> Value {
    let properties: Map<String, Value> = settings.iter().map(|name| ((*name).to_owned(), takes(name))).collect();
    json!({ "type": "object", "description": about, "properties": properties, "additionalProperties": false })
}

/// Each setting of `[http]` is asked what it takes by being given it, so that
/// nothing can be said here which is not so.
fn setting(name: &str) -> Value {
    let takes = |written: &str| {
        let table = DeTable::parse(written).ok();
        let value = table.as_ref().and_then(|table| table.get_ref().get("v"));
        value.is_some_and(|value| Layer::default().set(name, &Given::Toml(value)).is_ok())
    };
    let kinds = KINDS.iter().filter(|(written, _)| takes(written));
    let kinds: Vec<Value> = kinds.filter_map(|(_, schema)| serde_json::from_str(schema).ok()).collect();
    match <[Value; 1]>::try_from(kinds) {
        Ok([kind]) => kind,
        Err(kinds) => json!({ "anyOf": kinds }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_takes_something() {
        let [(_, http), (_, tls), (_, proxy)] = schemas();
        for setting in SETTINGS {
            let shown = &http["properties"][setting];
            assert!(
                shown["type"].is_string() || shown["anyOf"].as_array().is_some_and(|any| !any.is_empty()),
                "{setting}"
            );
        }
        assert_eq!(http["properties"]["allow-remote"]["type"], "boolean");
        assert_eq!(tls["properties"]["key"]["type"], "string");
        assert_eq!(proxy["properties"]["header"]["enum"][1], "forwarded");
    }
}

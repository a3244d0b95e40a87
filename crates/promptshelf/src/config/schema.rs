//! What `[http]` takes, as a JSON Schema.

use serde_json::{Map, Value, json};
use toml::de::DeTable;

use super::{Layer, SETTINGS, given::Given};

/// A value of each kind that some setting takes, and how a schema says that kind.
const KINDS: &[(&str, &str)] = &[
    (r#"v = "127.0.0.1:8080""#, r#"{"type":"string"}"#),
    ("v = true", r#"{"type":"boolean"}"#),
    ("v = 1", r#"{"type":"integer","minimum":1}"#),
    (r#"v = ["https://example.com"]"#, r#"{"type":"array","items":{"type":"string"}}"#),
];

/// The section's schema. Each setting is asked what it takes by being given it,
/// so that nothing can be said here which is not so.
pub(crate) fn schema() -> Value {
    let properties: Map<String, Value> = SETTINGS.iter().map(|name| ((*name).to_owned(), setting(name))).collect();
    json!({
        "type": "object",
        "description": "How to serve over HTTP.",
        "properties": properties,
        "additionalProperties": false,
    })
}

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
        for setting in SETTINGS {
            let shown = &schema()["properties"][setting];
            assert!(
                shown["type"].is_string() || shown["anyOf"].as_array().is_some_and(|any| !any.is_empty()),
                "{setting}"
            );
        }
        assert_eq!(schema()["properties"]["allow-remote"]["type"], "boolean");
    }
}

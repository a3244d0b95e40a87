//! Looks up keys and values in a JSON Schema.

use serde_json::Value;

pub(super) fn keys<'s>(schema: &'s Value, path: &[&str]) -> Vec<(&'s str, &'s str)> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for (key, about) in under(schema, path).into_iter().filter_map(|part| part["properties"].as_object()).flatten() {
        if !keys.iter().any(|(known, _)| known == key) {
            keys.push((key, about["description"].as_str().unwrap_or_default()));
        }
    }
    keys
}

/// Returns the allowed values of a key, if they are words.
pub(super) fn values<'s>(schema: &'s Value, path: &[&str]) -> Vec<&'s str> {
    let mut values = Vec::new();
    for part in under(schema, path) {
        match part["enum"].as_array() {
            Some(words) => values.extend(words.iter().filter_map(Value::as_str)),
            None if part["type"] == "boolean" => values.extend(["true", "false"]),
            None => {}
        }
    }
    values
}

fn under<'s>(schema: &'s Value, path: &[&str]) -> Vec<&'s Value> {
    let mut parts = alternatives(schema);
    for key in path {
        parts = parts.iter().filter_map(|part| part["properties"].get(key)).flat_map(alternatives).collect();
    }
    parts
}

fn alternatives(schema: &Value) -> Vec<&Value> {
    let others = schema["anyOf"].as_array().into_iter().flatten().chain(schema.get("items"));
    std::iter::once(schema).chain(others.flat_map(alternatives)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_alternatives_are_searched() {
        let schema = crate::schema::prompt();
        let has = |path: &[&str], key| keys(&schema, path).iter().any(|(known, _)| *known == key);
        assert!(has(&[], "description") && has(&["arguments"], "required") && has(&["icons"], "theme"));
        assert!(has(&["deprecated"], "replacement"));
        assert!(has(&["arguments", "complete"], "by") && has(&["tests", "complete"], "value"));
        assert!(!has(&["arguments"], "icons") && !has(&["nothing"], "description"));
        assert!(values(&schema, &["arguments", "type"]).contains(&"date"));
        assert_eq!(values(&schema, &["arguments", "required"]), ["true", "false"]);
        assert_eq!(values(&schema, &["tests", "roles"]), ["user", "assistant", "user", "assistant"]);
    }
}

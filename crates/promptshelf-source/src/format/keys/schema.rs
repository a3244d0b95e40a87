//! JSON Schemas from tables of keys: of prompt files, and of the parts that they share with `promptshelf.toml` (icons,
//! access rules and variables).
//!
//! The other parts of settings files have serde types, and schemas derived from these: see `settings`.

use schemars::Schema;
use serde_json::{Map, Value, json};

use super::{Holds, Key, Keys};

impl Keys {
    /// Returns the JSON Schema of a file with these keys, in draft 7.
    #[must_use]
    pub fn schema(&self, title: &str) -> Value {
        let mut schema = table(self, &json!(false));
        schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        schema.insert("title".to_owned(), json!(title));
        schema.into()
    }
}

impl Holds {
    pub(crate) fn to_schema(self) -> Schema {
        match holds(self) {
            Value::Object(schema) => schema.into(),
            _ => Schema::default(),
        }
    }
}

fn table(keys: &Keys, others: &Value) -> Map<String, Value> {
    let property = |key: &Key| {
        let mut schema = holds(key.holds);
        schema["description"] = json!(key.about);
        (key.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = keys.keys.iter().map(property).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("additionalProperties".to_owned(), others.clone());
    if !keys.required.is_empty() {
        schema.insert("required".to_owned(), json!(keys.required));
    }
    schema
}

/// Numbers and booleans are accepted with their source text as the value, as in `version: 1.10`.
fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn closed(keys: &Keys) -> Value {
    table(keys, &json!(false)).into()
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn one_or_list(item: &Value) -> Value {
    json!({ "anyOf": [item, list(item)] })
}

fn holds(holds: Holds) -> Value {
    match holds {
        Holds::Text => text(),
        Holds::Word(words) => json!({ "enum": words }),
        Holds::Flag => json!({ "type": "boolean" }),
        Holds::Count(least) => json!({ "type": "integer", "minimum": least }),
        Holds::Number(None) => json!({ "type": "number" }),
        Holds::Number(Some((least, most))) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Holds::Texts => one_or_list(&text()),
        Holds::Words(words) => one_or_list(&json!({ "enum": words })),
        Holds::Object => json!({ "type": "object" }),
        Holds::Pairs => json!({ "type": "object", "additionalProperties": {} }),
        Holds::Choices(keys) => {
            let mut schema = list(&json!({ "anyOf": [text(), closed(keys)] }));
            schema["minItems"] = json!(1);
            schema
        }
        Holds::TextsOrTables(keys) => one_or_list(&json!({ "anyOf": [text(), closed(keys)] })),
        Holds::TextOrTable(keys) => json!({ "anyOf": [text(), closed(keys)] }),
        Holds::ListOfTextsOrTables(keys) => list(&json!({ "anyOf": [text(), closed(keys)] })),
        Holds::Table(keys) => closed(keys),
        Holds::Tables(keys) => list(&closed(keys)),
        Holds::Completion(ways) => {
            let way = |keys: &Keys| match keys.required {
                // Every other key is a value of the argument named by `by`.
                ["by"] => table(keys, &one_or_list(&text())).into(),
                _ => closed(keys),
            };
            let ways = ways.iter().map(way);
            json!({ "anyOf": std::iter::once(list(&text())).chain(ways).collect::<Vec<Value>>() })
        }
        // `Value`, `Values` and `Foreign` accept anything; so do kinds that a later version adds.
        _ => json!({}),
    }
}

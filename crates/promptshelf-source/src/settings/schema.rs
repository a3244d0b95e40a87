//! JSON Schemas of settings files, derived from the types that the files are read into.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// Returns the JSON Schema of a settings file in draft 7, which editors' TOML language servers support.
///
/// All parts are in place, without `$ref`, and optional keys do not allow `null`, which TOML does not have. The defaults
/// are those of the types, and those that `#[schemars(extend("default" = …))]` adds.
///
/// # Panics
///
/// Never: a derived schema is valid JSON.
#[must_use]
pub fn schema<T: JsonSchema>(title: &str) -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    clean(&mut schema);
    schema["title"] = json!(title);
    schema
}

/// Whether a default is what readers expect of an absent key: nothing, no, or an empty list or table.
fn is_absence(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// Removes `null` alternatives, defaults that equal an absent key, and the names of Rust types.
fn clean(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                // Under `properties`, names are keys of the file.
                match (name.as_str(), value) {
                    ("properties", Value::Object(properties)) => properties.values_mut().for_each(clean),
                    (_, value) => clean(value),
                }
            }
            if object.get("default").is_some_and(is_absence) {
                object.remove("default");
            }
            object.remove("format");
            if object.get("title").is_some_and(Value::is_string) {
                object.remove("title");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(any)) = object.get_mut("anyOf") {
                any.retain(|part| part["type"] != "null");
                if let [Value::Object(only)] = any.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (name, value) in only {
                        object.entry(name).or_insert(value);
                    }
                }
            }
        }
        _ => {}
    }
}

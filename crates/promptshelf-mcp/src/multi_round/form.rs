//! Elicitation forms: the schema that clients show, and the results that they send.

use std::collections::BTreeMap;

use promptshelf_core::{Argument, ArgumentType, Choice, Form, Variables};
use promptshelf_service::FormReaction;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    json::{members, object},
    random_id,
    revision::Revision,
};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ElicitResult {
    Accept(Variables),
    Decline,
    Cancel,
}

impl ElicitResult {
    pub(crate) fn reaction(&self) -> FormReaction {
        match self {
            ElicitResult::Accept(_) => FormReaction::Accepted,
            ElicitResult::Decline => FormReaction::Declined,
            ElicitResult::Cancel => FormReaction::Cancelled,
        }
    }
}

/// Returns the parameters of `elicitation/create` for a form.
pub(crate) fn elicitation_params(form: &Form<'_>, again: Option<&str>, revision: Revision) -> Value {
    let message = match again {
        Some(reason) => format!("{} ({reason})", form.message),
        None => form.message.clone(),
    };
    let has_modes = revision.has_elicitation_modes();
    if let Some(url) = form.url {
        let mut params = json!({ "mode": "url", "message": message, "url": url });
        if !revision.is_modern() {
            // 2025-11-25 identifies each page, so that its completion can be reported; 2026-07-28 does not.
            params["elicitationId"] = json!(random_id());
        }
        return params;
    }
    let required: Vec<&str> = form.fields.iter().filter(|field| field.is_indispensable()).map(|f| f.name()).collect();
    let properties: Map<String, Value> =
        form.fields.iter().map(|field| (field.name().to_owned(), property(field, revision))).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let mut params = json!({ "message": message, "requestedSchema": schema });
    if has_modes {
        params["mode"] = json!("form");
    }
    params
}

/// Returns the schema of one field. It holds only keywords of the protocol's flat schemas; other constraints, such as
/// patterns, are checked when the answer arrives.
fn property(field: &Argument, revision: Revision) -> Value {
    let mut property = kind(field, revision);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            property[key] = value;
        }
    };
    set("title", field.title().map(Value::from));
    set("description", field.description().map(Value::from));
    let definition = field.definition();
    match field.kind() {
        ArgumentType::String | ArgumentType::Text if field.choices().is_empty() => {
            set("minLength", definition.constraints().min_length.map(Value::from));
            set("maxLength", definition.constraints().max_length.map(Value::from));
        }
        ArgumentType::Integer | ArgumentType::Number if field.choices().is_empty() => {
            set("minimum", definition.constraints().minimum.map(number));
            set("maximum", definition.constraints().maximum.map(number));
        }
        _ => {}
    }
    // 2025-06-18 has defaults for booleans only.
    if revision.has_elicitation_modes() || field.kind() == ArgumentType::Boolean {
        set("default", field.default_value().and_then(|default| default_of(field, default)));
    }
    property
}

fn kind(field: &Argument, revision: Revision) -> Value {
    let choices = field.choices();
    if !choices.is_empty() && field.kind() == ArgumentType::List && revision.has_elicitation_modes() {
        return json!({ "type": "array", "items": options(choices, "anyOf") });
    }
    if !choices.is_empty() && field.kind() != ArgumentType::List {
        return if revision.has_elicitation_modes() {
            let mut options = options(choices, "oneOf");
            options["type"] = json!("string");
            options
        } else {
            let values: Vec<&str> = choices.iter().map(|choice| &*choice.value).collect();
            let names: Vec<&str> = choices.iter().map(|c| c.title.as_deref().unwrap_or(&c.value)).collect();
            json!({ "type": "string", "enum": values, "enumNames": names })
        };
    }
    match field.kind() {
        ArgumentType::Integer => json!({ "type": "integer" }),
        ArgumentType::Number => json!({ "type": "number" }),
        ArgumentType::Boolean => json!({ "type": "boolean" }),
        ArgumentType::Date => json!({ "type": "string", "format": "date" }),
        ArgumentType::String | ArgumentType::Text | ArgumentType::List | ArgumentType::Json => {
            json!({ "type": "string" })
        }
    }
}

/// Returns the schema of choices: with titles under the given keyword, and as a plain `enum` without titles.
fn options(choices: &[Choice], keyword: &str) -> Value {
    if choices.iter().all(|choice| choice.title.is_none()) {
        let values: Vec<&str> = choices.iter().map(|choice| &*choice.value).collect();
        return json!({ "type": "string", "enum": values });
    }
    let titled =
        |choice: &Choice| json!({ "const": choice.value, "title": choice.title.as_deref().unwrap_or(&choice.value) });
    json!({ keyword: choices.iter().map(titled).collect::<Vec<_>>() })
}

pub(crate) fn default_of(field: &Argument, default: &str) -> Option<Value> {
    use promptshelf_core::Value as Typed;
    Some(match field.parsed(default)? {
        Typed::Integer(integer) if field.choices().is_empty() => json!(integer),
        Typed::Number(value) if field.choices().is_empty() => number(value),
        Typed::Boolean(boolean) => json!(boolean),
        Typed::List(items) if !field.choices().is_empty() => json!(items),
        _ => json!(default),
    })
}

/// Writes `3` and not `3.0`, as people do.
#[expect(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "only numbers that survive the way are shortened"
)]
pub(crate) fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { json!(whole) } else { json!(value) }
}

/// Reads an `ElicitResult`; `None` if malformed.
pub(crate) fn result(raw: &RawValue) -> Option<ElicitResult> {
    #[derive(Deserialize)]
    struct Result<'a> {
        action: String,
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    let result: Result<'_> = object(raw)?;
    match &*result.action {
        "accept" => {
            let content: BTreeMap<String, Value> = result.content.map_or_else(|| Some(BTreeMap::new()), members)?;
            content
                .into_iter()
                .map(|(name, value)| Some((name, text(value)?)))
                .collect::<Option<_>>()
                .map(ElicitResult::Accept)
        }
        "decline" => Some(ElicitResult::Decline),
        "cancel" => Some(ElicitResult::Cancel),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(boolean) => Some(boolean.to_string()),
        // `4.0` is an integer in JSON Schema, and some libraries write integers so.
        Value::Number(number) => Some(match number.as_f64().filter(|it| !number.is_i64() && it.fract() == 0.0) {
            Some(whole) if whole.abs() < 1e15 => format!("{whole:.0}"),
            _ => number.to_string(),
        }),
        Value::Array(items) if items.iter().all(Value::is_string) => Some(Value::Array(items).to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_json_schema_of_the_form_has_them() {
        let sent = r#"{"action":"accept","content":{"a":4.0,"b":4.5,"c":-2e3,"d":7,"e":18446744073709551615}}"#;
        let raw: Box<RawValue> = serde_json::from_str(sent).expect("JSON");
        let Some(ElicitResult::Accept(content)) = result(&raw) else { panic!("an answer") };
        let read: Vec<&str> = content.values().map(String::as_str).collect();
        assert_eq!(read, ["4", "4.5", "-2000", "7", "18446744073709551615"]);
    }
}

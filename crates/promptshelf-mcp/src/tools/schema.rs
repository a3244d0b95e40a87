//! JSON Schemas of prompts' arguments, closed and without keywords that only some clients support.
//!
//! Other constraints, such as patterns, are checked when the prompt is used.

use std::sync::Arc;

use promptshelf_core::{Argument, ArgumentType, Prompt};
use promptshelf_service::View;
use serde_json::{Map, Value, json};

use crate::multi_round::form;

/// The largest number of prompts, and of bytes of their schemas, that are part of a tool's schema. Beyond that a model
/// receives the schemas from a search.
const MOST_PROMPTS: usize = 20;
const MOST_BYTES: usize = 16 << 10;

/// Returns the schemas of all prompts that are tools, if they are few and short.
pub(super) fn of_few(view: &View) -> Option<Vec<(&Arc<Prompt>, Value)>> {
    let prompts: Vec<_> = view.tools().take(MOST_PROMPTS + 1).collect();
    if prompts.is_empty() || prompts.len() > MOST_PROMPTS {
        return None;
    }
    let schemas: Vec<_> = prompts.into_iter().map(|prompt| (prompt, of(prompt))).collect();
    let bytes: usize = schemas.iter().map(|(_, schema)| schema.to_string().len()).sum();
    (bytes <= MOST_BYTES).then_some(schemas)
}

pub(super) fn of(prompt: &Prompt) -> Value {
    let arguments = prompt.arguments();
    let properties: Map<String, Value> =
        arguments.iter().map(|argument| (argument.name().to_owned(), property(argument))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let required: Vec<&str> = arguments.iter().filter(|argument| argument.required()).map(Argument::name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(argument: &Argument) -> Value {
    let constraints = argument.definition().constraints();
    let choices: Vec<&str> = argument.choices().iter().map(|choice| &*choice.value).collect();
    let mut set = Vec::new();
    let mut property = match argument.kind() {
        ArgumentType::List => {
            let mut items = json!({ "type": "string" });
            if !choices.is_empty() {
                items["enum"] = json!(choices);
            }
            json!({ "type": "array", "items": items })
        }
        _ if !choices.is_empty() => json!({ "type": "string", "enum": choices }),
        ArgumentType::Integer | ArgumentType::Number => {
            set.push(("minimum", constraints.minimum.map(form::number)));
            set.push(("maximum", constraints.maximum.map(form::number)));
            json!({ "type": argument.kind().as_str() })
        }
        ArgumentType::Boolean => json!({ "type": "boolean" }),
        ArgumentType::Date => json!({ "type": "string", "format": "date" }),
        ArgumentType::Json => json!({ "type": "string", "contentMediaType": "application/json" }),
        ArgumentType::String | ArgumentType::Text => {
            set.push(("minLength", constraints.min_length.map(Value::from)));
            set.push(("maxLength", constraints.max_length.map(Value::from)));
            json!({ "type": "string" })
        }
    };
    set.push(("title", argument.title().map(Value::from)));
    set.push(("description", argument.description().map(Value::from)));
    set.push(("default", argument.default_value().and_then(|default| form::default_of(argument, default))));
    for (key, value) in set {
        if let Some(value) = value {
            property[key] = value;
        }
    }
    property
}

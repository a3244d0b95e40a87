//! Converts Picoschema, or a JSON Schema in its place, to arguments.
//!
//! Source: dotprompt's documentation, *Picoschema*. `name?: type, description`; `name(array, description): type`, and
//! likewise `enum` and `object`; `(*)` is a wildcard for further names.

use promptshelf_core::{ArgumentDefinition, ArgumentType, Choice, Code};

use super::{entries, get, text_of};
use promptshelf_source::syntax::{Entry, Node, Notes, Value, argument_name};

pub(super) fn arguments(schema: &Node, notes: &mut Notes<'_>) -> Vec<ArgumentDefinition> {
    if let Some(properties) = get(schema, "properties") {
        let required = get(schema, "required").map(Node::items).unwrap_or_default();
        let required: Vec<&str> = required.iter().filter_map(Node::text).collect();
        let each = entries(properties).iter();
        return each.filter_map(|entry| json_schema(entry, required.contains(&&*entry.key), notes)).collect();
    }
    if !matches!(schema.value, Value::Mapping(_)) {
        notes.warning(
            Code::NotSupported,
            &schema.span,
            "a schema that is referenced by name is not resolved; declare the arguments",
        );
        return Vec::new();
    }
    entries(schema).iter().filter_map(|entry| pico(entry, notes)).collect()
}

fn pico(entry: &Entry, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let (name, detail) = match entry.key.split_once('(') {
        Some((name, detail)) => (name, Some(detail.trim_end_matches(')'))),
        None => (&*entry.key, None),
    };
    if name.is_empty() {
        notes.warning(Code::NotSupported, &entry.key_span, "wildcard arguments have no equivalent and are omitted");
        return None;
    }
    let (name, required) = name.strip_suffix('?').map_or((name, true), |name| (name, false));
    let mut argument = named(name, entry, notes)?;
    argument.required = required;
    let (kind, description) = match detail.or_else(|| entry.node.text()) {
        Some(words) => words.split_once(',').map_or((words, ""), |(kind, rest)| (kind, rest)),
        None => ("object", ""),
    };
    argument.description = Some(description.trim()).filter(|description| !description.is_empty()).map(Into::into);
    match kind.trim() {
        "enum" => argument.choices = choices(&entry.node),
        "array" => {
            let of = entry.node.text().map(|of| of.split(',').next().unwrap_or(of).trim());
            argument.kind = if of == Some("string") { ArgumentType::List } else { ArgumentType::Json };
        }
        kind => argument.kind = kind_of(kind, entry, notes),
    }
    Some(argument)
}

fn json_schema(entry: &Entry, required: bool, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let mut argument = named(&entry.key, entry, notes)?;
    argument.required = required;
    argument.title = text_of(&entry.node, "title");
    argument.description = text_of(&entry.node, "description");
    argument.default = text_of(&entry.node, "default");
    argument.choices = get(&entry.node, "enum").map(choices).unwrap_or_default();
    let kind = text_of(&entry.node, "type").unwrap_or_else(|| "string".to_owned());
    argument.kind = match &*kind {
        "array" if get(&entry.node, "items").and_then(|items| text_of(items, "type")).as_deref() == Some("string") => {
            ArgumentType::List
        }
        "array" => ArgumentType::Json,
        kind => kind_of(kind, entry, notes),
    };
    Some(argument)
}

fn named(name: &str, entry: &Entry, notes: &mut Notes<'_>) -> Option<ArgumentDefinition> {
    let ours = argument_name(name);
    match &ours {
        None => {
            let message = format!("`{name}` is not a valid name of an argument and is omitted");
            notes.warning(Code::NotSupported, &entry.key_span, message);
        }
        Some(ours) if *ours != name => {
            let message = format!("the argument `{name}` is renamed to `{ours}`; the text still contains `{name}`");
            notes.warning(Code::NotSupported, &entry.key_span, message);
        }
        Some(_) => {}
    }
    ours.map(ArgumentDefinition::new)
}

fn kind_of(kind: &str, entry: &Entry, notes: &mut Notes<'_>) -> ArgumentType {
    match kind {
        "string" => ArgumentType::String,
        "integer" => ArgumentType::Integer,
        "number" => ArgumentType::Number,
        "boolean" => ArgumentType::Boolean,
        "object" | "any" | "null" => ArgumentType::Json,
        other => {
            let message = format!("unknown type `{other}`; any text is accepted");
            notes.warning(Code::NotSupported, &entry.node.span, message);
            ArgumentType::String
        }
    }
}

fn choices(node: &Node) -> Vec<Choice> {
    let texts = node.items().iter().filter_map(Node::text);
    texts.map(|text| Choice { value: text.to_owned(), title: None }).collect()
}

//! The requests of a case.

use futures_executor::block_on;
use promptshelf_core::{Catalog, RawArgumentValue, RawArguments, Variables, completion};
use serde_json::Value;

use super::{Block, show};

/// Returns the answer, if the block is a request.
pub(crate) fn ask(catalog: &Catalog, block: &Block) -> Option<String> {
    match &*block.kind {
        "get" => Some(get(catalog, &block.subject, &block.body)),
        "complete" => Some(complete(catalog, &block.subject, &block.body)),
        "read" => Some(read(catalog, &block.subject)),
        _ => None,
    }
}

fn get(catalog: &Catalog, name: &str, body: &str) -> String {
    let Some(prompt) = catalog.find(name) else {
        return "there is no such prompt\n".into();
    };
    let arguments: Value = if body.trim().is_empty() { Value::Null } else { json(body) };
    let mut raw = RawArguments::new();
    for (name, value) in arguments.as_object().into_iter().flatten() {
        raw.push(name.clone(), given_value(value));
    }
    let bindings = match prompt.bind(&raw, catalog.policy().value_bytes) {
        Ok(bindings) => bindings,
        Err(problems) => return problems.iter().map(|problem| format!("problem: {problem}\n")).collect(),
    };
    match prompt.render(catalog.render_context(), &bindings) {
        Ok(parts) if parts.is_empty() => "no messages\n".into(),
        Ok(parts) => parts.iter().map(show::part).collect(),
        Err(error) => show::render_error(&error),
    }
}

fn given_value(value: &Value) -> RawArgumentValue<'static> {
    match value {
        Value::String(text) => RawArgumentValue::Text(text.clone().into()),
        Value::Object(keys) => {
            let repeated = keys["repeat"].as_str().expect("a text").to_owned();
            let times = keys["times"].as_u64().expect("a number");
            RawArgumentValue::Text(repeated.repeat(usize::try_from(times).expect("a small number")).into())
        }
        Value::Array(_) => RawArgumentValue::Other("[]".into()),
        Value::Number(_) => RawArgumentValue::Other("1".into()),
        Value::Bool(_) => RawArgumentValue::Other("true".into()),
        Value::Null => RawArgumentValue::Other("null".into()),
    }
}

fn complete(catalog: &Catalog, subject: &str, body: &str) -> String {
    let (reference, argument) = subject.rsplit_once(' ').expect("a name and an argument");
    let arguments = match catalog.find(reference) {
        Some(prompt) => prompt.arguments(),
        None => catalog.find_declared(reference).expect("a prompt or a resource").variables(),
    };
    let argument = arguments.iter().find(|known| known.name() == argument).expect("the argument");
    let question = json(body);
    let typed = question["typed"].as_str().unwrap_or_default();
    let known = question["known"].as_object().into_iter().flatten();
    let known: Variables =
        known.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect();
    let found = completion::complete(argument, catalog, typed, &known);
    let values: String = found.values.iter().map(|value| format!("- {}\n", show::text(value))).collect();
    format!("{values}{} in all{}\n", found.total, if found.has_more() { ", more than are shown" } else { "" })
}

fn read(catalog: &Catalog, uri: &str) -> String {
    let Some((resource, variables)) = catalog.find_resource(uri) else {
        return match catalog.find_library_file(uri) {
            Some(contents) => show::contents(&contents),
            None => "resource not found\n".into(),
        };
    };
    match block_on(resource.read(uri, &variables)) {
        Ok(contents) => show::contents(&contents),
        Err(error) => format!("cannot be read: {error}\n"),
    }
}

fn json(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body}"))
}

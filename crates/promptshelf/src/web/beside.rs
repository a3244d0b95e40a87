//! What the page needs and MCP has no words for, as JSON.
//!
//! Nothing here repeats what MCP says: names, titles, descriptions and messages
//! come through `/mcp`, so that they are those of every client.

use std::time::Duration;

use axum::{
    extract::{Path, RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use promptshelf_core::{Argument, ArgumentType, Diagnostic, Location, Prompt};
use serde_json::{Value, json};

use crate::Library;

mod excerpt;

/// More than this nobody reads in one sitting; the rest is counted.
const MOST_DIAGNOSTICS: usize = 500;

/// How long a page waits for a change before it asks again.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Where each prompt lies in the library, its tags, and which of its arguments
/// are texts.
pub(super) async fn shelf(State(library): State<Library>) -> Response {
    let catalog = library.catalog();
    let prompts: Vec<Value> = catalog
        .prompts()
        .iter()
        .map(|prompt| {
            let texts = prompt.arguments().iter().filter(|argument| argument.kind() == ArgumentType::Text);
            let texts: Vec<&str> = texts.map(Argument::name).collect();
            json!({ "name": prompt.name().as_str(), "path": path(prompt), "tags": prompt.tags(), "texts": texts })
        })
        .collect();
    answer(&json!({ "generation": catalog.generation(), "prompts": prompts }))
}

/// The types of one prompt's arguments, from the same definition that calls are
/// checked with.
pub(super) async fn prompt(State(library): State<Library>, Path(name): Path<String>) -> Response {
    let catalog = library.catalog();
    let Some(prompt) = catalog.find(&name) else {
        return (StatusCode::NOT_FOUND, "There is no such prompt.\n").into_response();
    };
    let arguments: Vec<Value> = prompt.arguments().iter().map(argument).collect();
    answer(&json!({
        "generation": catalog.generation(),
        "path": path(prompt),
        "version": prompt.version(),
        "tags": prompt.tags(),
        "arguments": arguments,
    }))
}

/// Prompts that are defined in code lie nowhere.
fn path(prompt: &Prompt) -> Option<&str> {
    Some(prompt.source().path.as_str()).filter(|path| !path.starts_with('<'))
}

fn argument(argument: &Argument) -> Value {
    let definition = argument.definition();
    let choices: Vec<Value> =
        argument.choices().iter().map(|choice| json!({ "value": choice.value, "title": choice.title })).collect();
    json!({
        "name": argument.name(),
        "type": argument.kind().as_str(),
        "default": argument.default_value(),
        "examples": argument.examples(),
        "choices": choices,
        "pattern": definition.pattern,
        "minLength": definition.min_length,
        "maxLength": definition.max_length,
        "minimum": definition.minimum,
        "maximum": definition.maximum,
        "asked": definition.ask,
        "completes": argument.completion().is_some(),
    })
}

/// Everything that is wrong with the library, each with the lines it points at.
pub(super) async fn diagnostics(State(library): State<Library>) -> Response {
    let report = library.loader().reports().borrow().clone();
    let shown: Vec<Value> = report.diagnostics.iter().take(MOST_DIAGNOSTICS).map(diagnostic).collect();
    answer(&json!({
        "generation": report.generation,
        "loads": report.loads,
        "failure": report.failure.map(|failure| failure.to_string()),
        "total": report.diagnostics.len(),
        "diagnostics": shown,
    }))
}

fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|(location, label)| {
            let mut related = place(location);
            related["label"] = json!(label);
            related
        })
        .collect();
    let mut told = place(&diagnostic.location);
    told["code"] = json!(diagnostic.code.as_str());
    told["severity"] = json!(if diagnostic.is_error() { "error" } else { "warning" });
    told["message"] = json!(diagnostic.message);
    told["help"] = json!(diagnostic.help);
    told["related"] = json!(related);
    told
}

fn place(location: &Location) -> Value {
    let (line, column) = location.line_column();
    let lines = excerpt::around(location);
    json!({ "path": location.source.path, "line": line, "column": column, "lines": lines })
}

/// Answers when there has been another load than the ones that the page knows
/// of, or after a while. A load that changes only what a prompt says, or only
/// what is wrong, is one that MCP has no notification for.
pub(super) async fn changes(State(library): State<Library>, RawQuery(query): RawQuery) -> Response {
    let known = query.as_deref().and_then(|query| query.strip_prefix("known=")?.parse::<u64>().ok());
    let mut reports = library.loader().reports();
    tokio::select! {
        _ = reports.wait_for(|report| known != Some(report.loads)) => {}
        () = tokio::time::sleep(LONGEST_WAIT) => {}
        () = library.server().closing() => {}
    }
    let report = reports.borrow();
    answer(&json!({ "generation": report.generation, "loads": report.loads }))
}

/// Limits of the library, and which program serves it.
pub(super) async fn facts(State(library): State<Library>) -> Response {
    let catalog = library.catalog();
    let policy = catalog.policy();
    answer(&json!({
        "generation": catalog.generation(),
        "program": { "name": "promptshelf", "version": env!("CARGO_PKG_VERSION") },
        "limits": {
            "pageSize": policy.page_size,
            "ttlSeconds": policy.ttl.as_secs(),
            "valueBytes": policy.value_bytes,
            "outputBytes": policy.budget.output_bytes,
            "attachmentBytes": policy.budget.attachment_bytes,
            "messages": policy.budget.messages,
            "fuel": policy.budget.fuel,
            "includeDepth": policy.budget.include_depth,
        },
    }))
}

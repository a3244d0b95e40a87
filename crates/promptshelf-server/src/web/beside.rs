//! What the page needs and MCP has no words for, as JSON.
//!
//! Nothing here repeats what MCP says: names, titles, descriptions and messages
//! come through `/mcp`, so that they are those of every client. What may be told
//! to whom is decided by the service, as for `/mcp`.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use promptshelf_core::{Argument, ArgumentType, Diagnostic, Location, Prompt};
use promptshelf_mcp::http::RequiredScopes;
use promptshelf_service::{Caller, Rejection};
use serde_json::{Value, json};

use crate::Library;

mod clients;
mod excerpt;

pub(super) use clients::clients;

/// More than this nobody reads in one sitting; the rest is counted.
const MOST_DIAGNOSTICS: usize = 500;

/// How long a page waits for a change before it asks again.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

/// Where the operator writes down callers and limits.
const MANIFEST: &str = "promptshelf.toml";

/// Who asks, where somebody has found that out.
type Asking = Option<Extension<Caller>>;

fn caller(asking: Asking) -> Caller {
    asking.map_or_else(Caller::anonymous, |Extension(caller)| caller)
}

fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A rejection, with the status that `/mcp` gives it.
fn rejected(rejection: &Rejection) -> Response {
    let status = match rejection {
        Rejection::UnknownPrompt { .. } => StatusCode::NOT_FOUND,
        Rejection::InsufficientScope { .. } => StatusCode::FORBIDDEN,
        Rejection::TooManyRequests { .. } | Rejection::TooManyAtOnce { .. } => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = (status, format!("{rejection}.\n")).into_response();
    match rejection {
        Rejection::InsufficientScope { scopes } => {
            response.extensions_mut().insert(RequiredScopes(scopes.clone()));
        }
        Rejection::TooManyRequests { retry_after } => {
            let seconds = HeaderValue::from(retry_after.as_secs() + 1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        _ => {}
    }
    response
}

/// Where each prompt lies in the library, its tags, and which of its arguments
/// are texts.
pub(super) async fn shelf(State(library): State<Library>, asking: Asking) -> Response {
    let shelf = match library.service().shelf(&caller(asking)) {
        Ok(shelf) => shelf,
        Err(rejection) => return rejected(&rejection),
    };
    let prompts: Vec<Value> = shelf
        .shown()
        .map(|prompt| {
            let texts = prompt.arguments().iter().filter(|argument| argument.kind() == ArgumentType::Text);
            let texts: Vec<&str> = texts.map(Argument::name).collect();
            json!({ "name": prompt.name().as_str(), "path": path(prompt), "tags": prompt.tags(), "texts": texts })
        })
        .collect();
    answer(&json!({ "generation": shelf.catalog.generation(), "prompts": prompts }))
}

/// The types of one prompt's arguments, from the same definition that calls are
/// checked with.
pub(super) async fn prompt(State(library): State<Library>, asking: Asking, Path(name): Path<String>) -> Response {
    let (catalog, prompt) = match library.service().describe(&caller(asking), &name) {
        Ok(found) => found,
        Err(rejection) => return rejected(&rejection),
    };
    let arguments: Vec<Value> = prompt.arguments().iter().map(argument).collect();
    answer(&json!({
        "generation": catalog.generation(),
        "path": path(&prompt),
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
        "sensitive": argument.is_sensitive(),
        "completes": argument.completion().is_some(),
    })
}

/// Everything that is wrong with the library, each with the lines it points at,
/// for those who may see it. The others hear only that there is nothing for them.
pub(super) async fn diagnostics(State(library): State<Library>, asking: Asking) -> Response {
    let caller = caller(asking);
    let sees = match library.service().sees_diagnostics(&caller) {
        Ok(sees) => sees,
        Err(rejection) => return rejected(&rejection),
    };
    let report = library.loader().reports().borrow().clone();
    let all = if sees { &*report.diagnostics } else { &[] };
    let shown: Vec<Value> =
        all.iter().take(MOST_DIAGNOSTICS).map(|found| diagnostic(found, caller.identity().is_some())).collect();
    answer(&json!({
        "generation": report.generation,
        "loads": report.loads,
        "withheld": !sees,
        "failure": report.failure.filter(|_| sees).map(|failure| failure.to_string()),
        "total": all.len(),
        "diagnostics": shown,
    }))
}

fn diagnostic(diagnostic: &Diagnostic, is_guest: bool) -> Value {
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|(location, label)| {
            let mut related = place(location, is_guest);
            related["label"] = json!(label);
            related
        })
        .collect();
    let mut told = place(&diagnostic.location, is_guest);
    told["code"] = json!(diagnostic.code.as_str());
    told["severity"] = json!(if diagnostic.is_error() { "error" } else { "warning" });
    told["message"] = json!(diagnostic.message);
    told["help"] = json!(diagnostic.help);
    told["related"] = json!(related);
    told
}

/// What stands around a mistake in the library's own file, such as other
/// callers' tokens, is not for guests, whatever else they look after.
fn place(location: &Location, is_guest: bool) -> Value {
    let (line, column) = location.line_column();
    let is_private = is_guest && location.source.path == MANIFEST;
    let lines = if is_private { Vec::new() } else { excerpt::around(location) };
    json!({ "path": location.source.path.as_str(), "line": line, "column": column, "lines": lines })
}

/// Answers when there has been another load than the ones that the page knows
/// of, or after a while. A load that changes only what a prompt says, or only
/// what is wrong, is one that MCP has no notification for.
pub(super) async fn changes(State(library): State<Library>, asking: Asking, RawQuery(query): RawQuery) -> Response {
    let _slot = match library.service().wait(&caller(asking)) {
        Ok(slot) => slot,
        Err(rejection) => return rejected(&rejection),
    };
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

/// Limits of the library, which program serves it, and whom it takes the caller for.
pub(super) async fn facts(State(library): State<Library>, asking: Asking) -> Response {
    let caller = caller(asking);
    let catalog = match library.service().shelf(&caller) {
        Ok(shelf) => shelf.catalog,
        Err(rejection) => return rejected(&rejection),
    };
    let policy = catalog.policy();
    answer(&json!({
        "generation": catalog.generation(),
        "caller": caller.identity().map(|identity| &identity.name),
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

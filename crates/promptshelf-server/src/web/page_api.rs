//! JSON API of the page for data that MCP does not carry: folders, tags, argument types, diagnostics.
//!
//! Names, titles, descriptions and messages come through `/mcp`, so that the page shows those of every
//! client. The service decides on access, as for `/mcp`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use promptshelf_core::{Argument, ArgumentType, Diagnostic, Location, Prompt, Severity};
use promptshelf_mcp::listed_prompt;
use promptshelf_service::Rejection;
use serde_json::{Value, json};

mod clients;
mod excerpt;
mod response;

pub(super) use clients::clients;
use response::{AuthenticatedCaller, caller, json_response, rejected};

use super::PageFeatures;
use crate::library::Library;

/// The most diagnostics of one response; the rest is counted.
const MAX_DIAGNOSTICS: usize = 500;

const LONG_POLL: Duration = Duration::from_secs(25);

const MANIFEST: &str = "promptshelf.toml";

/// Returns each visible prompt's path, tags and text arguments, and the features of the server.
pub(super) async fn prompts(
    State(library): State<Library>,
    authenticated: AuthenticatedCaller,
    Extension(features): Extension<PageFeatures>,
) -> Response {
    let overview = match library.service().overview(&caller(authenticated)) {
        Ok(overview) => overview,
        Err(rejection) => return rejected(&rejection),
    };
    let prompts: Vec<Value> = overview
        .listed()
        .map(|prompt| {
            let texts = prompt.arguments().iter().filter(|argument| argument.kind() == ArgumentType::Text);
            let texts: Vec<&str> = texts.map(Argument::name).collect();
            json!({ "name": prompt.name().as_str(), "path": path(prompt), "tags": prompt.tags(), "texts": texts })
        })
        .collect();
    json_response(&json!({
        "generation": overview.view().catalog().generation(),
        "features": {
            "command": crate::launcher::command(),
            "channels": features.has_channels,
            "edit": features.has_folder,
            "sources": features.has_sources,
            "usage": features.has_usage,
        },
        "prompts": prompts,
    }))
}

/// Returns the argument types of one prompt, from the definition that requests are checked with, and its entry in the
/// list under each delivery profile.
pub(super) async fn prompt(
    State(library): State<Library>,
    authenticated: AuthenticatedCaller,
    Extension(features): Extension<PageFeatures>,
    Path(name): Path<String>,
) -> Response {
    let caller = caller(authenticated);
    let described = match library.service().describe(&caller, &name) {
        Ok(found) => found,
        Err(rejection @ Rejection::UnknownPrompt { .. }) if library.service().sees_diagnostics(&caller) == Ok(true) => {
            return library.error_of(&name).map_or_else(|| rejected(&rejection), |error| not_served(&name, &error));
        }
        Err(rejection) => return rejected(&rejection),
    };
    let prompt = described.value();
    let arguments: Vec<Value> = prompt.arguments().iter().map(argument).collect();
    let profiles = features.profiles.iter();
    let profiles: Vec<Value> = profiles
        .map(|(name, profile)| json!({ "name": name, "entry": listed_prompt(profile, prompt, described.view()) }))
        .collect();
    json_response(&json!({
        "profiles": profiles,
        "generation": described.view().catalog().generation(),
        "path": path(prompt),
        "version": prompt.version(),
        "tags": prompt.tags(),
        "labels": prompt.labels().listed().map(|(label, values)| (label.key, values)).collect::<BTreeMap<_, _>>(),
        "arguments": arguments,
    }))
}

/// Returns the response for a prompt that is not served because of an error in its file.
fn not_served(name: &str, error: &Diagnostic) -> Response {
    let (place, mistake) = (&error.location, &error.message);
    let text = format!("The prompt `{name}` is not served, because its file has an error: {place}: {mistake}\n");
    (StatusCode::NOT_FOUND, text).into_response()
}

/// A prompt's path in the library; prompts defined in code have none.
fn path(prompt: &Prompt) -> Option<&str> {
    Some(prompt.source().path.as_str()).filter(|path| !path.starts_with('<'))
}

#[cfg(feature = "channels")]
pub(crate) fn described_arguments(prompt: &Prompt) -> Vec<Value> {
    prompt.arguments().iter().map(argument).collect()
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
        "pattern": definition.constraints().pattern,
        "minLength": definition.constraints().min_length,
        "maxLength": definition.constraints().max_length,
        "minimum": definition.constraints().minimum,
        "maximum": definition.constraints().maximum,
        "asked": definition.ask,
        "sensitive": argument.is_sensitive(),
        "completes": argument.completion().is_some(),
    })
}

/// Returns every diagnostic of the library with an excerpt of the source. For callers without
/// permission to read them the list is empty and `withheld` is set.
pub(super) async fn diagnostics(State(library): State<Library>, authenticated: AuthenticatedCaller) -> Response {
    let caller = caller(authenticated);
    let is_permitted = match library.service().sees_diagnostics(&caller) {
        Ok(is_permitted) => is_permitted,
        Err(rejection) => return rejected(&rejection),
    };
    let report = library.loader().reports().borrow().clone();
    let findings = if is_permitted { reviewed(&library).await } else { Arc::default() };
    let all = &*findings;
    let count = |severity| all.iter().filter(|found| found.severity == severity).count();
    let shown: Vec<Value> =
        all.iter().take(MAX_DIAGNOSTICS).map(|found| diagnostic(found, caller.identity().is_some())).collect();
    json_response(&json!({
        "catalogs": report.serial + 1,
        "loads": report.loads,
        "withheld": !is_permitted,
        "failure": report.failure.filter(|_| is_permitted).map(|failure| failure.to_string()),
        "total": all.len(),
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
        "hints": count(Severity::Hint),
        "diagnostics": shown,
    }))
}

/// Returns the findings of the library; reviews it on a thread for blocking work.
async fn reviewed(library: &Library) -> Arc<[Diagnostic]> {
    let library = library.clone();
    tokio::task::spawn_blocking(move || library.findings()).await.unwrap_or_default()
}

fn diagnostic(diagnostic: &Diagnostic, is_authenticated: bool) -> Value {
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|(location, label)| {
            let mut related = excerpt_at(location, is_authenticated);
            related["label"] = json!(label);
            related
        })
        .collect();
    let mut value = excerpt_at(&diagnostic.location, is_authenticated);
    value["code"] = json!(diagnostic.code.as_str());
    value["severity"] = json!(diagnostic.severity.as_str());
    value["message"] = json!(diagnostic.message);
    value["help"] = json!(diagnostic.help);
    value["related"] = json!(related);
    value
}

/// Returns a location with its lines. Lines of the library's settings file may hold other callers'
/// tokens, so they are left out for authenticated callers, whatever else they may see.
fn excerpt_at(location: &Location, is_authenticated: bool) -> Value {
    let (line, column) = location.line_column();
    let is_private = is_authenticated && location.source.path == MANIFEST;
    let lines = if is_private { Vec::new() } else { excerpt::around(location) };
    json!({ "path": location.source.path.as_str(), "line": line, "column": column, "lines": lines })
}

/// Long poll: responds when the library has been loaded since `known`, or after [`LONG_POLL`]. MCP has
/// no notification for a load that changes only a prompt's text or only diagnostics.
pub(super) async fn changes(
    State(library): State<Library>,
    authenticated: AuthenticatedCaller,
    RawQuery(query): RawQuery,
) -> Response {
    let _slot = match library.service().wait(&caller(authenticated)) {
        Ok(slot) => slot,
        Err(rejection) => return rejected(&rejection),
    };
    let known = query.as_deref().and_then(|query| query.strip_prefix("known=")?.parse::<u64>().ok());
    let mut reports = library.loader().reports();
    tokio::select! {
        _ = reports.wait_for(|report| known != Some(report.loads)) => {}
        () = tokio::time::sleep(LONG_POLL) => {}
        () = library.server().closing() => {}
    }
    let report = reports.borrow();
    json_response(&json!({ "generation": report.generation, "loads": report.loads }))
}

/// Returns the texts that new prompts begin with, by kind. `TITLE` stands for the title.
pub(super) async fn starters() -> Response {
    let kinds = ["text", "code", "conversation"];
    json_response(&kinds.iter().map(|kind| (*kind, promptshelf_author::starter(kind, "TITLE"))).collect())
}

/// Returns the limits of the library, the program's version and the caller's name.
pub(super) async fn facts(State(library): State<Library>, authenticated: AuthenticatedCaller) -> Response {
    let caller = caller(authenticated);
    let overview = match library.service().overview(&caller) {
        Ok(overview) => overview,
        Err(rejection) => return rejected(&rejection),
    };
    let catalog = overview.view().catalog();
    let policy = catalog.policy();
    json_response(&json!({
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

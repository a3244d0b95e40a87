//! Langfuse's read API for prompts, so that its SDKs work with this server.
//!
//! Source: Langfuse's API reference, *Prompts*, and its SDKs 5.0 (Python) and 5.11 (JavaScript). A label is a channel, and `latest`
//! the default one; a version is that of the store. A library without channels has the labels `production` and `latest` and version 1.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use promptshelf_core::{Prompt, cursor::ListKind};
use promptshelf_service::{Caller, Method, View};
use promptshelf_wire::PromptFacts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        etag,
        problem::Problem,
        request::{ApiPath, ApiQuery},
    },
    model::facts_of,
    mustache::{Converted, convert, is_chat},
    prompts::cache_control,
    state::{ProgramState, ServedChannel},
};

/// The labels of a library without channels.
const LABELS: [&str; 2] = ["production", LATEST];

const LATEST: &str = "latest";

const PAGE: usize = 50;
const MAX_PAGE: usize = 100;

/// The parameters of the list. Those that filter by time or with expressions are not supported.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    name: Option<String>,
    label: Option<String>,
    tag: Option<String>,
    page: Option<usize>,
    limit: Option<usize>,
}

/// The parameters of a prompt. `resolve` has no effect: included parts are always resolved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptQuery {
    version: Option<u64>,
    label: Option<String>,
    #[serde(rename = "resolve")]
    _resolve: Option<String>,
}

pub(super) async fn list(
    State(state): State<ProgramState>,
    caller: Extension<Caller>,
    ApiQuery(query): ApiQuery<ListQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(PAGE);
    let page = query.page.unwrap_or(1);
    if limit == 0 || limit > MAX_PAGE || page == 0 {
        return Err(Problem::invalid(format!(
            "The page is invalid: expected a `page` from 1 and a `limit` of 1 to {MAX_PAGE}"
        )));
    }
    let default = state.channel(&caller, None)?;
    let operation = default.library.service().operation(&caller, Method::LangfusePrompts)?;
    let names = names(&state, &caller, &query);
    let first = (page - 1).saturating_mul(limit);
    let data: Vec<Value> = names
        .iter()
        .skip(first)
        .take(limit)
        .filter_map(|name| {
            let channels =
                state.channels(&caller).filter(|channel| is_labelled(&state, channel, query.label.as_deref()));
            let found: Vec<(Vec<&str>, u64, View)> = channels
                .filter_map(|channel| {
                    let view = channel.library.service().view(&caller);
                    let version = version(&view, &*view.find(name).ok()?);
                    Some((labels_of(&state, channel), version, view))
                })
                .collect();
            let prompt = found.first()?.2.find(name).ok()?;
            let mut versions: Vec<u64> = found.iter().map(|(_, version, _)| *version).collect();
            versions.sort_unstable();
            versions.dedup();
            let labels: Vec<&str> = found.iter().flat_map(|(labels, ..)| labels.clone()).collect();
            Some(json!({
                "name": name,
                "type": if is_chat(&prompt) { "chat" } else { "text" },
                "versions": versions,
                "labels": labels,
                "tags": prompt.tags(),
                // The time of each change is in the history of the channel.
                "lastUpdatedAt": format!("{:.3}", state.started()),
                "lastConfig": {},
            }))
        })
        .collect();
    let total = names.len();
    let body = json!({
        "data": data,
        "meta": { "page": page, "limit": limit, "totalItems": total, "totalPages": total.div_ceil(limit) },
    });
    operation.end("ok");
    etag::cached_json(&headers, &body, &cache_control(&default.library.service().view(&caller)))
}

/// Returns the sorted names of all prompts that the caller may see and the query selects.
fn names(state: &ProgramState, caller: &Caller, query: &ListQuery) -> Vec<String> {
    let mut names = Vec::new();
    for channel in state.channels(caller).filter(|channel| is_labelled(state, channel, query.label.as_deref())) {
        let view = channel.library.service().view(caller);
        let prompts = view.catalog().prompts().iter().enumerate();
        let shown = prompts.filter(|(index, prompt)| {
            view.shows(ListKind::Prompts, *index)
                && query.name.as_ref().is_none_or(|name| name == prompt.name().as_str())
                && query.tag.as_ref().is_none_or(|tag| prompt.tags().contains(tag))
        });
        names.extend(shown.map(|(_, prompt)| prompt.name().to_string()));
    }
    names.sort_unstable();
    names.dedup();
    names
}

pub(super) async fn prompt(
    State(state): State<ProgramState>,
    caller: Extension<Caller>,
    ApiPath(name): ApiPath<String>,
    ApiQuery(query): ApiQuery<PromptQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (library, own) = match (query.version, query.label.as_deref()) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("Expected `version` or `label`, got both"));
        }
        (Some(wanted), None) => with_version(&state, &caller, &name, wanted).await?,
        (None, label) => {
            let channel = match label {
                Some(label) => state
                    .channels(&caller)
                    .find(|channel| is_labelled(&state, channel, Some(label)))
                    .ok_or_else(|| {
                        // Operators learn of a hidden channel.
                        let _ = state.channel(&caller, Some(label));
                        Problem::not_found(&format!(
                            "The label `{}` (labels are the channels of this server)",
                            &label[..label.floor_char_boundary(100)]
                        ))
                    })?,
                None => state.channel(&caller, None)?,
            };
            (channel.library.clone(), name.clone())
        }
    };
    let described = library.service().describe(&caller, &own)?;
    let (prompt, view) = (described.value(), described.view());
    let (kind, text) = match convert(prompt) {
        Ok(Converted::Text(text)) => ("text", json!(text)),
        Ok(Converted::Chat(messages)) => {
            let message = |(role, content): &(promptshelf_core::Role, String)| json!({ "type": "chatmessage", "role": role.as_str(), "content": content });
            ("chat", messages.iter().map(message).collect())
        }
        Err(reasons) => {
            return Err(Problem::invalid(format!(
                "The prompt {name} cannot be expressed with Langfuse's variables: {reasons}. \
                 Use POST /api/v1/prompts/NAME/render"
            )));
        }
    };
    let version = version(view, prompt);
    let body = json!({
        "name": name,
        "version": version,
        "type": kind,
        "prompt": text,
        "config": {},
        "labels": labels(&state, &caller, &name, &facts_of(prompt, view)),
        "tags": prompt.tags(),
        "commitMessage": null,
        "resolutionGraph": null,
    });
    etag::cached_json(&headers, &body, &cache_control(view))
}

/// Finds a version in the channels that the caller may use, the default one first: each counts its own versions.
async fn with_version(
    state: &ProgramState,
    caller: &Caller,
    name: &str,
    wanted: u64,
) -> Result<(crate::library::Library, String), Problem> {
    let default = state.channel(caller, None)?;
    let unknown = Problem::not_found(&format!("Version {wanted} of the prompt {name}"));
    if default.name.is_none() {
        let view = default.library.service().view(caller);
        let is_served = view.find(name).is_ok_and(|prompt| version(&view, &prompt) == wanted);
        return if is_served { Ok((default.library.clone(), name.to_owned())) } else { Err(unknown) };
    }
    for channel in state.channels(caller) {
        match state.at_version(channel, caller, name, Some(wanted)).await {
            Ok(found) => return Ok(found),
            Err(problem) if problem.name() == unknown.name() || problem.name() == "unknown-prompt" => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(unknown)
}

/// The version of a prompt in its store, or 1.
fn version(view: &View, prompt: &Prompt) -> u64 {
    facts_of(prompt, view).version.unwrap_or(1)
}

/// The labels of a channel: its name, and `latest` for the default one, which many programs ask for, unless a channel has
/// this name.
fn labels_of<'a>(state: &'a ProgramState, channel: &'a ServedChannel) -> Vec<&'a str> {
    let Some(name) = channel.name.as_deref() else { return LABELS.to_vec() };
    let is_default = state.is_default(channel) && !state.has_channel(LATEST);
    if is_default { vec![name, LATEST] } else { vec![name] }
}

fn is_labelled(state: &ProgramState, channel: &ServedChannel, label: Option<&str>) -> bool {
    label.is_none_or(|label| labels_of(state, channel).contains(&label))
}

/// The labels of a version: the channels that serve its text to the caller.
fn labels<'a>(state: &'a ProgramState, caller: &'a Caller, name: &str, wanted: &PromptFacts) -> Vec<&'a str> {
    let serves = |channel: &&ServedChannel| {
        let view = channel.library.service().view(caller);
        view.find(name).is_ok_and(|prompt| facts_of(&prompt, &view).digest == wanted.digest)
    };
    state.channels(caller).filter(serves).flat_map(|channel| labels_of(state, channel)).collect()
}

//! Prompts: a list, and one with its template or its messages.

use axum::{extract::State, http::HeaderMap, response::Response};
use promptshelf_core::{RawArguments, cursor::ListKind};
use promptshelf_service::{CacheScope, View};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    super::{
        etag,
        operation::ApiCaller,
        problem::Problem,
        request::{ApiPath, ApiQuery},
    },
    model::{PromptFacts, PromptPage, PromptText, template},
    query::PromptQuery,
    state::ProgramState,
};

/// The parameters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// The channel; the server's default one without it.
    channel: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// Lists the prompts that the caller may see
#[utoipa::path(get, path = "/prompts", tag = "programs", security(("token" = [])), params(ListQuery),
    responses((status = 200, body = PromptPage), (status = 304)))]
pub(super) async fn list_prompts(
    State(state): State<ProgramState>,
    caller: ApiCaller,
    ApiQuery(query): ApiQuery<ListQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let channel = state.channel(&caller, query.channel.as_deref())?;
    let page = channel.library.service().list(&caller, ListKind::Prompts, query.cursor.as_deref())?;
    let catalog = page.view().catalog();
    let prompts = page.shown().filter_map(|index| catalog.prompts().get(index));
    let body = PromptPage {
        channel: channel.name.clone(),
        prompts: prompts.map(|prompt| PromptFacts::of(prompt, page.view())).collect(),
        next: page.value().page.next_cursor.as_deref().map(str::to_owned),
    };
    etag::cached_json(&headers, &body, &cache_control(page.view()))
}

/// Returns a prompt: its template, or with `rendered=true` its messages
#[utoipa::path(get, path = "/prompts/{name}", tag = "programs", security(("token" = [])),
    params(("name" = String, Path),
        ("channel" = Option<String>, Query, description = "The channel; the server's default one without it"),
        ("version" = Option<u64>, Query, description = "The number of a version; the present one without it"),
        ("rendered" = Option<bool>, Query, description = "Whether the answer has messages instead of the template"),
        ("arguments.NAME" = Option<String>, Query, description = "The value of the argument NAME")),
    responses((status = 200, body = PromptText), (status = 304),
        (status = 404, body = Problem, content_type = "application/problem+json", description = "No such prompt, channel or version"),
        (status = 422, body = Problem, content_type = "application/problem+json", description = "The arguments are invalid")))]
pub(super) async fn get_prompt(
    State(state): State<ProgramState>,
    caller: ApiCaller,
    ApiPath(name): ApiPath<String>,
    ApiQuery(pairs): ApiQuery<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = PromptQuery::read(pairs)?;
    let channel = state.channel(&caller, query.channel.as_deref())?;
    let library = state.at_version(channel, &caller, &name, query.version).await?;
    let service = library.service();
    if !query.is_rendered {
        let described = service.describe(&caller, &name)?;
        let prompt = described.value();
        let facts = PromptFacts::of(prompt, described.view());
        let body = PromptText { facts, template: template(prompt), messages: None };
        return etag::cached_json(&headers, &body, &cache_control(described.view()));
    }
    // Hidden prompts are refused below.
    if let Ok(prompt) = service.view(&caller).find(&name)
        && let Some(sensitive) = prompt
            .arguments()
            .iter()
            .find(|argument| argument.is_sensitive() && query.arguments.contains_key(argument.name()))
    {
        return Err(Problem::invalid(format!(
            "The argument `{}` is sensitive, and URLs are written to logs: use `prompts/get` of MCP",
            sensitive.name()
        )));
    }
    let rendered = service.get(&caller, &name, &RawArguments::from(&query.arguments)).await?;
    let prompt = rendered.value();
    let facts = PromptFacts::of(&prompt.prompt, rendered.view());
    let messages = Some(promptshelf_mcp::messages_json(&prompt.messages));
    let body = PromptText { facts, template: None, messages };
    etag::cached_json(&headers, &body, &cache_control(rendered.view()))
}

/// A cache asks for each answer again, and may use the known one while it waits, for as long as the library permits
/// clients to reuse lists.
pub(super) fn cache_control(view: &View) -> String {
    let scope = match view.cache_scope() {
        CacheScope::Public => "public",
        CacheScope::Private => "private",
    };
    format!("{scope}, max-age=0, stale-while-revalidate={}", view.ttl().as_secs())
}

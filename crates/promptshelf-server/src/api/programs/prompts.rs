//! Prompts: a list, and one with its template or its messages.

use promptshelf_core::{RawArguments, cursor::ListKind};
use promptshelf_service::{CacheScope, View};
use promptshelf_wire::{PromptPage, PromptText, op};

use super::{
    super::{
        call::{Answer, Call},
        etag,
        problem::Problem,
    },
    model::{facts_of, template},
    query::PromptQuery,
    state::ProgramState,
};

pub(super) async fn list_prompts(call: Call<op::ListPrompts, ProgramState>) -> Answer {
    let (state, caller) = (&call.state, call.caller());
    let channel = state.channel(caller, call.query.channel.as_deref())?;
    let page = channel.library.service().list(caller, ListKind::Prompts, call.query.cursor.as_deref())?;
    let catalog = page.view().catalog();
    let prompts = page.shown().filter_map(|index| catalog.prompts().get(index));
    let body = PromptPage {
        channel: channel.name.clone(),
        prompts: prompts.map(|prompt| facts_of(prompt, page.view())).collect(),
        next: page.value().page.next_cursor.as_deref().map(str::to_owned),
    };
    etag::cached_json(&call.headers, &body, &cache_control(page.view()))
}

pub(super) async fn get_prompt(call: Call<op::GetPrompt, ProgramState>) -> Answer {
    let name = &call.path.name;
    let query = PromptQuery::read(call.query.0.clone())?;
    let (state, caller) = (&call.state, call.caller());
    let channel = state.channel(caller, query.channel.as_deref())?;
    let library = state.at_version(channel, caller, name, query.version).await?;
    let service = library.service();
    if !query.is_rendered {
        let described = service.describe(caller, name)?;
        let prompt = described.value();
        let facts = facts_of(prompt, described.view());
        let body = PromptText { facts, template: template(prompt), messages: None };
        return etag::cached_json(&call.headers, &body, &cache_control(described.view()));
    }
    // Hidden prompts are refused below.
    if let Ok(prompt) = service.view(caller).find(name)
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
    let rendered = service.get(caller, name, &RawArguments::from(&query.arguments)).await?;
    let prompt = rendered.value();
    let facts = facts_of(&prompt.prompt, rendered.view());
    let messages = Some(promptshelf_mcp::messages_json(&prompt.messages));
    let body = PromptText { facts, template: None, messages };
    etag::cached_json(&call.headers, &body, &cache_control(rendered.view()))
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

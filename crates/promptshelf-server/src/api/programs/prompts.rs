//! Prompts: a list, and one with its template or its messages.

use promptshelf_core::{
    Prompt, RawArguments,
    cursor::{self, ListKind},
};
use promptshelf_service::{CacheScope, Caller, View};
use promptshelf_wire::{DeprecationFacts, PREFIX, PromptFacts, PromptPage, PromptText, op};

use super::{
    super::{
        call::{Answer, Call},
        etag,
        problem::Problem,
        request::MAX_ALL,
    },
    model::{facts_of, template},
    query::PromptQuery,
    state::ProgramState,
};
use crate::library::Library;

pub(super) async fn list_prompts(call: Call<op::ListPrompts, ProgramState>) -> Answer {
    let (state, caller) = (&call.state, call.caller());
    let channel = state.channel(caller, call.query.channel.as_deref())?;
    let (limit, after) = (call.paging.up_to(MAX_ALL), call.paging.after::<String>()?);
    let cursor = after.map(|after| cursor::encode(ListKind::Prompts, &after));
    // A page of the library may have fewer prompts.
    let page = channel.library.service().list(caller, ListKind::Prompts, cursor.as_deref())?;
    let catalog = page.view().catalog();
    let mut prompts = page.shown().filter_map(|index| catalog.prompts().get(index));
    let items: Vec<_> = prompts.by_ref().take(limit).map(|prompt| facts_of(prompt, page.view())).collect();
    let has_more = prompts.next().is_some() || page.value().page.next_cursor.is_some();
    let next = items.last().filter(|_| has_more).map(|last| call.paging.next(&last.name));
    let body = PromptPage { channel: channel.name.clone(), items, next };
    etag::cached_json(&call.headers, &body, &cache_control(page.view()))
}

pub(super) async fn get_prompt(call: Call<op::GetPrompt, ProgramState>) -> Answer {
    let name = &call.path.name;
    let query = PromptQuery::read(call.query.0.clone())?;
    let (state, caller) = (&call.state, call.caller());
    let channel = state.channel(caller, query.channel.as_deref())?;
    let (library, own) = state.at_version(channel, caller, name, query.version).await?;
    let service = library.service();
    if !query.is_rendered {
        let described = service.describe(caller, &own)?;
        let prompt = described.value();
        let facts = asked_as(&own, prompt, facts_of(prompt, described.view()));
        let facts = PromptFacts { name: served(name, &own, prompt), ..facts };
        let body = PromptText { facts, template: template(prompt), messages: None };
        return etag::cached_json(&call.headers, &body, &cache_control(described.view()));
    }
    // Hidden prompts are refused below.
    if let Ok(prompt) = service.view(caller).find(&own)
        && let Some(sensitive) = prompt
            .arguments()
            .iter()
            .find(|argument| argument.is_sensitive() && query.arguments.contains_key(argument.name()))
    {
        return Err(Problem::invalid(format!(
            "The argument `{}` is sensitive, and URLs are written to logs: send it in the body of `POST {PREFIX}/prompts/{name}/render`",
            sensitive.name()
        )));
    }
    let (body, view) = rendered(&library, caller, (name, &own), &RawArguments::from(&query.arguments)).await?;
    etag::cached_json(&call.headers, &body, &cache_control(&view))
}

pub(super) async fn render_prompt(call: Call<op::RenderPrompt, ProgramState>) -> Answer {
    let body = call.body().await?;
    let (state, caller, name) = (&call.state, call.caller(), &call.path.name);
    let channel = state.channel(caller, body.channel.as_deref())?;
    let (library, own) = state.at_version(channel, caller, name, body.version).await?;
    let (answer, _) = rendered(&library, caller, (name, &own), &body.arguments.into_iter().collect()).await?;
    call.answer(&answer)
}

async fn rendered(
    library: &Library,
    caller: &Caller,
    (name, own): (&str, &str),
    arguments: &RawArguments<'_>,
) -> Result<(PromptText, View), Problem> {
    let service = library.service();
    let open = service.open(caller, own)?.refuse_unknown(arguments)?;
    let rendered = service.render(open, arguments).await?;
    let prompt = rendered.value();
    let facts = asked_as(own, &prompt.prompt, facts_of(&prompt.prompt, rendered.view()));
    let facts = PromptFacts { name: served(name, own, &prompt.prompt), ..facts };
    let messages = Some(promptshelf_mcp::messages_json(&prompt.messages));
    Ok((PromptText { facts, template: None, messages }, rendered.view().clone()))
}

/// Marks a former name as deprecated, in favour of the present one.
fn asked_as(asked: &str, prompt: &Prompt, facts: PromptFacts) -> PromptFacts {
    let name = prompt.name().as_str();
    if asked == name {
        return facts;
    }
    let message = Some("This name is a former one.".to_owned());
    PromptFacts { deprecated: Some(DeprecationFacts { message, replacement: Some(name.to_owned()) }), ..facts }
}

/// Returns the name of a prompt in an answer. An earlier version has its name in the channel, where it was asked for by the
/// name under which the server has the prompt.
fn served(asked: &str, own: &str, prompt: &Prompt) -> String {
    if asked == own { prompt.name().to_string() } else { asked.to_owned() }
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

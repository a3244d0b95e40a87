//! Encoding of results for each revision.
//!
//! Members that a revision does not have are left out. Content blocks that it does not have are replaced by blocks
//! that it has (down-conversion rules DC1 to DC4 in `docs/design`).

use std::borrow::Cow;

use promptshelf_core::{
    About, Argument, Catalog, Meta, MimeType, Prompt, Resource, ResourceContents, ResourceLink,
    completion::Completions, cursor::ListKind,
};
use promptshelf_service::{Answer, CacheScope, ListPage, RenderedPrompt, View};
use serde::Serialize;
use serde_json::json;

use crate::{json::write, profile::Profile, revision::Revision, tool_mode::ToolMode};

mod block;
mod card;
mod deprecation;
mod icon;
mod provenance;
pub(crate) mod skills;
mod text;
pub(crate) mod tools;

pub(crate) use block::MAX_EMBEDDED_BYTES;
pub use block::messages_json;
use block::{WireAnnotations, WireContents};
pub use card::DiscoveryDocument;
use deprecation::WireDeprecation;
use icon::{WireIcon, icons};
use provenance::WireProvenance;

/// The server's name, unless the library declares one.
const DEFAULT_NAME: &str = "promptshelf";

/// The members of every modern result. Legacy results have none of them.
#[derive(Serialize, Default)]
struct Modern<'a> {
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "ttlMs", skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u128>,
    #[serde(rename = "cacheScope", skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta<'a>>,
}

/// `_meta` of every modern result: the server information.
#[derive(Serialize)]
pub(crate) struct ResultMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server: Implementation<'a>,
}

impl<'a> ResultMeta<'a> {
    pub(crate) fn of(view: &'a View) -> ResultMeta<'a> {
        ResultMeta { server: Implementation::brief(view.about()) }
    }
}

impl<'a> Modern<'a> {
    /// Returns the members of a result that must not be cached.
    fn complete(view: &'a View, revision: Revision) -> Modern<'a> {
        if !revision.is_modern() {
            return Modern::default();
        }
        Modern { result_type: Some("complete"), meta: Some(ResultMeta::of(view)), ..Modern::default() }
    }

    /// Returns the members of a result that may be cached, with its time to live and cache scope.
    fn cacheable(view: &'a View, revision: Revision) -> Modern<'a> {
        if !revision.is_modern() {
            return Modern::default();
        }
        let scope = match view.cache_scope() {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        };
        Modern { ttl_ms: Some(view.ttl().as_millis()), cache_scope: Some(scope), ..Modern::complete(view, revision) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Implementation<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<Vec<WireIcon<'a>>>,
}

impl<'a> Implementation<'a> {
    fn brief(about: &'a About) -> Implementation<'a> {
        Implementation {
            name: about.name.as_deref().unwrap_or(DEFAULT_NAME),
            title: None,
            version: about.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION")),
            description: None,
            website_url: None,
            icons: None,
        }
    }

    fn full(about: &'a About, revision: Revision) -> Implementation<'a> {
        let since_icons = |text: &'a Option<String>| text.as_deref().filter(|_| revision.has_icons());
        Implementation {
            title: about.title.as_deref().filter(|_| revision.has_titles()),
            description: since_icons(&about.description),
            website_url: since_icons(&about.website_url),
            icons: icons(about.icons.iter(), revision),
            ..Implementation::brief(about)
        }
    }
}

#[derive(Serialize)]
struct WirePrompt<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<Vec<WireIcon<'a>>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    arguments: Vec<WireArgument<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<WireMeta<'a>>,
}

/// `_meta` of a prompt: the author's members, the names of its sensitive arguments, so that clients neither store nor
/// show their values, and its provenance.
#[derive(Serialize)]
struct WireMeta<'a> {
    #[serde(flatten)]
    authored: &'a Meta,
    #[serde(rename = "promptshelf/sensitive", skip_serializing_if = "Vec::is_empty")]
    sensitive: Vec<&'a str>,
    #[serde(rename = "dev.promptshelf/deprecated", skip_serializing_if = "Option::is_none")]
    deprecated: Option<WireDeprecation<'a>>,
    #[serde(flatten)]
    provenance: Option<WireProvenance<'a>>,
}

impl<'a> WireMeta<'a> {
    /// Returns `None` if it would be empty.
    fn new(prompt: &'a Prompt, view: &'a View) -> Option<WireMeta<'a>> {
        let sensitive = prompt.arguments().iter().filter(|argument| argument.is_sensitive());
        let meta = WireMeta {
            authored: prompt.meta(),
            sensitive: sensitive.map(Argument::name).collect(),
            deprecated: WireDeprecation::of(prompt, view),
            provenance: WireProvenance::of(prompt, view.catalog()),
        };
        let is_empty = meta.authored.is_empty()
            && meta.sensitive.is_empty()
            && meta.deprecated.is_none()
            && meta.provenance.is_none();
        (!is_empty).then_some(meta)
    }
}

impl<'a> WirePrompt<'a> {
    fn new(prompt: &'a Prompt, view: &'a View, revision: Revision) -> WirePrompt<'a> {
        let titled = revision.has_titles();
        WirePrompt {
            name: prompt.name().as_str(),
            title: prompt.title().filter(|_| titled),
            // Before titles existed, a title is better than no description.
            description: deprecation::description(
                prompt,
                view,
                prompt.description().or(prompt.title().filter(|_| !titled)),
            ),
            icons: icons(view.catalog().prompt_icons(prompt), revision),
            arguments: prompt.arguments().iter().map(|argument| WireArgument::new(argument, titled)).collect(),
            meta: if titled { WireMeta::new(prompt, view) } else { None },
        }
    }
}

#[derive(Serialize)]
struct WireArgument<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    /// Always present: some clients take a missing `required` for true.
    required: bool,
}

impl<'a> WireArgument<'a> {
    fn new(argument: &'a Argument, titled: bool) -> WireArgument<'a> {
        WireArgument {
            name: argument.name(),
            title: argument.title().filter(|_| titled),
            description: argument.description().or(argument.title().filter(|_| !titled)),
            required: argument.required(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResource<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_template: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<Vec<WireIcon<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<WireAnnotations>,
}

impl<'a> WireResource<'a> {
    fn new(resource: &'a Resource, catalog: &'a Catalog, revision: Revision) -> WireResource<'a> {
        let (uri, uri_template) = match resource.is_template() {
            true => (None, Some(resource.uri())),
            false => (Some(resource.uri()), None),
        };
        let titled = revision.has_titles();
        WireResource {
            uri,
            uri_template,
            name: resource.name(),
            title: resource.title().filter(|_| titled),
            description: resource.description().or(resource.title().filter(|_| !titled)),
            // A template's resources may be of any type, unless it is declared.
            mime_type: resource.mime_type().map(MimeType::as_str),
            size: resource.size(),
            icons: icons(catalog.resource_icons(resource), revision),
            annotations: WireAnnotations::new(resource.annotations(), revision),
        }
    }

    fn linked(link: &'a ResourceLink, revision: Revision) -> WireResource<'a> {
        WireResource {
            uri: Some(&link.uri),
            uri_template: None,
            name: &link.name,
            title: link.title.as_deref(),
            description: link.description.as_deref(),
            mime_type: link.mime_type.as_ref().map(MimeType::as_str),
            size: link.size,
            icons: icons(link.icons.iter(), revision),
            annotations: WireAnnotations::new(&link.annotations, revision),
        }
    }
}

/// Writes the result of `prompts/list`, `resources/list` or `resources/templates/list`.
pub(crate) fn list(page: &Answer<ListPage>, revision: Revision, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Items<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        prompts: Option<Vec<WirePrompt<'a>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        resources: Option<Vec<WireResource<'a>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        resource_templates: Option<Vec<WireResource<'a>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<&'a str>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let ListPage { list, page: page_range } = page.value();
    let catalog = page.view().catalog();
    let mut items = Items {
        prompts: None,
        resources: None,
        resource_templates: None,
        next_cursor: page_range.next_cursor.as_deref(),
        modern: Modern::cacheable(page.view(), revision),
    };
    match list {
        ListKind::Prompts => {
            let prompts = page.shown().map(|index| WirePrompt::new(&catalog.prompts()[index], page.view(), revision));
            items.prompts = Some(prompts.collect());
        }
        ListKind::Resources => {
            let resources = page.shown().map(|index| WireResource::new(&catalog.resources()[index], catalog, revision));
            items.resources = Some(resources.collect());
        }
        ListKind::ResourceTemplates => {
            let templates = page.shown().map(|index| WireResource::new(&catalog.templates()[index], catalog, revision));
            items.resource_templates = Some(templates.collect());
        }
    }
    write(out, &items);
}

/// Returns the entry of a prompt in `prompts/list` of the newest revision, as a profile changes it.
#[must_use]
pub fn listed_prompt(profile: &Profile, prompt: &Prompt, view: &View) -> serde_json::Value {
    let mut entry = serde_json::to_value(WirePrompt::new(prompt, view, Revision::V2026_07_28)).unwrap_or_default();
    if let Some(entry) = entry.as_object_mut() {
        profile.entry(entry, prompt);
    }
    entry
}

/// Applies a profile to the list that begins at an index of `out`.
pub(crate) fn apply(profile: &Profile, page: &Answer<ListPage>, out: &mut Vec<u8>, begin: usize) {
    if page.value().list != ListKind::Prompts {
        return;
    }
    // A list that this module has written.
    let Ok(mut list) = serde_json::from_slice::<serde_json::Value>(&out[begin..]) else { return };
    let catalog = page.view().catalog();
    let entries = list.get_mut("prompts").and_then(serde_json::Value::as_array_mut).into_iter().flatten();
    for (entry, index) in entries.filter_map(serde_json::Value::as_object_mut).zip(page.shown()) {
        profile.entry(entry, &catalog.prompts()[index]);
    }
    out.truncate(begin);
    write(out, &list);
}

/// `_meta` of the result of `prompts/get`. Every revision has this member.
#[derive(Serialize)]
struct PromptMeta<'a> {
    #[serde(flatten)]
    server: Option<ResultMeta<'a>>,
    #[serde(rename = "dev.promptshelf/deprecated", skip_serializing_if = "Option::is_none")]
    deprecated: Option<WireDeprecation<'a>>,
    #[serde(flatten)]
    provenance: Option<WireProvenance<'a>>,
}

/// Writes the result of `prompts/get`, the members one by one so that long texts are written in blocks.
pub(crate) fn prompt(answer: &Answer<RenderedPrompt>, revision: Revision, out: &mut Vec<u8>) {
    let RenderedPrompt { prompt, alias, messages } = answer.value();
    // Space for escapes included: growing would copy the text.
    let size: usize = messages.iter().map(|message| message.content.size()).sum();
    out.reserve(size + size / 3 + 1_024);
    out.push(b'{');
    if let Some(description) = prompt.description() {
        out.extend_from_slice(br#""description":"#);
        text::write(out, description);
        out.push(b',');
    }
    out.extend_from_slice(br#""messages":["#);
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        block::write_message(message, revision, out);
    }
    out.push(b']');
    let server = revision.is_modern().then(|| ResultMeta::of(answer.view()));
    if server.is_some() {
        out.extend_from_slice(br#","resultType":"complete""#);
    }
    let deprecated = match alias {
        Some(_) => Some(WireDeprecation::renamed(prompt)),
        None => WireDeprecation::of(prompt, answer.view()),
    };
    match (server, WireProvenance::of(prompt, answer.view().catalog())) {
        (None, None) if deprecated.is_none() => {}
        (Some(server), None) if deprecated.is_none() => {
            out.extend_from_slice(br#","_meta":"#);
            write(out, &server);
        }
        (server, provenance) => {
            out.extend_from_slice(br#","_meta":"#);
            write(out, &PromptMeta { server, deprecated, provenance });
        }
    }
    out.push(b'}');
}

/// Writes the result of `completion/complete`.
pub(crate) fn completions(answer: &Answer<Completions>, revision: Revision, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Completion<'a> {
        values: &'a [String],
        total: usize,
        has_more: bool,
    }
    #[derive(Serialize)]
    struct Result<'a> {
        completion: Completion<'a>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let completions = answer.value();
    let size: usize = completions.values.iter().map(|value| value.len() + 3).sum();
    out.reserve(size + 256);
    let completion =
        Completion { values: &completions.values, total: completions.total, has_more: completions.has_more() };
    write(out, &Result { completion, modern: Modern::complete(answer.view(), revision) });
}

/// Writes the result of `resources/read`.
pub(crate) fn resource_contents(answer: &Answer<ResourceContents>, revision: Revision, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Result<'a> {
        contents: [WireContents<'a>; 1],
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let modern = Modern::cacheable(answer.view(), revision);
    let contents = WireContents::new(answer.value()).of_source(answer.foreign_source());
    write(out, &Result { contents: [contents], modern });
}

/// Adds the tools, which depend on the server, and skills: also to a library without any, because a client reads the
/// capabilities once and would never ask for the first one.
fn add_capabilities(tools: ToolMode, capabilities: &mut serde_json::Value) {
    match tools {
        ToolMode::Disabled => {}
        ToolMode::Off => capabilities["tools"] = json!({}),
        ToolMode::Search | ToolMode::Each => capabilities["tools"] = json!({ "listChanged": true }),
    }
    capabilities["extensions"] = json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } });
}

/// Writes the result of `initialize`.
pub(crate) fn initialization(view: &View, revision: Revision, tools: ToolMode, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        protocol_version: &'static str,
        capabilities: serde_json::Value,
        server_info: Implementation<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
    }
    let mut capabilities = json!({
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "logging": {},
    });
    if revision.has_audio() {
        // 2025-03-26 introduced audio and the completion capability together.
        capabilities["completions"] = json!({});
    }
    add_capabilities(tools, &mut capabilities);
    let about = view.about();
    let result = Result {
        protocol_version: revision.as_str(),
        capabilities,
        server_info: Implementation::full(about, revision),
        instructions: about.instructions.as_deref(),
    };
    write(out, &result);
}

/// Writes the result of `server/discover`.
pub(crate) fn discovery(view: &View, tools: ToolMode, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        supported_versions: Vec<&'static str>,
        capabilities: serde_json::Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
        #[serde(flatten)]
        modern: Modern<'a>,
    }
    let about = view.about();
    let revision = Revision::V2026_07_28;
    let mut modern = Modern::cacheable(view, revision);
    modern.meta = Some(ResultMeta { server: Implementation::full(about, revision) });
    let mut capabilities = json!({
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "completions": {},
    });
    add_capabilities(tools, &mut capabilities);
    let result = Result {
        supported_versions: Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect(),
        capabilities,
        instructions: about.instructions.as_deref(),
        modern,
    };
    write(out, &result);
}

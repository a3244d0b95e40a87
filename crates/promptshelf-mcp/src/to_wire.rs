//! Encoding of results for each revision.
//!
//! Members that a revision does not have are left out. Content blocks that it does not have are replaced by blocks
//! that it has (down-conversion rules DC1 to DC4 in `docs/design`).

mod block;
pub(crate) mod skills;
mod text;
pub(crate) mod tools;

use std::{borrow::Cow, collections::BTreeMap};

use block::{WireAnnotations, WireContents};
use promptshelf_core::{
    About, Argument, Catalog, CatalogProvenance, CommitProvenance, Icon, Label, Meta, MimeType, Prompt,
    PromptProvenance, Resource, ResourceContents, ResourceLink, Theme, completion::Completions, cursor::ListKind,
};
use promptshelf_service::{Answer, CacheScope, DeprecationNotice, ListPage, RenderedPrompt, View};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Server, json::write, profile::Profile, request_options::ToolMode, revision::Revision};

pub use block::messages_json;

pub(crate) use block::MAX_EMBEDDED_BYTES;

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
/// show their values, the labels that are listed, and its provenance.
#[derive(Serialize)]
struct WireMeta<'a> {
    #[serde(flatten)]
    authored: &'a Meta,
    #[serde(rename = "promptshelf/sensitive", skip_serializing_if = "Vec::is_empty")]
    sensitive: Vec<&'a str>,
    #[serde(rename = "dev.promptshelf/deprecated", skip_serializing_if = "Option::is_none")]
    deprecated: Option<WireDeprecation<'a>>,
    #[serde(flatten)]
    labels: BTreeMap<String, Value>,
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
            labels: prompt.labels().listed().map(label).collect(),
            provenance: WireProvenance::of(prompt, view.catalog()),
        };
        let is_empty = meta.authored.is_empty()
            && meta.sensitive.is_empty()
            && meta.deprecated.is_none()
            && meta.labels.is_empty()
            && meta.provenance.is_none();
        (!is_empty).then_some(meta)
    }
}

fn label((label, values): (&Label, &[String])) -> (String, Value) {
    let value = if label.is_list { json!(values) } else { json!(values.first()) };
    (format!("dev.promptshelf/{}", label.key), value)
}

impl<'a> WirePrompt<'a> {
    fn new(prompt: &'a Prompt, view: &'a View, revision: Revision) -> WirePrompt<'a> {
        let titled = revision.has_titles();
        WirePrompt {
            name: prompt.name().as_str(),
            title: prompt.title().filter(|_| titled),
            // Before titles existed, a title is better than no description.
            description: description_deprecation(
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
        let (uri, uri_template) =
            if resource.is_template() { (None, Some(resource.uri())) } else { (Some(resource.uri()), None) };
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireIcon<'a> {
    src: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    sizes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    theme: Option<&'static str>,
}

/// Returns the icons for a revision that has them; `None` without any.
fn icons<'a>(icons: impl Iterator<Item = &'a Icon>, revision: Revision) -> Option<Vec<WireIcon<'a>>> {
    let icons: Vec<_> = icons.filter(|_| revision.has_icons()).map(WireIcon::new).collect();
    (!icons.is_empty()).then_some(icons)
}

impl<'a> WireIcon<'a> {
    fn new(icon: &'a Icon) -> WireIcon<'a> {
        WireIcon {
            src: &icon.src,
            mime_type: icon.mime_type.as_ref().map(MimeType::as_str),
            sizes: &icon.sizes,
            theme: icon.theme.map(Theme::as_str),
        }
    }
}

// Deprecations of prompts: a member of `_meta`, and a sentence before the description, which is all that most clients
// show.

/// The member `dev.promptshelf/deprecated` of `_meta`.
#[derive(Serialize)]
struct WireDeprecation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
}

impl<'a> WireDeprecation<'a> {
    fn of(prompt: &'a Prompt, view: &View) -> Option<WireDeprecation<'a>> {
        let DeprecationNotice { message, replacement, .. } = view.deprecation(prompt)?;
        Some(WireDeprecation { message, replacement })
    }

    /// The mark of an answer under a former name of the prompt.
    fn renamed(prompt: &Prompt) -> WireDeprecation<'_> {
        WireDeprecation { message: Some("This name is a former one."), replacement: Some(prompt.name().to_string()) }
    }
}

fn description_deprecation<'a>(prompt: &Prompt, view: &View, text: Option<&'a str>) -> Option<Cow<'a, str>> {
    match view.deprecation(prompt) {
        None => text.map(Cow::Borrowed),
        Some(notice) => Some(match text {
            Some(text) => format!("{notice} {text}").into(),
            None => notice.to_string().into(),
        }),
    }
}

/// The members of `_meta` that say where a prompt comes from. Authors cannot write keys with this prefix.
#[derive(Default, Serialize)]
struct WireProvenance<'a> {
    #[serde(rename = "dev.promptshelf/foreign", skip_serializing_if = "std::ops::Not::not")]
    is_foreign: bool,
    /// The servers that have passed on the prompt, this one last, so that none of them mirrors its own prompts.
    #[serde(rename = "dev.promptshelf/via", skip_serializing_if = "Vec::is_empty")]
    via: Vec<String>,
    #[serde(rename = "dev.promptshelf/version", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(rename = "dev.promptshelf/digest", skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(rename = "dev.promptshelf/source", skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/channel", skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/revision", skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    /// The first 12 digits.
    #[serde(rename = "dev.promptshelf/revisionDigest", skip_serializing_if = "Option::is_none")]
    revision_digest: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/commit", skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/signer", skip_serializing_if = "Option::is_none")]
    signer: Option<&'a str>,
    #[serde(rename = "dev.promptshelf/approvedBy", skip_serializing_if = "Option::is_none")]
    approved_by: Option<&'a [String]>,
}

impl<'a> WireProvenance<'a> {
    /// Returns `None` for a prompt without provenance, and if clients do not see the provenance.
    fn of(prompt: &Prompt, catalog: &'a Catalog) -> Option<WireProvenance<'a>> {
        if let Some((part, own)) = catalog.part_of(prompt) {
            let source = Some(&*part.source).filter(|source| !source.is_empty());
            let known = WireProvenance::of(&own, &part.catalog).unwrap_or_default();
            let via = part.server_id.iter().flat_map(|id| own.definition().via.iter().chain([id]));
            let via = via.map(std::string::ToString::to_string).collect();
            return Some(WireProvenance { source, is_foreign: part.is_foreign, via, ..known });
        }
        let shown = catalog.provenance().filter(|found| found.is_shown && found.covers(prompt))?;
        let CatalogProvenance { provenance, .. } = shown;
        let version = shown.prompt(prompt);
        Some(WireProvenance {
            version: version.map(PromptProvenance::version),
            digest: version.map(PromptProvenance::digest),
            source: provenance.source(),
            channel: provenance.channel(),
            revision: provenance.revision(),
            revision_digest: provenance.revision_digest().and_then(|digest| digest.get(..12)),
            commit: provenance.commit().map(CommitProvenance::id),
            signer: provenance.commit().and_then(CommitProvenance::signer),
            approved_by: version.map(PromptProvenance::approved_by),
            ..WireProvenance::default()
        })
    }
}

// Documents for discovery before a connection: the server card (SEP-2127, a draft) and a catalog that names it.
// Both are public: they hold the names and the description of the library, and nothing that depends on a caller.

/// The schema of the draft of August 2026.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

const CARD: &str = "application/mcp-server-card+json";

const MAX_TEXT: usize = 100;

/// A document for discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryDocument {
    /// JSON.
    pub body: String,
    /// The media type.
    pub media_type: &'static str,
    /// A strong entity tag with its quotation marks (RFC 9110).
    pub etag: String,
}

impl DiscoveryDocument {
    fn new(document: &Value, media_type: &'static str) -> DiscoveryDocument {
        let body = document.to_string();
        let digest: String = Sha256::digest(&body).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        DiscoveryDocument { body, media_type, etag: format!("\"{digest}\"") }
    }
}

impl Server {
    /// Returns the server card of the endpoint at `url`.
    ///
    /// ```
    /// # use promptshelf_core::{CatalogHandle, Definitions, check};
    /// # let handle = CatalogHandle::new(check(Definitions::default(), None).catalog);
    /// # let server = promptshelf_mcp::Server::new(promptshelf_service::Service::new(handle));
    /// let card = server.server_card("https://prompts.example.com/mcp");
    /// assert!(card.body.contains(r#""name":"com.example.prompts/promptshelf""#));
    /// ```
    #[must_use]
    pub fn server_card(&self, url: &str) -> DiscoveryDocument {
        let catalog = self.service().catalog();
        let about = catalog.about();
        let brief = Implementation::brief(about);
        let description = about.description.as_deref().filter(|text| !text.trim().is_empty());
        let versions: Vec<&str> = Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
        let mut card = json!({
            "$schema": SCHEMA,
            "name": name(about, url),
            "version": brief.version,
            "description": shortened(description.unwrap_or("Prompts for people and their models")),
            "remotes": [{ "type": "streamable-http", "url": url, "supportedProtocolVersions": versions }],
        });
        if let Some(title) = about.title.as_deref().filter(|title| !title.is_empty()) {
            card["title"] = json!(shortened(title));
        }
        if let Some(website) = &about.website_url {
            card["websiteUrl"] = json!(website);
        }
        if let Some(icons) = icons(about.icons.iter(), Revision::V2026_07_28) {
            card["icons"] = json!(icons);
        }
        DiscoveryDocument::new(&card, CARD)
    }

    /// Returns a catalog with the server card of the endpoint at `url`, for `/.well-known/ai-catalog.json`.
    #[must_use]
    pub fn ai_catalog(&self, url: &str) -> DiscoveryDocument {
        let catalog = self.service().catalog();
        let about = catalog.about();
        let name = name(about, url);
        let suffix = name.rsplit('/').next().unwrap_or(DEFAULT_NAME);
        let document = json!({
            "specVersion": "1.0",
            "entries": [{
                "identifier": format!("urn:air:{}:{suffix}", host(url)),
                "displayName": about.title.as_deref().unwrap_or(suffix),
                "type": CARD,
                "url": format!("{}/server-card", url.trim_end_matches('/')),
            }],
        });
        DiscoveryDocument::new(&document, "application/ai-catalog+json")
    }
}

/// Returns the library's name with a namespace: its own if it has one, otherwise the host with its parts reversed.
fn name(about: &About, url: &str) -> String {
    let own = about.name.as_deref().unwrap_or(DEFAULT_NAME);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if let Some((namespace, rest)) = own.split_once('/')
        && !namespace.is_empty()
        && namespace.chars().all(is_plain)
        && !rest.is_empty()
        && rest.chars().all(|c| is_plain(c) || c == '_')
    {
        return own.to_owned();
    }
    let host = host(url);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let namespace: Vec<&str> = if is_address { vec![host] } else { host.rsplit('.').collect() };
    let plain = |text: &str, more: char| -> String {
        text.chars().map(|c| if is_plain(c) || c == more { c } else { '-' }).collect()
    };
    format!("{}/{}", plain(&namespace.join("."), '.'), plain(own, '_'))
}

/// Returns the host of a URL, without port and brackets.
fn host(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_TEXT - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

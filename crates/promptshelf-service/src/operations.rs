//! Operations after the caller has been admitted: rendering, completion, reading.
//!
//! Elsewhere: limits and records (`service`), and access rules (`access`).

use std::sync::Arc;

use promptshelf_core::{
    Argument, Content, ContentBlock, EmbeddedResource, Message, Part, Prompt, PromptName, PromptProvenance,
    RawArguments, ReadError, RemoteInput, RemoteQuestion, RenderError, ResourceContents, Variables,
    completion::{self, Completions},
    cursor::ListKind,
};

use crate::{
    access,
    answer::{Answer, Reference, RenderedPrompt},
    audit::Secrets,
    functions::Lost,
    permission::CallerPermission,
    rejection::{Rejection, echo},
    renderers,
    view::View,
};

pub(crate) async fn render(
    view: &View,
    prompt: &Arc<Prompt>,
    name: &PromptName,
    arguments: &RawArguments<'_>,
    secrets: &Secrets,
) -> Result<Vec<Message>, Rejection> {
    let catalog = view.catalog();
    let bindings = renderers::bind(view.caller(), prompt, arguments, catalog.policy().value_bytes)
        .await
        .map_err(|problems| Rejection::InvalidArguments { prompt: name.to_string(), problems })?;
    let permission = CallerPermission::new(view);
    let parts = renderers::render(&permission, prompt, bindings).await.map_err(|error| {
        permission.lacking().unwrap_or_else(|| render_failed(view, name, arguments, error, secrets))
    })?;
    embed(view, name, parts).await
}

/// Renders the messages of a prompt of another server like [`render`], or returns its question.
pub(crate) async fn render_remote(
    view: &View,
    prompt: &Arc<Prompt>,
    name: &PromptName,
    arguments: &RawArguments<'_>,
    input: RemoteInput,
    secrets: &Secrets,
) -> Result<Result<Vec<Message>, RemoteQuestion>, Rejection> {
    let bindings = renderers::bind(view.caller(), prompt, arguments, view.catalog().policy().value_bytes)
        .await
        .map_err(|problems| Rejection::InvalidArguments { prompt: name.to_string(), problems })?;
    let permission = CallerPermission::new(view);
    let rendered = renderers::render_remote(&permission, prompt, bindings, input).await;
    match rendered.map_err(|error| render_failed(view, name, arguments, error, secrets))? {
        Ok(parts) => embed(view, name, parts).await.map(Ok),
        Err(question) => Ok(Err(question)),
    }
}

pub(crate) fn span(view: &View, prompt: &Prompt, own_view: &View, own: &Prompt) -> tracing::Span {
    let provenance = own_view.catalog().provenance();
    tracing::debug_span!(
        "render",
        gen_ai.prompt.name = %prompt.name(),
        promptshelf.source = view.catalog().part_of(prompt).map(|(part, _)| &*part.source),
        promptshelf.channel = provenance.and_then(|found| found.provenance.channel()),
        promptshelf.revision = provenance.and_then(|found| found.provenance.revision()),
        promptshelf.version = provenance.and_then(|found| found.prompt(own)).map(PromptProvenance::version),
    )
}

pub(crate) fn list_name(list: ListKind) -> &'static str {
    match list {
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
        ListKind::ResourceTemplates => "resource-templates",
    }
}

async fn embed(view: &View, name: &PromptName, parts: Vec<Part>) -> Result<Vec<Message>, Rejection> {
    if parts.iter().all(|part| matches!(part, Part::Message(_))) {
        let message = |part| if let Part::Message(message) = part { Some(message) } else { None };
        return Ok(parts.into_iter().filter_map(message).collect());
    }
    let late = || Rejection::Unavailable {
        prompt: name.to_string(),
        reason: "a resource that it attaches was not read in time".to_owned(),
    };
    // Boxed: every request would have room for it.
    Box::pin(renderers::in_time(embed_all(view, name, parts))).await.unwrap_or_else(|| Err(late()))
}

async fn embed_all(view: &View, name: &PromptName, parts: Vec<Part>) -> Result<Vec<Message>, Rejection> {
    let unusable = |reason| Rejection::UnusableArguments { prompt: name.to_string(), reason };
    let limit = view.catalog().policy().budget.attachment_bytes;
    let mut attached = 0_usize;
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        let message = match part {
            Part::Message(message) => message,
            Part::Resource { role, uri, shown_as, mime_type, annotations } => {
                let mut contents = read(view, &uri).await.map_err(|rejection| match rejection {
                    same @ (Rejection::Internal | Rejection::InsufficientScope { .. }) => same,
                    // The template, and not the caller, may have chosen the URI.
                    Rejection::UnknownResource { .. } if view.hides_contents() => {
                        unusable("an attachment was not found for these arguments".to_owned())
                    }
                    other => unusable(other.to_string()),
                })?;
                attached = attached.saturating_add(contents.body.len());
                if attached > limit {
                    return Err(unusable(format!("its attachments would be larger than {limit} bytes")));
                }
                contents.uri = shown_as.unwrap_or(contents.uri);
                contents.mime_type = mime_type.unwrap_or(contents.mime_type);
                Message { role, content: ContentBlock::Resource(EmbeddedResource { contents, annotations }) }
            }
        };
        messages.push(message);
    }
    Ok(messages)
}

impl Answer<RenderedPrompt> {
    /// Reads the targets of resource links, for a client that cannot follow links: resources of this server with at
    /// most `max_bytes` bytes. A resource that cannot be read stays a link.
    pub async fn resolve_links(&mut self, max_bytes: usize) {
        let (view, prompt) = self.parts_mut();
        for message in &mut prompt.messages {
            let ContentBlock::Link(link) = &mut message.content else { continue };
            if link.target.is_some() || link.size.is_some_and(|size| size > max_bytes as u64) {
                continue;
            }
            if let Ok(contents) = read(view, &link.uri).await
                && contents.body.len() <= max_bytes
            {
                link.target = Some(Arc::new(contents));
            }
        }
    }
}

pub(crate) async fn complete(
    view: &View,
    reference: Reference<'_>,
    argument: &str,
    typed: &str,
    known: &Variables,
) -> Result<Completions, Rejection> {
    let (catalog, caller, name) = (view.catalog(), view.caller(), argument);
    let find_argument = |arguments: &[Argument]| {
        arguments.iter().find(|known| known.name() == argument).cloned().ok_or_else(|| Rejection::UnknownArgument {
            name: echo(argument),
            known: arguments.iter().map(|argument| argument.name().to_owned()).collect(),
        })
    };
    let (argument, template, source) = match reference {
        Reference::Prompt(name) => {
            let prompt = access::find(catalog, caller, name)?;
            (find_argument(prompt.arguments())?, None, view.of_source(&prompt).map(|(view, _)| view))
        }
        Reference::Resource(uri) => {
            let template = access::find_declared(catalog, caller, uri)?;
            (find_argument(template.variables())?, Some(Arc::clone(template)), view.of_declaration(uri))
        }
    };
    // Without suggestions a form can still be filled in.
    let none = |reason: &str| {
        tracing::warn!(request = caller.request_id(), argument = name, "no suggestions: {reason}");
        Completions::default()
    };
    match renderers::in_time(completion::complete_remotely(&argument, typed, known)).await {
        Some(None) => {}
        Some(Some(completions)) => return Ok(completions),
        None => return Ok(none("the other server did not answer in time")),
    }
    let view = source.unwrap_or_else(|| view.clone());
    match renderers::complete(view, argument, template, typed, known).await {
        Ok(completions) => Ok(completions),
        Err(Lost::Busy) => Ok(none("functions run for too long")),
        Err(Lost::Panic) => Err(Rejection::Internal),
    }
}

/// Reads a resource or a file of the library: the single way from a URI to content.
pub(crate) async fn read(view: &View, uri: &str) -> Result<ResourceContents, Rejection> {
    view.permit(uri)?;
    let unknown = || Rejection::UnknownResource { uri: echo(uri) };
    let (resource, variables) = match view.catalog().content(uri).ok_or_else(unknown)? {
        Content::Resource { resource, variables } => (resource, variables),
        Content::File(file) => return Ok(file.contents(uri)),
    };
    match renderers::read(view.caller(), resource, uri, variables).await {
        Ok(contents) => Ok(contents),
        Err(ReadError::NotFound) => Err(unknown()),
        Err(ReadError::TooLarge { limit }) => Err(Rejection::ResourceTooLarge { uri: echo(uri), limit }),
        Err(error) => {
            let request = view.caller().request_id();
            tracing::error!(request, resource = resource.uri(), %error, "resource cannot be read");
            Err(Rejection::Internal)
        }
    }
}

fn render_failed(
    view: &View,
    name: &PromptName,
    arguments: &RawArguments<'_>,
    error: RenderError,
    secrets: &Secrets,
) -> Rejection {
    let unusable = |reason| Rejection::UnusableArguments { prompt: name.to_string(), reason };
    let rejection = match error {
        RenderError::Rejected(reason) => return unusable(reason),
        RenderError::Unavailable(reason) => return Rejection::Unavailable { prompt: name.to_string(), reason },
        RenderError::OverBudget(limit) => {
            return unusable(format!("it would take more than the library allows: {limit}"));
        }
        // A template that fails with these arguments may work with others: the caller can act on it.
        RenderError::TemplateFailed(_) if !arguments.is_empty() => {
            unusable("its template fails with these values; see the server's log".to_owned())
        }
        _ => Rejection::Internal,
    };
    let error = secrets.hide(error.to_string());
    tracing::error!(request = view.caller().request_id(), prompt = %name, error, "prompt cannot be rendered");
    rejection
}

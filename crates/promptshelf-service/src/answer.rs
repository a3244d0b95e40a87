//! How answers are made, once it is settled that there may be one.

use promptshelf_core::{
    Argument, Catalog, ContentBlock, EmbeddedResource, Message, Part, Prompt, RawArguments, ReadError, RenderError,
    ResourceContents, Variables,
    completion::{self, Completions},
};

use crate::{Caller, Reference, Rejection, access, audit::Secrets, rejection};

/// The messages of a prompt.
pub(crate) async fn fill_in(
    caller: &Caller,
    catalog: &Catalog,
    prompt: &Prompt,
    given: &RawArguments<'_>,
    secrets: &Secrets,
) -> Result<Vec<Message>, Rejection> {
    let bindings = prompt
        .bind(given, catalog.policy().value_bytes)
        .map_err(|problems| Rejection::InvalidArguments { prompt: prompt.name().to_string(), problems })?;
    let parts =
        prompt.render(catalog, bindings).await.map_err(|error| render_failed(caller, prompt, given, error, secrets))?;
    embed(caller, catalog, prompt, parts).await
}

/// Puts the contents of resources where a prompt attaches them.
async fn embed(
    caller: &Caller,
    catalog: &Catalog,
    prompt: &Prompt,
    parts: Vec<Part>,
) -> Result<Vec<Message>, Rejection> {
    let unusable = |reason| Rejection::UnusableArguments { prompt: prompt.name().to_string(), reason };
    let limit = catalog.policy().budget.attachment_bytes;
    let mut attached = 0_usize;
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        let message = match part {
            Part::Message(message) => message,
            Part::Resource { role, uri, shown_as, mime_type, annotations } => {
                let mut contents = read(catalog, caller, &uri).await.map_err(|rejection| match rejection {
                    same @ (Rejection::Internal | Rejection::InsufficientScope { .. }) => same,
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

/// Values for an argument.
pub(crate) fn complete(
    caller: &Caller,
    catalog: &Catalog,
    reference: Reference<'_>,
    argument: &str,
    typed: &str,
    known: &Variables,
) -> Result<Completions, Rejection> {
    let find_argument = |arguments: &[Argument]| {
        arguments.iter().find(|known| known.name() == argument).cloned().ok_or_else(|| Rejection::UnknownArgument {
            name: rejection::echo(argument),
            known: arguments.iter().map(|argument| argument.name().to_owned()).collect(),
        })
    };
    let argument = match reference {
        Reference::Prompt(name) => find_argument(access::find(catalog, caller, name)?.arguments())?,
        Reference::Resource(uri) => find_argument(access::find_declared(catalog, caller, uri)?.variables())?,
    };
    let may_see = |uri: &str| access::permit(catalog, caller, uri).is_ok();
    let may_see: Option<&dyn Fn(&str) -> bool> =
        if !caller.is_local() && catalog.has_resource_rules() { Some(&may_see) } else { None };
    Ok(completion::complete_from(&argument, catalog, typed, known, may_see))
}

/// What a resource holds.
pub(crate) async fn read(catalog: &Catalog, caller: &Caller, uri: &str) -> Result<ResourceContents, Rejection> {
    access::permit(catalog, caller, uri)?;
    let unknown = || Rejection::UnknownResource { uri: rejection::echo(uri) };
    let Some((resource, variables)) = catalog.find_resource(uri) else {
        return catalog.find_library_file(uri).ok_or_else(unknown);
    };
    match resource.read(uri, &variables).await {
        Ok(contents) => Ok(contents),
        Err(ReadError::NotFound) => Err(unknown()),
        Err(ReadError::TooLarge { limit }) => Err(Rejection::ResourceTooLarge { uri: rejection::echo(uri), limit }),
        Err(error) => {
            tracing::error!(request = caller.request_id(), resource = resource.uri(), %error, "a resource cannot be read");
            Err(Rejection::Internal)
        }
    }
}

fn render_failed(
    caller: &Caller,
    prompt: &Prompt,
    given: &RawArguments<'_>,
    error: RenderError,
    secrets: &Secrets,
) -> Rejection {
    let unusable = |reason| Rejection::UnusableArguments { prompt: prompt.name().to_string(), reason };
    let rejection = match error {
        RenderError::Rejected(reason) => return unusable(reason),
        RenderError::OverBudget(limit) => {
            return unusable(format!("it would take more than the library allows: {limit}"));
        }
        // What values do to a template they may do to it differently another time.
        RenderError::Stumbled(_) if !given.is_empty() => {
            unusable("its template cannot work with them; the server's log says more".to_owned())
        }
        _ => Rejection::Internal,
    };
    let error = secrets.hide(error.to_string());
    tracing::error!(request = caller.request_id(), prompt = %prompt.name(), error, "a prompt cannot be rendered");
    rejection
}

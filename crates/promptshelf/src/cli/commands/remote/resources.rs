//! `promptshelf resources` of a library or of any server.

use std::io::{self, Write};

use anstyle::Style;
use futures_util::{Stream, TryStreamExt};
use promptshelf_client::{Client, ClientError, OfferedResource, Target};
use promptshelf_core::{Annotations, ContentBlock, EmbeddedResource, Message, Role};
use serde_json::{Value, json};

use super::{ConnectOptions, Waiting, connect, failure};
use crate::{
    args::client::ResourcesArguments,
    commands::{
        get::{note, print_json},
        saved::Saved,
        show,
    },
    exit::{Exit, Failure},
    output::{Output, visible_line},
};

pub(crate) async fn run(arguments: &ResourcesArguments) -> Result<(), Failure> {
    let target = match arguments.server.target()? {
        Some(target) => target,
        None => Target::folder(arguments.library.folder()),
    };
    let waiting = Waiting::new(visible_line(&target.to_string()).into_owned());
    let client = connect(&target, arguments.server.timeout(), ConnectOptions::usual(&waiting), &waiting).await?;
    match &arguments.read {
        Some(uri) => waiting.during(read(&client, uri, arguments)).await,
        None => waiting.during(list(&client, arguments.json)).await,
    }
}

async fn read(client: &Client, uri: &str, arguments: &ResourcesArguments) -> Result<(), Failure> {
    let read = client.read(uri).await.map_err(|error| match &error {
        // Older revisions have a number of their own for it.
        ClientError::Refused { code: -32002, .. } => Failure::new(Exit::NotFound, error.to_string()),
        _ if error.is_invalid_params() => Failure::new(Exit::NotFound, error.to_string()),
        _ => failure(error, client.target()),
    })?;
    let block = |contents| ContentBlock::Resource(EmbeddedResource { contents, annotations: Annotations::default() });
    let messages: Vec<Message> =
        read.contents.into_iter().map(|contents| Message { role: Role::User, content: block(contents) }).collect();
    let saved = Saved::to(arguments.out.as_deref(), &messages)?;
    if arguments.json {
        return print_json(&read.raw);
    }
    let mut paper = Output::stdout();
    show::contents(&mut paper, &messages)?;
    paper.out.flush()?;
    note(&saved.notes());
    Ok(())
}

async fn list(client: &Client, json: bool) -> Result<(), Failure> {
    let refused = |error| failure(error, client.target());
    let resources = all(client.resources()).await.map_err(refused)?;
    let templates = all(client.resource_templates()).await.map_err(refused)?;
    let raw = |of: &[OfferedResource]| of.iter().map(|one| one.raw.clone()).collect::<Vec<Value>>();
    if json {
        return print_json(&json!({ "resources": raw(&resources), "resourceTemplates": raw(&templates) }));
    }
    let mut paper = Output::stdout();
    for resource in resources.iter().chain(&templates) {
        row(&mut paper, resource)?;
    }
    if resources.is_empty() && templates.is_empty() && paper.terminal {
        writeln!(paper.out, "There are no resources here.")?;
    }
    Ok(paper.out.flush()?)
}

/// Servers without resources do not always know the methods.
pub(crate) async fn all(
    list: impl Stream<Item = Result<OfferedResource, ClientError>>,
) -> Result<Vec<OfferedResource>, ClientError> {
    match list.try_collect().await {
        Err(error) if error.is_unknown_method() => Ok(Vec::new()),
        other => other,
    }
}

/// One line in a pipe, two on a terminal.
pub(crate) fn row<W: Write>(paper: &mut Output<W>, resource: &OfferedResource) -> io::Result<()> {
    const URI: Style = Style::new().bold();
    let mime_type = resource.mime_type.as_deref().unwrap_or_default();
    let about = resource.description.as_deref().or(resource.title.as_deref()).unwrap_or(&resource.name);
    let [uri, mime_type, about] = [&*resource.uri, mime_type, about].map(|text| paper.line(text).into_owned());
    if !paper.terminal {
        return writeln!(paper.out, "{uri}\t{mime_type}\t{about}");
    }
    let uri = paper.styled(URI, &uri);
    writeln!(paper.out, "{}", format!("{uri} {mime_type}").trim_end())?;
    writeln!(paper.out, "    {}", crate::commands::list::shortened(&about, paper.width.saturating_sub(4)))
}

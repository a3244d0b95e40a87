//! `promptshelf resources`: lists the resources of a library or a server, or reads one.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anstyle::Style;
use clap::Args;
use futures_util::{Stream, TryStreamExt};
use promptshelf_client::{Annotations, ClientError, ContentBlock, EmbeddedResource, Message, ResourceInfo, Role};

use super::{get::print_json, saved::Saved, show};
use crate::{
    args::{Words, client::SourceArguments, words::Uri},
    connect::{Connection, Options, connect},
    exit::{Exit, Failure},
    output::{Output, list_json, note, shortened, visible_line},
    terminal::Progress,
};

const RESOURCES_EXAMPLES: &str = "\
Examples:
  promptshelf resources prompts
  promptshelf resources prompts library:///style.md
  promptshelf resources github --json";

#[derive(Debug, Args)]
#[command(after_help = RESOURCES_EXAMPLES)]
pub(crate) struct ResourcesArguments {
    #[command(flatten)]
    pub(crate) words: Words<SourceArguments, Uri>,

    /// The same as URI
    #[arg(long, value_name = "URI", hide = true)]
    pub(crate) read: Option<String>,

    /// Print JSON: `items` as in the results of `resources/list` and `resources/templates/list`, or the result of
    /// `resources/read`
    #[arg(long)]
    pub(crate) json: bool,

    /// Write images, audio and other binary contents to files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

pub(crate) async fn run(arguments: &ResourcesArguments) -> Result<(), Failure> {
    let source = arguments.words.library.source()?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let connection = connect(&source, Options::new(arguments.words.library.timeout(), &progress), &progress).await?;
    match arguments.words.optional_name().or(arguments.read.as_deref()) {
        Some(uri) => progress.during(read(&connection, uri, arguments)).await,
        None => progress.during(list(&connection, arguments.json)).await,
    }
}

/// The error code of an unknown resource before revision 2026-07-28.
const RESOURCE_NOT_FOUND: i32 = -32002;

async fn read(connection: &Connection, uri: &str, arguments: &ResourcesArguments) -> Result<(), Failure> {
    let result = connection.client.read(uri).await.map_err(|error| match &error {
        ClientError::ErrorResponse { code: RESOURCE_NOT_FOUND, .. } => connection.rejection(Exit::NotFound, &error),
        _ if error.is_invalid_params() => connection.rejection(Exit::NotFound, &error),
        _ => connection.failure(error),
    })?;
    let block = |contents| ContentBlock::Resource(EmbeddedResource { contents, annotations: Annotations::default() });
    let messages: Vec<Message> =
        result.contents.into_iter().map(|contents| Message { role: Role::User, content: block(contents) }).collect();
    let saved = Saved::write_all(arguments.out.as_deref(), &messages)?;
    if arguments.json {
        return print_json(&result.raw);
    }
    let mut output = Output::stdout();
    show::contents(&mut output, &messages)?;
    output.out.flush()?;
    note(&saved.notes());
    Ok(())
}

async fn list(connection: &Connection, json: bool) -> Result<(), Failure> {
    let failure = |error| connection.failure(error);
    let resources = all(connection.client.resources()).await.map_err(failure)?;
    let templates = all(connection.client.resource_templates()).await.map_err(failure)?;
    if json {
        return print_json(&list_json(resources.iter().chain(&templates).map(|resource| resource.raw.clone())));
    }
    let mut output = Output::stdout();
    for resource in resources.iter().chain(&templates) {
        row(&mut output, resource)?;
    }
    output.out.flush()?;
    if resources.is_empty() && templates.is_empty() {
        if output.terminal {
            writeln!(output.out, "No resources found.")?;
        } else {
            note(&["there are no resources".to_owned()]);
        }
    }
    Ok(())
}

/// Collects a list. Some servers without resources do not implement the method.
pub(crate) async fn all(
    list: impl Stream<Item = Result<ResourceInfo, ClientError>>,
) -> Result<Vec<ResourceInfo>, ClientError> {
    match list.try_collect().await {
        Err(error) if error.is_unknown_method() => Ok(Vec::new()),
        other => other,
    }
}

/// Prints a resource: one line in a pipe, two on a terminal.
pub(crate) fn row<W: Write>(output: &mut Output<W>, resource: &ResourceInfo) -> io::Result<()> {
    const URI: Style = Style::new().bold();
    let mime_type = resource.mime_type.as_deref().unwrap_or_default();
    let about = resource.description.as_deref().or(resource.title.as_deref()).unwrap_or(&resource.name);
    let [uri, mime_type, about] = [&*resource.uri, mime_type, about].map(|text| output.line(text).into_owned());
    if !output.terminal {
        return writeln!(output.out, "{uri}\t{mime_type}\t{about}");
    }
    let uri = output.styled(URI, &uri);
    writeln!(output.out, "{}", format!("{uri} {mime_type}").trim_end())?;
    writeln!(output.out, "    {}", shortened(&about, output.width.saturating_sub(4)))
}

//! `promptshelf get`: a prompt of a library or a server, with arguments filled in.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use promptshelf_client::{
    Client, ClientError, ContentBlock, ElicitationHandler, EmbeddedResource, Message, PromptInfo,
};
use promptshelf_core::nearest;
use serde_json::Value;

use super::{markdown, model_api, saved::Saved, show};
use crate::{
    args::{ValueArguments, Words, client::SourceArguments, value_words, words::PromptAndValues},
    connect::{Connection, Options, connect},
    exit::{Exit, Failure},
    library::template,
    output::{Output, note, pretty_json, visible_line},
    source::{HERE, Source},
    terminal::{self, Progress, TerminalForms},
};

const GET_EXAMPLES: &str = "\
Examples:
  promptshelf get code_review code=@src/main.rs language=rust
  git diff --staged | promptshelf get code_review code=-
  promptshelf get prompts explain topic=latency --format anthropic
  promptshelf get https://example.com/mcp code_review code=@src/main.rs
  promptshelf get simple-prompt -- npx -y some-mcp-server";

#[derive(Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct GetArguments {
    #[command(flatten)]
    pub(crate) words: Words<SourceArguments, PromptAndValues>,

    /// Format of the messages
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: GetFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write images, audio and other binary contents to files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetFormat {
    /// Readable text
    Text,
    /// The result of `prompts/get` in the newest revision of MCP
    Json,
    /// `messages` for OpenAI's Chat Completions API
    Openai,
    /// `messages` for Anthropic's Messages API
    Anthropic,
    /// One Markdown document
    Markdown,
}

pub(crate) async fn run(arguments: &GetArguments) -> Result<(), Failure> {
    let source = arguments.words.library.source()?;
    let name = arguments.words.name();
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    // Without a user, elicitation is not declared to the server.
    let forms = terminal::is_interactive().then(|| Arc::new(TerminalForms::new(progress.clone())));
    let elicitation = forms.clone().map(|forms| forms as Arc<dyn ElicitationHandler>);
    let options = Options { elicitation, ..Options::new(arguments.words.library.timeout(), &progress) };
    let connection = connect(&source, options, &progress).await?;
    if let Some(library) = &connection.library {
        arguments.words.values.check_names(&library.library, name)?;
    }
    let values = arguments.words.values.read(io::stdin().lock())?;
    let mut result = match progress.during(connection.client.get(name, &values)).await {
        Ok(result) => result,
        Err(error) if forms.is_some_and(|forms| forms.was_declined()) => {
            let reason = match error {
                ClientError::ErrorResponse { message, .. } => message,
                error => error.to_string(),
            };
            return Err(Failure::new(Exit::Declined, reason));
        }
        Err(error) if is_rejection(&error) => {
            return Err(rejection(&connection, name, &arguments.words.values, &error).await);
        }
        Err(error) => return Err(connection.failure(error)),
    };
    let format = if arguments.json { GetFormat::Json } else { arguments.format };
    let saved = Saved::write_all(arguments.out.as_deref(), &result.messages)?;
    match format {
        GetFormat::Json => print_json(&result.raw),
        GetFormat::Openai | GetFormat::Anthropic => {
            if connection.library.is_some() {
                embed_links(&connection.client, &mut result.messages).await;
            }
            print(format, &result.messages, &saved)
        }
        GetFormat::Text | GetFormat::Markdown => print(format, &result.messages, &saved),
    }
}

/// Replaces links by the contents of their resources, as far as the library has them: model APIs cannot read links.
async fn embed_links(client: &Client, messages: &mut [Message]) {
    for message in messages {
        if let ContentBlock::Link(link) = &message.content
            && let Ok(result) = client.read(&link.uri).await
            && let Ok([contents]) = <[_; 1]>::try_from(result.contents)
        {
            let annotations = link.annotations.clone();
            message.content = ContentBlock::Resource(EmbeddedResource { contents, annotations });
        }
    }
}

pub(super) fn print_json(result: &Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", pretty_json(result))?;
    Ok(out.flush()?)
}

/// Prints messages in every format but JSON.
fn print(format: GetFormat, messages: &[Message], saved: &Saved) -> Result<(), Failure> {
    let mut stdout = Output::stdout();
    let converted = match format {
        GetFormat::Openai => model_api::openai(messages),
        GetFormat::Anthropic => model_api::anthropic(messages),
        GetFormat::Markdown => {
            let document = markdown::document(messages, saved);
            let document = stdout.text(&document).into_owned();
            stdout.out.write_all(document.as_bytes())?;
            return Ok(stdout.out.flush()?);
        }
        GetFormat::Text | GetFormat::Json => {
            show::messages(&mut stdout, messages)?;
            stdout.out.flush()?;
            note(&saved.notes());
            return Ok(());
        }
    };
    writeln!(stdout.out, "{}", pretty_json(&converted.messages))?;
    stdout.out.flush()?;
    note(&converted.notes);
    Ok(())
}

/// The error code for a prompt that requires elicitation, from servers of revision 2026-07-28.
const MISSING_CAPABILITY: i32 = -32021;

fn is_rejection(error: &ClientError) -> bool {
    error.is_invalid_params() || matches!(error, ClientError::ErrorResponse { code: MISSING_CAPABILITY, .. })
}

/// Explains why a server rejects a prompt's name or arguments. The protocol has one error code for both; the list of
/// prompts distinguishes them.
async fn rejection(connection: &Connection, name: &str, typed: &ValueArguments, error: &ClientError) -> Failure {
    let prompts = connection.client.all_prompts().await.unwrap_or_default();
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        return unknown_prompt(connection, prompts.iter().map(|prompt| prompt.name.as_str()), name, error);
    };
    let line = working_line(connection, prompt, typed, error).await;
    connection.rejection(Exit::Arguments, error).help(line)
}

/// Returns a command line for the prompt that has all required values: the typed ones as far as they are valid, and
/// samples for the others.
async fn working_line(
    connection: &Connection,
    prompt: &PromptInfo,
    typed: &ValueArguments,
    error: &ClientError,
) -> String {
    let problems = connection.problems(error);
    let is_valid =
        |name: &str| prompt.arguments.iter().any(|argument| argument.name == name) && !problems.contains(&name);
    let mut words = vec![prompt.name.clone()];
    words.extend(typed.words(is_valid));
    let mut placeholders = Vec::new();
    let is_typed = |name: &str| typed.names().any(|typed| typed == name) && is_valid(name);
    for argument in prompt.arguments.iter().filter(|argument| !is_typed(&argument.name)) {
        if argument.required || problems.contains(&argument.name.as_str()) && !typed.names().any(|n| n == argument.name)
        {
            let value = connection.sample(&prompt.name, &argument.name).await;
            if !connection.accepts(&prompt.name, &argument.name, &value) {
                placeholders.push(argument.name.as_str());
            }
            words.extend(value_words(&argument.name, &value));
        }
    }
    template(connection.source.command_line("get", &words), placeholders.into_iter())
}

/// Creates the failure for a prompt that does not exist, with the most similar name.
pub(super) fn unknown_prompt<'a>(
    connection: &Connection,
    names: impl Iterator<Item = &'a str>,
    name: &str,
    error: &ClientError,
) -> Failure {
    let failure = connection.rejection(Exit::NotFound, error);
    if let Some(library) = &connection.library {
        if let Some(failure) = crate::library::broken(&library.library, &library.folder, name) {
            return failure;
        }
        library.note_errors();
    }
    if connection.source == Source::Folder(HERE.into()) && Path::new(name).is_dir() {
        let message = format!("`get {name}` needs a prompt: {name} is a folder");
        let list = Source::Folder(name.into()).command_line("list", &[]);
        return Failure::new(Exit::NotFound, message).help(format!("`{list}` lists its prompts"));
    }
    let of_file = || connection.library.as_ref()?.prompt_of(name);
    match of_file().or_else(|| nearest(name, names).map(str::to_owned)) {
        Some(known) => failure.help(format!("did you mean `{known}`?")),
        None => failure.help(format!("`{}` lists the prompts", connection.source.command_line("list", &[]))),
    }
}

//! `promptshelf suggest`: values for an argument of a prompt or a variable of a resource template.

use std::io::{self, Write};

use clap::Args;
use promptshelf_client::{ClientError, Completion, CompletionTarget};
use serde_json::json;

use super::get::unknown_prompt;
use crate::{
    args::{Words, client::SourceArguments, words::PartOfValue},
    connect::{Connection, Options, connect},
    exit::{Exit, Failure},
    output::{Output, list_json, pretty_json, visible_line},
    terminal::Progress,
};

const SUGGEST_EXAMPLES: &str = "\
Examples:
  promptshelf suggest code_review language
  promptshelf suggest prompts code_review language ru
  promptshelf suggest 'logs://recent{?timeframe}' timeframe 2";

#[derive(Debug, Args)]
#[command(after_help = SUGGEST_EXAMPLES)]
pub(crate) struct SuggestArguments {
    #[command(flatten)]
    pub(crate) words: Words<SourceArguments, PartOfValue>,

    /// Print JSON: the values as `items`
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(arguments: &SuggestArguments) -> Result<(), Failure> {
    let words = &arguments.words;
    let [name, argument, rest @ ..] = words.names.as_slice() else { return Ok(()) };
    let value = rest.first().map_or("", String::as_str);
    let source = words.library.source()?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let connection = connect(&source, Options::new(words.library.timeout(), &progress), &progress).await?;
    if let Some(library) = &connection.library {
        words.values.check_names(&library.library, name)?;
    }
    let known = words.values.read(io::stdin().lock())?;
    // Names of prompts do not look like URIs.
    let is_template = name.contains("://");
    let completed = if is_template { CompletionTarget::ResourceTemplate(name) } else { CompletionTarget::Prompt(name) };
    match progress.during(connection.client.complete(completed, argument, value, &known)).await {
        Ok(completion) => print(arguments.json, &completion),
        Err(error) if error.is_invalid_params() && is_template => Err(connection.rejection(Exit::NotFound, &error)),
        Err(error) if error.is_invalid_params() => Err(rejection(&connection, name, argument, &error).await),
        Err(error) => Err(connection.failure(error)),
    }
}

/// Explains why a server rejects a completion: an unknown prompt, an unknown argument, or other values.
async fn rejection(connection: &Connection, name: &str, argument: &str, error: &ClientError) -> Failure {
    let prompts = connection.client.all_prompts().await.unwrap_or_default();
    match prompts.iter().find(|prompt| prompt.name == name) {
        None => unknown_prompt(connection, prompts.iter().map(|prompt| prompt.name.as_str()), name, error),
        Some(prompt) if prompt.arguments.iter().all(|known| known.name != argument) => {
            connection.rejection(Exit::NotFound, error)
        }
        Some(_) => connection.rejection(Exit::Arguments, error),
    }
}

fn print(json: bool, completion: &Completion) -> Result<(), Failure> {
    let Completion { values, total, has_more, .. } = completion;
    let mut stdout = Output::stdout();
    if json {
        let mut list = list_json(values.iter().map(|value| json!(value)));
        list["total"] = json!(total);
        list["hasMore"] = json!(has_more);
        writeln!(stdout.out, "{}", pretty_json(&list))?;
    } else {
        for value in values {
            let line = stdout.line(value).into_owned();
            writeln!(stdout.out, "{line}")?;
        }
        if *has_more && stdout.terminal {
            let total = total.and_then(|total| usize::try_from(total).ok());
            match total.and_then(|total| total.checked_sub(values.len())) {
                Some(more) => writeln!(stdout.out, "… and {more} more")?,
                None => writeln!(stdout.out, "… and more")?,
            }
        }
    }
    Ok(stdout.out.flush()?)
}

//! `promptshelf complete`: values for an argument of a prompt or a variable of a resource template.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::Path,
};

use promptshelf_client::{ClientError, Completion, CompletionTarget, ConfiguredServer};
use serde_json::json;

use super::get::unknown_prompt;
use crate::{
    args::CompleteArguments,
    connect::{Connection, Options, connect},
    exit::{Exit, Failure},
    library,
    output::{Output, pretty_json, visible_line},
    source::{HERE, is_path, is_url},
    terminal::Progress,
};

pub(crate) async fn run(arguments: &CompleteArguments) -> Result<(), Failure> {
    let Words { target, name, argument, value } = &Words::parse(arguments)?;
    let source = arguments.source.source(*target)?;
    let progress = Progress::new(visible_line(&source.to_string()).into_owned());
    let connection = connect(&source, Options::new(arguments.source.timeout(), &progress), &progress).await?;
    if let Some(library) = &connection.library {
        arguments.values.check_names(&library.library, name)?;
    }
    let known = arguments.values.read(io::stdin().lock())?;
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

/// The words of the command line: `[TARGET] NAME ARGUMENT [VALUE]`.
struct Words<'a> {
    target: Option<&'a OsStr>,
    name: Cow<'a, str>,
    argument: Cow<'a, str>,
    value: Cow<'a, str>,
}

impl<'a> Words<'a> {
    /// Assigns the words. Of three, the first one is the name of a prompt; it is the TARGET if no option names a library
    /// or server and it is a URL or a path to a folder, or names a folder or server and no prompt of the current folder.
    fn parse(arguments: &'a CompleteArguments) -> Result<Words<'a>, Failure> {
        let text = |word: &'a OsString| word.to_string_lossy();
        let (target, name, argument, value) = match arguments.words.as_slice() {
            [name, argument] => (None, name, argument, None),
            [target, name, argument] if !arguments.source.is_set() && is_target(target) => {
                (Some(target), name, argument, None)
            }
            [name, argument, value] => (None, name, argument, Some(value)),
            [target, name, argument, value] => (Some(target), name, argument, Some(value)),
            _ => return Err(Failure::new(Exit::Usage, "expected the names of a prompt and of an argument")),
        };
        let value = value.map(text).unwrap_or_default();
        Ok(Words { target: target.map(OsString::as_os_str), name: text(name), argument: text(argument), value })
    }
}

fn is_target(word: &OsStr) -> bool {
    let is_folder = || Path::new(word).is_dir();
    let Some(text) = word.to_str() else { return is_folder() };
    if is_url(text) {
        return true;
    }
    // Names of prompts are not paths.
    if is_path(text) {
        return is_folder();
    }
    let is_known = || is_folder() || ConfiguredServer::all().iter().any(|server| server.name == text);
    let is_prompt = || library::open(Path::new(HERE)).is_ok_and(|library| library.catalog().find(text).is_some());
    is_known() && !is_prompt()
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
        let mut completion = json!({ "values": values, "total": total, "hasMore": has_more });
        if let (None, Some(completion)) = (total, completion.as_object_mut()) {
            completion.remove("total");
        }
        writeln!(stdout.out, "{}", pretty_json(&json!({ "completion": completion })))?;
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

//! `promptshelf get`: a prompt, filled in.

use std::{
    io::{self, Write},
    path::Path,
};

use anstyle::{AnsiColor, Style};
use promptshelf_client::Target;
use promptshelf_core::{Argument, Message, RawArguments, nearest};
use promptshelf_server::Library;
use promptshelf_service::{Caller, Rejection};
use serde_json::json;

use super::{markdown, model_api, remote, saved::Saved, show, wire::ask};
use crate::{
    args::{GetArguments, GetFormat},
    exit::Failure,
    output::{Output, pretty_json},
};

pub(crate) async fn run(arguments: &GetArguments) -> Result<(), Failure> {
    if let Some(target) = arguments.server.target()? {
        return remote::get::run(&target, arguments).await;
    }
    let library = crate::library::open(arguments.library.folder())?;
    let unknown = || Rejection::UnknownPrompt { name: arguments.name.clone() };
    let catalog = library.catalog();
    let prompt = catalog
        .find(&arguments.name)
        .ok_or_else(|| failure(unknown(), &library, arguments.library.folder(), &arguments.name))?;
    arguments.values.must_be_of(prompt.arguments())?;
    if prompt.arguments().iter().any(Argument::is_asked) && remote::get::somebody_can_answer() {
        // Only a conversation can ask, so this one is held with the library's own server.
        return remote::get::run(&Target::folder(arguments.library.folder()), arguments).await;
    }
    let values = arguments.values.read(io::stdin().lock())?;
    let format = if arguments.json { GetFormat::Json } else { arguments.format };

    if format == GetFormat::Json && arguments.out.is_none() {
        let parameters = json!({ "name": arguments.name, "arguments": values });
        if let Some(answer) = ask(library.server(), "prompts/get", parameters).await? {
            return print_json(&answer);
        }
        // Asked once more without the wire, the service says why in its own words.
    }
    let given = RawArguments::from(&values);
    let answer = library
        .service()
        .get(&Caller::local(), &arguments.name, &given)
        .await
        .map_err(|rejection| failure(rejection, &library, arguments.library.folder(), &arguments.name))?;

    let saved = Saved::to(arguments.out.as_deref(), &answer.value().messages)?;
    if format == GetFormat::Json {
        let parameters = json!({ "name": arguments.name, "arguments": values });
        let answer = ask(library.server(), "prompts/get", parameters).await?;
        return print_json(&answer.unwrap_or_default());
    }
    print(format, &answer.value().messages, &saved)
}

pub(super) fn print_json(answer: &serde_json::Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", pretty_json(answer))?;
    Ok(out.flush()?)
}

/// Prints messages, wherever they come from, in every format but JSON.
pub(super) fn print(format: GetFormat, messages: &[Message], saved: &Saved) -> Result<(), Failure> {
    let mut paper = Output::stdout();
    let converted = match format {
        GetFormat::Openai => model_api::openai(messages),
        GetFormat::Anthropic => model_api::anthropic(messages),
        GetFormat::Markdown => {
            let document = markdown::document(messages, saved);
            let document = paper.text(&document).into_owned();
            paper.out.write_all(document.as_bytes())?;
            return Ok(paper.out.flush()?);
        }
        GetFormat::Text | GetFormat::Json => {
            show::messages(&mut paper, messages)?;
            paper.out.flush()?;
            note(&saved.notes());
            return Ok(());
        }
    };
    writeln!(paper.out, "{}", pretty_json(&converted.messages))?;
    paper.out.flush()?;
    note(&converted.notes);
    Ok(())
}

/// Says on stderr what an API gets otherwise than the prompt says it.
pub(super) fn note(notes: &[String]) {
    const NOTE: Style = AnsiColor::Yellow.on_default().bold();
    let mut paper = Output::stderr();
    for note in notes {
        let line = format!("{} {}", paper.styled(NOTE, "note:"), paper.line(note));
        writeln!(paper.out, "{line}").ok();
    }
}

/// A rejection, with what to do about it for a person who may see everything.
pub(crate) fn failure(rejection: Rejection, library: &Library, folder: &Path, name: &str) -> Failure {
    let catalog = library.catalog();
    let names = || catalog.prompts().iter().map(|prompt| prompt.name().as_str());
    let help = match &rejection {
        Rejection::UnknownPrompt { .. } => Some(match nearest(name, names()) {
            Some(known) => format!("did you mean `{known}`?"),
            None => format!("`promptshelf list {}` shows what there is", folder.display()),
        }),
        Rejection::InvalidArguments { .. } => catalog.find(name).map(|prompt| {
            let required = prompt.arguments().iter().filter(|argument| argument.required());
            let flags: String = required.map(|argument| format!(" --arg {}=…", argument.name())).collect();
            format!("promptshelf get {name}{flags}")
        }),
        _ => None,
    };
    if matches!(rejection, Rejection::UnknownPrompt { .. }) {
        crate::library::note_errors(library, folder);
    }
    let failure = Failure::from(rejection);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

//! `promptshelf get` from any server.

use std::io::{self, IsTerminal};

use futures_util::TryStreamExt;
use promptshelf_client::{Client, ClientError, ElicitationHandler, OfferedPrompt, Target};
use promptshelf_core::nearest;

use super::{ConnectOptions, Waiting, connect, failure};
use crate::{
    args::{GetArguments, GetFormat},
    chat::Asker,
    commands::{
        get::{print, print_json},
        saved::Saved,
    },
    exit::{Exit, Failure},
    output::visible_line,
};

pub(crate) async fn run(target: &Target, arguments: &GetArguments) -> Result<(), Failure> {
    let values = arguments.values.read(io::stdin().lock())?;
    let waiting = Waiting::new(visible_line(&target.to_string()).into_owned());
    // A server may ask only where there is somebody to answer.
    let asker = somebody_can_answer().then(|| std::sync::Arc::new(Asker::new(waiting.clone())));
    let answerer = asker.clone().map(|asker| asker as std::sync::Arc<dyn ElicitationHandler>);
    let client = connect(
        target,
        arguments.server.timeout(),
        ConnectOptions { answerer, ..ConnectOptions::usual(&waiting) },
        &waiting,
    )
    .await?;
    let got = match waiting.during(client.get(&arguments.name, &values)).await {
        Ok(got) => got,
        Err(error) if asker.is_some_and(|asker| asker.was_declined()) => {
            return Err(Failure::new(Exit::Declined, error.to_string()));
        }
        Err(error) if error.is_invalid_params() => return Err(why(&client, &arguments.name, error).await),
        Err(error) => return Err(failure(error, target)),
    };
    let saved = Saved::to(arguments.out.as_deref(), &got.messages)?;
    match if arguments.json { GetFormat::Json } else { arguments.format } {
        GetFormat::Json => print_json(&got.raw),
        format => print(format, &got.messages, &saved),
    }
}

/// Whether questions reach somebody, and answers come back.
pub(crate) fn somebody_can_answer() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Servers use one number for an unknown prompt and for wrong arguments; the
/// list tells them apart.
async fn why(client: &Client, name: &str, error: ClientError) -> Failure {
    let known: Vec<OfferedPrompt> = client.prompts().try_collect().await.unwrap_or_default();
    if let Some(prompt) = known.iter().find(|prompt| prompt.name == name) {
        let required = prompt.arguments.iter().filter(|argument| argument.required);
        let flags: String = required.map(|argument| format!(" --arg {}=…", argument.name)).collect();
        return explained(error).help(format!("promptshelf get {name}{flags}"));
    }
    let failure = Failure::new(Exit::NotFound, format!("the server has no prompt {name}; {error}"));
    match nearest(name, known.iter().map(|prompt| prompt.name.as_str())) {
        Some(known) => failure.help(format!("did you mean `{known}`?")),
        None => failure,
    }
}

/// An error about what was given.
pub(super) fn explained(error: ClientError) -> Failure {
    Failure::new(Exit::Arguments, error.to_string())
}

//! `promptshelf complete` with any server.

use std::io;

use promptshelf_client::{Of, Target};

use super::{ConnectOptions, Waiting, connect, failure, get::explained};
use crate::{args::CompleteArguments, commands::complete::print, exit::Failure, output::visible_line};

pub(crate) async fn run(target: &Target, arguments: &CompleteArguments) -> Result<(), Failure> {
    let CompleteArguments { name, argument, value, .. } = arguments;
    let known = arguments.values.read(io::stdin().lock())?;
    let waiting = Waiting::new(visible_line(&target.to_string()).into_owned());
    let client = connect(target, arguments.server.timeout(), ConnectOptions::usual(&waiting), &waiting).await?;
    // A prompt's name could look like an address; servers with such names have to be asked by template.
    let of = if name.contains("://") { Of::Resource(name) } else { Of::Prompt(name) };
    let completion = waiting
        .during(client.complete(of, argument, value, &known))
        .await
        .map_err(|error| if error.is_invalid_params() { explained(error) } else { failure(error, target) })?;
    let total = completion.total.and_then(|total| usize::try_from(total).ok());
    print(arguments.json, &completion.values, total, completion.has_more)
}

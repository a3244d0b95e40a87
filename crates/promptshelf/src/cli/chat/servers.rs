//! The servers of a chat, and connecting to them.

use std::sync::Arc;

use futures_util::future::join_all;
use promptshelf_client::{Client, ElicitationHandler};

use crate::{
    args::client::ChatArguments,
    connect::{LegacyServers, Options, connect},
    exit::{Exit, Failure},
    output::visible_line,
    source::Source,
    terminal::{Progress, TerminalForms},
};

#[derive(Clone)]
pub(super) struct Server {
    /// The name in this chat, which the server cannot choose.
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) forms: Arc<TerminalForms>,
    pub(super) progress: Progress,
}

/// Connects to all servers at the same time. Returns the connected ones, and a message for each of the others.
pub(super) async fn connect_all(arguments: &ChatArguments) -> Result<(Vec<Server>, Vec<String>), Failure> {
    let sources = with_unique_names(arguments.sources()?);
    let connecting = sources.iter().map(async |(name, source)| {
        let progress = Progress::new(visible_line(name).into_owned());
        let forms = Arc::new(TerminalForms::new(progress.clone()));
        let elicitation: Arc<dyn ElicitationHandler> = Arc::clone(&forms) as _;
        let usual = Options::new(arguments.timeout(), &progress);
        let mut options = Options { elicitation: Some(elicitation), watch: true, ..usual };
        if arguments.forget {
            options.legacy_servers = LegacyServers::disabled();
        }
        let connection = connect(source, options, &progress).await?;
        Ok::<_, Failure>(Server { name: name.clone(), client: connection.client, forms, progress })
    });
    let (mut servers, mut failures) = (Vec::new(), Vec::new());
    for ((name, _), connected) in sources.iter().zip(join_all(connecting).await) {
        match connected {
            Ok(server) => servers.push(server),
            Err(failure) => failures.push((name, failure)),
        }
    }
    if servers.is_empty() {
        let none = || Failure::new(Exit::Usage, "expected a server to connect to");
        return Err(failures.into_iter().next().map_or_else(none, |(_, failure)| failure));
    }
    Ok((servers, failures.into_iter().map(|(name, failure)| format!("{name}: {failure}")).collect()))
}

/// Numbers names that occur more than once. `a-` counts as an occurrence of `a`, so that no number clashes.
fn with_unique_names(sources: Vec<(String, Source)>) -> Vec<(String, Source)> {
    let mut unique: Vec<(String, Source)> = Vec::new();
    for (name, source) in sources {
        let prefix = format!("{name}-");
        let count = unique.iter().filter(|(known, _)| *known == name || known.starts_with(&prefix)).count();
        unique.push((if count == 0 { name } else { format!("{name}-{}", count + 1) }, source));
    }
    unique
}

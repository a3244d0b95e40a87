//! The arguments that name a library or a server, and the timeout.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;
use promptshelf_client::Endpoint;

use crate::{
    exit::Failure,
    source::{HERE, Source},
};

/// The options that stand for LIBRARY.
#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// The word LIBRARY.
    #[arg(skip)]
    pub(super) first: Option<OsString>,

    /// The same as LIBRARY
    #[arg(short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    folder: Option<PathBuf>,

    /// The same as LIBRARY
    #[arg(long, value_name = "URL", hide = true, conflicts_with_all = ["folder", "server", "command"])]
    url: Option<String>,

    /// The configured server with this name, even if there is a folder with it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["folder", "command"])]
    server: Option<String>,

    /// A command that starts a server, in place of LIBRARY; last, after `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "folder")]
    command: Vec<String>,

    #[command(flatten)]
    timeout: Timeout,
}

impl SourceArguments {
    /// Returns the library or server of LIBRARY or an option, by default the library in the current folder.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        match (&self.folder, &self.url, &self.server, self.command.as_slice()) {
            (Some(folder), ..) => Ok(Source::Folder(folder.clone())),
            (None, Some(url), ..) => Ok(Source::Server(with_token(Endpoint::url(url))?)),
            (None, None, Some(name), _) => Source::configured(name),
            (None, None, None, line @ [_, ..]) => Ok(Source::Server(Endpoint::command(line))),
            (None, None, None, []) => match self.first.as_deref().map(Source::parse).transpose()? {
                Some(Source::Server(endpoint)) => Ok(Source::Server(with_token(endpoint)?)),
                Some(source) => Ok(source),
                None => Ok(Source::Folder(PathBuf::from(HERE))),
            },
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.folder.is_some() || self.url.is_some() || self.server.is_some() || !self.command.is_empty()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.get()
    }
}

/// Adds the token of the environment, if there is one.
pub(crate) fn with_token(endpoint: Endpoint) -> Result<Endpoint, Failure> {
    match crate::environment::variable("PROMPTSHELF_TOKEN") {
        Some(token) => Ok(endpoint.bearer(&token)?),
        None => Ok(endpoint),
    }
}

/// How long an answer may take.
#[derive(Debug, Args)]
pub(crate) struct Timeout {
    /// Time limit for each answer of the server, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl Timeout {
    pub(crate) fn get(&self) -> Duration {
        const USUAL: Duration = Duration::from_secs(60);

        self.timeout.unwrap_or(USUAL)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds, such as 5 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "expected a positive number of seconds".to_owned())
}

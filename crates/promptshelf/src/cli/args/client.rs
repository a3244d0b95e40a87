//! Arguments of the commands that use a server: the server, and the timeout.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use promptshelf_client::Endpoint;

use super::{
    help,
    words::{Uri, Words},
};
use crate::{
    exit::Failure,
    source::{HERE, Source, is_url},
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

    /// Time limit for each answer of the server, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
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
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// Adds the token of the environment, if there is one.
fn with_token(endpoint: Endpoint) -> Result<Endpoint, Failure> {
    match crate::environment::variable("PROMPTSHELF_TOKEN") {
        Some(token) => Ok(endpoint.bearer(&token)?),
        None => Ok(endpoint),
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds, such as 5 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "expected a positive number of seconds".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = help::RESOURCES_EXAMPLES)]
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

#[derive(Debug, Args)]
#[command(after_help = help::SIGN_IN_EXAMPLES)]
pub(crate) struct SignInArguments {
    /// A URL, or the name of a server in the configuration of Claude Code (.mcp.json) or VS Code
    #[arg(value_name = "LIBRARY")]
    pub(crate) target: String,

    /// The OAuth client ID, or the https URL of a client ID metadata document
    #[arg(long, value_name = "ID", env = "PROMPTSHELF_CLIENT_ID", hide_env_values = true)]
    pub(crate) client_id: Option<String>,

    /// A scope to request, in place of those that the server names; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// Time limit for each answer of the server, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl SignInArguments {
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

#[derive(Debug, Args)]
pub(crate) struct SignOutArguments {
    /// A URL, or the name of a server in the configuration of Claude Code (.mcp.json) or VS Code
    #[arg(value_name = "LIBRARY")]
    pub(crate) target: String,
}

#[derive(Debug, Args)]
#[command(after_help = help::USE_EXAMPLES, after_long_help = help::use_long_help())]
pub(crate) struct UseArguments {
    /// Libraries, URLs, or names of servers in the configuration of Claude Code (.mcp.json) or VS Code [default: the current folder]
    #[arg(value_name = "LIBRARY")]
    pub(crate) targets: Vec<String>,

    /// A command that starts a server; last, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// Time limit for each answer of a server, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Store nothing: no history, and no differences of changed prompts
    #[arg(long)]
    pub(crate) forget: bool,
}

impl UseArguments {
    /// Returns the sources with short names. A token of the environment is added only if there is a single URL, so that
    /// no other server receives it.
    pub(crate) fn sources(&self) -> Result<Vec<(String, Source)>, Failure> {
        let mut sources = Vec::new();
        for word in &self.targets {
            sources.push((name_of(word), Source::parse(OsStr::new(word))?));
        }
        if let [program, ..] = self.command.as_slice() {
            // After a launcher such as npx, the last word names the server.
            let named = self.command.iter().rev().find(|word| !word.starts_with('-')).unwrap_or(program);
            sources.push((name_of(named), Source::Server(Endpoint::command(&self.command))));
        }
        if sources.is_empty() {
            sources.push(("here".to_owned(), Source::Folder(PathBuf::from(HERE))));
        }
        if let [url] = self.targets.iter().filter(|word| is_url(word)).collect::<Vec<_>>().as_slice() {
            for (_, source) in &mut sources {
                if let Source::Server(endpoint) = source
                    && endpoint.to_string() == **url
                {
                    *endpoint = with_token(endpoint.clone())?;
                }
            }
        }
        Ok(sources)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

fn name_of(word: &str) -> String {
    let inner = word.split_once("://").map_or(word, |(_, rest)| rest.split('/').next().unwrap_or(rest));
    let last = inner.trim_end_matches('/').rsplit('/').next().unwrap_or(inner);
    let name: String =
        last.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
    if name.trim_matches(['.', '-']).is_empty() { "here".to_owned() } else { name }
}

//! What can be typed for verbs that ask other servers: which server, and how long to wait.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use promptshelf_client::Target;

use super::help;
use super::{HERE, LibraryObject};
use crate::exit::Failure;

/// A server, instead of a library.
#[derive(Debug, Args)]
#[command(next_help_heading = "Another server, instead of a library")]
pub(crate) struct ServerArguments {
    /// The server at this address; a token in PROMPTSHELF_TOKEN is sent to it
    #[arg(long, value_name = "URL", conflicts_with_all = ["folder", "server", "command"])]
    url: Option<String>,

    /// The server that `.mcp.json`, Claude Code or VS Code knows by this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["folder", "command"])]
    server: Option<String>,

    /// The server that this command starts; after everything else and `--`
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "folder")]
    command: Vec<String>,

    /// How many seconds the server may take for an answer [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl ServerArguments {
    /// The server, where one was named.
    pub(crate) fn target(&self) -> Result<Option<Target>, Failure> {
        let target = match (&self.url, &self.server, self.command.as_slice()) {
            (Some(url), ..) => with_token(Target::url(url))?,
            (None, Some(name), _) => Target::configured(name)?,
            (None, None, line @ [_, ..]) => Target::command(line),
            (None, None, []) => return Ok(None),
        };
        Ok(Some(target))
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(USUAL_TIMEOUT)
    }
}

/// An address with the token of the environment, if there is one.
pub(crate) fn with_token(target: Target) -> Result<Target, Failure> {
    match std::env::var("PROMPTSHELF_TOKEN") {
        Ok(token) if !token.is_empty() => Ok(target.bearer(&token)?),
        _ => Ok(target),
    }
}

/// How long a server may take when nobody says otherwise.
const USUAL_TIMEOUT: Duration = Duration::from_secs(60);

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write it as seconds, such as 5 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "that is no time to wait".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = help::RESOURCES_EXAMPLES)]
pub(crate) struct ResourcesArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    /// Read this resource instead of listing all
    #[arg(long, value_name = "URI")]
    pub(crate) read: Option<String>,

    /// Print JSON: what `resources/list` and `resources/templates/list`, or `resources/read`, show
    #[arg(long)]
    pub(crate) json: bool,

    /// Write what is no text to files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::SIGN_IN_EXAMPLES)]
pub(crate) struct SignInArguments {
    /// An address, or a name from `.mcp.json`, Claude Code or VS Code
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,

    /// What the authorization server knows this program as, or the https address of a client ID metadata document
    #[arg(long, value_name = "ID", env = "PROMPTSHELF_CLIENT_ID", hide_env_values = true)]
    pub(crate) client_id: Option<String>,

    /// A scope to ask for, instead of those that the server names; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// How many seconds the server may take for an answer [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl SignInArguments {
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(USUAL_TIMEOUT)
    }
}

#[derive(Debug, Args)]
pub(crate) struct SignOutArguments {
    /// An address, or a name from `.mcp.json`, Claude Code or VS Code
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
}

#[derive(Debug, Args)]
#[command(after_help = help::CHAT_EXAMPLES, after_long_help = help::chat_long_help())]
pub(crate) struct ChatArguments {
    /// Folders of prompt files, addresses, or names from `.mcp.json`, Claude Code or VS Code [default: the current folder]
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,

    /// A server that this command starts; after everything else and `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    /// How many seconds a server may take for an answer [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Remember nothing: no history, and no diff of prompts that have changed
    #[arg(long)]
    pub(crate) forget: bool,
}

impl ChatArguments {
    /// Every server, by the name it gets where names clash. A token in the
    /// environment is sent only where it cannot reach somebody it is not for.
    pub(crate) fn servers(&self) -> Result<Vec<(String, Target)>, Failure> {
        let mut servers = Vec::new();
        for word in &self.targets {
            servers.push((name_of(word), Target::parse(word)?));
        }
        if let [program, ..] = self.command.as_slice() {
            // The last word is what is started, where a launcher such as npx comes first.
            let named = self.command.iter().rev().find(|word| !word.starts_with('-')).unwrap_or(program);
            servers.push((name_of(named), Target::command(&self.command)));
        }
        if servers.is_empty() {
            servers.push(("here".to_owned(), Target::folder(HERE)));
        }
        if let [url] = self.targets.iter().filter(|word| word.contains("://")).collect::<Vec<_>>().as_slice() {
            for (_, target) in servers.iter_mut().filter(|(_, target)| target.to_string() == **url) {
                *target = with_token(target.clone())?;
            }
        }
        Ok(servers)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(USUAL_TIMEOUT)
    }
}

/// A short name out of an address or a path.
fn name_of(word: &str) -> String {
    let inner = word.split_once("://").map_or(word, |(_, rest)| rest.split('/').next().unwrap_or(rest));
    let last = inner.trim_end_matches('/').rsplit('/').next().unwrap_or(inner);
    let name: String =
        last.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).collect();
    if name.trim_matches(['.', '-']).is_empty() { "here".to_owned() } else { name }
}

//! Arguments of the commands for operators: `serve`, `audit` and `token`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::{
    channels::{ActorArguments, PlaceArguments},
    help,
    time::Moment,
    words::{Nothing, Owner, Token, Words},
};
use crate::{
    settings::{Arguments, FLAGS, Flag, descriptions},
    source::HERE,
};

#[derive(Clone, Debug, Default, Args)]
#[command(after_help = help::SERVE_EXAMPLES)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) library: ServedObject,

    /// The operator's settings [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else
    /// /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Serve a single client on stdin and stdout; the default unless stdin is a terminal or the settings name an address
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,

    /// Let people change the files of the folder on the page: on this machine only, or after sign-in with the scope
    /// `library:publish`
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) edit: bool,

    /// Open the page in the browser of this machine
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) open: bool,

    /// Open everything that the settings name (library, sources, store, certificates, keys of the issuer, names of hosts),
    /// print what was found, and exit: with 0 if a server can start, else with 4
    #[arg(long, conflicts_with_all = ["stdio", "edit", "open"])]
    pub(crate) check: bool,

    /// Exit if the library has errors, instead of serving the valid prompts
    #[arg(long)]
    pub(crate) strict: bool,

    /// Let models find and use the prompts with `tool: true` through the tools find_prompt and use_prompt
    #[arg(long)]
    pub(crate) tools: bool,

    /// Also serve this channel of the store, at /channels/NAME/mcp; can be repeated
    #[arg(long = "channel", value_name = "NAME", help_heading = "Channels of a store")]
    pub(crate) channels: Vec<String>,

    #[command(flatten)]
    pub(crate) flags: SettingFlags,
}

impl ServeArguments {
    pub(crate) fn settings(&self) -> Arguments {
        let library = (!self.library.is_omitted()).then(|| self.library.word().to_owned());
        Arguments { library, channels: self.channels.clone(), tools: self.tools, flags: self.flags.0.clone() }
    }
}

/// The flags of settings in `server.toml`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags(BTreeMap<&'static str, Vec<String>>);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(|flag| {
            let argument = Arg::new(flag.name).long(flag.name).help_heading(flag.heading);
            match (flag.value, flag.is_list) {
                ("", _) => argument.action(ArgAction::SetTrue),
                (value, false) => argument.value_name(value).action(ArgAction::Set),
                (value, true) => argument.value_name(value).action(ArgAction::Append),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingFlags::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingFlags, clap::Error> {
        let words = |flag: &Flag| match flag.value {
            "" => matches.get_flag(flag.name).then(|| vec!["true".to_owned()]),
            _ => Some(matches.get_many::<String>(flag.name)?.cloned().collect()),
        };
        Ok(SettingFlags(FLAGS.iter().filter_map(|flag| Some((flag.name, words(flag)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SettingFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds the descriptions of settings to the help of `serve`. They are derived from the schema of `server.toml`, which takes
/// a part of the time to the first response of a server that a client starts.
pub(super) fn describe(command: Command) -> Command {
    command.mut_subcommand("serve", |serve| {
        let described = descriptions().into_iter();
        let serve = described.fold(serve, |serve, (name, text)| serve.mut_arg(name, |argument| argument.help(text)));
        serve.after_long_help(help::serve_long_help())
    })
}

/// The library of `serve`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServedObject {
    /// The folder of prompt files, a git repository: git+https://…[#REF[:PATH]] (or git+ssh, git+file), or a store and its
    /// channel: sqlite:FILE[#CHANNEL] or postgres://…[#CHANNEL]
    /// [env: PROMPTSHELF_STORE] [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same as LIBRARY
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    named: Option<PathBuf>,
}

impl ServedObject {
    fn word(&self) -> &Path {
        self.folder.as_deref().or(self.named.as_deref()).unwrap_or(Path::new(HERE))
    }

    pub(crate) fn is_omitted(&self) -> bool {
        self.folder.is_none() && self.named.is_none()
    }
}

#[derive(Debug, Args)]
#[command(after_help = help::HEALTH_EXAMPLES)]
pub(crate) struct HealthArguments {
    /// The base address of the server, such as http://127.0.0.1:8080
    #[arg(value_name = "LIBRARY")]
    pub(crate) url: String,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::AUDIT_EXAMPLES)]
pub(crate) struct AuditArguments {
    /// The file of `serve --audit`, or those of several servers, whose records are joined in the order of time; rotated
    /// files (FILE.1, FILE.2, …) next to each are read too
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Only requests of this caller
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,

    /// Only records of this kind: a method of MCP such as `prompts/get`, or the word in the records, such as get, sign-in,
    /// api/publish, rollout/stop or store/restore
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Only requests for this prompt
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,

    /// Only requests with this outcome, such as ok or unknown-prompt
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<String>,

    /// Only requests that failed or were rejected
    #[arg(long, conflicts_with = "outcome")]
    pub(crate) refused: bool,

    /// Only requests since a day or a time, such as 2027-01-31 or 2027-01-31T14:05:00Z; in UTC without a zone
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,

    /// Only requests before a day or a time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,

    /// Only requests for this channel
    #[arg(long, value_name = "NAME")]
    pub(crate) channel: Option<String>,

    /// Only the request with this id, which its answer has as `x-request-id`
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,

    /// Only requests from this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,

    /// Print the records unchanged, one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new token, once, and the line to store for it in a file of the server
    #[command(after_help = help::TOKEN_NEW_EXAMPLES)]
    New(TokenArguments),
    /// Create a token in a store, which every server of the store accepts within a second
    #[command(after_help = help::TOKEN_EXAMPLES)]
    Create(TokenCreateArguments),
    /// List the tokens of a store, with their last use
    #[command(after_help = help::TOKEN_EXAMPLES)]
    List(TokenListArguments),
    /// Revoke a token of a store: every server refuses it within a second, and ends its streams
    #[command(after_help = help::TOKEN_EXAMPLES)]
    Revoke(TokenRevokeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreateArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Owner>,

    #[command(flatten)]
    pub(crate) token: TokenOptions,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Nothing>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Token>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// Name of the token's owner in access rules and records
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) options: TokenOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// A scope of the token: library:read, library:propose, library:review, library:publish, library:evaluate and
    /// library:admin permit operations of the API, others what rules of the operator say; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// A role of the owner; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,

    /// The day at whose beginning (UTC) the token expires, such as 2027-01-31 [default: never]
    #[arg(long, value_name = "DAY")]
    pub(crate) expires: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

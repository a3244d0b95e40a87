//! Arguments of the commands for operators: `serve`, `audit` and `token`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{
    channels::{ActorArguments, PlaceArguments},
    help,
};
use crate::source::HERE;

#[derive(Clone, Debug, Default, Args)]
#[command(after_help = help::SERVE_EXAMPLES, after_long_help = help::serve_long_help())]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) library: ServedObject,

    /// The operator's settings [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else
    /// /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Serve a single client on stdin and stdout; the default unless stdin is a terminal
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,

    /// Serve over HTTP on this address; port 0 selects a free port [env: PROMPTSHELF_HTTP] [default on a terminal:
    /// 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,

    /// Let people change the files of the folder on the page: on this machine only, or after sign-in with the scope
    /// `library:publish`
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) edit: bool,

    /// Exit if the library has errors, instead of serving the valid prompts
    #[arg(long)]
    pub(crate) strict: bool,

    /// Let models find and use the prompts with `tool: true` through the tools find_prompt and use_prompt
    #[arg(long)]
    pub(crate) tools: bool,

    /// Record every request in this file: caller, method and outcome, never contents
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,

    /// Send traces to the OpenTelemetry collector at this URL, over OTLP/HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) traces: Option<String>,

    /// Also serve this channel of the store, at /channels/NAME/mcp; can be repeated
    #[arg(long = "channel", value_name = "NAME", help_heading = "Channels of a store")]
    pub(crate) channels: Vec<String>,

    /// Keep copies of the channels in this folder, so that a restart serves without the database
    #[arg(long, value_name = "FOLDER", help_heading = "Channels of a store")]
    pub(crate) cache: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) over_http: HttpArguments,
}

/// The library of `serve`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServedObject {
    /// The folder of prompt files, a git repository: git+https://…[#REF[:PATH]] (or git+ssh, git+file), or a store and its
    /// channel: sqlite:FILE[#CHANNEL] or postgres://…[#CHANNEL]
    /// [env: PROMPTSHELF_STORE] [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same as LIBRARY, for consistency with other commands
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide_short_help = true)]
    named: Option<PathBuf>,
}

impl ServedObject {
    /// The argument of a command line, if it has one.
    pub(crate) fn new(folder: Option<PathBuf>) -> ServedObject {
        ServedObject { folder, named: None }
    }

    pub(crate) fn word(&self) -> &Path {
        self.folder.as_deref().or(self.named.as_deref()).unwrap_or(Path::new(HERE))
    }

    pub(crate) fn is_omitted(&self) -> bool {
        self.folder.is_none() && self.named.is_none()
    }
}

/// Settings of the HTTP server, also available in `server.toml`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Over HTTP (`serve --help` lists the keys of server.toml)")]
pub(crate) struct HttpArguments {
    /// Accept connections from other machines without sign-in: anyone who reaches the port can read every prompt
    #[arg(long)]
    pub(crate) allow_remote: bool,

    /// Serve the API of a store at /api/v1 also without sign-in: every program on this machine can change the store
    #[arg(long)]
    pub(crate) api: bool,

    /// Serve Prometheus metrics on this address, at /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,

    /// A host name under which clients reach the server, besides localhost; can be repeated
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,

    /// A web origin that may connect, such as `https://example.com`; can be repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) allowed_origins: Vec<String>,

    /// A file of tokens for sign-in: a line per token, as printed by `promptshelf token new`
    #[arg(long, value_name = "FILE", help_heading = "Sign-in (over HTTP)")]
    pub(crate) tokens: Option<PathBuf>,

    /// The issuer URL of the authorization server whose access tokens are accepted
    #[arg(long, value_name = "URL", help_heading = "Sign-in (over HTTP)")]
    pub(crate) issuer: Option<String>,

    /// The exact URL under which clients reach the server; tokens have to be issued for it
    #[arg(long, value_name = "URL", help_heading = "Sign-in (over HTTP)")]
    pub(crate) resource: Option<String>,

    /// The certificate chain for HTTPS, as PEM; reloaded when it changes
    #[arg(long, value_name = "FILE", help_heading = "TLS and proxies (over HTTP)")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS and proxies (over HTTP)")]
    pub(crate) tls_key: Option<PathBuf>,

    /// An address or network of proxies that are trusted to report a caller's address; can be repeated
    #[arg(long = "trust-proxy", value_name = "NETWORK", help_heading = "TLS and proxies (over HTTP)")]
    pub(crate) trusted_proxies: Vec<String>,

    /// Maximum size of a request body, in bytes [default: 4194304]
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_body_bytes: Option<String>,

    /// Time limit until an answer begins, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) request_timeout: Option<String>,

    /// Time limit for open streams to end at shutdown, in seconds [default: 5]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) shutdown_timeout: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = help::AUDIT_EXAMPLES)]
pub(crate) struct AuditArguments {
    /// The file of `serve --audit`; rotated files next to it are read too
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Only requests of this caller
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,

    /// Only requests of this kind: a method of MCP such as `prompts/get`, or the word in the records: list, get,
    /// complete, read, find, skill, folder, follow, subscribe, overview, describe or diagnostics; api/publish and so on
    /// for the API
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

    /// Only requests since a day (in UTC) or a time, such as 2027-01-31
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,

    /// Print the records unchanged, one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a new token, once, and the line to store for it in a file of the server
    #[command(after_help = help::TOKEN_EXAMPLES)]
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
    pub(crate) token: TokenArguments,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TokenListArguments {
    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArguments {
    /// The number of the token, or its name
    #[arg(value_name = "TOKEN")]
    pub(crate) token: String,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// Name of the token's owner in access rules and records
    #[arg(id = "owner", value_name = "NAME")]
    pub(crate) name: String,

    /// A scope of the token; can be repeated
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

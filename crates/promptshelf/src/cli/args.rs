//! What can be typed, and the help texts. What a verb does is not here.

pub(super) mod author;
pub(super) mod client;
pub(super) mod exchange;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

mod help;

/// Turns a folder of prompt files into a Model Context Protocol prompt server.
#[derive(Debug, Parser)]
#[command(name = "promptshelf", version, max_term_width = 100, after_help = help::EXAMPLES, after_long_help = help::long_help())]
#[command(arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

/// The same with the verb alone that clients start, and wait for: what all the
/// verbs take is a good part of what is made before the first answer.
#[derive(Debug, Parser)]
struct ServeLine {
    #[command(subcommand)]
    verb: ServeVerb,

    #[command(flatten)]
    log: LogArguments,
}

#[derive(Debug, Subcommand)]
enum ServeVerb {
    Serve(ServeArguments),
}

impl CommandLine {
    /// Reads what was typed. Ends the program where that is a question or a mistake.
    pub(crate) fn read() -> CommandLine {
        if std::env::args_os().nth(1).is_some_and(|verb| verb == "serve")
            && let Ok(ServeLine { verb: ServeVerb::Serve(arguments), log }) = ServeLine::try_parse()
        {
            return CommandLine { verb: Verb::Serve(arguments), log };
        }
        // Questions and mistakes are answered with everything that there is.
        CommandLine::parse()
    }
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// What to log: error, warn, info, debug or trace, or several as in `info,promptshelf_source=debug`
    #[arg(
        long = "log",
        global = true,
        value_name = "LEVEL",
        env = "RUST_LOG",
        hide_env_values = true,
        help_heading = "Log, on stderr"
    )]
    pub(crate) level: Option<String>,

    /// How log lines look
    #[arg(long, global = true, value_name = "FORMAT", env = "PROMPTSHELF_LOG_FORMAT", default_value = "text")]
    #[arg(help_heading = "Log, on stderr", hide_env_values = true)]
    pub(crate) log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Serve a library to MCP clients, on stdio or over HTTP
    Serve(ServeArguments),
    /// Show recorded requests, with caller and outcome
    Audit(AuditArguments),
    /// Create a token for sign-in
    #[command(subcommand)]
    Token(TokenVerb),
    /// Report every mistake in a library
    Check(CheckArguments),
    /// Explain the codes of `check`
    Explain(author::ExplainArguments),
    /// Show what is known of MCP clients and their prompts
    Clients(author::ClientsArguments),
    /// Show a prompt as a person reads it, with sizes and tokens
    Render(author::RenderArguments),
    /// Create a prompt file
    New(author::NewArguments),
    /// Lay out the front matter of prompt files in one way
    Fmt(author::FmtArguments),
    /// Run the tests of prompts
    Test(author::TestArguments),
    /// Print a JSON Schema of prompt files or of promptshelf.toml, for editors
    Schema(author::SchemaArguments),
    /// List the prompts of a library
    List(ListArguments),
    /// Fill in a prompt and print its messages
    Get(GetArguments),
    /// Suggest values for an argument of a prompt
    Complete(CompleteArguments),
    /// Turn prompts of other programs into files of a library
    Import(exchange::ImportArguments),
    /// Turn prompts of a library into files of other programs
    Export(exchange::ExportArguments),
    /// Help an editor, over the Language Server Protocol
    Lsp(exchange::LspArguments),
    /// List the resources of a library or server, or read one
    Resources(client::ResourcesArguments),
    /// Use the prompts of one or several servers, at a prompt of its own
    Chat(client::ChatArguments),
    /// Sign in to a server, in the browser
    SignIn(client::SignInArguments),
    /// Forget a sign-in
    SignOut(client::SignOutArguments),
}

/// The library, for verbs whose object it is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LibraryObject {
    /// The folder of prompt files [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same, spelled as the other verbs spell it
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide_short_help = true)]
    named: Option<PathBuf>,
}

/// The library, for verbs whose object is a prompt.
#[derive(Debug, Args)]
pub(crate) struct LibraryOption {
    /// The folder of prompt files [default: the current folder]
    #[arg(short = 'l', long = "library", value_name = "LIBRARY")]
    folder: Option<PathBuf>,
}

/// The library where nothing else is said.
const HERE: &str = ".";

impl LibraryObject {
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_deref().or(self.named.as_deref()).unwrap_or(Path::new(HERE))
    }
}

impl LibraryOption {
    /// The folder, where somebody says it.
    pub(crate) fn given(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(HERE))
    }
}

#[derive(Clone, Debug, Default, Args)]
#[command(after_help = help::SERVE_EXAMPLES, after_long_help = help::serve_long_help())]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    /// The operator's settings [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else
    /// /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Serve the client at the other end of stdin and stdout; the default when stdin is no terminal
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,

    /// Serve over HTTP; port 0 takes a free one [env: PROMPTSHELF_HTTP] [default on a terminal: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,

    /// Refuse to start if the library has errors, instead of serving the rest
    #[arg(long)]
    pub(crate) strict: bool,

    /// Record every request in a file: caller, method and outcome, never contents
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,

    /// Send traces to this OpenTelemetry collector, over OTLP with HTTP
    #[arg(long, value_name = "URL")]
    pub(crate) traces: Option<String>,

    #[command(flatten)]
    pub(crate) over_http: HttpArguments,
}

/// Settings of the HTTP server. `server.toml` has the same ones.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Over HTTP (`serve --help` shows them as they are written in server.toml)")]
pub(crate) struct HttpArguments {
    /// Accept connections from other machines without sign-in: anyone who reaches the port can read every prompt
    #[arg(long)]
    pub(crate) allow_remote: bool,

    /// Serve metrics for Prometheus on this address, at /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,

    /// A host name under which clients reach the server, besides localhost; can be repeated
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,

    /// A web origin that may connect, as `https://example.com`; can be repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) allowed_origins: Vec<String>,

    /// A file with the tokens that callers can sign in with: lines of `promptshelf token new`
    #[arg(long, value_name = "FILE", help_heading = "Signing in, over HTTP")]
    pub(crate) tokens: Option<std::path::PathBuf>,

    /// The authorization server whose access tokens are taken, by its issuer URL
    #[arg(long, value_name = "URL", help_heading = "Signing in, over HTTP")]
    pub(crate) issuer: Option<String>,

    /// The exact URL under which clients reach the server; tokens have to be for it
    #[arg(long, value_name = "URL", help_heading = "Signing in, over HTTP")]
    pub(crate) resource: Option<String>,

    /// The certificate to serve HTTPS with, as PEM; read again when it changes
    #[arg(long, value_name = "FILE", help_heading = "TLS and proxies, over HTTP")]
    pub(crate) tls_certificate: Option<std::path::PathBuf>,

    /// The certificate's private key, as PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS and proxies, over HTTP")]
    pub(crate) tls_key: Option<std::path::PathBuf>,

    /// A network or an address of proxies that say where requests come from; can be repeated
    #[arg(long = "trust-proxy", value_name = "NETWORK", help_heading = "TLS and proxies, over HTTP")]
    pub(crate) trusted_proxies: Vec<String>,

    /// The most bytes that a request can have
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_body_bytes: Option<String>,

    /// How many seconds a request may take until its answer begins
    #[arg(long, value_name = "SECONDS")]
    pub(crate) request_timeout: Option<String>,

    /// How many seconds open streams may take to end at a shutdown
    #[arg(long, value_name = "SECONDS")]
    pub(crate) shutdown_timeout: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = help::AUDIT_EXAMPLES)]
pub(crate) struct AuditArguments {
    /// The file that `serve --audit` writes; the older ones beside it are read too
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Only what this caller asked
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,

    /// Only questions of this kind: list, get, complete, read, follow or subscribe
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Only what was about this prompt
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt: Option<String>,

    /// Only what ended like this, such as ok or unknown-prompt
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<String>,

    /// Only what was not answered
    #[arg(long, conflicts_with = "outcome")]
    pub(crate) refused: bool,

    /// Only what was asked since a day in UTC or a time, such as 2027-01-31
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,

    /// Print the records as they are, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Print a new token, once, and the line to store for it
    #[command(after_help = help::TOKEN_EXAMPLES)]
    New(TokenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// Whose it is; rules and records call its owner by this name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// A scope that it has; can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,

    /// A role that its owner has; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,

    /// The day at whose beginning it ends, in UTC, such as 2027-01-31
    #[arg(long, value_name = "DAY")]
    pub(crate) expires: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::CHECK_EXAMPLES)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    /// Also check the operator's settings in this server.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Make warnings errors
    #[arg(long, value_name = "WHAT")]
    pub(crate) deny: Option<Deny>,

    /// Also say which prompts a client hides, changes or breaks; `all` for every client; can be repeated
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// How to show what is wrong
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: CheckFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// Everything that is found
    Warnings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Each with its line of the file
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
    /// Commands of GitHub Actions: each is shown beside its line
    Github,
}

#[derive(Debug, Args)]
#[command(after_help = help::LIST_EXAMPLES)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    /// Print JSON: the prompts as `prompts/list` shows them
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: client::ServerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::GET_EXAMPLES)]
pub(crate) struct GetArguments {
    /// The prompt's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) library: LibraryOption,

    #[command(flatten)]
    pub(crate) values: ValueArguments,

    /// How to print the messages
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: GetFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write images, audio and other files of the prompt to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) server: client::ServerArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetFormat {
    /// What a person reads
    Text,
    /// The answer of `prompts/get` in the newest revision of MCP
    Json,
    /// `messages` for OpenAI's Chat Completions API
    Openai,
    /// `messages` for Anthropic's Messages API
    Anthropic,
    /// One Markdown document
    Markdown,
}

/// Values for a prompt's arguments.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ValueArguments {
    /// A value: `code=text`, `code=@file`, or `code=-` for stdin; can be repeated
    #[arg(short = 'a', long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) values: Vec<(String, String)>,

    /// A value that is taken as it stands, even if it begins with `@` or is `-`
    #[arg(long = "literal", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) literal: Vec<(String, String)>,
}

/// Parses `name=value`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected name=value".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = help::COMPLETE_EXAMPLES)]
pub(crate) struct CompleteArguments {
    /// The prompt's name, or a resource template as `logs://recent{?timeframe}`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The argument to suggest values for
    #[arg(value_name = "ARGUMENT")]
    pub(crate) argument: String,

    /// What has been typed of the value so far
    #[arg(value_name = "VALUE", default_value = "", hide_default_value = true)]
    pub(crate) value: String,

    #[command(flatten)]
    pub(crate) library: LibraryOption,

    #[command(flatten)]
    pub(crate) values: ValueArguments,

    /// Print JSON: the answer of `completion/complete`
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) server: client::ServerArguments,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }
}

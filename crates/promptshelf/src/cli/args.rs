//! The command line: subcommands, options and help texts. Commands read their arguments from here; nothing here
//! depends on a command.

pub(super) mod author;
pub(super) mod channels;
pub(super) mod client;
pub(super) mod exchange;
mod operator;
pub(super) mod reach;
mod sources;

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

mod help;

use crate::{
    environment::{self, without_passwords},
    source::HERE,
};

pub(crate) use self::{
    operator::{
        AuditArguments, HealthArguments, ServeArguments, TokenArguments, TokenCommand, TokenCreateArguments,
        TokenListArguments, TokenRevokeArguments,
    },
    sources::{SourceArguments, SourceCommand, SourceConfig},
};

/// The width at which help texts are wrapped, even on wider terminals.
const MAX_COLUMNS: usize = 100;

/// Turns a folder of prompt files into a Model Context Protocol prompt server.
#[derive(Debug, Parser)]
#[command(name = "promptshelf", version, max_term_width = MAX_COLUMNS, after_help = help::EXAMPLES, after_long_help = help::long_help())]
#[command(arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

/// The same with `serve` alone, the only command that clients start and wait for. Building the options of the other
/// commands takes a good part of the time to the first response.
#[derive(Debug, Parser)]
struct ServeLine {
    #[command(subcommand)]
    command: ServeCommand,

    #[command(flatten)]
    log: LogArguments,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    Serve(ServeArguments),
}

impl CommandLine {
    pub(crate) fn complete() -> clap::Command {
        operator::describe(CommandLine::command())
    }

    /// Parses the arguments of the process. Prints help or an error and ends the process if there is nothing to run.
    pub(crate) fn read() -> CommandLine {
        if std::env::args_os().len() < 2 && io::stdout().is_terminal() {
            write!(io::stdout(), "{}", help::first_steps()).ok();
            std::process::exit(0)
        }
        if std::env::args_os().nth(1).is_some_and(|command| command == "serve")
            && let Ok(ServeLine { command: ServeCommand::Serve(arguments), log }) = ServeLine::try_parse()
        {
            return CommandLine { command: Command::Serve(arguments), log };
        }
        // Help and errors come from the complete command line.
        let matches = with_secrets(CommandLine::command()).try_get_matches();
        let matches = matches.or_else(|_| with_secrets(CommandLine::complete()).try_get_matches());
        matches.and_then(|matches| CommandLine::from_arg_matches(&matches)).unwrap_or_else(|error| {
            let shown = error.to_string();
            match without_passwords(&shown) {
                Cow::Owned(text) if error.use_stderr() => {
                    write!(io::stderr(), "{text}").ok();
                    std::process::exit(error.exit_code())
                }
                _ => error.exit(),
            }
        })
    }
}

fn with_secrets(command: clap::Command) -> clap::Command {
    let secret = |argument: &clap::Arg| argument.get_env().and_then(OsStr::to_str).and_then(environment::from_file);
    let command = command.mut_args(|argument| match secret(&argument) {
        Some(secret) => argument.required(false).default_value(secret).hide_default_value(true),
        None => argument,
    });
    command.mut_subcommands(with_secrets)
}

/// Returns whether the words are `--version --json`, in any order. The parser would ask for a command.
pub(crate) fn asks_for_version_as_json(words: impl Iterator<Item = OsString>) -> bool {
    let mut words: Vec<OsString> = words.take(3).collect();
    words.sort();
    words == ["--json", "--version"] || words == ["--json", "-V"]
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Log level: off, error, warn, info, debug or trace, or per target as in `info,promptshelf_source=debug`
    /// [default: info for `serve`, else error]
    #[arg(
        long = "log",
        global = true,
        value_name = "LEVEL",
        env = "RUST_LOG",
        hide_env_values = true,
        help_heading = "Log (on stderr)"
    )]
    pub(crate) level: Option<String>,

    /// Format of log lines
    #[arg(long, global = true, value_name = "FORMAT", env = "PROMPTSHELF_LOG_FORMAT", default_value = "text")]
    #[arg(help_heading = "Log (on stderr)", hide_env_values = true)]
    pub(crate) log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text, for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a library to MCP clients, on stdio or over HTTP
    Serve(ServeArguments),
    /// Ask a server over HTTP whether it runs
    Health(HealthArguments),
    /// Show recorded requests with caller and outcome
    Audit(AuditArguments),
    /// Show and steer the sources of prompts in server.toml
    #[command(subcommand)]
    Source(SourceCommand),
    /// Create, list and revoke tokens for sign-in
    #[command(subcommand)]
    Token(TokenCommand),
    /// Report every mistake in a library
    Check(CheckArguments),
    /// Explain the codes of `check`
    Explain(author::ExplainArguments),
    /// Show how MCP clients treat prompts
    Clients(author::ClientsArguments),
    /// Render a prompt in readable form, with sizes and tokens
    Render(author::RenderArguments),
    /// Create a prompt file from a template
    New(author::NewArguments),
    /// Format the front matter of prompt files
    Fmt(author::FmtArguments),
    /// Run the tests of prompts
    Test(author::TestArguments),
    /// Print the JSON Schema of prompt files, promptshelf.toml or server.toml
    Schema(author::SchemaArguments),
    /// List the prompts of a library
    List(ListArguments),
    /// Render a prompt and print its messages
    Get(GetArguments),
    /// Suggest values for an argument of a prompt
    Complete(CompleteArguments),
    /// Convert prompts of other programs to files of a library
    Import(exchange::ImportArguments),
    /// Convert prompts of a library to files of other programs
    Export(exchange::ExportArguments),
    #[command(flatten)]
    Channels(channels::ChannelsCommand),
    /// Add a library or server to the configuration of an MCP client
    Install(reach::InstallArguments),
    /// Remove a library or server from the configuration of an MCP client
    Uninstall(reach::UninstallArguments),
    /// Write prompts as files that a client reads, and keep them current
    Sync(reach::SyncArguments),
    /// Run a language server for editors, on stdin and stdout
    Lsp(exchange::LspArguments),
    /// List the resources of a library or server, or read one
    Resources(client::ResourcesArguments),
    /// Use the prompts of one or several servers interactively
    Chat(client::ChatArguments),
    /// Sign in to a server in the browser
    SignIn(client::SignInArguments),
    /// Delete the stored credentials of a server
    SignOut(client::SignOutArguments),
    /// Print the completions of a shell
    Completions(reach::CompletionsArguments),
    /// Write manual pages
    Man(reach::ManArguments),
}

/// The library of commands whose only positional argument it is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LibraryObject {
    /// The folder of prompt files [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same as LIBRARY, for consistency with other commands
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide_short_help = true)]
    named: Option<PathBuf>,
}

/// The library of commands whose positional argument is a prompt.
#[derive(Debug, Args)]
pub(crate) struct LibraryOption {
    /// The folder of prompt files [default: the current folder]
    #[arg(short = 'l', long = "library", value_name = "LIBRARY")]
    folder: Option<PathBuf>,
}

impl LibraryObject {
    pub(crate) fn folder(&self) -> &Path {
        self.explicit_folder().unwrap_or(Path::new(HERE))
    }

    /// Returns the folder if it was set explicitly.
    pub(crate) fn explicit_folder(&self) -> Option<&Path> {
        self.folder.as_deref().or(self.named.as_deref())
    }
}

impl LibraryOption {
    /// Returns the folder if it was set explicitly.
    pub(crate) fn explicit_folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new(HERE))
    }
}

#[derive(Debug, Args)]
#[command(after_help = help::CHECK_EXAMPLES)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    /// Also check the operator's settings in this server.toml, and its access rules with the library unless it has
    /// `[[source]]`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Treat warnings as errors
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) deny: Option<Deny>,

    /// Also report prompts that this client hides, changes or breaks; `all` for every client; can be repeated
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// Format of the findings
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: CheckFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// Warnings, in addition to errors
    Warnings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Text, with the source lines
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code hosting platforms
    Sarif,
    /// Workflow commands of GitHub Actions, displayed next to the source lines
    Github,
}

#[derive(Debug, Args)]
#[command(after_help = help::LIST_EXAMPLES)]
pub(crate) struct ListArguments {
    /// A folder of prompt files, a URL, or the name of a server in the configuration of Claude Code (.mcp.json) or VS
    /// Code [default: the current folder]
    #[arg(value_name = "TARGET", conflicts_with_all = client::SOURCES)]
    pub(crate) target: Option<OsString>,

    /// Print JSON: the result of `prompts/list`
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) source: client::SourceArguments,
}

#[derive(Debug, Args)]
#[command(after_help = help::GET_EXAMPLES, override_usage = help::GET_USAGE)]
pub(crate) struct GetArguments {
    /// The prompt's name; before it, the TARGET that has the prompt: a folder, a URL, or the name of a server in the
    /// configuration of Claude Code (.mcp.json) or VS Code [default: the current folder]
    #[arg(value_name = "NAME", num_args = 1..=2, required = true)]
    words: Vec<OsString>,

    #[command(flatten)]
    pub(crate) values: ValueArguments,

    /// Format of the messages
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: GetFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write images, audio and other binary contents to files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) source: client::SourceArguments,
}

impl GetArguments {
    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.words.last().map_or(Cow::Borrowed(""), |name| name.to_string_lossy())
    }

    pub(crate) fn target(&self) -> Option<&OsStr> {
        self.words.split_last().and_then(|(_, before)| before.first()).map(OsString::as_os_str)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetFormat {
    /// Readable text
    Text,
    /// The result of `prompts/get` in the newest revision of MCP
    Json,
    /// `messages` for OpenAI's Chat Completions API
    Openai,
    /// `messages` for Anthropic's Messages API
    Anthropic,
    /// One Markdown document
    Markdown,
}

/// Values for the arguments of a prompt.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ValueArguments {
    /// A value: `code=text`, `code=@file`, or `code=-` for stdin; can be repeated
    #[arg(short = 'a', long = "arg", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) values: Vec<(String, String)>,

    /// A value used verbatim, even if it begins with `@` or is `-`; can be repeated
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
#[command(after_help = help::COMPLETE_EXAMPLES, override_usage = help::COMPLETE_USAGE)]
pub(crate) struct CompleteArguments {
    /// The prompt's name, or a resource template such as `logs://recent{?timeframe}`; its argument; and the beginning of
    /// the value. Before them, the TARGET as for `get` [default: the current folder]
    #[arg(value_name = "NAME ARGUMENT", num_args = 2..=4, required = true)]
    pub(crate) words: Vec<OsString>,

    #[command(flatten)]
    pub(crate) values: ValueArguments,

    /// Print JSON: the result of `completion/complete`
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) source: client::SourceArguments,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_valid() {
        CommandLine::complete().debug_assert();
    }

    #[test]
    fn help_texts_fit_80_columns() {
        const TERMINAL_COLUMNS: usize = 80;

        let command_line = CommandLine::complete();
        for command in command_line.get_subcommands().chain([&command_line]) {
            for text in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                let text = text.to_string();
                let longest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
                assert!(longest.chars().count() <= TERMINAL_COLUMNS, "{}: {longest}", command.get_name());
            }
        }
    }
}

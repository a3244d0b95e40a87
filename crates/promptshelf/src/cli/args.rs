//! The command line: subcommands, options and help texts. Commands read their arguments from here; nothing here
//! depends on a command.

pub(super) mod channels;
pub(super) mod client;
pub(crate) mod complete;
mod help;
mod operator;
pub(crate) mod time;
mod tips;
mod words;

use std::{
    ffi::{OsStr, OsString},
    io::{self, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use promptshelf_author::ImportFormat;

use crate::{
    client_config::Scope,
    environment::{self, without_passwords},
    output,
    source::{HERE, is_url},
};

use self::words::{FileAndValues, NewPrompt, Nothing, PartOfValue, PromptAndValues, PromptsAndValues};
pub(crate) use self::words::{Names, Words, store_fault, value_words};

pub(crate) use self::operator::{
    AuditArguments, HealthArguments, ServeArguments, TokenArguments, TokenCommand, TokenCreateArguments,
    TokenListArguments, TokenOptions, TokenRevokeArguments,
};

/// The width at which help texts are wrapped, even on wider terminals.
const MAX_COLUMNS: usize = 100;

/// Turns a folder of prompt files into a Model Context Protocol prompt server.
#[derive(Debug, Parser)]
#[command(name = "promptshelf", version, max_term_width = MAX_COLUMNS, after_help = help::EXAMPLES)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

/// The same with `serve` alone, the only command that clients start and wait for. Building the options of the other
/// commands takes a good part of the time to the first response.
#[derive(Debug, Parser)]
struct ServeLine {
    #[command(subcommand)]
    command: ServeCommand,

    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    Serve(ServeArguments),
}

impl CommandLine {
    pub(crate) fn complete() -> clap::Command {
        help::arranged(operator::describe(CommandLine::command()))
    }

    /// Parses the arguments of the process. Prints help or an error and ends the process if there is nothing to run.
    pub(crate) fn read() -> CommandLine {
        if std::env::args_os().len() < 2 && io::stdout().is_terminal() {
            write!(io::stdout(), "{}", help::first_steps()).ok();
            std::process::exit(0)
        }
        if std::env::args_os().nth(1).is_some_and(|command| command == "serve")
            && let Ok(ServeLine { command: ServeCommand::Serve(arguments), common }) = ServeLine::try_parse()
        {
            return CommandLine { command: Command::Serve(arguments), common };
        }
        // Help and errors come from the complete command line.
        let matches = with_secrets(CommandLine::command()).try_get_matches();
        let matches = matches.or_else(|_| {
            let colours = output::colours_of(std::env::args_os().skip(1)).choice();
            with_secrets(CommandLine::complete()).color(colours).try_get_matches()
        });
        let parsed = matches.and_then(|matches| {
            CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command_of(&matches)))
        });
        parsed.unwrap_or_else(|error| {
            let error = tips::improve(error, std::env::args_os().skip(1));
            let shown = error.to_string();
            let safe = without_passwords(&shown);
            let safe = output::visible(&safe);
            // It has words that were typed.
            if *safe != *shown && error.use_stderr() {
                write!(io::stderr(), "{safe}").ok();
                std::process::exit(error.exit_code())
            }
            error.exit()
        })
    }
}

/// Returns the complete command that was called, for its usage.
fn command_of(matches: &clap::ArgMatches) -> clap::Command {
    let mut root = CommandLine::complete();
    root.build();
    let (mut command, mut matches) = (&root, matches);
    while let Some((name, below)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        (command, matches) = (found, below);
    }
    command.clone()
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

/// The options of every command. One line of each help text names them.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// Print results only: no notes and no progress on stderr
    #[arg(short = 'q', long, global = true, hide = true)]
    pub(crate) quiet: bool,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide = true)]
    pub(crate) color: Colours,

    /// Answer questions with yes, except those about text or commands of others
    #[arg(long, global = true, hide = true)]
    pub(crate) yes: bool,

    /// Log level: off, error, warn, info, debug or trace, or per target as in `info,promptshelf_source=debug`
    /// [default: info for `serve`, else error]
    #[arg(long = "log", global = true, value_name = "LEVEL", env = "RUST_LOG", hide_env_values = true, hide = true)]
    pub(crate) level: Option<String>,

    /// Format of log lines on stderr
    #[arg(long, global = true, value_name = "FORMAT", env = "PROMPTSHELF_LOG_FORMAT", default_value = "text")]
    #[arg(hide_env_values = true, hide = true)]
    pub(crate) log_format: LogFormat,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colours {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
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
    Explain(ExplainArguments),
    /// List the known MCP clients, and how they treat prompts
    KnownClients(KnownClientsArguments),
    /// Render a prompt in readable form, with sizes and tokens
    Render(RenderArguments),
    /// Create a prompt file from a template
    New(NewArguments),
    /// Format the front matter of prompt files
    Fmt(FmtArguments),
    /// Run the tests of prompts
    Test(TestArguments),
    /// Print the JSON Schema of prompt files, promptshelf.toml or server.toml
    Schema(SchemaArguments),
    /// List the prompts of a library
    List(ListArguments),
    /// Render a prompt and print its messages
    Get(GetArguments),
    /// Suggest values for an argument of a prompt
    Suggest(SuggestArguments),
    /// Convert prompts of other programs to files of a library
    Import(ImportArguments),
    /// Convert prompts of a library to files of other programs
    Export(ExportArguments),
    #[command(flatten)]
    Channels(channels::ChannelsCommand),
    /// Add a library or server to the configuration of an MCP client
    Install(InstallArguments),
    /// Remove a library or server from the configuration of an MCP client
    Uninstall(UninstallArguments),
    /// Write prompts as files that a client reads, and keep them current
    Sync(SyncArguments),
    /// Run a language server for editors, on stdin and stdout
    Lsp(LspArguments),
    /// List the resources of a library or server, or read one
    Resources(client::ResourcesArguments),
    /// Use the prompts of one or several libraries and servers interactively
    Use(client::UseArguments),
    /// Sign in to a server in the browser
    SignIn(client::SignInArguments),
    /// Delete the stored credentials of a server
    SignOut(client::SignOutArguments),
    /// Explain a command or show a page of the guide
    Help(HelpArguments),
    /// Print the completions of a shell
    Completions(CompletionsArguments),
    /// Write manual pages
    Man(ManArguments),
}

#[derive(Debug, Args)]
#[command(after_help = help::HELP_EXAMPLES)]
pub(crate) struct HelpArguments {
    /// A command, or a page of the guide such as `templates` [default: list both]
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
}

/// The library of commands whose only positional argument it is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LibraryObject {
    /// The folder of prompt files [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "named")]
    folder: Option<PathBuf>,

    /// The same as LIBRARY
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    named: Option<PathBuf>,
}

/// The library of commands whose positional argument is a prompt.
#[derive(Debug, Args)]
pub(crate) struct LibraryOption {
    /// The same as LIBRARY
    #[arg(short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    folder: Option<PathBuf>,
}

/// The libraries and files of `check`, `test` and `fmt`.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// Folders of prompt files, or single files, whose library is found above them [default: the current folder]
    #[arg(value_name = "LIBRARY|FILE")]
    paths: Vec<PathBuf>,

    /// The same as LIBRARY
    #[arg(id = "named", short = 'l', long = "library", value_name = "LIBRARY", hide = true)]
    named: Option<PathBuf>,
}

impl PathArguments {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.paths.iter().chain(&self.named).cloned().collect()
    }
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
    pub(crate) library: PathArguments,

    /// Also check the operator's settings in this server.toml, and its access rules with the library unless it has
    /// `[[source]]`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Treat warnings as errors
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) deny: Option<Deny>,

    /// Also report prompts that this client hides, changes or breaks; `all` for every client; can be repeated. Of several
    /// clients, a table is printed
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// Correct what has one answer, and show the changes; what needs a decision stays
    #[arg(long, conflicts_with_all = ["format", "json", "config"])]
    pub(crate) fix: bool,

    /// With --fix: show the changes without writing them
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,

    /// With several clients, print each finding too
    #[arg(long, requires = "clients")]
    pub(crate) details: bool,

    /// Format of the findings
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: CheckFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
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
    #[command(flatten)]
    pub(crate) words: Words<client::SourceArguments, Nothing>,

    /// Only prompts with this text in their name, title or description
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// Print JSON: `items` as in the result of `prompts/list`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::GET_EXAMPLES)]
pub(crate) struct GetArguments {
    #[command(flatten)]
    pub(crate) words: Words<client::SourceArguments, PromptAndValues>,

    /// Format of the messages
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: GetFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write images, audio and other binary contents to files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
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
#[command(after_help = help::SUGGEST_EXAMPLES)]
pub(crate) struct SuggestArguments {
    #[command(flatten)]
    pub(crate) words: Words<client::SourceArguments, PartOfValue>,

    /// Print JSON: the values as `items`
    #[arg(long)]
    pub(crate) json: bool,
}

/// Commands about the sources of `server.toml`.
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// List the sources with their state: that of the running server, or else read now
    #[command(after_help = help::SOURCE_EXAMPLES)]
    List(SourceListArguments),
    /// Let a running server read a source again
    Refresh(SourceRefreshArguments),
    /// Show the definitions of another MCP server that wait, and approve them
    Approve(SourceArguments),
    /// Stay at a commit of a git source, or follow its reference again
    Pin(SourcePinArguments),
    /// Return to the commit of a git source that was served before
    Rollback(SourceNameArguments),
}

/// The settings with the sources.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceConfig {
    /// The operator's settings [env: PROMPTSHELF_CONFIG] [default: ~/.config/promptshelf/server.toml, else
    /// /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The settings with the sources, or a server that serves them.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourcePlace {
    #[command(flatten)]
    pub(crate) config: SourceConfig,

    /// A running server, such as https://prompts.example.com; a token comes from PROMPTSHELF_TOKEN
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SourceListArguments {
    #[command(flatten)]
    pub(crate) place: SourcePlace,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SourceRefreshArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) place: SourcePlace,
}

#[derive(Debug, Args)]
pub(crate) struct SourceNameArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) config: SourceConfig,
}

#[derive(Debug, Args)]
pub(crate) struct SourceArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) config: SourceConfig,

    /// Show the differences without approving them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SourcePinArguments {
    /// The name of the source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// The full id of the commit [default: follow the reference again]
    #[arg(value_name = "COMMIT")]
    pub(crate) commit: Option<String>,

    #[command(flatten)]
    pub(crate) config: SourceConfig,
}

#[derive(Debug, Args)]
#[command(after_help = help::EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// A code such as `unknown-key` [default: list all codes]
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::KNOWN_CLIENTS_EXAMPLES)]
pub(crate) struct KnownClientsArguments {
    /// A client [default: show all]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::TEST_EXAMPLES)]
pub(crate) struct TestArguments {
    #[command(flatten)]
    pub(crate) library: PathArguments,

    /// Run only tests whose full name (such as `code_review / python`) contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Write the current messages to the golden files
    #[arg(long)]
    pub(crate) update: bool,

    /// Also write a report in the JUnit XML format
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::RENDER_EXAMPLES)]
pub(crate) struct RenderArguments {
    #[command(flatten)]
    pub(crate) words: Words<LibraryOption, FileAndValues>,

    /// Render again whenever the library changes, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "watch")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::NEW_EXAMPLES)]
pub(crate) struct NewArguments {
    #[command(flatten)]
    pub(crate) words: Words<LibraryOption, NewPrompt>,

    /// The template
    #[arg(long = "from", value_name = "TEMPLATE", default_value = "text")]
    pub(crate) template: Template,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The template of a new prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// One message and one argument
    Text,
    /// A code review: choices, a default, and a value between fences
    Code,
    /// A conversation between user and assistant
    Conversation,
}

#[derive(Debug, Args)]
#[command(after_help = help::FMT_EXAMPLES)]
pub(crate) struct FmtArguments {
    /// Folders of prompt files, or single files; `-` formats stdin to stdout [default: the current folder]
    #[arg(value_name = "LIBRARY|FILE")]
    pub(crate) paths: Vec<PathBuf>,

    /// Change nothing; exit with code 1 if a file would change
    #[arg(long)]
    pub(crate) check: bool,

    /// Change nothing; print the changes, and exit with code 1 if there are any
    #[arg(long)]
    pub(crate) diff: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "diff")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArguments {
    /// The described file
    #[arg(value_name = "FILE", default_value = "prompt")]
    pub(crate) file: SchemaFile,
}

/// The file that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFile {
    /// The front matter of a prompt file
    Prompt,
    /// promptshelf.toml, the settings of a library
    Library,
    /// server.toml, the settings of an operator
    Server,
    /// Lists of commands with --json
    List,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// A file, or a folder that contains such files
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// The format of the files [default: detected from names and keys]
    #[arg(long, value_name = "FORMAT", value_parser = import_format())]
    pub(crate) from: Option<ImportFormat>,

    /// The library to write to
    #[arg(long, value_name = "LIBRARY", default_value = ".")]
    pub(crate) to: PathBuf,

    /// List the files and losses without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const IMPORT_EXAMPLES: &str = "\
Losses and changes are reported with their lines. Existing files are not
overwritten.

Examples:
  promptshelf import project/prompts --to library    files of known formats
  promptshelf import greet.prompt --dry-run            shows losses
  promptshelf import export.json --from langfuse --to library";

fn import_format() -> impl TypedValueParser<Value = ImportFormat> {
    let words = ImportFormat::ALL.iter().map(|format| PossibleValue::new(format.as_str()).help(format.about()));
    PossibleValuesParser::new(words).try_map(|word| {
        ImportFormat::ALL.iter().copied().find(|format| format.as_str() == word).ok_or("unknown format")
    })
}

#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) words: Words<LibraryOption, PromptsAndValues>,

    /// The format to write
    #[arg(long, value_name = "FORMAT", required_unless_present_any = ["plugin", "mcpb", "server_json"])]
    pub(crate) format: Option<ExportTarget>,

    /// Write a repository from which this program installs all prompts as a plugin
    #[arg(long, value_name = "PROGRAM", requires = "to", conflicts_with_all = ["format", "names", "values", "literal"])]
    pub(crate) plugin: Option<PluginTarget>,

    #[command(flatten)]
    pub(crate) bundle: BundleArguments,

    #[command(flatten)]
    pub(crate) registry: RegistryArguments,

    /// The folder to write to [default: stdout, for a single prompt]
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,

    /// Write this prompt or skill although the client would run, read or permit something in its text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_commands: Vec<String>,

    /// Write prompts without the parts that the format cannot have, such as images and questions
    #[arg(long)]
    pub(crate) allow_incomplete: bool,

    /// Print JSON
    #[arg(long, requires = "to")]
    pub(crate) json: bool,
}

/// A bundle for desktop clients.
#[derive(Debug, Args)]
pub(crate) struct BundleArguments {
    /// Write the library and this program to one file (.mcpb), which desktop clients install
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["names", "format", "plugin", "to", "values", "literal", "server_json"]
    )]
    pub(crate) mcpb: Option<PathBuf>,

    /// Accept this file although it looks like a key, a token, a database or settings of an operator; repeatable
    #[arg(long, value_name = "FILE", requires = "mcpb")]
    pub(crate) include: Vec<String>,

    /// The promptshelf program in the bundle, for another platform [default: this one]
    #[arg(long, value_name = "FILE", requires = "mcpb")]
    pub(crate) program: Option<PathBuf>,
}

/// An entry of an MCP registry.
#[derive(Debug, Args)]
pub(crate) struct RegistryArguments {
    /// Write the library's entry for an MCP registry to this file (server.json)
    #[arg(
        long,
        value_name = "FILE",
        requires = "server_name",
        conflicts_with_all = ["names", "format", "plugin", "to", "values", "literal"]
    )]
    pub(crate) server_json: Option<PathBuf>,

    /// The name in the registry, such as io.github.ada/team-prompts
    #[arg(long, value_name = "NAME", requires = "server_json")]
    pub(crate) server_name: Option<String>,

    /// The URL of a server with the library, in place of the packages of promptshelf (npm, PyPI, image); repeatable
    #[arg(long, value_name = "URL", requires = "server_json")]
    pub(crate) remote: Vec<String>,

    /// A bundle of --mcpb, and the URL from which it is downloaded; repeatable
    #[arg(long, num_args = 2, value_names = ["FILE", "URL"], requires = "server_json")]
    pub(crate) bundle: Vec<String>,
}

const EXPORT_EXAMPLES: &str = "\
Other programs have no templates: losses are reported on stderr, with their
lines. With values for its arguments, a prompt is rendered first and its
messages are exported. Existing files are not overwritten.

Examples:
  promptshelf export code_review --format claude
  promptshelf export prompts --format skill --to skills
  promptshelf export code_review --format messages code=@src/main.rs
  promptshelf export prompts --plugin claude-code --to marketplace
  promptshelf export prompts --mcpb team-prompts.mcpb
  promptshelf export prompts --server-json server.json \\
    --server-name io.github.ada/team-prompts --remote https://example.com/mcp";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTarget {
    /// Commands of Claude Code (.claude/commands/NAME.md)
    Claude,
    /// Commands of Gemini CLI (.gemini/commands/NAME.toml)
    Gemini,
    /// Agent Skills (NAME/SKILL.md)
    Skill,
    /// Prompt files of VS Code (.github/prompts/NAME.prompt.md)
    Vscode,
    /// Commands of Cursor (.cursor/commands/NAME.md)
    Cursor,
    /// Commands of OpenCode (.opencode/commands/NAME.md)
    Opencode,
    /// Workflows of Windsurf (.windsurf/workflows/NAME.md)
    Windsurf,
    /// The rendered messages as JSON (NAME.json)
    Messages,
}

#[derive(Debug, Args)]
#[command(after_help = LSP_EXAMPLES)]
pub(crate) struct LspArguments {
    /// The folder of prompt files [default: the editor's folder, or the one with promptshelf.toml around a file]
    #[arg(value_name = "LIBRARY")]
    pub(crate) library: Option<PathBuf>,
}

const LSP_EXAMPLES: &str = "\
Editors start this command for Markdown, YAML and TOML files. It reports the
findings of `check` while you type, completes arguments, functions, filters,
paths and keys, documents the word at the cursor, and goes to definitions.";

const DEFAULT_ENTRY: &str = "promptshelf";

/// The longest name of an entry: clients make names of tools from it, which have at most 64 characters.
const MAX_ENTRY_CHARS: usize = 32;

#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub(crate) struct InstallArguments {
    /// The library that the client serves to itself on stdio: a folder, a git repository, or a store and its channel, as
    /// for `serve`; or the URL of a server [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "url")]
    library: Option<PathBuf>,

    /// The operator's settings of that server; its [[source]] replace the default library
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,

    /// Let models find and use the prompts with `tool: true`, for clients that show no prompts
    #[arg(long, conflicts_with = "url")]
    pub(crate) tools: bool,

    /// The same as LIBRARY
    #[arg(long, value_name = "URL", hide = true)]
    url: Option<String>,

    /// The environment variable from which the client reads a token for the URL [default: the client signs in]
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    pub(crate) token_env: Option<String>,

    #[command(flatten)]
    pub(crate) entry: EntryArguments,
}

impl InstallArguments {
    /// Returns the URL of a server that is installed in place of a library.
    pub(crate) fn url(&self) -> Option<&str> {
        let word = self.library.as_deref().and_then(Path::to_str).filter(|word| is_url(word));
        word.or(self.url.as_deref())
    }

    pub(crate) fn library(&self) -> Option<&Path> {
        self.library.as_deref().filter(|_| self.url().is_none())
    }
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    #[command(flatten)]
    pub(crate) entry: EntryArguments,
}

/// The entry that is installed or removed.
#[derive(Debug, Args)]
pub(crate) struct EntryArguments {
    /// A client as `promptshelf known-clients` names it, or `all` for those that are found on this machine; repeatable
    /// [default: list those that are found]
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// The file to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: Scope,

    /// The name of the entry: letters, digits, `-` and `_`
    #[arg(long, value_name = "ENTRY", default_value = DEFAULT_ENTRY, value_parser = entry_name)]
    pub(crate) name: String,

    /// Print the change without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const INSTALL_EXAMPLES: &str = "\
Comments and other entries of the file stay, and a backup is kept. An entry of
the same name that was written by hand is not replaced. `uninstall` restores
the file.

Examples:
  promptshelf install prompts
  promptshelf install prompts --client claude-code
  promptshelf install https://example.com/mcp --client all
  promptshelf install prompts --client vscode --scope project --dry-run
  promptshelf install prompts --client codex --tools
  promptshelf install sqlite:team.db#production --client zed
  promptshelf uninstall --client claude-code";

#[derive(Debug, Args)]
#[command(after_help = SYNC_EXAMPLES)]
pub(crate) struct SyncArguments {
    #[command(flatten)]
    pub(crate) words: Words<client::SourceArguments, Nothing>,

    /// The client that reads the files, as `promptshelf known-clients` names it, or `all` for those that are found on this
    /// machine; repeatable
    #[arg(long = "client", value_name = "NAME", required = true)]
    pub(crate) clients: Vec<String>,

    /// The project, or the home folder, that gets the files
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) to: PathBuf,

    /// Stay, and update the files when the prompts change
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) watch: bool,

    /// Print the changes without writing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Write this prompt or skill although the client would run, read or permit something in its text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_commands: Vec<String>,

    /// Write prompts without the parts that the format cannot have, such as images and questions
    #[arg(long)]
    pub(crate) allow_incomplete: bool,

    /// Print JSON: `written`, `removed`, `kept`, `leftOut`, `refused` and `lost`; with --watch one line for each change
    #[arg(long)]
    pub(crate) json: bool,
}

const SYNC_EXAMPLES: &str = "\
Each file has a comment with its origin, path and digest, and is never a prompt
of a library itself. Files without it, and files that were edited since, are
neither replaced nor removed. Files of prompts that are no longer listed are
removed.

Text of a server, a store or a repository that the client would run, read or
take for a permission is not written, and the exit code is 1, unless you agree
to it at the terminal or with --allow-commands.

Examples:
  promptshelf sync prompts --client claude-code
  promptshelf sync https://example.com/mcp --client codex --to ~ --watch
  promptshelf sync prompts --client cursor --client zed --to project --dry-run";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  promptshelf completions bash \\
    > ~/.local/share/bash-completion/completions/promptshelf
  promptshelf completions zsh > ~/.zfunc/_promptshelf
  promptshelf completions fish > ~/.config/fish/completions/promptshelf.fish";

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The folder to write to
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// A program whose plugin `export --plugin` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginTarget {
    /// A marketplace with one plugin for Claude Code
    ClaudeCode,
    /// An extension of Gemini CLI
    GeminiCli,
    /// A marketplace with one plugin for Codex
    Codex,
    /// A marketplace with one plugin for Cursor
    Cursor,
}

fn entry_name(text: &str) -> Result<String, String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_safe);
    if is_name && text.len() <= MAX_ENTRY_CHARS {
        Ok(text.to_owned())
    } else {
        Err(format!("expected at most {MAX_ENTRY_CHARS} letters, digits, `-` and `_`, such as team-prompts"))
    }
}

fn variable(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("expected the name of a variable, such as PROMPTSHELF_TOKEN, not a token".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_valid() {
        CommandLine::complete().debug_assert();
    }

    /// The commands, with their paths, that have no commands below them.
    fn leaves() -> Vec<(String, clap::Command)> {
        fn collect(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
            for below in command.get_subcommands() {
                let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
                if below.has_subcommands() { collect(below, &path, found) } else { found.push((path, below.clone())) }
            }
        }
        let mut found = Vec::new();
        collect(&CommandLine::complete(), "", &mut found);
        found
    }

    /// Commands whose first word is not a library, with the word.
    const OTHER_WORDS: [(&str, &str); 15] = [
        ("audit", "FILE"),
        ("explain", "CODE"),
        ("known-clients", "NAME"),
        ("schema", "FILE"),
        ("import", "PATH"),
        ("help", "TOPIC"),
        ("completions", "SHELL"),
        ("man", "FOLDER"),
        ("token new", "NAME"),
        ("uninstall", ""),
        ("source list", ""),
        ("source refresh", "NAME"),
        ("source approve", "NAME"),
        ("source pin", "NAME"),
        ("source rollback", "NAME"),
    ];

    /// Commands without results to read: they run until they are stopped, ask, print files, or say one sentence.
    const WITHOUT_JSON: [&str; 13] = [
        "serve",
        "use",
        "lsp",
        "schema",
        "completions",
        "man",
        "help",
        "sign-in",
        "sign-out",
        "source refresh",
        "source approve",
        "source pin",
        "source rollback",
    ];

    /// Prints the tree with `--nocapture`.
    #[test]
    fn every_command_has_the_form_of_the_grammar() {
        for (path, command) in leaves() {
            let words: Vec<String> = (command.get_positionals().filter(|word| !word.is_last_set()))
                .filter_map(|word| Some(word.get_value_names()?.first()?.to_string()))
                .collect();
            println!("{path} {}", words.join(" "));
            let first = words.first().map_or("", String::as_str);
            match OTHER_WORDS.iter().find(|(other, _)| *other == path) {
                Some((_, word)) => assert_eq!(first, *word, "{path}"),
                // Their places are options of the same meaning.
                None if path.starts_with("rollout ") => {}
                None => assert!(first.starts_with("LIBRARY"), "the first word of `{path}` is {first:?}"),
            }
            let has = |name: &str| command.get_arguments().any(|option| option.get_long() == Some(name));
            assert_eq!(has("json"), !WITHOUT_JSON.contains(&path.as_str()), "--json of `{path}`");
            for option in command.get_arguments() {
                let name = option.get_long().unwrap_or_default();
                let id = option.get_id();
                if name == "client" {
                    assert!(
                        matches!(option.get_action(), clap::ArgAction::Append),
                        "--client of `{path}` can be repeated"
                    );
                    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                    assert!(help.contains("`all`"), "--client of `{path}` has `all`");
                }
                if name == "channel" {
                    let names = option.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
                    assert!(names.is_some_and(|name| name == "CHANNEL" || name == "NAME"), "--channel of `{path}`");
                }
                let short = option.get_short().map(|short| (short, name));
                let known =
                    [('a', "arg"), ('m', "message"), ('l', "library"), ('q', "quiet"), ('h', "help"), ('V', "version")];
                assert!(short.is_none_or(|short| known.contains(&short)), "{id} of `{path}`");
            }
        }
        for (path, _) in OTHER_WORDS {
            assert!(leaves().iter().any(|(leaf, _)| leaf == path), "{path} is no command");
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = help::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let root = CommandLine::complete();
        let mut names: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(grouped, names);
    }

    /// An example that the parser refuses teaches a wrong form.
    #[test]
    fn examples_are_accepted() {
        let mut count = 0;
        for (path, command) in leaves().into_iter().chain([(String::new(), CommandLine::complete())]) {
            let texts = [command.get_before_help(), command.get_after_help(), command.get_after_long_help()];
            let text: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
            let text = text.join("\n").replace("\\\n    ", " ");
            let examples = text.lines().filter(|line| line.starts_with("  ") && line.contains("promptshelf "));
            for line in examples {
                let line = line.split_once("promptshelf ").map_or(line, |(_, words)| words);
                // What follows is a comment or the shell's.
                let line = line.split("   ").next().and_then(|line| line.split(['|', '>']).next()).unwrap_or(line);
                let line = line.split(" < ").next().unwrap_or(line);
                let words = shlex::split(line).unwrap_or_else(|| panic!("{path}: {line}"));
                let parsed =
                    CommandLine::command().try_get_matches_from(std::iter::once("promptshelf".to_owned()).chain(words));
                let parsed = parsed.and_then(|matches| CommandLine::from_arg_matches(&matches));
                assert!(
                    parsed.is_ok(),
                    "`{path}` has the example `{line}`: {}",
                    parsed.err().map(|error| error.to_string()).unwrap_or_default()
                );
                count += 1;
            }
        }
        assert!(count > 100, "{count} examples");
    }

    #[test]
    fn words_are_library_names_and_values() {
        let parse = |line: &str| {
            let words = shlex::split(line).expect("words");
            let matches =
                CommandLine::command().try_get_matches_from(std::iter::once("promptshelf".to_owned()).chain(words));
            matches.and_then(|matches| CommandLine::from_arg_matches(&matches)).map(|line| line.command)
        };
        let Ok(Command::Get(get)) = parse("get prompts hello name=Ada -a x=1") else { panic!("it is accepted") };
        assert_eq!((get.words.name(), get.words.values.values.len()), ("hello", 2));
        let Ok(Command::Get(get)) = parse("get hello 'name=a b=c'") else { panic!("it is accepted") };
        assert_eq!(get.words.values.values, [("name".to_owned(), "a b=c".to_owned())]);
        let Ok(Command::Channels(channels::ChannelsCommand::History(history))) = parse("history code_review") else {
            panic!("it is accepted")
        };
        assert_eq!(history.words.optional_name(), Some("code_review"));
        let Ok(Command::Channels(channels::ChannelsCommand::Diff(diff))) = parse("diff https://a.example 1 2") else {
            panic!("it is accepted")
        };
        assert_eq!((diff.words.names.join(" "), diff.words.library.url.is_some()), ("1 2".to_owned(), true));
        for (line, expected) in [
            ("get", "a word is missing"),
            ("approve sqlite:team.db", "a word is missing after `sqlite:team.db`, which is the LIBRARY: expected"),
            ("store backup b.db", "a word is missing after `b.db`, which is the LIBRARY: expected [LIBRARY] <FILE>"),
            (
                "get prompts hello name",
                "unexpected `name`: expected [LIBRARY] <PROMPT> [NAME=VALUE]...; write a value as",
            ),
            ("get prompts hello name = x", "unexpected `name`"),
            ("diff sqlite:team.db 1", "a word is missing"),
            ("new a b c", "unexpected `c`"),
            ("history sqlite:a.db --store sqlite:b.db", "both name the library"),
            ("rollback sqlite:a.db --to latest -m x", "expected a number such as 12"),
            ("publish sqlite:a.db -m x", "it is the store: write it after `--to`"),
            ("publish team.db --to sqlite:a.db -m x", "it is the store: write it after `--to`"),
        ] {
            let error = parse(line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expected), "{line}: {error}");
        }
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

//! Arguments of the commands that connect other programs: `install`, `uninstall`, `sync`, `completions` and `man`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};

use super::client;
use crate::client_config::Scope;

const DEFAULT_ENTRY: &str = "promptshelf";

/// The longest name of an entry: clients make names of tools from it, which have at most 64 characters.
const MAX_ENTRY_CHARS: usize = 32;

#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub(crate) struct InstallArguments {
    /// The library that the client serves to itself on stdio: a folder, a git repository, or a store and its channel, as
    /// for `serve` [default: the current folder]
    #[arg(value_name = "LIBRARY", conflicts_with = "url")]
    pub(crate) library: Option<PathBuf>,

    /// The operator's settings of that server; its [[source]] replace the default library
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,

    /// Let models find and use the prompts with `tool: true`, for clients that show no prompts
    #[arg(long, conflicts_with = "url")]
    pub(crate) tools: bool,

    /// The URL of a server, in place of a library
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// The environment variable from which the client reads a token for the URL [default: the client signs in]
    #[arg(long, value_name = "VARIABLE", requires = "url", value_parser = variable)]
    pub(crate) token_env: Option<String>,

    #[command(flatten)]
    pub(crate) entry: EntryArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    #[command(flatten)]
    pub(crate) entry: EntryArguments,
}

/// The entry that is installed or removed.
#[derive(Debug, Args)]
pub(crate) struct EntryArguments {
    /// A client as `promptshelf clients` names it, or `all` for those that are found on this machine [default: list
    /// those that are found]
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,

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
  promptshelf install --client claude-code prompts
  promptshelf install --client all --url https://example.com/mcp
  promptshelf install --client vscode --scope project prompts --dry-run
  promptshelf install --client codex --tools prompts
  promptshelf install --client zed sqlite:team.db#production
  promptshelf uninstall --client claude-code";

#[derive(Debug, Args)]
#[command(after_help = SYNC_EXAMPLES)]
pub(crate) struct SyncArguments {
    /// A folder of prompt files, a URL, or the name of a server in the configuration of Claude Code (.mcp.json) or VS
    /// Code [default: the current folder]
    #[arg(value_name = "TARGET", conflicts_with_all = client::SOURCES)]
    pub(crate) target: Option<OsString>,

    /// The client that reads the files, as `promptshelf clients` names it
    #[arg(long, value_name = "NAME")]
    pub(crate) client: String,

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

    #[command(flatten)]
    pub(crate) source: client::SourceArguments,
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
  promptshelf sync --client claude-code prompts
  promptshelf sync --client codex --url https://example.com/mcp --to ~ --watch
  promptshelf sync --client cursor prompts --to project --dry-run";

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
    match is_name && text.len() <= MAX_ENTRY_CHARS {
        true => Ok(text.to_owned()),
        false => Err(format!("expected at most {MAX_ENTRY_CHARS} letters, digits, `-` and `_`, such as team-prompts")),
    }
}

fn variable(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_name {
        true => Ok(text.to_owned()),
        false => Err("expected the name of a variable, such as PROMPTSHELF_TOKEN, not a token".to_owned()),
    }
}

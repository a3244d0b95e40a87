//! Arguments of `import`, `export` and `lsp`.

use std::path::PathBuf;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use promptshelf_author::ImportFormat;

use super::{LibraryOption, ValueArguments, reach::PluginTarget};

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
    /// Names of prompts [default: all]; with --plugin, the folder to write to
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// The format to write
    #[arg(long, value_name = "FORMAT", required_unless_present_any = ["plugin", "mcpb", "server_json"])]
    pub(crate) format: Option<ExportTarget>,

    /// Write a repository from which this program installs all prompts as a plugin
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["format", "to", "values", "literal"])]
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

    #[command(flatten)]
    pub(crate) library: LibraryOption,

    #[command(flatten)]
    pub(crate) values: ValueArguments,
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
  promptshelf export --format skill --to skills -l prompts
  promptshelf export code_review --format messages --arg code=@src/main.rs
  promptshelf export --plugin claude-code marketplace -l prompts
  promptshelf export --mcpb team-prompts.mcpb -l prompts
  promptshelf export --server-json server.json -l prompts \\
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

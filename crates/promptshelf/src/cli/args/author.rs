//! Arguments of the commands for authors of prompts, apart from `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::help;
use super::{LibraryObject, LibraryOption, ValueArguments};

#[derive(Debug, Args)]
#[command(after_help = help::EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// A code such as `unknown-key` [default: list all codes]
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = help::CLIENTS_EXAMPLES)]
pub(crate) struct ClientsArguments {
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
    pub(crate) library: LibraryObject,

    /// Run only tests whose full name (such as `code_review / python`) contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Write the current messages to the golden files
    #[arg(long)]
    pub(crate) update: bool,

    /// Also write a report in the JUnit XML format
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = help::RENDER_EXAMPLES)]
pub(crate) struct RenderArguments {
    /// A prompt file, or the name of a prompt in the library
    #[arg(value_name = "FILE")]
    pub(crate) file: String,

    #[command(flatten)]
    pub(crate) library: LibraryOption,

    #[command(flatten)]
    pub(crate) values: ValueArguments,

    /// Render again whenever the library changes, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help::NEW_EXAMPLES)]
pub(crate) struct NewArguments {
    /// The prompt's name, or its path in the library: `git/commit` becomes `git-commit`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) library: LibraryOption,

    /// The template
    #[arg(long = "from", value_name = "TEMPLATE", default_value = "text")]
    pub(crate) template: Template,
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
    /// Prompt files, or libraries [default: the current folder]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Change nothing; exit with code 1 if a file would change
    #[arg(long)]
    pub(crate) check: bool,
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
}

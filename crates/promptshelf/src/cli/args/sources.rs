//! Arguments of `promptshelf source`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help;

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

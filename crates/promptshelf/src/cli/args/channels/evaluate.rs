//! Arguments of `promptshelf evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::{ActorArguments, ChannelArguments, help};

#[derive(Debug, Args)]
#[command(after_help = help::EVALUATE_EXAMPLES)]
pub(crate) struct EvaluateArguments {
    /// Only this prompt [default: all prompts of the channel, or all that the proposal adds or changes]
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) channel: ChannelArguments,

    /// The versions that this open proposal would publish, instead of the served ones
    #[arg(long, value_name = "NUMBER", conflicts_with = "channel")]
    pub(crate) proposal: Option<u64>,

    /// Only this evaluation; can be repeated [default: all of server.toml]
    #[arg(long = "evaluation", value_name = "NAME")]
    pub(crate) evaluations: Vec<String>,

    /// Only versions that have no result of the evaluation
    #[arg(long)]
    pub(crate) missing: bool,

    /// The operator's settings with the evaluations [env: PROMPTSHELF_CONFIG] [default:
    /// ~/.config/promptshelf/server.toml, else /etc/promptshelf/server.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

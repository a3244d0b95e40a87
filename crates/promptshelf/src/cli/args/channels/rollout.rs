//! Arguments of the commands for rollouts.

use clap::{Args, Subcommand};
use promptshelf_store::ChannelName;

use super::{ActorArguments, PlaceArguments};
use crate::args::help;

#[derive(Debug, Subcommand)]
#[command(after_help = help::ROLLOUT_EXAMPLES)]
pub(crate) enum RolloutCommand {
    /// List the rollouts with their shares, counts and histories
    #[command(after_help = help::ROLLOUT_EXAMPLES)]
    List(RolloutListArguments),
    /// Set the share of a rollout; a stopped one goes on
    Set(RolloutSetArguments),
    /// Stop a rollout: every caller is served the channel itself
    Stop(RolloutStopArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RolloutListArguments {
    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// Print the changes of the shares too, the newest first
    #[arg(long)]
    pub(crate) history: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutSetArguments {
    /// The channel whose callers are divided
    #[arg(value_name = "CHANNEL")]
    pub(crate) channel: ChannelName,

    /// The share of signed-in callers, in per cent
    #[arg(value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) percent: u8,

    /// The reason
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "set by hand")]
    pub(crate) message: String,

    /// The channel that the share is served, if there are several rollouts
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: Option<ChannelName>,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutStopArguments {
    /// The channel whose callers are divided
    #[arg(value_name = "CHANNEL")]
    pub(crate) channel: ChannelName,

    /// The reason
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "stopped by hand")]
    pub(crate) message: String,

    /// The channel that the share is served, if there are several rollouts
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: Option<ChannelName>,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

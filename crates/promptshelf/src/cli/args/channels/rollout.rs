//! Arguments of the commands for rollouts.

use clap::{Args, Subcommand};
use promptshelf_store::ChannelName;
use promptshelf_wire::RolloutStop;

use super::{ActorArguments, PlaceArguments};
use crate::{
    args::{
        help,
        words::{ChannelAndShare, DividedChannel, Names, Nothing, Words},
    },
    exit::{Exit, Failure},
};

impl<N: Names> Words<PlaceArguments, N> {
    /// Returns the first word as the channel whose callers are divided.
    pub(crate) fn divided(&self) -> Result<ChannelName, Failure> {
        Ok(self.name().parse()?)
    }
}

impl Words<PlaceArguments, ChannelAndShare> {
    pub(crate) fn percent(&self) -> Result<u8, Failure> {
        let word = self.names[1].as_str();
        let percent = word.trim_end_matches('%').parse().ok().filter(|percent| *percent <= 100);
        let expected = || Failure::new(Exit::Usage, format!("expected a share from 0 to 100 per cent, got `{word}`"));
        percent.ok_or_else(expected)
    }
}

#[derive(Debug, Subcommand)]
#[command(after_help = help::ROLLOUT_EXAMPLES)]
pub(crate) enum RolloutCommand {
    /// List the rollouts with their shares, counts and histories
    #[command(after_help = help::ROLLOUT_EXAMPLES)]
    List(RolloutListArguments),
    /// Show the rollouts of a channel with their histories
    Show(RolloutShowArguments),
    /// Begin to serve a share of the signed-in callers of a channel another one
    Start(RolloutStartArguments),
    /// Set the share of a rollout; a stopped one goes on
    Set(RolloutSetArguments),
    /// Take no further steps; the share stays
    Pause(RolloutChangeArguments),
    /// Take further steps after a pause
    Resume(RolloutChangeArguments),
    /// Stop a rollout: every caller is served the channel itself
    Stop(RolloutChangeArguments),
    /// Promote the new version, which ends the rollout
    ///
    /// Review and checks of the channel hold: if they are not met, a proposal waits, and the rollout goes on until it is
    /// published.
    Finish(RolloutFinishArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RolloutListArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Nothing>,

    /// Print the changes of the shares too, the newest first
    #[arg(long)]
    pub(crate) history: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutShowArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, DividedChannel>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutStartArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, DividedChannel>,

    /// The channel with the new version
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: ChannelName,

    /// The first share, and the size of each step, in per cent [default: that of [rollout] in server.toml, else 10]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) percent: Option<u8>,

    /// The time between two steps, such as 1h; `off` for steps by people only [default: that of [rollout], else off]
    #[arg(long, value_name = "TIME")]
    pub(crate) steps: Option<String>,

    /// Stop by itself above this factor, such as errors=2x, declined=2x or latency=3x; can be repeated; `off` for no bound
    /// [default: those of [rollout], else errors=2x]
    #[arg(long = "stop", value_name = "FIGURE=FACTOR", value_parser = bound)]
    pub(crate) stops: Vec<Bound>,

    /// The reason
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) message: Option<String>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutSetArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, ChannelAndShare>,

    #[command(flatten)]
    pub(crate) change: RolloutChange,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutChangeArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, DividedChannel>,

    #[command(flatten)]
    pub(crate) change: RolloutChange,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutFinishArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, DividedChannel>,

    /// Undo what only the channel has or has changed: it becomes equal to the new version
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) change: RolloutChange,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutChange {
    /// The reason
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) message: Option<String>,

    /// The channel with the new version [default: that of the rollout that is not over, else of the last one]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: Option<ChannelName>,

    #[command(flatten)]
    pub(crate) actor: ActorArguments,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A bound of a rollout; `None` for no bounds.
pub(crate) type Bound = Option<(Figure, f64)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Figure {
    /// Failed calls
    Errors,
    /// Declined forms
    Declined,
    /// Slow calls
    Latency,
}

/// Parses `errors=2x`, or `off`.
fn bound(text: &str) -> Result<Bound, String> {
    if text == "off" {
        return Ok(None);
    }
    let expected = || format!("expected a figure and a factor, such as errors=2x, or `off`, got `{text}`");
    let (figure, factor) = text.split_once('=').ok_or_else(expected)?;
    let figure = clap::ValueEnum::from_str(figure, false).map_err(|_| expected())?;
    let factor = factor.strip_suffix('x').and_then(|factor| factor.parse::<f64>().ok());
    Ok(Some((figure, factor.filter(|factor| *factor >= 1.0).ok_or_else(expected)?)))
}

/// Returns the bounds that arguments name; `None` for those of the settings.
pub(crate) fn stop(bounds: &[Bound]) -> Option<RolloutStop> {
    if bounds.is_empty() {
        return None;
    }
    let mut stop = RolloutStop::default();
    for (figure, factor) in bounds.iter().flatten() {
        *match figure {
            Figure::Errors => &mut stop.errors,
            Figure::Declined => &mut stop.declined,
            Figure::Latency => &mut stop.latency,
        } = Some(*factor);
    }
    Some(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_have_a_figure_and_a_factor() {
        assert_eq!(bound("errors=2x"), Ok(Some((Figure::Errors, 2.0))));
        assert_eq!(bound("off"), Ok(None));
        for text in ["errors", "errors=2", "errors=0.5x", "speed=2x", ""] {
            assert!(bound(text).is_err(), "{text}");
        }
        assert!(stop(&[]).is_none());
        assert!(stop(&[None]).is_some_and(|stop| stop.errors.is_none()));
        assert_eq!(stop(&[Some((Figure::Latency, 3.0))]).and_then(|stop| stop.latency), Some(3.0));
    }
}

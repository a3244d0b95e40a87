//! `promptshelf rollout`: the shares of callers that are served another channel.

use std::io::Write;

use clap::{Args, Subcommand};
use promptshelf_store::{
    ChannelName, GroupCounts, RolloutChange, RolloutChangeKind, RolloutPhase, RolloutReport, StoreError,
};
use promptshelf_wire::{RolloutChangeBody, RolloutFinish, RolloutFinishBody, RolloutStartBody, RolloutStop, op};
use serde_json::json;

use super::{
    access::Place,
    connection::{CallError, Connection},
    report,
};
use crate::{
    args::{
        Words,
        place::{ActorArguments, PlaceArguments},
        words::{ChannelAndShare, DividedChannel, Names, Nothing},
    },
    exit::{Exit, Failure},
    output::{Output, list_json},
};

const ROLLOUT_EXAMPLES: &str = "\
The store has the rollouts, and all servers of the store follow them. [rollout]
in server.toml has defaults. A channel has one rollout that is not over.

JSON: {\"items\":[{\"channel\",\"to\",\"percent\",\"state\",\"changedBy\",
\"changedAt\",\"reason\",\"revision\",\"counts\",\"plan\",\"next\",\"history\":[{
\"number\",\"kind\",\"automatic\",\"percent\",\"changedBy\",\"reason\",\"at\",
\"revision\",\"counts\"}]}]}. The state is running, paused, stopped, failed
(stopped by a server) or finished. Through a server, changes need the
scope library:publish.

Examples:
  promptshelf rollout start sqlite:team.db production --to next --percent 10
  promptshelf rollout show sqlite:team.db production
  promptshelf rollout set https://prompts.example.com production 25
  promptshelf rollout stop sqlite:team.db production -m \"Reviews became vague\"
  promptshelf rollout finish sqlite:team.db production -m \"Shorter reviews\"";

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
#[command(after_help = ROLLOUT_EXAMPLES)]
pub(crate) enum RolloutCommand {
    /// List the rollouts with their shares, counts and histories
    #[command(after_help = ROLLOUT_EXAMPLES)]
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
    pub(crate) change: ChangeWords,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutChangeArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, DividedChannel>,

    #[command(flatten)]
    pub(crate) change: ChangeWords,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutFinishArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, DividedChannel>,

    /// Undo what only the channel has or has changed: it becomes equal to the new version
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) change: ChangeWords,
}

#[derive(Debug, Args)]
pub(crate) struct ChangeWords {
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

pub(crate) async fn run(command: &RolloutCommand) -> Result<(), Failure> {
    match command {
        RolloutCommand::List(arguments) => list(arguments).await,
        RolloutCommand::Show(arguments) => show(arguments).await,
        RolloutCommand::Start(arguments) => start(arguments).await,
        RolloutCommand::Set(RolloutSetArguments { words, change: edit }) => {
            change(words, Some(words.percent()?), None, edit).await
        }
        RolloutCommand::Pause(RolloutChangeArguments { words, change: edit }) => {
            change(words, None, Some(RolloutPhase::Paused), edit).await
        }
        RolloutCommand::Resume(RolloutChangeArguments { words, change: edit }) => {
            change(words, None, Some(RolloutPhase::Running), edit).await
        }
        RolloutCommand::Stop(RolloutChangeArguments { words, change: edit }) => {
            change(words, None, Some(RolloutPhase::Stopped), edit).await
        }
        RolloutCommand::Finish(arguments) => finish(arguments).await,
    }
}

async fn list(arguments: &RolloutListArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?;
    let rollouts =
        place.using(async |store: &Connection| Ok(place.waiting(store.all(&op::ListAllRollouts {})).await?)).await?;
    print_all(&rollouts, arguments.history, arguments.json)
}

async fn show(arguments: &RolloutShowArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?;
    let operation = op::ListRollouts { channel: arguments.words.divided()? };
    let rollouts = place.using(async |store: &Connection| Ok(place.waiting(store.all(&operation)).await?)).await?;
    print_all(&rollouts, true, arguments.json)
}

async fn start(arguments: &RolloutStartArguments) -> Result<(), Failure> {
    let RolloutStartArguments { words, to, percent, steps, stops, message, .. } = arguments;
    let channel = &words.divided()?;
    let place = Place::new(&words.library, None)?.acting(&arguments.actor)?;
    let body = RolloutStartBody {
        to: to.clone(),
        percent: *percent,
        steps: steps.clone(),
        stop: stop(stops),
        message: message.clone(),
    };
    let start = async |store: &Connection| {
        Ok(place.waiting(store.send(&op::StartRollout { channel: channel.clone() }, &body)).await?)
    };
    print(&place.changing(start).await?, arguments.json)
}

async fn change<N: Names>(
    words: &Words<PlaceArguments, N>,
    percent: Option<u8>,
    state: Option<RolloutPhase>,
    arguments: &ChangeWords,
) -> Result<(), Failure> {
    let channel = &words.divided()?;
    let place = Place::new(&words.library, None)?.acting(&arguments.actor)?;
    let (to, message) = (arguments.to.clone(), arguments.message.clone());
    let body = RolloutChangeBody { to, percent, state, message, seen: None };
    let change = async |store: &Connection| {
        Ok(place.waiting(store.send(&op::ChangeRollout { channel: channel.clone() }, &body)).await?)
    };
    print(&place.changing(change).await?, arguments.json)
}

async fn finish(arguments: &RolloutFinishArguments) -> Result<(), Failure> {
    let RolloutFinishArguments { words, all, change } = arguments;
    let channel = &words.divided()?;
    let place = Place::new(&words.library, None)?.acting(&change.actor)?;
    let body = RolloutFinishBody { to: change.to.clone(), all: *all, message: change.message.clone() };
    let finish = async |store: &Connection| {
        let finished = place.waiting(store.send(&op::FinishRollout { channel: channel.clone() }, &body)).await;
        finished.map_err(|error| {
            let is_conflict = matches!(error, CallError::Store(StoreError::Conflict { .. }));
            let failure = Failure::from(error);
            if is_conflict {
                failure.help(format!("`--all` takes the new version, and undoes what {channel} has changed"))
            } else {
                failure
            }
        })
    };
    let finished = place.changing(finish).await?;
    if change.json {
        return report::print_json(&json!(finished));
    }
    let RolloutFinish { rollout, promotion } = finished;
    let Some(proposal) = promotion.map(|promotion| promotion.proposal) else {
        return report::print_line(&format!("{channel} has the new version already; the rollout is finished"));
    };
    match proposal.revision {
        Some(revision) => report::print_line(&format!(
            "published: {channel} is at revision {revision} (proposal {}); the rollout is finished",
            proposal.id
        )),
        None => {
            for lack in &proposal.lacks {
                report::print_line(&format!("waits: {lack}"))?;
            }
            report::print_line(&format!(
                "proposal {} is open: the rollout goes on at {} % until it is published",
                proposal.id, rollout.percent
            ))
        }
    }
}

fn print_all(rollouts: &[RolloutReport], has_history: bool, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return report::print_json(&list_json(rollouts.iter().map(|rollout| json!(rollout))));
    }
    if rollouts.is_empty() {
        return report::print_line("no rollouts; `promptshelf rollout start CHANNEL --to OTHER` begins one");
    }
    let mut output = Output::stdout();
    let header = ["CHANNEL", "TO", "SHARE", "CALLS", "ERRORS", "ERRORS OF REST", "LAST CHANGE"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(rollouts.iter().map(|one| row(one, &output)));
    report::print_table(&mut output, "", &rows)?;
    for RolloutReport { channel, target, unapplied_since, .. } in rollouts.iter().filter(|one| !one.phase.is_over()) {
        if let Some(since) = unapplied_since {
            writeln!(
                output.out,
                "\nno running server serves {channel} with its rollout to {target}; it was last applied at {since:.0}"
            )?;
        }
    }
    if has_history {
        for one in rollouts {
            writeln!(output.out, "\n{} to {}:", one.channel, one.target)?;
            // The figures are those of the share before.
            let header = ["TIME", "SHARE", "BY", "CALLS BEFORE", "ERRORS BEFORE", "ERRORS OF REST BEFORE", "REASON"];
            let mut rows = vec![header.map(str::to_owned).to_vec()];
            rows.extend(one.history.iter().map(|change| change_row(change, &output)));
            report::print_table(&mut output, "  ", &rows)?;
        }
    }
    Ok(output.out.flush()?)
}

fn print(rollout: &RolloutReport, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return report::print_json(&json!(rollout));
    }
    let RolloutReport { channel, target, percent, phase, .. } = rollout;
    let served = format!("{target} is served to {percent} % of the signed-in callers of {channel}");
    report::print_line(&match phase {
        RolloutPhase::Running => served,
        RolloutPhase::Paused => format!("{served}, and takes no steps"),
        _ => format!("the rollout of {channel} to {target} is stopped: every caller is served {channel}"),
    })
}

/// The share, and what is to be said about the phase.
fn share(percent: u8, phase: RolloutPhase) -> String {
    match phase {
        RolloutPhase::Running => format!("{percent} %"),
        RolloutPhase::Paused => format!("{percent} %, paused"),
        RolloutPhase::Stopped | RolloutPhase::Failed => "stopped".to_owned(),
        RolloutPhase::Finished => "finished".to_owned(),
    }
}

fn row<W: Write>(rollout: &RolloutReport, output: &Output<W>) -> Vec<String> {
    let RolloutReport { percent, phase, changed_by, changed_at, reason, counts, .. } = rollout;
    vec![
        rollout.channel.to_string(),
        rollout.target.to_string(),
        share(*percent, *phase),
        counts.candidate.calls.to_string(),
        errors(counts.candidate),
        errors(counts.stable),
        output.line(&format!("{changed_at:.0} {changed_by}: {reason}")).into_owned(),
    ]
}

fn change_row<W: Write>(change: &RolloutChange, output: &Output<W>) -> Vec<String> {
    let RolloutChange { kind, percent, changed_by, reason, at, counts, .. } = change;
    vec![
        format!("{at:.0}"),
        match kind {
            RolloutChangeKind::Pause => share(*percent, RolloutPhase::Paused),
            RolloutChangeKind::Stop => share(*percent, RolloutPhase::Stopped),
            RolloutChangeKind::Finish => share(*percent, RolloutPhase::Finished),
            _ => share(*percent, RolloutPhase::Running),
        },
        output.line(changed_by).into_owned(),
        counts.candidate.calls.to_string(),
        errors(counts.candidate),
        errors(counts.stable),
        output.line(reason).into_owned(),
    ]
}

fn errors(counts: GroupCounts) -> String {
    match counts.calls {
        0 => "-".to_owned(),
        // Exact up to 2^53.
        calls => format!("{:.2} %", 100.0 * counts.errors as f64 / calls as f64),
    }
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

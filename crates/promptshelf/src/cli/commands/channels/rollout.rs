//! `promptshelf rollout`: the shares of callers that are served another channel.

use std::io::Write;

use promptshelf_store::{GroupCounts, RolloutChange, RolloutChangeKind, RolloutPhase, RolloutReport, StoreError};
use promptshelf_wire::{RolloutChangeBody, RolloutFinish, RolloutFinishBody, RolloutStartBody, op};
use serde_json::json;

use super::{
    access::Place,
    connection::{CallError, Connection},
    report,
};
use crate::{
    args::{
        Names, Words,
        channels::{
            PlaceArguments, RolloutChangeArguments, RolloutCommand, RolloutFinishArguments, RolloutListArguments,
            RolloutSetArguments, RolloutShowArguments, RolloutStartArguments, stop,
        },
    },
    exit::Failure,
    output::{Output, list_json},
};

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
    arguments: &crate::args::channels::RolloutChange,
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

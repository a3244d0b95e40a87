//! `promptshelf rollout`: the shares of callers that are served another channel.

use std::io::Write;

use promptshelf_store::{GroupCounts, RolloutChange, RolloutChangeKind, RolloutReport};
use promptshelf_wire::{RolloutShareBody, RolloutStopBody, op};
use serde_json::json;

use super::{access::Place, connection::Connection, report};
use crate::{
    args::channels::{RolloutListArguments, RolloutSetArguments, RolloutStopArguments},
    exit::Failure,
    output::Output,
};

pub(crate) async fn list(arguments: &RolloutListArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, None)?;
    let rollouts = place
        .using(async |store: &Connection| Ok(place.waiting(store.get(&op::ListAllRollouts {})).await?.rollouts))
        .await?;
    if arguments.json {
        return report::print_json(&json!({ "rollouts": rollouts }));
    }
    if rollouts.is_empty() {
        return report::print_line("the store has no rollouts; a server with [[rollout]] in server.toml begins one");
    }
    let mut output = Output::stdout();
    let header = ["CHANNEL", "TO", "SHARE", "CALLS", "ERRORS", "ERRORS OF REST", "LAST CHANGE"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(rollouts.iter().map(|one| row(one, &output)));
    report::print_table(&mut output, "", &rows)?;
    for RolloutReport { channel, target, unapplied_since, .. } in rollouts.iter().filter(|one| !one.is_stopped) {
        if let Some(since) = unapplied_since {
            writeln!(
                output.out,
                "\nno running server has the rollout of {channel} to {target} in its settings; it was last applied at {since:.0}"
            )?;
        }
    }
    if arguments.history {
        for one in &rollouts {
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

pub(crate) async fn set(arguments: &RolloutSetArguments) -> Result<(), Failure> {
    let RolloutSetArguments { channel, percent, message, to, .. } = arguments;
    let place = Place::new(&arguments.place, None)?.acting(&arguments.actor)?;
    let set = async |store: &Connection| {
        let body = RolloutShareBody { to: to.clone(), percent: *percent, message: Some(message.clone()), seen: None };
        Ok(place.waiting(store.send(&op::SetRollout { channel: channel.clone() }, &body)).await?)
    };
    print(&place.changing(set).await?, arguments.json)
}

pub(crate) async fn stop(arguments: &RolloutStopArguments) -> Result<(), Failure> {
    let RolloutStopArguments { channel, message, to, .. } = arguments;
    let place = Place::new(&arguments.place, None)?.acting(&arguments.actor)?;
    let stop = async |store: &Connection| {
        let body = RolloutStopBody { to: to.clone(), message: Some(message.clone()) };
        Ok(place.waiting(store.send(&op::StopRollout { channel: channel.clone() }, &body)).await?)
    };
    print(&place.changing(stop).await?, arguments.json)
}

fn print(rollout: &RolloutReport, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return report::print_json(&json!(rollout));
    }
    let RolloutReport { channel, target, percent, .. } = rollout;
    report::print_line(&match rollout.is_stopped {
        true => format!("the rollout of {channel} to {target} is stopped: every caller is served {channel}"),
        false => format!("{target} is served to {percent} % of the signed-in callers of {channel}"),
    })
}

fn row<W: Write>(rollout: &RolloutReport, output: &Output<W>) -> Vec<String> {
    let RolloutReport { percent, is_stopped, changed_by, changed_at, reason, counts, .. } = rollout;
    vec![
        rollout.channel.to_string(),
        rollout.target.to_string(),
        if *is_stopped { "stopped".to_owned() } else { format!("{percent} %") },
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
        if *kind == RolloutChangeKind::Stop { "stopped".to_owned() } else { format!("{percent} %") },
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

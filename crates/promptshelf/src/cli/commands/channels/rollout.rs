//! `promptshelf rollout`: the shares of callers that are served another channel.

use std::io::Write;

use promptshelf_store::RolloutState;
use serde_json::{Value, json};

use super::{
    access::{StorePlace, waiting},
    actor::local_actor,
    report,
};
use crate::{
    args::channels::{RolloutListArguments, RolloutSetArguments, RolloutStopArguments},
    exit::Failure,
    output::Output,
};

pub(crate) async fn list(arguments: &RolloutListArguments) -> Result<(), Failure> {
    let place = StorePlace::of(&arguments.store)?;
    let rollouts = place.using(async |store| Ok(waiting(store.url(), store.rollouts()).await?)).await?;
    if arguments.json {
        return report::print_json(&json!({ "rollouts": rollouts.iter().map(to_json).collect::<Vec<_>>() }));
    }
    if rollouts.is_empty() {
        return report::print_line("the store has no rollouts; a server with [[rollout]] in server.toml begins one");
    }
    let mut output = Output::stdout();
    let header = ["CHANNEL", "TO", "SHARE", "CALLS", "ERRORS", "ERRORS OF REST", "LAST CHANGE"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(rollouts.iter().map(|one| row(one, &output)));
    report::print_table(&mut output, "", &rows)?;
    Ok(output.out.flush()?)
}

pub(crate) async fn set(arguments: &RolloutSetArguments) -> Result<(), Failure> {
    let RolloutSetArguments { channel, percent, to, .. } = arguments;
    let actor = local_actor(&arguments.actor)?;
    let place = StorePlace::of(&arguments.store)?;
    let setting = async |store: &promptshelf_store::Store| {
        Ok(waiting(store.url(), store.set_rollout(channel, to.as_ref(), *percent, &actor)).await?)
    };
    print(&place.using(setting).await?, arguments.json)
}

pub(crate) async fn stop(arguments: &RolloutStopArguments) -> Result<(), Failure> {
    let RolloutStopArguments { channel, message, to, .. } = arguments;
    let actor = local_actor(&arguments.actor)?;
    let place = StorePlace::of(&arguments.store)?;
    let stopping = async |store: &promptshelf_store::Store| {
        Ok(waiting(store.url(), store.stop_rollout(channel, to.as_ref(), message, &actor)).await?)
    };
    print(&place.using(stopping).await?, arguments.json)
}

fn print(state: &RolloutState, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return report::print_json(&to_json(state));
    }
    let RolloutState { channel, target, percent, .. } = state;
    report::print_line(&match state.is_stopped {
        true => format!("the rollout of {channel} to {target} is stopped: every caller is served {channel}"),
        false => format!("{target} is served to {percent} % of the signed-in callers of {channel}"),
    })
}

fn to_json(state: &RolloutState) -> Value {
    let mut value = json!(state);
    value["counts"] = json!(state.progress.counts);
    value
}

fn row<W: Write>(state: &RolloutState, output: &Output<W>) -> Vec<String> {
    let counts = &state.progress.counts;
    let share = |failures: u64, count: u64| match count {
        0 => "-".to_owned(),
        // Exact up to 2^53.
        count => format!("{:.2} %", 100.0 * failures as f64 / count as f64),
    };
    vec![
        state.channel.to_string(),
        state.target.to_string(),
        if state.is_stopped { "stopped".to_owned() } else { format!("{} %", state.percent) },
        counts.candidate.calls.to_string(),
        share(counts.candidate.errors, counts.candidate.calls),
        share(counts.stable.errors, counts.stable.calls),
        output.line(&format!("{:.0} {}: {}", state.changed_at, state.changed_by, state.reason)).into_owned(),
    ]
}

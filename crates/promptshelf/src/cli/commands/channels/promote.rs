//! `promptshelf promote` and `rollback`.

use promptshelf_store::{ChannelName, Published, StoreError};
use promptshelf_wire::{PromoteBody, RollbackBody, op};
use serde_json::json;

use super::{
    access::Place,
    connection::CallError,
    connection::Connection,
    impact::{self, CountedEffects},
    report::{self, LeftOut},
};
use crate::{
    args::channels::{PromoteArguments, RollbackArguments},
    exit::{Exit, Failure},
    output::count,
    working_copy::named,
};

pub(crate) async fn promote(arguments: &PromoteArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, None)?.acting(&arguments.change.actor)?;
    let PromoteArguments { from, to, prompts, all, change, .. } = arguments;
    if from == to {
        return Err(Failure::new(Exit::Usage, "`--from` and `--to` name the same channel"));
    }
    let promotion = PromoteBody {
        from: from.clone(),
        prompts: prompts.clone(),
        all: *all,
        message: report::message(arguments.change.message.as_ref(), "dry run")?,
        dry_run: change.dry_run,
    };
    let promote = async |store: &Connection| {
        let published = match place.waiting(store.send(&op::Promote { channel: to.clone() }, &promotion)).await {
            Err(CallError::Store(StoreError::Unchanged { .. })) => {
                return report::print_unchanged(store, to, change.json, &LeftOut::default()).await;
            }
            published => published.map_err(|error| conflict(error, from, to))?,
        };
        if change.dry_run {
            let differences = impact::of_copied(store, &published, (from, None)).await?;
            if !change.json {
                print_kept(&published, from, to)?;
            }
            return impact::print_dry_run(&published, &place, &differences, &LeftOut::default(), change.json);
        }
        let effects = CountedEffects::of(store, &published.proposal).await;
        print(&published, &place, &effects, change.json, Some((from, to)))
    };
    place.changing(promote).await
}

fn print_kept(published: &Published, from: &ChannelName, to: &ChannelName) -> Result<(), Failure> {
    const NAMED: usize = 10;

    let Published { kept, .. } = published;
    if kept.is_empty() {
        return Ok(());
    }
    let more = match kept.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = kept.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    report::print_line(&format!("stays as it is in {to}, and not as in {from}: {named}{more}"))?;
    report::print_line(&format!("  (--all makes {to} equal to {from}, and removes what only {to} has)"))
}

fn conflict(error: CallError, from: &ChannelName, to: &ChannelName) -> Failure {
    let CallError::Store(StoreError::Conflict { paths, .. }) = &error else { return error.into() };
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let message = format!(
        "nothing was promoted: {} changed in {to} too, since {from} was last promoted to it:{}",
        count(paths.len(), "file"),
        named(&paths)
    );
    Failure::new(Exit::Conflict, message).help(format!(
        "bring the changes of {to} into {from} and promote again, or promote with --all, which undoes them"
    ))
}

pub(crate) async fn rollback(arguments: &RollbackArguments) -> Result<(), Failure> {
    let place =
        Place::new(&arguments.channel.place, arguments.channel.channel.as_ref())?.acting(&arguments.change.actor)?;
    let RollbackArguments { to, prompt, change, .. } = arguments;
    let message = report::message(arguments.change.message.as_ref(), "dry run")?;
    let roll_back = async |store: &Connection| {
        let channel = place.channel();
        let body = RollbackBody { to: *to, prompt: prompt.clone(), message: message.clone(), dry_run: change.dry_run };
        let published = match place.waiting(store.send(&op::Rollback { channel: channel.clone() }, &body)).await {
            Err(CallError::Store(StoreError::Unchanged { .. })) => {
                return report::print_unchanged(store, channel, change.json, &LeftOut::default()).await;
            }
            published => published.map_err(failure)?,
        };
        if change.dry_run {
            let differences = impact::of_copied(store, &published, (channel, Some(*to))).await?;
            return impact::print_dry_run(&published, &place, &differences, &LeftOut::default(), change.json);
        }
        let effects = CountedEffects::of(store, &published.proposal).await;
        print(&published, &place, &effects, change.json, None)
    };
    place.changing(roll_back).await
}

fn print(
    published: &Published,
    place: &Place,
    effects: &CountedEffects,
    is_json: bool,
    promotion: Option<(&ChannelName, &ChannelName)>,
) -> Result<(), Failure> {
    if is_json {
        let mut outcome = report::outcome_with_prompts(published, false);
        if promotion.is_some() {
            outcome["kept"] = json!(published.kept);
        }
        effects.add_to(&mut outcome);
        report::print_json(&outcome)?;
    } else {
        report::print_outcome(published, place, false)?;
        effects.print()?;
        promotion.map_or(Ok(()), |(from, to)| print_kept(published, from, to))?;
    }
    report::verdict(published, place)
}

fn failure(error: CallError) -> Failure {
    let is_conflict = error.is_conflict();
    let failure = Failure::from(error);
    if is_conflict {
        failure.help("nothing was changed; run the command again on the present revision")
    } else {
        failure
    }
}

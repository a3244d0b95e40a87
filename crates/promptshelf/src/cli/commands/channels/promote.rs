//! `promptshelf promote` and `rollback`.

use promptshelf_store::{ChannelName, Published};

use super::{
    access::{Place, current, to_listing},
    actor::actor,
    answer::BackendError,
    backend::Backend,
    impact, report,
};
use crate::{
    args::channels::{PromoteArguments, RollbackArguments},
    exit::{Exit, Failure},
};

pub(crate) async fn promote(arguments: &PromoteArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, None)?;
    let actor = actor(&arguments.change.actor, &place)?;
    let PromoteArguments { from, to, prompts, change, .. } = arguments;
    if from == to {
        return Err(Failure::new(Exit::Usage, "`--from` and `--to` name the same channel"));
    }
    let message = report::message(arguments.change.message.as_ref(), "dry run")?;
    let promote = async |store: &Backend| {
        if prompts.is_empty() && has_same_files(store, (from, None), to).await? {
            return report::print_unchanged(store, to, change.json).await;
        }
        let promoting = store.promote(from, to, prompts, &message, change.dry_run, &actor);
        let published = place.waiting(promoting).await.map_err(failure)?;
        if change.dry_run {
            let differences = impact::of_copied(store, &published, (from, None)).await?;
            return impact::print_dry_run(&published, &place, &differences, change.json);
        }
        print(&published, &place, change.json)
    };
    place.changing(promote).await
}

pub(crate) async fn rollback(arguments: &RollbackArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.channel.place, arguments.channel.channel.as_ref())?;
    let actor = actor(&arguments.change.actor, &place)?;
    let RollbackArguments { to, prompt, change, .. } = arguments;
    let message = report::message(arguments.change.message.as_ref(), "dry run")?;
    let roll_back = async |store: &Backend| {
        let channel = place.channel();
        if prompt.is_none() && has_same_files(store, (channel, Some(*to)), channel).await? {
            return report::print_unchanged(store, channel, change.json).await;
        }
        let returning = store.rollback(channel, *to, prompt.as_deref(), &message, change.dry_run, &actor);
        let published = place.waiting(returning).await.map_err(failure)?;
        if change.dry_run {
            let differences = impact::of_copied(store, &published, (channel, Some(*to))).await?;
            return impact::print_dry_run(&published, &place, &differences, change.json);
        }
        print(&published, &place, change.json)
    };
    place.changing(roll_back).await
}

/// Whether the newest revision of a channel has the files of another one.
async fn has_same_files(
    store: &Backend,
    (from, revision): (&ChannelName, Option<u64>),
    to: &ChannelName,
) -> Result<bool, Failure> {
    let (_, wanted) = store.files(from, revision).await?;
    Ok(current(store, to).await?.is_some_and(|(_, present)| present == to_listing(&wanted)))
}

fn print(published: &Published, place: &Place, is_json: bool) -> Result<(), Failure> {
    match is_json {
        true => report::print_json(&report::outcome_with_prompts(published, false))?,
        false => report::print_outcome(published, place, false)?,
    }
    report::verdict(published, place)
}

fn failure(error: BackendError) -> Failure {
    let is_conflict = error.is_conflict();
    let failure = Failure::from(error);
    if is_conflict {
        failure.help("nothing was changed; run the command again on the present revision")
    } else {
        failure
    }
}

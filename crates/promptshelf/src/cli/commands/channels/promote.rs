//! `promptshelf promote` and `rollback`.

use promptshelf_store::{ChannelName, Published};

use super::{
    access::{Place, current, to_listing},
    actor::actor,
    answer::BackendError,
    backend::Backend,
    report,
};
use crate::{
    args::channels::{PromoteArguments, RollbackArguments},
    exit::{Exit, Failure},
};

pub(crate) async fn promote(arguments: &PromoteArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, None)?;
    let actor = actor(&arguments.actor, &place)?;
    let PromoteArguments { from, to, prompts, dry_run, json, .. } = arguments;
    if from == to {
        return Err(Failure::new(Exit::Usage, "`--from` and `--to` name the same channel"));
    }
    let message = report::message(arguments.message.as_ref(), "dry run")?;
    let promote = async |store: &Backend| {
        if prompts.is_empty() && has_same_files(store, (from, None), to).await? {
            return report::print_unchanged(store, to, *json).await;
        }
        let promoting = store.promote(from, to, prompts, &message, *dry_run, &actor);
        let published = place.waiting(promoting).await.map_err(failure)?;
        print(&published, &place, *dry_run, *json)
    };
    place.using(promote).await
}

pub(crate) async fn rollback(arguments: &RollbackArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.channel.place, arguments.channel.channel.as_ref())?;
    let actor = actor(&arguments.actor, &place)?;
    let RollbackArguments { to, prompt, dry_run, json, .. } = arguments;
    let message = report::message(arguments.message.as_ref(), "dry run")?;
    let roll_back = async |store: &Backend| {
        let channel = place.channel();
        if prompt.is_none() && has_same_files(store, (channel, Some(*to)), channel).await? {
            return report::print_unchanged(store, channel, *json).await;
        }
        let returning = store.rollback(channel, *to, prompt.as_deref(), &message, *dry_run, &actor);
        let published = place.waiting(returning).await.map_err(failure)?;
        print(&published, &place, *dry_run, *json)
    };
    place.using(roll_back).await
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

fn print(published: &Published, place: &Place, is_dry_run: bool, is_json: bool) -> Result<(), Failure> {
    match is_json {
        true => report::print_json(&report::outcome_with_prompts(published, is_dry_run)),
        false => report::print_outcome(published, place, is_dry_run),
    }
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

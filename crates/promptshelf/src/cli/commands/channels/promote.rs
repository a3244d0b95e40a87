//! `promptshelf promote` and `rollback`.

use std::collections::BTreeSet;

use clap::Args;
use promptshelf_store::{ChannelName, Published, StoreError};
use promptshelf_wire::{PromoteBody, RollbackBody, op};
use serde_json::json;

use super::{
    access::{self, Place},
    connection::{CallError, Connection},
    impact::{self, CountedEffects},
    report::{self, LeftOut},
};
use crate::{
    args::{
        Words,
        place::{ChangeArguments, PlaceArguments, number},
        words::{OnlyPrompt, Prompts},
    },
    exit::{Exit, Failure},
    output::count,
    working_copy::{Listing, named},
};

const PROMOTE_EXAMPLES: &str = "\
A promotion takes what the source has changed since the last one. What only
the target has or has changed stays, and is named; a file that both have
changed is a conflict (exit code 14). It is a proposal like any other: if the
policy of the channel requires more, it stays open. A prompt brings in its
partials and attachments; --dry-run lists the other prompts that change with
them, and the calls of the last 30 days that would fail.

Examples:
  promptshelf promote sqlite:team.db --from staging --to production \\
    -m \"Release 12\"
  promptshelf promote sqlite:team.db code_review --from staging \\
    --to production --dry-run";

const ROLLBACK_EXAMPLES: &str = "\
A rollback makes a new revision with the old contents: history only grows.

Examples:
  promptshelf rollback sqlite:team.db --to 11 -m \"Reviews became vague\"
  promptshelf rollback sqlite:team.db code_review --to 11 --dry-run";

#[derive(Debug, Args)]
#[command(after_help = PROMOTE_EXAMPLES)]
pub(crate) struct PromoteArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, Prompts>,

    /// The channel to copy from
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) from: ChannelName,

    /// The channel to copy to; it is created if it does not exist
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) to: ChannelName,

    /// The same as PROMPT
    #[arg(long = "prompt", value_name = "NAME", hide = true)]
    prompts: Vec<String>,

    /// Undo what only the target has or has changed: it becomes equal to the source, or these prompts do
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

#[derive(Debug, Args)]
#[command(after_help = ROLLBACK_EXAMPLES)]
pub(crate) struct RollbackArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, OnlyPrompt>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// The revision to return to
    #[arg(long, value_name = "REVISION", value_parser = number::<u64>)]
    pub(crate) to: u64,

    /// The same as PROMPT
    #[arg(long, value_name = "NAME", hide = true)]
    prompt: Option<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

impl PromoteArguments {
    /// Returns the prompts of the words and of the option.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.words.names.iter().chain(&self.prompts).cloned().collect()
    }
}

impl RollbackArguments {
    /// Returns the prompt of the words or of the option.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.words.optional_name().or(self.prompt.as_deref())
    }
}

pub(crate) async fn promote(arguments: &PromoteArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, None)?.acting(&arguments.change.actor)?;
    let PromoteArguments { from, to, all, change, .. } = arguments;
    let prompts = arguments.prompts();
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
                report::print_unchanged(store, to, change.json, &LeftOut::default()).await?;
                return if change.json { Ok(()) } else { print_different(store, from, to).await };
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
        let effects = CountedEffects::of(store, &published.proposal, &place).await;
        print(&published, &place, &effects, change.json, Some((from, to)))
    };
    place.changing(promote).await
}

/// Names the files in which two channels differ although nothing is to be promoted: the target has changed them itself.
async fn print_different(store: &Connection, from: &ChannelName, to: &ChannelName) -> Result<(), Failure> {
    const NAMED: usize = 10;

    let files =
        async |channel| Ok::<_, Failure>(access::current(store, channel).await?.map_or_else(Listing::new, |it| it.1));
    let (source, target) = (files(from).await?, files(to).await?);
    let paths: BTreeSet<&String> = source.keys().chain(target.keys()).collect();
    let different: Vec<&str> =
        paths.into_iter().filter(|path| source.get(*path) != target.get(*path)).map(String::as_str).collect();
    if different.is_empty() {
        return Ok(());
    }
    let named = different.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = different.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
    report::print_line(&format!(
        "stays as it is in {to}, which has changed it itself since, and not as in {from}: {named}{}",
        more.unwrap_or_default()
    ))?;
    report::print_line(&format!("  (--all makes {to} equal to {from}, and removes what only {to} has)"))
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
        "bring the changes of {to} into {from}, and promote with --all, which makes {to} equal to {from}; with \
         `--prompt NAME --all`, for one prompt"
    ))
}

pub(crate) async fn roll_back(arguments: &RollbackArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.words.library, arguments.channel.as_ref())?.acting(&arguments.change.actor)?;
    let RollbackArguments { to, change, .. } = arguments;
    let place = place.about(&arguments.words.names);
    let prompt = arguments.prompt().map(str::to_owned);
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
        let effects = CountedEffects::of(store, &published.proposal, &place).await;
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

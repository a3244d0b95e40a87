//! `promptshelf publish`: brings the changes of a folder into a channel.

use std::path::{Path, PathBuf};

use clap::{
    Args,
    builder::{PathBufValueParser, TypedValueParser},
};
use promptshelf_source::{MemoryTree, is_prompt_path, read_served_tree};
use promptshelf_store::{Change, ChannelName, Digest, Head, Proposal, ProposalState, Published, StoreError, StoreUrl};
use promptshelf_wire::op;

use super::{
    access::{self, Place},
    connection::{CallError, Connection},
    impact::{self, CountedDifference, CountedEffects},
    pull,
    report::{self, LeftOut},
    transfer::Publication,
};
use crate::{
    args::{
        LibraryObject,
        place::{ChangeArguments, PlaceArguments, number},
    },
    command_line,
    commands::private_files,
    exit::{Exit, Failure},
    output::{count, note},
    source::is_url,
    working_copy::{Base, Listing, WorkingCopy, changes, listing, named},
};

const PUBLISH_EXAMPLES: &str = "\
Files that differ from the base are changed in the channel. The base is the
revision that the folder was pulled from, or the present one for other folders.
If someone else has changed one of these files since, the exit code is 14 and
nothing changes. Hidden files are never published.

If the policy of the channel requires more, such as approvals, the result is an
open proposal. JSON: {\"channel\",\"proposal\",\"state\",\"revision\"}, where the
state is published or open, and the revision of an open one is null.

Examples:
  promptshelf publish prompts --to sqlite:team.db -m \"Shorter review\"
  promptshelf publish prompts --to sqlite:team.db --dry-run
  promptshelf publish prompts --to sqlite:team.db -m \"As asked\" --proposal 7
  promptshelf publish prompts --to https://prompts.example.com -m \"As asked\"
  promptshelf publish prompts --to sqlite:team.db -m \"Undo the leak\" \\
    --emergency \"prompt shows customer data\"";

const DESTINATION: &str = "The store: sqlite:FILE or postgres://…, or the URL of a server with it; `#CHANNEL` names another \
                           channel than production";

#[derive(Debug, Args)]
#[command(after_help = PUBLISH_EXAMPLES)]
#[command(override_usage = "promptshelf publish [OPTIONS] [LIBRARY] --to <STORE>")]
#[command(mut_arg("store", |to| to.long("to").alias("store").hide(false).value_name("STORE").help(DESTINATION)))]
#[command(mut_arg("folder", |folder| folder.value_parser(published_folder())))]
pub(crate) struct PublishArguments {
    #[command(flatten)]
    pub(crate) library: LibraryObject,

    #[command(flatten)]
    pub(crate) place: PlaceArguments,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Make the channel equal to the folder, whatever others have published since the folder was pulled; for checkouts of git
    #[arg(long)]
    pub(crate) replace: bool,

    /// Change this open proposal; its approvals no longer count
    #[arg(long, value_name = "NUMBER", value_parser = number::<u64>)]
    pub(crate) proposal: Option<u64>,

    /// Accept this file although it looks like a key, a token, a database or settings of an operator; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) include: Vec<String>,

    /// Publish at once, even if the policy requires more; the reason stands out in history
    #[arg(long, value_name = "REASON")]
    pub(crate) emergency: Option<String>,

    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

fn published_folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let is_store = path.to_str().is_some_and(|word| is_url(word) || StoreUrl::is_meant(word));
        if is_store && !path.is_dir() {
            Err("it is the store: write it after `--to`, and the folder before")
        } else {
            Ok(path)
        }
    })
}

pub(crate) async fn run(arguments: &PublishArguments) -> Result<(), Failure> {
    let place = Place::new(&arguments.place, arguments.channel.as_ref())?.acting(&arguments.change.actor)?;
    let message = report::message(arguments.change.message.as_ref(), "dry run")?;
    if arguments.emergency.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
        return Err(Failure::new(Exit::Usage, "`--emergency` expects a reason"));
    }
    let folder = arguments.library.folder();
    let copy = if arguments.change.dry_run { WorkingCopy::open_unchanged(folder)? } else { WorkingCopy::open(folder)? };
    let read = read_served_tree(arguments.library.folder());
    let (mut tree, left_out) = read.map_err(|error| Failure::new(Exit::Library, error.to_string()))?;
    let mut left_out = LeftOut::of(&left_out);
    for path in place.own_files(arguments.library.folder()) {
        if tree.get(&path).is_some() {
            tree = tree.with([(path.as_str(), None)]);
            left_out.add(path, "it is the store itself");
        }
    }
    let work = Work { arguments, copy, tree, left_out, message };
    place.changing(async |store| publish(store, &place, &work).await).await
}

struct Work<'a> {
    arguments: &'a PublishArguments,
    copy: WorkingCopy,
    tree: MemoryTree,
    left_out: LeftOut,
    message: String,
}

async fn publish(store: &Connection, place: &Place, work: &Work<'_>) -> Result<(), Failure> {
    let Work { arguments, copy, tree, left_out, message } = work;
    let channel = place.channel();
    let marker = copy.base(channel)?.filter(|base| base.channel == *channel);
    let base = known_base(store, marker.clone()).await?;
    let mut plan = Plan::new(store, channel, tree, (marker.is_some(), base.as_ref()), arguments.replace).await?;
    // The channel keeps what it has at these paths.
    plan.changes.retain(|change| change.after.is_some() || !left_out.has(&change.path));
    if plan.changes.is_empty() {
        if !arguments.change.dry_run {
            plan.set_base(store, work, (marker, base), None).await?;
        }
        return report::print_unchanged(store, place.channel(), arguments.change.json, left_out).await;
    }
    if let Some(reason) = plan.blind {
        refuse_overwriting(&plan, reason, arguments, place)?;
    }
    let contents = plan.changes.iter().filter_map(|change| Some((change.path.as_str(), change.after.as_deref()?)));
    let unresolved = pull::unresolved(contents.clone());
    if !unresolved.is_empty() {
        let message = format!("conflicts of a merge are left in {}:", count(unresolved.len(), "file"));
        return Err(Failure::new(Exit::Conflict, message + &named(&unresolved))
            .help("keep what is right, and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`"));
    }
    private_files::refuse(contents, &arguments.include)?;
    let bytes = plan.changes.iter().filter_map(|change| change.after.as_ref()).map(|bytes| bytes.len()).sum::<usize>();
    let publication = Publication {
        channel: place.channel().clone(),
        base: plan.revision,
        message: message.clone(),
        proposal: arguments.proposal,
        emergency: arguments.emergency.clone(),
        changes: plan.changes.clone(),
        dry_run: arguments.change.dry_run,
    };
    let what = format!("{}: {} ({} KiB)", place.name(), count(publication.changes.len(), "file"), bytes.div_ceil(1024));
    let sending = store.publish(publication);
    let published =
        crate::terminal::Progress::new(crate::output::visible_line(&what).into_owned()).during(sending).await;
    let published = match published {
        Err(CallError::Store(StoreError::Unchanged { .. })) => {
            return report::print_unchanged(store, place.channel(), arguments.change.json, left_out).await;
        }
        published => published.map_err(|error| failure(error, arguments, place))?,
    };
    let changes: Vec<(String, bool)> = plan.changes.iter().map(described).collect();
    let (warned, effects) = if arguments.change.dry_run {
        let changes = plan.changes.iter().map(|change| (change.path.clone(), change.after.clone()));
        (impact::of_changes(store, place.channel(), changes).await?, CountedEffects::default())
    } else {
        // It is published, whatever fails from here on.
        if let Err(failure) = plan.set_base(store, work, (marker, base), Some(&published.proposal)).await {
            note(&[format!("the folder does not remember what was published: {failure}")]);
        }
        (Vec::new(), CountedEffects::of(store, &published.proposal, place).await)
    };
    let others: Vec<&str> = changes.iter().filter(|(_, is_prompt)| !is_prompt).map(|(line, _)| line.as_str()).collect();
    print(work, place, &published, (&warned, &effects, &others))
}

/// Returns a change in words, and whether its file is a prompt, which the outcome names already.
fn described(change: &Change) -> (String, bool) {
    let what = match (&change.before, &change.after) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    (format!("{what} {}", change.path), is_prompt_path(Path::new(""), &change.path))
}

fn shown(others: &[&str]) -> String {
    const MOST: usize = 10;
    let named = others.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    match others.len().saturating_sub(MOST) {
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

/// Refuses to change or remove what others have published, and the author may never have seen.
fn refuse_overwriting(plan: &Plan, reason: &str, arguments: &PublishArguments, place: &Place) -> Result<(), Failure> {
    let overwritten: Vec<&str> =
        plan.changes.iter().filter(|change| change.before.is_some()).map(|change| &*change.path).collect();
    if overwritten.is_empty() {
        return Ok(());
    }
    let (channel, revision) = (place.channel(), plan.revision);
    let files = count(overwritten.len(), "file");
    let message = format!(
        "nothing was published: the folder {reason}, and {files} of {channel} (revision {revision}) would be replaced or \
         removed:{}",
        named(&overwritten)
    );
    let pull = place.pull(channel, &format!("{} --merge", command_line::path(arguments.library.folder())));
    Err(Failure::new(Exit::Conflict, message)
        .help(format!("{pull} joins both; with `--replace` the channel becomes equal to the folder")))
}

struct Plan {
    channel: ChannelName,
    revision: u64,
    /// Why it may not replace or remove anything.
    blind: Option<&'static str>,
    /// What the folder has in common with the channel.
    known: Listing,
    changes: Vec<Change>,
    present: Listing,
}

impl Plan {
    async fn new(
        store: &Connection,
        channel: &ChannelName,
        tree: &MemoryTree,
        (has_marker, base): (bool, Option<&Base>),
        is_replacing: bool,
    ) -> Result<Plan, Failure> {
        let (head, current) =
            access::current(store, channel).await?.map_or_else(Default::default, |(head, files)| (Some(head), files));
        let own = base.filter(|_| !is_replacing);
        let known = own.map_or_else(|| current.clone(), |base| base.files.clone());
        let is_prompt = |path: &str| is_prompt_path(Path::new(""), path);
        let blind = match (own, has_marker) {
            _ if is_replacing => None,
            // This is more often the wrong folder than the end of all prompts.
            _ if !tree.iter().any(|(path, _)| is_prompt(path)) => Some("has no prompts"),
            (Some(_), _) => None,
            (None, true) => Some("was pulled from another store, or before the store was restored"),
            (None, false) => Some("was not pulled from the channel"),
        };
        Ok(Plan {
            channel: channel.clone(),
            revision: own.map_or(head.map_or(0, |head| head.revision), |base| base.revision),
            blind,
            changes: changes(tree, &known, &current),
            known,
            present: listing(tree),
        })
    }

    /// Records what the folder has in common with the channel now, so that a later publish does not undo the work of others.
    /// A folder that only ever replaces the channel, such as a checkout of git, gets no base.
    async fn set_base(
        self,
        store: &Connection,
        Work { arguments, copy, .. }: &Work<'_>,
        (before, known_before): (Option<Base>, Option<Base>),
        made: Option<&Proposal>,
    ) -> Result<(), Failure> {
        if before.is_none() && arguments.replace {
            return Ok(());
        }
        let Plan { channel, revision, known, changes, present, .. } = self;
        let mut proposals = known_before.map(|base| base.proposals).unwrap_or_default();
        let (revision, files) = match made {
            Some(Proposal { state: ProposalState::Published, revision: published, .. }) => {
                (published.unwrap_or(revision), present)
            }
            None => (revision, present),
            Some(open) => {
                let contents = changes.iter().map(|it| (it.path.clone(), it.after.as_ref().map(|it| Digest::of(it))));
                proposals.insert(open.id, contents.collect());
                (revision, known)
            }
        };
        let mut base = base_at(store, channel, revision, files).await?;
        base.proposals = proposals;
        remember(copy, before.as_ref(), &base);
        Ok(())
    }
}

/// Returns the base of a folder with the proposals that were published since. `None` if the store does not know it: it is
/// another one, or was restored from a backup.
pub(super) async fn known_base(store: &Connection, base: Option<Base>) -> Result<Option<Base>, Failure> {
    let Some(mut base) = base else { return Ok(None) };
    let channel = base.channel.clone();
    let head = match store.get(&op::GetChannel { channel: channel.clone() }).await {
        Ok(info) => info.head,
        Err(CallError::Store(StoreError::NotFound { .. })) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !is_in_history(store, &channel, &base, Some(&head)).await? {
        return Ok(None);
    }
    for (id, files) in std::mem::take(&mut base.proposals) {
        match store.get(&op::GetProposal { id }).await {
            Ok(Proposal { state: ProposalState::Published, changes, .. }) => base.publish(files, &changes),
            Ok(Proposal { state: ProposalState::Open, .. }) => {
                base.proposals.insert(id, files);
            }
            Ok(_) | Err(CallError::Store(StoreError::NotFound { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(base))
}

/// Returns the base of a folder that has files in common with a revision.
pub(super) async fn base_at(
    store: &Connection,
    channel: ChannelName,
    revision: u64,
    files: Listing,
) -> Result<Base, Failure> {
    let digest = digest_of(store, &channel, revision).await?;
    let epoch = store.get(&op::GetChannel { channel: channel.clone() }).await?.head.epoch;
    Ok(Base::new(Head { epoch, revision, digest }, channel, files))
}

/// Leaves a base in the folder. One that cannot be written to stays as it is: it may not overwrite anything later.
pub(super) fn remember(copy: &WorkingCopy, before: Option<&Base>, base: &Base) {
    if before == Some(base) {
        return;
    }
    if let Err(failure) = copy.set_base(base) {
        note(&[format!("the folder does not remember revision {}: {failure}", base.revision)]);
    }
}

/// Returns whether a channel has the revision that a folder was pulled from, or had it before its history was shortened.
async fn is_in_history(
    store: &Connection,
    channel: &ChannelName,
    base: &Base,
    head: Option<&Head>,
) -> Result<bool, Failure> {
    let Some(head) = head.filter(|head| head.epoch == base.epoch && head.revision >= base.revision) else {
        return Ok(false);
    };
    let present =
        if head.revision == base.revision { head.digest } else { digest_of(store, channel, base.revision).await? };
    // Markers and revisions of earlier releases have no digest.
    Ok(present.zip(base.digest).is_none_or(|(present, base)| present == base))
}

async fn digest_of(store: &Connection, channel: &ChannelName, revision: u64) -> Result<Option<Digest>, Failure> {
    match store.get(&op::GetRevision { channel: channel.clone(), number: revision }).await {
        Ok(found) => Ok(found.digest),
        Err(CallError::Store(StoreError::NotFound { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn print(
    Work { arguments, left_out, .. }: &Work<'_>,
    place: &Place,
    published: &Published,
    (differences, effects, others): (&[CountedDifference], &CountedEffects, &[&str]),
) -> Result<(), Failure> {
    match (arguments.change.json, arguments.change.dry_run) {
        // An emergency passes the policy.
        (is_json, true) => match impact::print_dry_run(published, place, differences, left_out, is_json) {
            Err(Failure { exit: Exit::Policy, .. }) if arguments.emergency.is_some() => Ok(()),
            printed => printed,
        },
        (true, false) => {
            let mut outcome = report::outcome(published);
            effects.add_to(&mut outcome);
            left_out.add_to(&mut outcome);
            report::print_json(&outcome)?;
            report::verdict(published, place)
        }
        (false, false) => {
            left_out.print()?;
            report::print_outcome(published, place, false)?;
            if !others.is_empty() {
                report::print_line(&format!("other files: {}", shown(others)))?;
            }
            effects.print()?;
            report::verdict(published, place)
        }
    }
}

fn failure(error: CallError, arguments: &PublishArguments, place: &Place) -> Failure {
    let folder = command_line::path(arguments.library.folder());
    match error {
        CallError::Store(StoreError::Conflict { paths, revision }) => {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let message = format!(
                "nothing was published: {} changed here and, since the base, also in {} (now revision {revision}):{}",
                count(paths.len(), "file"),
                place.channel(),
                named(&paths)
            );
            let pull = place.pull(place.channel(), &format!("{folder} --merge"));
            let help = format!("join the changes of the channel with yours, and publish again: {pull}");
            Failure::new(Exit::Conflict, message).help(help)
        }
        error @ CallError::Store(StoreError::Policy { .. }) => Failure::from(error)
            .help(format!("`promptshelf check {folder}` shows findings, `promptshelf test {folder}` failed tests")),
        error => error.into(),
    }
}

//! `promptshelf pull`: copies a channel to a folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use diffy::{ConflictStyle, IncompleteHunkStyle, MergeOptions};
use promptshelf_source::{check_tree_path, is_obeyed_by_programs};
use promptshelf_store::{ChannelName, Digest, FileEntry};
use serde_json::json;

use super::{
    FileProgress,
    access::{Place, to_listing},
    connection::Connection,
    publish::known_base,
    report,
};
use crate::{
    args::{Words, place::PlaceArguments, words::ToFolder},
    command_line,
    exit::{Exit, Failure},
    output::{Output, count, note},
    working_copy::{Base, BothChanged, Replacement, WorkingCopy, named},
};

const PULL_EXAMPLES: &str = "\
The folder remembers the revision in the hidden file .promptshelf-base, which is
never served or published. A folder with local changes is not changed, unless
--merge is given.

Examples:
  promptshelf pull sqlite:team.db prompts
  promptshelf pull sqlite:team.db#staging@12 prompts-12
  promptshelf pull postgres://prompts@db.example.com/prompts prompts
  promptshelf pull https://prompts.example.com#staging prompts
  promptshelf pull https://prompts.example.com prompts --merge";

#[derive(Debug, Args)]
#[command(after_help = PULL_EXAMPLES)]
pub(crate) struct PullArguments {
    #[command(flatten)]
    pub(crate) words: Words<PlaceArguments, ToFolder>,

    /// The channel [default: that of #CHANNEL, else production]
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<ChannelName>,

    /// Write files that other programs obey, too: CLAUDE.md, AGENTS.md, .claude, .github, .cursor and others
    #[arg(long)]
    pub(crate) client_files: bool,

    /// Keep local changes, and merge them with those of the channel. Changes of the same lines are marked, for you to decide
    #[arg(long)]
    pub(crate) merge: bool,

    /// Print the changes without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The largest batch of contents that are read at once, unless one file is larger.
const BATCH_BYTES: u64 = 16 << 20;

const BATCH_FILES: usize = 1_000;

/// The beginnings of the lines that mark a conflict.
const OURS: &str = "<<<<<<< this folder";

const THEIRS: &str = ">>>>>>> ";

pub(crate) async fn run(arguments: &PullArguments) -> Result<(), Failure> {
    let mut place = Place::with_revision(&arguments.words.library)?;
    if let Some(channel) = &arguments.channel {
        place = place.at(channel);
    }
    let folder = PathBuf::from(arguments.words.name());
    place.using(async |store| pull(store, arguments, &place, &folder).await).await
}

async fn pull(store: &Connection, arguments: &PullArguments, place: &Place, folder: &Path) -> Result<(), Failure> {
    let channel = place.channel();
    let (head, files) = place.waiting(store.files(channel, place.revision())).await?;
    let mut listing = to_listing(&files);
    if !arguments.client_files {
        let left_out: Vec<String> = listing
            .keys()
            .filter(|path| check_tree_path(path).is_ok() && is_obeyed_by_programs(path))
            .cloned()
            .collect();
        listing.retain(|path, _| !left_out.contains(path));
        if let Some(first) = left_out.first() {
            let files = count(left_out.len(), "file");
            note(&[format!("left out {files} that other programs obey, such as {first}; --client-files writes them")]);
        }
    }
    let target = Base::new(head, channel.clone(), listing);
    let is_new = !folder.exists();
    if arguments.dry_run && is_new {
        let outcome = Outcome { written: files.len(), ..Outcome::default() };
        return print(arguments, place, folder, &target, &outcome);
    }
    let outcome = replace(arguments, store, folder, target.clone(), &files).await;
    if outcome.is_err() && is_new {
        // Fails if the folder is not empty.
        fs::remove_dir(folder).ok();
    }
    let outcome = outcome?;
    print(arguments, place, folder, &target, &outcome)?;
    if outcome.conflicts.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        outcome.conflicts.iter().map(|(path, conflict)| format!("{path}{}", conflict.note())).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let message = format!("{} changed both here and in {channel}:", count(names.len(), "file"));
    let has = |kinds: &[Conflict]| outcome.conflicts.iter().any(|(_, conflict)| kinds.contains(conflict));
    let marked = "edit each: what stands between `<<<<<<<` and `=======` is yours, what follows up to `>>>>>>>` is that of the \
                  channel; keep what is right, remove these lines, and publish";
    let whole = "keep or delete each file that only one side has, and publish";
    let failure = Failure::new(Exit::Conflict, message + &named(&names));
    Err(match (has(&[Conflict::Marked]), has(&[Conflict::Back, Conflict::Kept])) {
        (true, true) => failure.help(format!("{marked}; {whole}")),
        (true, false) => failure.help(marked),
        (false, true) => failure.help(whole),
        (false, false) => failure,
    })
}

/// What a pull did, or would do.
#[derive(Default)]
struct Outcome {
    written: usize,
    removed: usize,
    /// The files with the changes of both sides, by path.
    merged: Vec<String>,
    /// The files whose changes contradict each other, by path.
    conflicts: Vec<(String, Conflict)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Conflict {
    /// The file has both, between marks.
    Marked,
    /// It was deleted here, and has the content of the channel again.
    Back,
    /// The channel has deleted it, and it has the content of here.
    Kept,
    /// It was edited while the folder was pulled, and has the content of here.
    Edited,
}

impl Conflict {
    fn note(self) -> &'static str {
        match self {
            Conflict::Marked => "",
            Conflict::Back => " (deleted here and changed in the channel: it is back)",
            Conflict::Kept => " (changed here and deleted in the channel: it stays)",
            Conflict::Edited => " (edited during the pull: it stays; `pull --merge` joins both)",
        }
    }
}

/// Replaces the files of the folder.
async fn replace(
    arguments: &PullArguments,
    store: &Connection,
    folder: &Path,
    mut target: Base,
    files: &[FileEntry],
) -> Result<Outcome, Failure> {
    let copy = if arguments.dry_run { WorkingCopy::open_unchanged(folder)? } else { WorkingCopy::create(folder)? };
    let (target_channel, target_revision) = (target.channel.clone(), target.revision);
    // What was published to another channel only is local work for a merge; without one, the folder changes to this channel.
    let marker = copy.base(&target_channel)?.filter(|base| !arguments.merge || base.channel == target_channel);
    let base = known_base(store, marker).await?;
    target.proposals = base.as_ref().map(|base| base.proposals.clone()).unwrap_or_default();
    let mut replacement = copy.replacement(target, base.as_ref(), arguments.merge)?;
    let (mut written, mut removed) = (replacement.written.clone(), replacement.removed.clone());
    let mut outcome = Outcome::default();
    let both = std::mem::take(&mut replacement.both);
    let merged = merge(store, base.as_ref(), (&target_channel, target_revision), files, both).await?;
    for Merged { path, content, conflict } in &merged {
        match conflict {
            Some(conflict) => outcome.conflicts.push((path.clone(), *conflict)),
            None => outcome.merged.push(path.clone()),
        }
        if let Some(content) = content.as_ref().filter(|_| !arguments.dry_run) {
            replacement.stage_merged(path, content)?;
        }
    }
    if !arguments.dry_run {
        download(store, &mut replacement, (&target_channel, target_revision), files).await?;
        let kept: BTreeSet<String> = replacement.apply()?.into_iter().collect();
        let is_done = |path: &String| !kept.contains(path);
        [&mut written, &mut removed, &mut outcome.merged].into_iter().for_each(|paths| paths.retain(is_done));
        outcome.conflicts.retain(|(path, _)| is_done(path));
        outcome.conflicts.extend(kept.into_iter().map(|path| (path, Conflict::Edited)));
    }
    (outcome.written, outcome.removed) = (written.len(), removed.len());
    Ok(outcome)
}

struct Merged {
    path: String,
    /// The new content; `None` if the file stays as it is.
    content: Option<Vec<u8>>,
    conflict: Option<Conflict>,
}

/// Merges files that have changed both here and in the channel.
async fn merge(
    store: &Connection,
    base: Option<&Base>,
    (channel, revision): (&ChannelName, u64),
    files: &[FileEntry],
    both: Vec<BothChanged>,
) -> Result<Vec<Merged>, Failure> {
    if both.is_empty() {
        return Ok(Vec::new());
    }
    let paths: BTreeSet<&str> = both.iter().map(|file| file.path.as_str()).collect();
    let theirs: Vec<&FileEntry> = files.iter().filter(|file| paths.contains(file.path.as_str())).collect();
    let contents: BTreeMap<_, _> = store.contents(channel, revision, &theirs).await?.into_iter().collect();
    let theirs: BTreeMap<&str, _> =
        theirs.iter().filter_map(|file| Some((file.path.as_str(), contents.get(&file.digest)?))).collect();
    let ancestors = ancestors(store, base, &both).await;
    let (mut merged, mut binary) = (Vec::new(), Vec::new());
    for BothChanged { path, base, ours } in &both {
        let theirs = theirs.get(path.as_str());
        let (content, conflict) = match (ours, theirs) {
            (Some(ours), Some(theirs)) => {
                let ancestor = base.and_then(|digest| ancestors.get(&digest)).map_or(&[][..], |bytes| &**bytes);
                let texts = (str::from_utf8(ancestor), str::from_utf8(ours), str::from_utf8(theirs));
                let (Ok(ancestor), Ok(ours), Ok(theirs)) = texts else {
                    binary.push(path.as_str());
                    continue;
                };
                match merging().merge(ancestor, ours, theirs) {
                    Ok(text) => (Some(text.into_bytes()), None),
                    Err(text) => (Some(labelled(&text, channel, revision).into_bytes()), Some(Conflict::Marked)),
                }
            }
            (None, Some(theirs)) => (Some(theirs.to_vec()), Some(Conflict::Back)),
            (_, None) => (None, Some(Conflict::Kept)),
        };
        merged.push(Merged { path: path.clone(), content, conflict });
    }
    if binary.is_empty() {
        return Ok(merged);
    }
    let message = format!("no text, and changed both here and in {channel}:{}", named(&binary));
    Err(Failure::new(Exit::Conflict, message).help("move these files out of the folder, and pull again"))
}

/// Returns the contents that both sides started from, as far as the store still has them.
async fn ancestors(store: &Connection, base: Option<&Base>, both: &[BothChanged]) -> BTreeMap<Digest, Arc<[u8]>> {
    let Some(base) = base else { return BTreeMap::new() };
    let Ok((head, files)) = store.files(&base.channel, Some(base.revision)).await else { return BTreeMap::new() };
    let is_wanted = |file: &&FileEntry| both.iter().any(|it| it.path == file.path && it.base == Some(file.digest));
    let wanted: Vec<&FileEntry> = files.iter().filter(is_wanted).collect();
    let is_same = head.epoch == base.epoch;
    let contents = if is_same { store.contents(&base.channel, base.revision, &wanted).await } else { Ok(Vec::new()) };
    contents.unwrap_or_default().into_iter().collect()
}

fn merging() -> MergeOptions {
    let mut options = MergeOptions::new();
    options.set_conflict_style(ConflictStyle::Merge).set_incomplete_hunk_style(IncompleteHunkStyle::Git);
    options
}

/// Names both sides in the lines that mark a conflict.
fn labelled(text: &str, channel: &ChannelName, revision: u64) -> String {
    let line = |line: &str| match line.trim_end() {
        "<<<<<<< ours" => format!("{OURS}\n"),
        ">>>>>>> theirs" => format!("{THEIRS}{channel}, revision {revision}\n"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Returns the files in which a conflict of a merge is left.
pub(super) fn unresolved<'c>(contents: impl Iterator<Item = (&'c str, &'c [u8])>) -> Vec<&'c str> {
    let has =
        |content: &[u8], mark: &str| content.split(|byte| *byte == b'\n').any(|line| line.starts_with(mark.as_bytes()));
    let is_marked = |content: &[u8]| has(content, OURS) && has(content, THEIRS);
    contents.filter(|(_, content)| is_marked(content)).map(|(path, _)| path).collect()
}

async fn download(
    store: &Connection,
    replacement: &mut Replacement<'_>,
    (channel, revision): (&ChannelName, u64),
    files: &[FileEntry],
) -> Result<(), Failure> {
    let listed: BTreeMap<&str, &FileEntry> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    let paths = replacement.written.clone();
    let mut progress = FileProgress::new(paths.len());
    let mut rest = paths.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |path: &&String| {
            bytes += listed.get(path.as_str()).map_or(0, |file| file.size);
            bytes <= BATCH_BYTES
        };
        let number = rest.iter().take(BATCH_FILES).take_while(fits).count().max(1);
        let (batch, later) = rest.split_at(number);
        rest = later;
        let wanted: Vec<&FileEntry> = batch.iter().filter_map(|path| listed.get(path.as_str()).copied()).collect();
        let contents: BTreeMap<_, _> = store.contents(channel, revision, &wanted).await?.into_iter().collect();
        for path in batch {
            let content = replacement.digest(path).and_then(|digest| contents.get(&digest));
            let content =
                content.ok_or_else(|| Failure::new(Exit::Failed, format!("the store has no content of {path}")))?;
            replacement.stage(path, content)?;
        }
        progress.advance(number);
    }
    Ok(())
}

fn print(
    arguments: &PullArguments,
    place: &Place,
    folder: &Path,
    target: &Base,
    Outcome { written, removed, merged, conflicts }: &Outcome,
) -> Result<(), Failure> {
    let (channel, revision) = (&target.channel, target.revision);
    if arguments.json {
        let mut outcome = json!({ "channel": channel, "revision": revision, "written": written, "removed": removed });
        if arguments.merge {
            let paths: Vec<&String> = conflicts.iter().map(|(path, _)| path).collect();
            (outcome["merged"], outcome["conflicts"]) = (json!(merged), json!(paths));
        }
        if arguments.dry_run {
            outcome["dryRun"] = json!(true);
        }
        return report::print_json(&outcome);
    }
    let mut output = Output::stdout();
    let shown = output.line(&folder.display().to_string()).into_owned();
    let mut changes = format!("{} written, {removed} removed", count(*written, "file"));
    if !merged.is_empty() {
        changes.push_str(&format!(", {} merged", merged.len()));
    }
    if !conflicts.is_empty() {
        changes.push_str(&format!(", {} in conflict", conflicts.len()));
    }
    match (arguments.dry_run, written + removed + merged.len() + conflicts.len()) {
        (true, _) => writeln!(output.out, "dry run: {shown} would be at revision {revision} of {channel}: {changes}")?,
        (false, 0) => writeln!(output.out, "no changes: {shown} is at revision {revision} of {channel}")?,
        (false, _) => {
            writeln!(output.out, "pulled: {shown} is at revision {revision} of {channel}: {changes}")?;
            if !conflicts.is_empty() {
                return Ok(output.out.flush()?);
            }
            let folder = command_line::path(folder);
            let command = place.command(&format!("publish {folder} --channel {channel} -m TEXT"));
            writeln!(output.out, "next: edit the files, then {command}")?;
        }
    }
    Ok(output.out.flush()?)
}

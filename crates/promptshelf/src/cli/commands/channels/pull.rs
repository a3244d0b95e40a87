//! `promptshelf pull`: copies a channel to a folder.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use promptshelf_source::{check_tree_path, is_obeyed_by_programs};
use promptshelf_store::{ChannelName, FileEntry};
use serde_json::json;

use super::{
    FileProgress,
    access::{Place, to_listing},
    connection::Connection,
    report,
};
use crate::{
    args::channels::PullArguments,
    command_line,
    exit::{Exit, Failure},
    output::{Output, count, note},
    working_copy::{Base, Replacement, WorkingCopy},
};

/// The largest batch of contents that are read at once, unless one file is larger.
const BATCH_BYTES: u64 = 16 << 20;

const BATCH_FILES: usize = 1_000;

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
        return print(arguments, place, folder, &target, (files.len(), 0));
    }
    let outcome = replace(arguments, store, folder, target.clone(), &files).await;
    if outcome.is_err() && is_new {
        // Fails if the folder is not empty.
        fs::remove_dir(folder).ok();
    }
    print(arguments, place, folder, &target, outcome?)
}

/// Replaces the files of the folder; returns the numbers of written and removed files.
async fn replace(
    arguments: &PullArguments,
    store: &Connection,
    folder: &Path,
    target: Base,
    files: &[FileEntry],
) -> Result<(usize, usize), Failure> {
    let copy = if arguments.dry_run { WorkingCopy::open(folder)? } else { WorkingCopy::create(folder)? };
    let (target_channel, target_revision) = (target.channel.clone(), target.revision);
    let mut replacement = copy.replacement(target)?;
    let counts = (replacement.written.len(), replacement.removed.len());
    if !arguments.dry_run {
        download(store, &mut replacement, (&target_channel, target_revision), files).await?;
        replacement.apply()?;
    }
    Ok(counts)
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
    (written, removed): (usize, usize),
) -> Result<(), Failure> {
    let (channel, revision) = (&target.channel, target.revision);
    if arguments.json {
        let mut outcome = json!({ "channel": channel, "revision": revision, "written": written, "removed": removed });
        if arguments.dry_run {
            outcome["dryRun"] = json!(true);
        }
        return report::print_json(&outcome);
    }
    let mut output = Output::stdout();
    let shown = output.line(&folder.display().to_string()).into_owned();
    let changes = format!("{} written, {removed} removed", count(written, "file"));
    match (arguments.dry_run, written + removed) {
        (true, _) => writeln!(output.out, "dry run: {shown} would be at revision {revision} of {channel}: {changes}")?,
        (false, 0) => writeln!(output.out, "no changes: {shown} is at revision {revision} of {channel}")?,
        (false, _) => {
            writeln!(output.out, "pulled: {shown} is at revision {revision} of {channel}: {changes}")?;
            let folder = command_line::path(folder);
            let command = place.command(&format!("publish {folder} --channel {channel} -m TEXT"));
            writeln!(output.out, "next: edit the files, then {command}")?;
        }
    }
    Ok(output.out.flush()?)
}

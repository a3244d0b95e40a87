//! `promptshelf pull`: copies a channel to a folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use promptshelf_store::{Digest, FileEntry, Store};
use serde_json::json;

use super::{
    access::{Place, to_listing, waiting},
    report,
};
use crate::{
    args::channels::{PullArguments, StoreText},
    command_line,
    exit::{Exit, Failure},
    output::{Output, count},
    working_copy::{Base, Replacement, WorkingCopy},
};

/// The largest batch of contents that are read at once, unless one file is larger.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_FILES: usize = 1_000;

pub(crate) async fn run(arguments: &PullArguments) -> Result<(), Failure> {
    let (place, folder) = words(arguments)?;
    let store = place.open().await?;
    let (channel, revision) = (place.channel(), place.address.revision);
    let (head, files) = waiting(&place.address.store, store.files(channel, revision)).await?;
    let target = Base::new(head.epoch.clone(), channel.clone(), head.revision, to_listing(&files));
    let is_new = !folder.exists();
    if arguments.dry_run && is_new {
        return print(arguments, &place, &folder, &target, (files.len(), 0));
    }
    let outcome = replace(arguments, &store, &folder, target.clone(), &files).await;
    if outcome.is_err() && is_new {
        // Fails if the folder is not empty.
        fs::remove_dir(&folder).ok();
    }
    print(arguments, &place, &folder, &target, outcome?)
}

/// Returns the store and the folder.
fn words(arguments: &PullArguments) -> Result<(Place, PathBuf), Failure> {
    let (store, folder) = match (arguments.words.as_slice(), &arguments.store) {
        ([store, folder], _) => (store, folder),
        ([folder], Some(store)) => (store, folder),
        _ => {
            return Err(Failure::new(Exit::Usage, "the store is missing")
                .help("name it before the folder, or set PROMPTSHELF_STORE"));
        }
    };
    let StoreText(folder) = folder;
    if promptshelf_store::StoreUrl::is_meant(folder) {
        return Err(Failure::new(Exit::Usage, "the folder is missing: the last word is a store"));
    }
    Ok((Place::parse(store)?, PathBuf::from(folder)))
}

/// Replaces the files of the folder; returns the numbers of written and removed files.
async fn replace(
    arguments: &PullArguments,
    store: &Store,
    folder: &Path,
    target: Base,
    files: &[FileEntry],
) -> Result<(usize, usize), Failure> {
    let copy = if arguments.dry_run { WorkingCopy::open(folder)? } else { WorkingCopy::create(folder)? };
    let mut replacement = copy.replacement(target)?;
    let counts = (replacement.written.len(), replacement.removed.len());
    if !arguments.dry_run {
        download(store, &mut replacement, files).await?;
        replacement.apply()?;
    }
    Ok(counts)
}

async fn download(store: &Store, replacement: &mut Replacement<'_>, files: &[FileEntry]) -> Result<(), Failure> {
    let sizes: BTreeMap<&str, u64> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    let paths = replacement.written.clone();
    let mut progress = FileProgress::new(paths.len());
    let mut rest = paths.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |path: &&String| {
            bytes += sizes.get(path.as_str()).copied().unwrap_or_default();
            bytes <= BATCH_BYTES
        };
        let number = rest.iter().take(BATCH_FILES).take_while(fits).count().max(1);
        let (batch, later) = rest.split_at(number);
        rest = later;
        let mut digests: Vec<Digest> = batch.iter().filter_map(|path| replacement.digest(path)).collect();
        digests.sort_unstable();
        digests.dedup();
        let contents: BTreeMap<_, _> = store.blobs(&digests).await?.into_iter().collect();
        for path in batch {
            let content = replacement.digest(path).and_then(|digest| contents.get(&digest));
            let content =
                content.ok_or_else(|| Failure::new(Exit::Failed, format!("the store has no content of {path}")))?;
            replacement.stage(path, content)?;
        }
        progress.advance(number);
    }
    progress.end();
    Ok(())
}

/// Shows the number of read files on a terminal, once it takes long.
struct FileProgress {
    start: Option<Instant>,
    done: usize,
    all: usize,
    is_shown: bool,
}

impl FileProgress {
    fn new(all: usize) -> FileProgress {
        let start = io::stderr().is_terminal().then(Instant::now);
        FileProgress { start, done: 0, all, is_shown: false }
    }

    fn advance(&mut self, files: usize) {
        const DELAY: Duration = Duration::from_secs(1);
        self.done += files;
        if self.start.is_some_and(|start| start.elapsed() > DELAY) {
            self.is_shown = true;
            write!(io::stderr(), "\r\x1b[K{} of {}", self.done, count(self.all, "file")).ok();
        }
    }

    fn end(&mut self) {
        if self.is_shown {
            write!(io::stderr(), "\r\x1b[K").ok();
        }
    }
}

impl Drop for FileProgress {
    fn drop(&mut self) {
        self.end();
    }
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

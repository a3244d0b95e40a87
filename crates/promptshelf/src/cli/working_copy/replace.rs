//! Replacing the files of a folder, whole or not at all.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::{self, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use promptshelf_source::{check_tree_path, keep_owner, read_tree};
use promptshelf_store::{ChannelName, Digest};
use serde::{Deserialize, Serialize};

use super::{Base, Listing, MARKER, changed_paths, listing};
use crate::{
    exit::{Exit, Failure},
    output::note,
};

/// The folder for new files until all are there.
const STAGING: &str = ".promptshelf-pull";

/// In the staging folder: the moves and removals of the second step.
const JOURNAL: &str = ".promptshelf-pull/journal";

/// In the staging folder: locked while a pull runs.
const LOCK: &str = ".promptshelf-pull/lock";

const MAX_NAMED: usize = 20;

/// A folder whose files belong to a channel. All access is confined to the folder.
pub(crate) struct WorkingCopy {
    path: PathBuf,
    dir: Dir,
}

/// The second step of a replacement.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    base: Base,
    /// The name in the staging folder of each new file, by path.
    staged: BTreeMap<String, String>,
    removed: Vec<String>,
    /// The digests of merged files, which are those of neither side.
    #[serde(default)]
    merged: Listing,
    /// The contents that are replaced and removed. A file with another one was edited since, and stays.
    #[serde(default)]
    present: Listing,
}

/// A file that was changed both here and in the channel.
pub(crate) struct BothChanged {
    pub(crate) path: String,
    /// The content that both started from.
    pub(crate) base: Option<Digest>,
    /// The content here; `None` if the file was deleted.
    pub(crate) ours: Option<Arc<[u8]>>,
}

impl WorkingCopy {
    /// Opens an existing folder, and completes a pull that was interrupted in its second step.
    pub(crate) fn open(path: &Path) -> Result<WorkingCopy, Failure> {
        let copy = WorkingCopy::at(path)?;
        if copy.dir.exists(JOURNAL) {
            let _lock = copy.lock()?;
            let kept = copy.complete()?;
            let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
            let except = if kept.is_empty() { "" } else { ", except files that were edited since:" };
            let text =
                format!("completed the pull into {} that was interrupted{except}", path.display()) + &named(&kept);
            note(&text.lines().map(str::to_owned).collect::<Vec<String>>());
        }
        Ok(copy)
    }

    /// Opens an existing folder without changing it.
    pub(crate) fn open_unchanged(path: &Path) -> Result<WorkingCopy, Failure> {
        let copy = WorkingCopy::at(path)?;
        if copy.dir.exists(JOURNAL) {
            let message = format!("a pull into {} was interrupted: a part of its files are new", path.display());
            return Err(Failure::new(Exit::Conflict, message).help("pull again, which completes it"));
        }
        Ok(copy)
    }

    fn at(path: &Path) -> Result<WorkingCopy, Failure> {
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::new(Exit::Library, format!("the folder {} does not exist", path.display()))
            }
            _ => Failure::new(Exit::Library, format!("the folder {} cannot be opened: {error}", path.display())),
        })?;
        Ok(WorkingCopy { path: path.to_owned(), dir })
    }

    /// Opens a folder for a pull; creates it if it does not exist.
    pub(crate) fn create(path: &Path) -> Result<WorkingCopy, Failure> {
        fs::create_dir_all(path)
            .map_err(|error| Failure::new(Exit::Library, format!("{} cannot be created: {error}", path.display())))?;
        WorkingCopy::open(path)
    }

    /// Returns the base of the folder in a channel, or else the newest one; `None` if it was never pulled or published.
    pub(crate) fn base(&self, channel: &ChannelName) -> Result<Option<Base>, Failure> {
        let mut bases = self.bases()?;
        let newest = bases.pop();
        let own = newest.iter().chain(&bases).find(|base| base.channel == *channel).cloned();
        Ok(own.or(newest))
    }

    fn bases(&self) -> Result<Vec<Base>, Failure> {
        let text = match self.dir.read_to_string(MARKER) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failure(MARKER, &error)),
        };
        let bases = text.lines().map(Base::parse).collect::<Result<Vec<Base>, String>>();
        bases.and_then(|bases| if bases.is_empty() { Err("it is empty".to_owned()) } else { Ok(bases) }).map_err(
            |reason| {
                let place = self.path.join(MARKER);
                Failure::new(Exit::Library, format!("{} is not a marker of `pull`: {reason}", place.display()))
                    .help("pull into another folder, and copy your changes there")
            },
        )
    }

    /// Sets the base of the folder in a channel. Those in other channels stay.
    pub(crate) fn set_base(&self, base: &Base) -> Result<(), Failure> {
        let mut bases = self.bases()?;
        bases.retain(|other| other.channel != base.channel);
        bases.push(base.clone());
        self.write_bases(&bases)
    }

    fn write_bases(&self, bases: &[Base]) -> Result<(), Failure> {
        let text: String = bases.iter().map(Base::text).collect();
        self.write_whole(MARKER, &text).map_err(|error| self.failure(MARKER, &error))
    }

    fn write_whole(&self, path: &str, text: &str) -> io::Result<()> {
        let new = format!("{path}.new");
        let mut file = self.dir.create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        self.dir.rename(&new, &self.dir, path)
    }

    /// Waits until all that was written is on the disk, so that a loss of power leaves no empty file. On Linux one call for
    /// all files takes a fraction of the time of one for each.
    fn sync(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(fs::File::open(&self.path)?)?;
        Ok(())
    }

    /// Returns the digest of a file; `None` if there is none.
    fn digest(&self, path: &str) -> Result<Option<Digest>, Failure> {
        use io::ErrorKind::{NotADirectory, NotFound};
        match self.dir.symlink_metadata(path) {
            Ok(found) if found.is_dir() => Ok(None),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
            _ => self.dir.read(path).map(|bytes| Some(Digest::of(&bytes))).map_err(|error| self.failure(path, &error)),
        }
    }

    /// Prepares the files of a channel. What differs from the base is a local change; without one, every file is. Local changes
    /// are an error, unless `is_merge`: then they stay, and files that have changed in both places are left to the caller.
    pub(crate) fn replacement(
        &self,
        target: Base,
        base: Option<&Base>,
        is_merge: bool,
    ) -> Result<Replacement<'_>, Failure> {
        for path in target.files.keys() {
            check_tree_path(path).map_err(|reason| refused_path(path, &reason.to_string()))?;
        }
        reject_overlaps(&target.files)?;
        // Before everything below it is read: it may be the wrong folder.
        let is_new = base.is_none() && !is_merge && self.bases()?.is_empty();
        let visible = if is_new { self.visible_entries()? } else { Vec::new() };
        if !visible.is_empty() {
            let names: Vec<&str> = visible.iter().map(String::as_str).collect();
            let message = format!("the folder {} is not empty, and was not pulled before", self.path.display());
            return Err(Failure::new(Exit::Conflict, message + &named(&names))
                .help("pull into a new or empty folder, or join both with `--merge`"));
        }
        let tree = read_tree(&self.path).map_err(|error| Failure::new(Exit::Library, error.to_string()))?;
        let present = listing(&tree);
        let known = base.map(|base| &base.files);
        let empty = Listing::new();
        let is_lost = |path: &&str| present.get(*path) != target.files.get(*path);
        let local: Vec<&str> = changed_paths(known.unwrap_or(&empty), &present).into_iter().filter(is_lost).collect();
        if !local.is_empty() && !is_merge {
            let message = format!("the folder {} has local changes:", self.path.display());
            return Err(Failure::new(Exit::Conflict, message + &named(&local))
                .help("merge them with `--merge`, publish them first, or pull into another folder"));
        }
        let known = known.unwrap_or(&empty);
        let is_both = |path: &&&str| target.files.get(**path) != known.get(**path);
        let both = local.iter().filter(is_both).map(|path| BothChanged {
            path: (*path).to_owned(),
            base: known.get(*path).copied(),
            ours: tree.get(path).map(|file| file.bytes().into()),
        });
        let both = both.collect();
        let is_local = |path: &String| local.binary_search(&path.as_str()).is_ok();
        let written: Vec<String> = target
            .files
            .iter()
            .filter(|(path, digest)| present.get(*path) != Some(digest) && !is_local(path))
            .map(|(path, _)| path.clone())
            .collect();
        let is_removed = |path: &&String| !target.files.contains_key(*path) && !is_local(path);
        let removed: Vec<String> = present.keys().filter(is_removed).cloned().collect();
        for path in &written {
            self.reject_obstacles(path, &removed)?;
        }
        let (staged, merged) = (BTreeMap::new(), Listing::new());
        Ok(Replacement { copy: self, base: target, present, written, removed, both, staged, merged, lock: None })
    }

    /// Returns the entries that do not begin with a dot, sorted.
    fn visible_entries(&self) -> Result<Vec<String>, Failure> {
        let entries = self.dir.entries().map_err(|error| self.failure(".", &error))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        Ok(names)
    }

    /// Rejects a path whose place is taken by something that the replacement does not remove, such as a link: what it leads
    /// to belongs to somebody else.
    fn reject_obstacles(&self, path: &str, removed: &[String]) -> Result<(), Failure> {
        let obstacle = |place: &str| {
            let message = format!("{} is in the way of {path}", self.path.join(place).display());
            Failure::new(Exit::Conflict, message).help("move it, and pull again")
        };
        let is_removed = |place: &str| removed.iter().any(|path| path == place);
        for folder in path.match_indices('/').map(|(end, _)| &path[..end]) {
            match self.dir.symlink_metadata(folder) {
                Ok(found) if found.is_dir() || is_removed(folder) => {}
                Ok(_) => return Err(obstacle(folder)),
                Err(_) => break,
            }
        }
        match self.dir.symlink_metadata(path) {
            Ok(found) if found.is_dir() => match self.remaining(path, removed) {
                Some(place) => Err(obstacle(&place)),
                None => Ok(()),
            },
            Ok(found) if found.is_symlink() => Err(obstacle(path)),
            _ => Ok(()),
        }
    }

    /// Returns a file below a folder that is not removed.
    fn remaining(&self, folder: &str, removed: &[String]) -> Option<String> {
        let entries = self.dir.read_dir(folder).ok()?;
        entries.flatten().find_map(|entry| {
            let place = format!("{folder}/{}", entry.file_name().to_string_lossy());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.remaining(&place, removed),
                _ => (!removed.contains(&place)).then_some(place),
            }
        })
    }

    fn lock(&self) -> Result<fs::File, Failure> {
        self.dir.create_dir_all(STAGING).map_err(|error| self.failure(STAGING, &error))?;
        let mut options = OpenOptions::new();
        options.write(true).create(true);
        let file = self.dir.open_with(LOCK, &options).map_err(|error| self.failure(LOCK, &error))?.into_std();
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another pull into {} is running", self.path.display());
                Err(Failure::new(Exit::Conflict, message).help("wait for its end"))
            }
            Err(TryLockError::Error(error)) => Err(self.failure(LOCK, &error)),
        }
    }

    /// Carries out the journal, and returns the files that stay because they were edited since. Can be repeated after an
    /// interruption at any place.
    fn complete(&self) -> Result<Vec<String>, Failure> {
        let text = self.dir.read_to_string(JOURNAL).map_err(|error| self.failure(JOURNAL, &error))?;
        let journal: Journal = serde_json::from_str(&text).map_err(|error| self.failure(JOURNAL, &error))?;
        let kept = self.move_files(&journal).map_err(|failure| {
            failure.help("a part of the files are new now: correct this, and pull again, which completes it")
        })?;
        let mut base = journal.base;
        // The edit was made to the content before.
        for path in &kept {
            match journal.present.get(path) {
                Some(digest) => base.files.insert(path.clone(), *digest),
                None => base.files.remove(path),
            };
        }
        self.sync().map_err(|error| self.failure(".", &error))?;
        self.write_bases(&[base])?;
        self.dir.remove_file(JOURNAL).map_err(|error| self.failure(JOURNAL, &error))?;
        // On Windows the lock, which is still open, can keep the folder there. The next pull uses it again.
        let _ = self.dir.remove_dir_all(STAGING);
        Ok(kept)
    }

    fn move_files(&self, journal: &Journal) -> Result<Vec<String>, Failure> {
        let mut kept = Vec::new();
        for path in &journal.removed {
            let Some(digest) = self.digest(path)? else { continue };
            if Some(&digest) == journal.present.get(path) {
                self.dir.remove_file(path).map_err(|error| self.failure(path, &error))?;
                self.remove_empty_parents(path);
            } else {
                kept.push(path.clone());
            }
        }
        for (path, name) in &journal.staged {
            let staged = format!("{STAGING}/{name}");
            if !self.dir.exists(&staged) {
                continue;
            }
            let digest = journal.merged.get(path).or_else(|| journal.base.files.get(path));
            let present = self.digest(path)?;
            let is_as_before = present.as_ref() == journal.present.get(path) || present.as_ref() == digest;
            if is_as_before && self.is_free(path) {
                self.put(&staged, path, digest).map_err(|error| self.failure(path, &error))?;
            } else {
                kept.push(path.clone());
            }
        }
        Ok(kept)
    }

    /// Returns whether no edited file stays where a folder of the path has to be, or below it.
    fn is_free(&self, path: &str) -> bool {
        let is_folder = |place: &str| self.dir.symlink_metadata(place).map_or(true, |found| found.is_dir());
        path.match_indices('/').all(|(end, _)| is_folder(&path[..end])) && self.remaining(path, &[]).is_none()
    }

    fn put(&self, staged: &str, path: &str, digest: Option<&Digest>) -> io::Result<()> {
        if Some(&Digest::of(&self.dir.read(staged)?)) != digest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the downloaded file is damaged: pull again"));
        }
        if let Ok(replaced) = self.dir.open(path).and_then(|file| file.into_std().metadata())
            && replaced.is_file()
        {
            let new = self.dir.open(staged)?.into_std();
            new.set_permissions(replaced.permissions())?;
            keep_owner(&new, &replaced);
        }
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.dir.create_dir_all(folder)?;
        }
        if self.dir.symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            self.remove_empty_folders(path)?;
        }
        self.dir.rename(staged, &self.dir, path)
    }

    fn remove_empty_folders(&self, folder: &str) -> io::Result<()> {
        for entry in self.dir.read_dir(folder)? {
            self.remove_empty_folders(&format!("{folder}/{}", entry?.file_name().to_string_lossy()))?;
        }
        self.dir.remove_dir(folder)
    }

    fn remove_empty_parents(&self, path: &str) {
        let mut folder = path;
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            // Fails for a folder that is not empty.
            if self.dir.remove_dir(folder).is_err() {
                break;
            }
        }
    }

    fn failure(&self, path: &str, error: &dyn std::error::Error) -> Failure {
        Failure::new(Exit::Library, format!("{}: {error}", self.path.join(path).display()))
    }
}

/// New files for a folder. Dropped before [`apply`](Replacement::apply), it leaves the folder unchanged.
pub(crate) struct Replacement<'c> {
    copy: &'c WorkingCopy,
    base: Base,
    /// The folder as it was compared.
    present: Listing,
    /// The paths of the files that are new or differ, sorted.
    pub(crate) written: Vec<String>,
    /// The paths of the files that are removed, sorted.
    pub(crate) removed: Vec<String>,
    /// The files that were changed both here and in the channel, by path. They stay as they are here, unless another
    /// content is staged.
    pub(crate) both: Vec<BothChanged>,
    staged: BTreeMap<String, String>,
    merged: Listing,
    lock: Option<fs::File>,
}

impl Replacement<'_> {
    pub(crate) fn digest(&self, path: &str) -> Option<Digest> {
        self.base.files.get(path).copied()
    }

    pub(crate) fn stage(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        if self.lock.is_none() {
            let lock = self.copy.lock()?;
            self.remove_leftovers()?;
            self.lock = Some(lock);
        }
        let name = self.staged.len().to_string();
        let place = format!("{STAGING}/{name}");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let write = || {
            let mut file = self.copy.dir.open_with(&place, &options)?;
            file.write_all(bytes)?;
            if cfg!(target_os = "linux") { Ok(()) } else { file.sync_all() }
        };
        write().map_err(|error| self.copy.failure(path, &error))?;
        self.staged.insert(path.to_owned(), name);
        Ok(())
    }

    /// Stages a content that is neither that of the folder nor that of the channel.
    pub(crate) fn stage_merged(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.merged.insert(path.to_owned(), Digest::of(bytes));
        self.stage(path, bytes)
    }

    fn remove_leftovers(&self) -> Result<(), Failure> {
        let dir = &self.copy.dir;
        let entries = dir.read_dir(STAGING).map_err(|error| self.copy.failure(STAGING, &error))?;
        for name in entries.flatten().map(|entry| entry.file_name()).filter(|name| name != "lock") {
            let place = format!("{STAGING}/{}", name.to_string_lossy());
            dir.remove_file(&place).map_err(|error| self.copy.failure(&place, &error))?;
        }
        Ok(())
    }

    /// Replaces the files. Returns those that stay because they were edited since they were compared, sorted.
    pub(crate) fn apply(mut self) -> Result<Vec<String>, Failure> {
        if self.written.is_empty() && self.removed.is_empty() && self.staged.is_empty() {
            return self.copy.set_base(&self.base).map(|()| Vec::new());
        }
        if self.lock.is_none() {
            self.lock = Some(self.copy.lock()?);
            self.remove_leftovers()?;
        }
        let journal = Journal {
            base: self.base.clone(),
            staged: std::mem::take(&mut self.staged),
            removed: self.removed.clone(),
            merged: std::mem::take(&mut self.merged),
            present: std::mem::take(&mut self.present),
        };
        // Serializing texts and maps with text keys cannot fail.
        let text = serde_json::to_string(&journal).unwrap_or_default();
        let copy = self.copy;
        let written = copy.sync().and_then(|()| copy.write_whole(JOURNAL, &text));
        written.map_err(|error| copy.failure(JOURNAL, &error))?;
        let mut kept = copy.complete()?;
        kept.sort();
        // The hidden folder is gone, and the lock with it.
        self.lock = None;
        Ok(kept)
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        // Neither complete nor in its second step.
        if self.lock.is_some() && !self.copy.dir.exists(JOURNAL) {
            self.copy.dir.remove_dir_all(STAGING).ok();
        }
    }
}

fn refused_path(path: &str, reason: &str) -> Failure {
    Failure::new(Exit::Failed, format!("the channel has a file {path:?} that cannot be written: {reason}"))
        .help("publish the channel without this file")
}

/// Rejects files that cannot exist together: one is the folder of another, or their names differ only in case where the
/// file system ignores it.
fn reject_overlaps(files: &Listing) -> Result<(), Failure> {
    const IGNORES_CASE: bool = cfg!(any(windows, target_os = "macos"));
    let mut seen = BTreeMap::new();
    for path in files.keys() {
        if path.match_indices('/').any(|(end, _)| files.contains_key(&path[..end])) {
            return Err(refused_path(path, "another file has the name of its folder"));
        }
        if IGNORES_CASE && let Some(other) = seen.insert(path.to_lowercase(), path) {
            return Err(refused_path(path, &format!("the name differs from {other} only in case")));
        }
    }
    Ok(())
}

pub(crate) fn named(paths: &[&str]) -> String {
    let shown: String = paths.iter().take(MAX_NAMED).map(|path| format!("\n  {path}")).collect();
    match paths.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown}\n  and {more} more"),
    }
}

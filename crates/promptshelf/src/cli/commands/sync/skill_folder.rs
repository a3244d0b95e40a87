//! The folder of one skill on disk, with a record of the files that `sync` wrote.
//!
//! The record distinguishes files of `sync` from others, and edited files from unchanged ones. It is a file that anyone
//! may have written: its paths are checked as those of a server are.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use cap_std::fs::{Dir, OpenOptions};
use promptshelf_source::SKILL_RECORD as RECORD;
use serde::{Deserialize, Serialize};

use super::{SKILL, SyncFolder, TEMPORARY, names};
use crate::{exit::Failure, output::file_json, state::digest_bytes};

/// The largest record, in bytes; one of 512 files with long paths has less.
const MAX_RECORD_BYTES: u64 = 2 << 20;

/// The largest file whose digest is computed, in bytes: larger ones cannot be files of a skill.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Digests of a file, as `sha256:` and hexadecimal digits: one, or during a change the earlier and the new one.
pub(super) type Digests = BTreeSet<String>;

/// The files of a skill that `sync` wrote.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) origin: String,
    /// The name of the folder: a copy of it under another name is not one of `sync`. Missing in records of earlier
    /// releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// The digests of each file, by its path below the folder.
    pub(super) files: BTreeMap<String, Digests>,
}

pub(super) enum FileState {
    Missing,
    File(String),
    /// A folder, a link, a file behind a link, or a file that is too large.
    Other,
}

pub(super) struct SkillFolder<'f> {
    folder: &'f SyncFolder,
    name: String,
    path: String,
}

impl<'f> SkillFolder<'f> {
    pub(super) fn new(folder: &'f SyncFolder, name: &str) -> SkillFolder<'f> {
        SkillFolder { folder, name: name.to_owned(), path: format!("{}/{name}", folder.skills()) }
    }

    pub(super) fn recorded(folder: &'f SyncFolder) -> Result<Vec<SkillFolder<'f>>, Failure> {
        let Some(dir) = folder.dir() else { return Ok(Vec::new()) };
        let entries = match dir.read_dir(folder.skills()) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(folder.failure(folder.skills(), &error)),
        };
        let names = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = names.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| names::is_skill(name)).collect();
        names.sort();
        Ok(names.iter().map(|name| SkillFolder::new(folder, name)).collect())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shown(&self, path: &str) -> String {
        format!("{}/{path}", self.path)
    }

    /// Whether something else than a folder is at the path, or the folder has a skill. One without stays when a skill with
    /// files of others is withdrawn.
    pub(super) fn is_taken(&self) -> Result<bool, Failure> {
        let Some(dir) = self.folder.dir() else { return Ok(false) };
        match dir.symlink_metadata(&self.path) {
            Ok(metadata) if metadata.is_dir() => {
                let entries = dir.read_dir(&self.path).map_err(|error| self.failure("", &error))?;
                let is_skill = |name: &std::ffi::OsStr| name.eq_ignore_ascii_case(SKILL) || name == RECORD;
                Ok(entries.flatten().any(|entry| is_skill(&entry.file_name())))
            }
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(self.failure("", &error)),
        }
    }

    /// Reads the record; `None` without a valid one.
    pub(super) fn record(&self) -> Result<Option<Record>, Failure> {
        let Some(dir) = self.folder.dir() else { return Ok(None) };
        let path = self.shown(RECORD);
        match dir.symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_RECORD_BYTES => {}
            Ok(_) => return Ok(None),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(self.failure(RECORD, &error)),
        }
        let bytes = dir.read(&path).map_err(|error| self.failure(RECORD, &error))?;
        let record = serde_json::from_slice::<Record>(&bytes).ok();
        let record = record.filter(|record| record.name.as_ref().is_none_or(|name| *name == self.name));
        Ok(record.filter(|record| record.files.keys().all(|path| names::check_skill_path(path).is_ok())))
    }

    /// Returns the state of a file. Links are not followed.
    pub(super) fn look(&self, path: &str) -> Result<FileState, Failure> {
        let Some(dir) = self.folder.dir() else { return Ok(FileState::Missing) };
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            match dir.symlink_metadata(self.shown(&path[..end])) {
                Ok(metadata) if end == path.len() => {
                    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
                        return Ok(FileState::Other);
                    }
                }
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Ok(FileState::Other),
                Err(error) if is_missing(&error) => return Ok(FileState::Missing),
                Err(error) => return Err(self.failure(path, &error)),
            }
        }
        let bytes = dir.read(self.shown(path)).map_err(|error| self.failure(path, &error))?;
        Ok(FileState::File(digest_of(&bytes)))
    }

    /// Replaces a file, which readers see whole. Returns `false` if another file than an earlier one is at the path.
    pub(super) fn write(
        &self,
        path: &str,
        bytes: &[u8],
        is_earlier: impl Fn(&String) -> bool,
    ) -> Result<bool, Failure> {
        let is_free = || {
            Ok::<bool, Failure>(match self.look(path)? {
                FileState::Missing => true,
                FileState::File(found) => is_earlier(&found),
                FileState::Other => false,
            })
        };
        if !is_free()? {
            return Ok(false);
        }
        self.replace(path, bytes, is_free)
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<(), Failure> {
        let text = format!("{}\n", file_json(&serde_json::to_value(record).unwrap_or_default()));
        self.replace(RECORD, text.as_bytes(), || Ok(true)).map(|_| ())
    }

    /// Removes a file that was looked at, and folders that are empty then.
    pub(super) fn remove(&self, path: &str) -> Result<(), Failure> {
        let Some(dir) = self.folder.dir() else { return Ok(()) };
        dir.remove_file(self.shown(path)).map_err(|error| self.failure(path, &error))?;
        let mut parent = path;
        while let Some((folder, _)) = parent.rsplit_once('/') {
            if dir.remove_dir(self.shown(folder)).is_err() {
                break;
            }
            parent = folder;
        }
        Ok(())
    }

    /// Writes the record after a change; without files, removes it and the folder, unless it has files of others.
    pub(super) fn finish(&self, record: &Record) -> Result<(), Failure> {
        if !record.files.is_empty() {
            return self.write_record(record);
        }
        self.remove(RECORD)?;
        if let Some(dir) = self.folder.dir() {
            dir.remove_dir(&self.path).ok();
        }
        Ok(())
    }

    fn replace(&self, path: &str, bytes: &[u8], is_free: impl Fn() -> Result<bool, Failure>) -> Result<bool, Failure> {
        let Some(dir) = self.folder.dir() else { return Ok(false) };
        let target = self.shown(path);
        let (parent, _) = target.rsplit_once('/').unwrap_or((&self.path, ""));
        dir.create_dir_all(parent).map_err(|error| self.failure(path, &error))?;
        // In the skill's own folder, where the next sync removes the leftovers of an interrupted one.
        let temporary = self.shown(&format!("{TEMPORARY}file"));
        write_file(dir, &temporary, bytes).map_err(|error| self.failure(path, &error))?;
        let is_replaced = is_free()?;
        let done = if is_replaced { dir.rename(&temporary, dir, &target) } else { dir.remove_file(&temporary) };
        done.map_err(|error| self.failure(path, &error))?;
        Ok(is_replaced)
    }

    fn failure(&self, path: &str, error: &io::Error) -> Failure {
        self.folder.failure(&self.shown(path), error)
    }
}

pub(super) fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", digest_bytes(bytes))
}

fn write_file(dir: &Dir, path: &str, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut file = dir.open_with(path, &options)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

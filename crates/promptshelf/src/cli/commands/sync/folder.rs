//! The files of a client in one folder. All access goes through a handle that refuses paths out of the folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use promptshelf_author::{ExportFormat, clients::NativeFiles};
use promptshelf_source::Mark;

use super::{marker, names};
use crate::{
    exit::{Exit, Failure},
    state,
};

pub(super) const TEMPORARY: &str = ".promptshelf-sync-";
/// The largest file that can be one of `sync`, in bytes.
const MAX_BYTES: u64 = 16 << 20;
pub(super) const SKILL: &str = "SKILL.md";

pub(super) struct SyncFolder {
    path: PathBuf,
    dir: Option<Dir>,
    native: &'static NativeFiles,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Written by `sync`.
    Signed {
        mark: Mark,
        is_edited: bool,
        text: String,
    },
    /// Written by `sync` to another path, and copied.
    Copy,
    Foreign,
}

impl SyncFolder {
    /// Opens the folder; creates it with `create`.
    pub(super) fn open(path: &Path, native: &'static NativeFiles, create: bool) -> Result<SyncFolder, Failure> {
        let failure = |error: io::Error| Failure::new(Exit::Failed, format!("{}: {error}", path.display()));
        if create {
            fs::create_dir_all(path).map_err(failure)?;
        }
        let dir = match Dir::open_ambient_dir(path, ambient_authority()) {
            Ok(dir) => Some(dir),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => None,
            Err(error) => return Err(failure(error)),
        };
        Ok(SyncFolder { path: path.to_owned(), dir, native })
    }

    /// Returns the handle of the folder; `None` in a dry run before the folder exists.
    pub(super) fn dir(&self) -> Option<&Dir> {
        self.dir.as_ref()
    }

    pub(super) fn skills(&self) -> &'static str {
        self.native.skills
    }

    /// Waits for other processes that sync into the folder. `None` without a folder for the lock.
    pub(super) fn lock(&self) -> Result<Option<fs::File>, Failure> {
        let Some(folder) = state::folder().map(|folder| folder.join("sync")) else { return Ok(None) };
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let file = folder.join(format!("{}.lock", &state::digest(&path.display().to_string())[..32]));
        let locked = fs::create_dir_all(&folder).and_then(|()| {
            let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&file)?;
            lock.lock()?;
            Ok(lock)
        });
        locked.map(Some).map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", file.display())))
    }

    pub(super) fn scan(&self) -> Result<BTreeMap<String, Found>, Failure> {
        let folder = self.native.folder;
        let mut found = BTreeMap::new();
        let Some(dir) = &self.dir else { return Ok(found) };
        let entries = match dir.read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(self.failure(folder, &error)),
        };
        for entry in entries.flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = match self.native.format {
                ExportFormat::Skill => format!("{folder}/{name}/{SKILL}"),
                format if name.ends_with(names::ending(format)) && !name.starts_with('.') => format!("{folder}/{name}"),
                _ => continue,
            };
            if let Some(file) = self.look(&path)? {
                found.insert(path, file);
            }
        }
        Ok(found)
    }

    /// Reads the file at a path; `None` if it does not exist.
    fn look(&self, path: &str) -> Result<Option<Found>, Failure> {
        let Some(dir) = &self.dir else { return Ok(None) };
        let is_missing =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let metadata = match dir.symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => return Ok(None),
            // Such as a link that leads out of the folder.
            Err(_) => return Ok(Some(Found::Foreign)),
        };
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return Ok(Some(Found::Foreign));
        }
        let text = match dir.read(path) {
            Ok(bytes) => String::from_utf8(bytes).ok(),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(self.failure(path, &error)),
        };
        let signed = text.and_then(|text| Mark::find(&text).filter(|mark| mark.is_synced).map(|mark| (mark, text)));
        Ok(Some(match signed {
            Some((mark, _)) if mark.path.as_ref().is_some_and(|written| written != path) => Found::Copy,
            Some((mark, text)) => Found::Signed { is_edited: marker::is_edited(&text, &mark), mark, text },
            None => Found::Foreign,
        }))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.dir.as_ref().is_some_and(|dir| dir.symlink_metadata(path).is_ok())
    }

    /// Replaces a file, which readers see whole. Returns `false` if it is no longer as it was found.
    pub(super) fn write(&self, path: &str, found: Option<&Found>, text: &str) -> Result<bool, Failure> {
        let Some(dir) = &self.dir else { return Ok(false) };
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        dir.create_dir_all(folder).map_err(|error| self.failure(folder, &error))?;
        let temporary = format!("{folder}/{TEMPORARY}{}", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let written = dir
            .open_with(&temporary, &options)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(|error| self.failure(path, &error))?;
        if self.look(path)?.as_ref() != found {
            dir.remove_file(&temporary).ok();
            return Ok(false);
        }
        dir.rename(&temporary, dir, path).map_err(|error| self.failure(path, &error))?;
        Ok(true)
    }

    /// Removes a file if it is as it was found, and the folder of a skill if it is empty then.
    pub(super) fn remove(&self, path: &str, found: &Found) -> Result<(), Failure> {
        let Some(dir) = &self.dir else { return Ok(()) };
        if self.look(path)?.as_ref() == Some(found) {
            dir.remove_file(path).map_err(|error| self.failure(path, &error))?;
            if let (ExportFormat::Skill, Some((folder, _))) = (self.native.format, path.rsplit_once('/')) {
                dir.remove_dir(folder).ok();
            }
        }
        Ok(())
    }

    pub(super) fn remove_leftovers(&self) {
        let Some(dir) = &self.dir else { return };
        let folder = self.native.folder;
        let names = |folder: &str| -> Vec<String> {
            let entries = dir.read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str().map(|name| format!("{folder}/{name}"))).collect()
        };
        let skills = names(self.native.skills);
        let mut all: Vec<String> = skills.iter().flat_map(|skill| names(skill)).collect();
        all.extend(names(folder));
        for path in all.iter().filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with(TEMPORARY))) {
            dir.remove_file(path).ok();
        }
    }

    pub(super) fn failure(&self, path: &str, error: &io::Error) -> Failure {
        Failure::new(Exit::Failed, format!("{}: {error}", self.path.join(path).display()))
            .help("a symbolic link must not lead out of the synced folder")
    }
}

//! Records of installed entries, with a backup of each file, in the program's state folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    exit::{Exit, Failure},
    state,
};

/// The records of all installed entries. Only one process changes configuration files at a time.
pub(crate) struct Records {
    folder: PathBuf,
    /// `None` for reading alone.
    lock: Option<fs::File>,
}

/// An installed entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Record {
    file: PathBuf,
    name: String,
    /// The digest of the entry as JSON.
    entry: String,
    /// The digest of the file with the entry.
    after: String,
    /// Whether the file existed before; its content is then in the backup.
    existed: bool,
    /// Whether the backup is the content from before the first installation, so that it can be put back.
    exact: bool,
    /// The topmost folder that was created for the file.
    created: Option<PathBuf>,
}

impl Records {
    /// Opens the records; for changes, waits for another process that makes some.
    pub(crate) fn open(for_changes: bool) -> Result<Records, Failure> {
        let folder = state::folder().map(|folder| folder.join("installed")).ok_or_else(|| {
            Failure::new(Exit::Failed, "a folder for backups is missing")
                .help("set HOME, or XDG_STATE_HOME, to a folder that can be written")
        })?;
        if !for_changes {
            return Ok(Records { folder, lock: None });
        }
        let lock = folder.join("lock");
        // The state folder above is readable only by the user.
        let locked = fs::create_dir_all(&folder).and_then(|()| {
            let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&lock)?;
            file.lock()?;
            Ok(file)
        });
        let lock = locked.map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", lock.display())))?;
        Ok(Records { folder, lock: Some(lock) })
    }

    pub(crate) fn for_changes(&self) -> bool {
        self.lock.is_some()
    }

    fn path(&self, file: &Path, name: &str, ending: &str) -> PathBuf {
        let id = state::digest(&format!("{}\n{name}", file.display()));
        self.folder.join(format!("{}.{ending}", &id[..32]))
    }

    pub(crate) fn backup(&self, file: &Path, name: &str) -> PathBuf {
        self.path(file, name, "backup")
    }

    pub(crate) fn find(&self, file: &Path, name: &str) -> Option<Record> {
        let text = fs::read_to_string(self.path(file, name, "json")).ok()?;
        serde_json::from_str(&text).ok().filter(|record: &Record| record.file == file && record.name == name)
    }

    /// Keeps the content from before a change. After a further change by `install` alone, the first backup stays.
    pub(crate) fn keep(
        &self,
        file: &Path,
        name: &str,
        (before, after): (Option<&[u8]>, &[u8]),
        (entry, has_entry): (&Value, bool),
    ) -> io::Result<()> {
        let earlier =
            self.find(file, name).filter(|record| before.is_some_and(|before| record.after == digest(before)));
        let record = match earlier {
            Some(earlier) => Record { entry: digest_of(entry), after: digest(after), ..earlier },
            None => {
                if let Some(before) = before {
                    state::write_bytes(&self.backup(file, name), before)?;
                }
                Record {
                    file: file.to_owned(),
                    name: name.to_owned(),
                    entry: digest_of(entry),
                    after: digest(after),
                    existed: before.is_some(),
                    exact: !has_entry,
                    created: missing_folder(file),
                }
            }
        };
        let text = serde_json::to_string_pretty(&record).map_err(io::Error::other)?;
        state::write(&self.path(file, name, "json"), &text)
    }

    pub(crate) fn forget(&self, file: &Path, name: &str) {
        for ending in ["json", "backup"] {
            fs::remove_file(self.path(file, name, ending)).ok();
        }
    }

    /// Returns the content from before the installation if the file is still as it was after it; `Some(None)` for a
    /// file that did not exist.
    pub(crate) fn original(&self, record: &Record, now: &[u8]) -> Option<Option<Vec<u8>>> {
        if !record.exact || record.after != digest(now) {
            return None;
        }
        match record.existed {
            false => Some(None),
            true => fs::read(self.backup(&record.file, &record.name)).ok().map(Some),
        }
    }
}

impl Record {
    pub(crate) fn is_of(&self, entry: &Value) -> bool {
        self.entry == digest_of(entry)
    }

    /// Removes the folders that were created for the file, as far as they are empty.
    pub(crate) fn remove_folders(&self) {
        let Some(created) = &self.created else { return };
        for folder in self.file.ancestors().skip(1).take_while(|folder| folder.starts_with(created)) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

fn missing_folder(file: &Path) -> Option<PathBuf> {
    file.ancestors().skip(1).take_while(|folder| !folder.exists()).last().map(Path::to_owned)
}

/// The digest of an entry with its keys in any order: readers of some formats sort them.
fn digest_of(entry: &Value) -> String {
    let mut entry = entry.clone();
    entry.sort_all_objects();
    state::digest(&entry.to_string())
}

fn digest(bytes: &[u8]) -> String {
    state::digest_bytes(bytes)
}

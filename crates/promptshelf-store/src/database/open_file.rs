//! The identity of an open SQLite file: another file can be moved to its path, and the connections do not notice it.
//!
//! SQLite would apply the log (`…-wal`) of the old file to the new one, so the log has to go before the new file is
//! opened (<https://www.sqlite.org/howtocorrupt.html>, section 1.4).

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::StoreError;

type FileId = (u64, u64);

#[derive(Debug)]
pub(crate) struct OpenFile {
    path: PathBuf,
    ids: Mutex<Ids>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ids {
    file: Option<FileId>,
    log: Option<FileId>,
}

impl OpenFile {
    /// Remembers the file at a path, before it is opened or after it was created.
    pub(crate) fn new(path: &Path) -> OpenFile {
        let ids = Ids { file: id(path), log: None };
        OpenFile { path: path.to_owned(), ids: Mutex::new(ids) }
    }

    pub(crate) fn is_replaced(&self) -> Result<bool, StoreError> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let present = id(&self.path);
        if ids.file.is_none() {
            // The store was being created.
            ids.file = present;
        }
        if present == ids.file {
            ids.log = id(&self.companion("-wal")).or(ids.log);
            return Ok(false);
        }
        if present.is_some() {
            return Ok(true);
        }
        let reason = format!("the file {} was moved or removed while it was open", self.path.display());
        Err(StoreError::Unreachable { reason, source: None })
    }

    /// Removes the log of the replaced file, unless it is already that of the new one. The connections are closed.
    pub(crate) fn remove_log(&self) {
        let ids = *self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let log = self.companion("-wal");
        if ids.log.is_some() && id(&log) == ids.log {
            // Another process may have removed them.
            std::fs::remove_file(log).ok();
            std::fs::remove_file(self.companion("-shm")).ok();
        }
    }

    fn companion(&self, suffix: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        path.into()
    }
}

#[cfg(unix)]
fn id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Elsewhere an open file cannot be replaced.
#[cfg(not(unix))]
fn id(_: &Path) -> Option<FileId> {
    None
}

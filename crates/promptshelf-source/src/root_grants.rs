//! Folders that `[roots]` of a library may point to: those inside the library, and those that the operator grants.

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::confined_dir::ConfinedDir;

/// Opens declared roots. Clones share the granted folders, so that a revoked grant takes effect at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct RootGrants {
    library: PathBuf,
    granted: Arc<Mutex<Vec<PathBuf>>>,
}

/// The reason for which a root cannot be opened.
#[derive(Debug)]
pub(crate) enum RootError {
    /// It is outside of the library and of all granted folders. Whether it exists is not revealed.
    NotGranted(PathBuf),
    Unreadable(io::Error),
}

impl RootGrants {
    pub(crate) fn new(library: PathBuf) -> RootGrants {
        RootGrants { library, granted: Arc::default() }
    }

    pub(crate) fn set(&self, folders: Vec<PathBuf>) {
        *self.granted.lock().unwrap_or_else(PoisonError::into_inner) = folders;
    }

    /// Opens the library itself.
    pub(crate) fn open_library(&self) -> io::Result<ConfinedDir> {
        ConfinedDir::open(&self.library)
    }

    /// Opens a root, which is relative to the library or absolute. Symbolic links are resolved before the decision.
    pub(crate) fn open(&self, root: &Path) -> Result<ConfinedDir, RootError> {
        let path = self.library.join(root);
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let allowed = || [&self.library].into_iter().chain(&granted);
        match path.canonicalize() {
            Ok(path) if allowed().any(|folder| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder))) => {
                // The resolved path is opened, so that a link that changes meanwhile leads nowhere else.
                ConfinedDir::open(&path).map_err(RootError::Unreadable)
            }
            Err(error) if allowed().any(|folder| lexical(&path).starts_with(lexical(folder))) => {
                Err(RootError::Unreadable(error))
            }
            Ok(path) => Err(RootError::NotGranted(path)),
            Err(_) => Err(RootError::NotGranted(lexical(&path))),
        }
    }
}

/// An absolute path without `.` and `..`, for a folder that does not exist.
fn lexical(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut normal = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

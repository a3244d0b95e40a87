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

    /// Returns the path of the library.
    pub(crate) fn library(&self) -> &Path {
        &self.library
    }

    /// Returns the absolute path of a root without symbolic links, whether or not it exists.
    pub(crate) fn path(&self, root: &Path) -> PathBuf {
        self.locate(root).unwrap_or_else(|_| {
            let library = self.library.canonicalize().unwrap_or_else(|_| self.library.clone());
            lexical(&library.join(root))
        })
    }

    /// Opens a root, which is relative to the library or absolute.
    pub(crate) fn open(&self, root: &Path) -> Result<ConfinedDir, RootError> {
        self.open_with_path(root).map(|(folder, _)| folder)
    }

    /// Opens a root, and returns its absolute path without symbolic links too.
    pub(crate) fn open_with_path(&self, root: &Path) -> Result<(ConfinedDir, PathBuf), RootError> {
        let path = self.locate(root)?;
        // The resolved path is opened, so that a link that changes meanwhile leads nowhere else.
        let folder = ConfinedDir::open(&path).map_err(RootError::Unreadable)?;
        Ok((folder, path))
    }

    /// Returns the path of a root that may be opened. Symbolic links are resolved before the decision.
    fn locate(&self, root: &Path) -> Result<PathBuf, RootError> {
        let path = self.library.join(root);
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let allowed = || [&self.library].into_iter().chain(&granted);
        match path.canonicalize() {
            Ok(path) if allowed().any(|folder| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder))) => {
                Ok(path)
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

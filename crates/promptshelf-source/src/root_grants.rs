//! Opens a library and the folders that its `[roots]` point to: those inside the library, and those that the operator
//! grants.

use std::{
    collections::BTreeMap,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use crate::{
    error::SourceError,
    memory_tree::{MemoryFile, MemoryTree},
    places::{self, join},
    tree::{ConfinedDir, MemoryDir, Tree},
};
use parking_lot::Mutex;

/// Stands for the absolute path of a library in memory. No path on disk contains a NUL character.
const IN_MEMORY: &str = "\0library";

/// Stands for the folder around a library in memory, which does not exist.
const OUTSIDE_MEMORY: &str = "\0outside";

/// Opens a library and its declared roots. Clones share the granted folders, so that a revoked grant takes effect at once.
#[derive(Clone, Debug)]
pub(crate) struct RootGrants {
    library: LibraryTree,
    granted: Arc<Mutex<Vec<PathBuf>>>,
}

#[derive(Clone, Debug)]
enum LibraryTree {
    Folder(PathBuf),
    Memory(MemoryDir),
}

/// The reason for which a root cannot be opened.
#[derive(Debug)]
pub(crate) enum RootError {
    /// It is outside of the library and of all granted folders. Whether it exists is not revealed.
    NotGranted(PathBuf),
    /// Its relative path leads out of a library in memory, which is inside no folder.
    OutsideMemory,
    Unreadable(io::Error),
}

impl RootGrants {
    /// Creates the opener for a library in a folder, without grants.
    pub(crate) fn folder(library: PathBuf) -> RootGrants {
        RootGrants { library: LibraryTree::Folder(library), granted: Arc::default() }
    }

    /// Creates the opener for a library in memory, without grants.
    pub(crate) fn memory() -> RootGrants {
        RootGrants { library: LibraryTree::Memory(MemoryDir::new(MemoryTree::default())), granted: Arc::default() }
    }

    pub(crate) fn with_tree(&self, tree: MemoryTree) -> RootGrants {
        RootGrants { library: LibraryTree::Memory(MemoryDir::new(tree)), granted: Arc::clone(&self.granted) }
    }

    pub(crate) fn set(&self, folders: Vec<PathBuf>) {
        *self.granted.lock() = folders;
    }

    /// Returns the folder of the library; `None` for a library in memory.
    pub(crate) fn library_folder(&self) -> Option<&Path> {
        match &self.library {
            LibraryTree::Folder(path) => Some(path),
            LibraryTree::Memory(_) => None,
        }
    }

    /// Returns the absolute path of the library without symbolic links; a stand-in for a library in memory.
    pub(crate) fn library_path(&self) -> String {
        match &self.library {
            LibraryTree::Folder(path) => places::text(&path.canonicalize().unwrap_or_else(|_| path.clone())),
            LibraryTree::Memory(_) => IN_MEMORY.to_owned(),
        }
    }

    /// Opens the library, with the unsaved texts of an editor in place of its files.
    pub(crate) fn open_library(&self, unsaved: BTreeMap<String, MemoryFile>) -> Result<Tree, SourceError> {
        match &self.library {
            LibraryTree::Folder(path) => {
                // A folder can be opened without permission to list it, and then its contents are unknown.
                let folder = ConfinedDir::open(path).and_then(|folder| folder.dir().entries().map(|_| folder));
                let folder = folder.map_err(|error| SourceError::folder(path, error))?;
                Ok(Tree::Folder(folder, unsaved))
            }
            LibraryTree::Memory(memory) => Ok(Tree::Memory(memory.clone())),
        }
    }

    /// Returns the absolute path of a root without symbolic links, whether or not it exists.
    pub(crate) fn path(&self, root: &Path) -> PathBuf {
        self.locate(root).unwrap_or_else(|_| match &self.library {
            LibraryTree::Folder(library) => {
                lexical(&library.canonicalize().unwrap_or_else(|_| library.clone()).join(root))
            }
            LibraryTree::Memory(_) if root.is_absolute() => lexical(root),
            LibraryTree::Memory(_) => Path::new(OUTSIDE_MEMORY).join(root),
        })
    }

    pub(crate) fn watched_folder(&self, root: &Path) -> Option<PathBuf> {
        match &self.library {
            LibraryTree::Folder(library) => self.open(root).is_ok().then(|| library.join(root)),
            LibraryTree::Memory(_) => match self.open_with_path(root) {
                Ok((Tree::Folder(..), path)) => Some(path),
                _ => None,
            },
        }
    }

    pub(crate) fn open(&self, root: &Path) -> Result<Tree, RootError> {
        self.open_with_path(root).map(|(tree, _)| tree)
    }

    /// Opens a root, and returns its absolute path without symbolic links too.
    pub(crate) fn open_with_path(&self, root: &Path) -> Result<(Tree, PathBuf), RootError> {
        let path = self.locate(root)?;
        if let LibraryTree::Memory(memory) = &self.library
            && let Ok(inside) = path.strip_prefix(IN_MEMORY)
        {
            let folder = memory.folder(&places::text(inside));
            let folder = folder.ok_or_else(|| RootError::Unreadable(io::ErrorKind::NotFound.into()))?;
            return Ok((Tree::Memory(folder), path));
        }
        // The resolved path is opened, so that a link that changes meanwhile leads nowhere else.
        let folder = ConfinedDir::open(&path).map_err(RootError::Unreadable)?;
        Ok((Tree::folder(folder), path))
    }

    /// Returns the path of a root that may be opened. Symbolic links are resolved before the decision.
    fn locate(&self, root: &Path) -> Result<PathBuf, RootError> {
        let mut allowed = self.granted.lock().clone();
        let path = match &self.library {
            LibraryTree::Folder(library) => {
                allowed.insert(0, library.clone());
                library.join(root)
            }
            LibraryTree::Memory(memory) if !root.is_absolute() => {
                let inside = memory.resolve(&places::text(root)).map_err(|_| RootError::OutsideMemory)?;
                return Ok(PathBuf::from(join(IN_MEMORY, &inside)));
            }
            // A grant that depends on the working directory is meant for the folder that the server runs in.
            LibraryTree::Memory(_) => {
                allowed.retain(|folder| folder.is_absolute());
                root.to_path_buf()
            }
        };
        match path.canonicalize() {
            Ok(path) if allowed.iter().any(|folder| folder.canonicalize().is_ok_and(|it| path.starts_with(it))) => {
                Ok(path)
            }
            Err(error) if allowed.iter().any(|folder| lexical(&path).starts_with(lexical(folder))) => {
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

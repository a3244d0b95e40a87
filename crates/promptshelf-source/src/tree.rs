//! A tree of files: a folder on disk, or files in memory. Nothing above this module depends on the kind.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::{
    confined_dir::ConfinedDir,
    file_access::{FileBytes, FileData, FileError},
    file_state::FileState,
    memory_dir::MemoryDir,
    memory_tree::MemoryFile,
};

/// An open tree. Paths are relative to it, with `/` between their parts; those that lead out of it are refused.
#[derive(Debug)]
pub(crate) enum Tree {
    /// A folder, and the texts that an editor has not saved, by path.
    Folder(ConfinedDir, BTreeMap<String, MemoryFile>),
    Memory(MemoryDir),
}

impl Tree {
    pub(crate) fn folder(folder: ConfinedDir) -> Tree {
        Tree::Folder(folder, BTreeMap::new())
    }

    /// Returns the path in this tree to which a path leads, without links, `.` and `..`.
    pub(crate) fn canonicalize(&self, path: &str) -> Result<String, FileError> {
        match self {
            Tree::Folder(folder, _) => folder.canonicalize(path),
            Tree::Memory(memory) => memory.canonicalize(path),
        }
    }

    /// Returns the state of a file. Follows links.
    pub(crate) fn state(&self, path: &str) -> Result<FileState, FileError> {
        match self {
            Tree::Folder(_, unsaved) if let Some(file) = unsaved.get(path) => Ok(FileState::in_memory(file)),
            Tree::Folder(folder, _) => folder.state(path),
            Tree::Memory(memory) => memory.state(path),
        }
    }

    /// Reads a file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes, FileError> {
        match self {
            Tree::Folder(_, unsaved) if let Some(file) = unsaved.get(path) => {
                Ok(FileBytes { bytes: FileData::Shared(file.shared()), state: FileState::in_memory(file) })
            }
            Tree::Folder(folder, _) => folder.read(path, limit).map(|FileBytes { bytes, state }| {
                let bytes = FileData::Read(bytes);
                FileBytes { bytes, state }
            }),
            Tree::Memory(memory) => memory.read(path, limit),
        }
    }

    /// Whether a regular file, and not a link to one, is at a path of a folder.
    pub(crate) fn is_plain_file(&self, path: &str) -> bool {
        match self {
            Tree::Folder(folder, _) => folder.dir().symlink_metadata(path).is_ok_and(|found| found.is_file()),
            Tree::Memory(_) => false,
        }
    }

    /// Returns a number that changes with the content of a file: from the metadata of a file on disk, and from the bytes
    /// of one in memory.
    pub(crate) fn version(&self, path: &str) -> Result<u64, FileError> {
        let mut hasher = DefaultHasher::new();
        match self {
            Tree::Folder(folder, _) => folder.state(path)?.hash(&mut hasher),
            Tree::Memory(memory) => memory.file(path)?.bytes().hash(&mut hasher),
        }
        Ok(hasher.finish())
    }
}

//! The result of reading one file of a tree.

use std::{io, ops::Deref, sync::Arc};

use crate::file_state::FileState;

/// The bytes of a file, and its state when they were read.
#[derive(Debug)]
pub(crate) struct FileBytes<B = FileData> {
    pub(crate) bytes: B,
    pub(crate) state: FileState,
}

/// Bytes that were read from a disk, or those of a file in memory, which other files may share.
#[derive(Debug)]
pub(crate) enum FileData {
    Read(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl FileData {
    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            FileData::Read(bytes) => bytes,
            FileData::Shared(bytes) => bytes.to_vec(),
        }
    }
}

impl Deref for FileData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FileData::Read(bytes) => bytes,
            FileData::Shared(bytes) => bytes,
        }
    }
}

/// The reason why a file was not read.
#[derive(Debug)]
pub(crate) enum FileError {
    /// Nothing exists at the path, or it was deleted meanwhile.
    NotFound,
    OutsideRoot,
    LinkCycle,
    /// Something other than a regular file exists at the path.
    NotAFile,
    /// The file has this many bytes, more than the limit.
    TooLarge(u64),
    Io(io::Error),
}

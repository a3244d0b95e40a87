//! The result of reading one file of a tree.

use std::io;

use crate::file_state::FileState;

/// The bytes of a file, and its state when they were read.
#[derive(Debug)]
pub(crate) struct FileBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) state: FileState,
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

//! A folder that nothing leads out of, and what a file's state looked like.
//!
//! Every path is resolved by the operating system below an open folder, so a
//! symbolic link, or a folder that is exchanged while we look, cannot lead out.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata, OpenOptions},
};

use crate::file_state::FileState;

/// A folder that nothing leads out of.
#[derive(Debug)]
pub(crate) struct ConfinedDir(Dir);

/// A file's bytes and its state when they were read.
#[derive(Debug)]
pub(crate) struct FileBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) state: FileState,
}

/// Why a file is not read.
#[derive(Debug)]
pub(crate) enum FileError {
    /// Nothing is there, or no longer.
    NotFound,
    /// The path leads out of the folder.
    OutsideRoot,
    /// A symbolic link leads back to itself.
    LinkCycle,
    /// There is something that is no regular file.
    NotAFile,
    /// It is larger than allowed.
    TooLarge(u64),
    /// The system says no.
    Io(io::Error),
}

impl FileError {
    fn of(error: io::Error) -> FileError {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
            // Without a number of the system's it is the confinement that refuses.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => FileError::OutsideRoot,
            _ if is_one_of(&error, ELOOP) => FileError::LinkCycle,
            // A socket, or a FIFO or device with nobody behind it, cannot be opened.
            _ if is_one_of(&error, ENXIO) => FileError::NotAFile,
            _ => FileError::Io(error),
        }
    }
}

/// Errors that the standard library has no stable name for. Linux and the BSDs,
/// macOS among them, number them differently.
const ELOOP: &[i32] = if cfg!(any(target_os = "linux", target_os = "android")) { &[40] } else { &[62] };
const ENXIO: &[i32] = &[6];

fn is_one_of(error: &io::Error, numbers: &[i32]) -> bool {
    cfg!(unix) && error.raw_os_error().is_some_and(|number| numbers.contains(&number))
}

impl ConfinedDir {
    /// Opens a folder by a path that the operator or the author has named.
    pub(crate) fn open(path: &Path) -> io::Result<ConfinedDir> {
        Dir::open_ambient_dir(path, ambient_authority()).map(ConfinedDir)
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.0
    }

    /// What stands at a path, links followed.
    pub(crate) fn metadata(&self, path: &str) -> Result<Metadata, FileError> {
        self.0.metadata(path).map_err(FileError::of)
    }

    /// The state of a regular file.
    pub(crate) fn state(&self, path: &str) -> Result<FileState, FileError> {
        let metadata = self.metadata(path)?;
        if metadata.is_file() { Ok(FileState::of(&metadata)) } else { Err(FileError::NotAFile) }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes, FileError> {
        let mut options = OpenOptions::new();
        // Opening a FIFO would otherwise wait for a writer, for ever.
        options.read(true).nonblock(true);
        let file = self.0.open_with(path, &options).map_err(FileError::of)?;
        let metadata = file.metadata().map_err(FileError::of)?;
        if !metadata.is_file() {
            return Err(FileError::NotAFile);
        }
        if metadata.len() > limit {
            return Err(FileError::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
        let mut file: File = file.into_std();
        // A file can grow while it is read.
        (&mut file).take(limit + 1).read_to_end(&mut bytes).map_err(FileError::of)?;
        if bytes.len() as u64 > limit {
            return Err(FileError::TooLarge(bytes.len() as u64));
        }
        Ok(FileBytes { bytes, state: FileState::of(&metadata) })
    }
}

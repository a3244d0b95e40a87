//! Reading of files that is confined to one folder.
//!
//! The operating system resolves every path below an open folder, so neither a symbolic link nor a folder that is
//! replaced during the read leads out of it.

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

use crate::{
    file_access::{FileBytes, FileError},
    file_state::FileState,
    places,
};

/// An open folder. Paths that lead out of it are refused.
#[derive(Debug)]
pub(crate) struct ConfinedDir(Dir);

fn file_error(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
        // An error without a system error number comes from the confinement of `cap-std`.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => FileError::OutsideRoot,
        _ if is_one_of(&error, ELOOP) => FileError::LinkCycle,
        // A socket, and a FIFO or a device without a peer, cannot be opened.
        _ if is_one_of(&error, ENXIO) => FileError::NotAFile,
        _ => FileError::Io(error),
    }
}

/// Error numbers without a stable name in the standard library. They differ between Linux and the BSDs, which include
/// macOS.
const ELOOP: &[i32] = if cfg!(any(target_os = "linux", target_os = "android")) { &[40] } else { &[62] };
const ENXIO: &[i32] = &[6];

fn is_one_of(error: &io::Error, numbers: &[i32]) -> bool {
    cfg!(unix) && error.raw_os_error().is_some_and(|number| numbers.contains(&number))
}

impl ConfinedDir {
    pub(crate) fn open(path: &Path) -> io::Result<ConfinedDir> {
        Dir::open_ambient_dir(path, ambient_authority()).map(ConfinedDir)
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.0
    }

    /// Returns the path below this folder to which a path leads, with `/` between its parts and without links.
    pub(crate) fn canonicalize(&self, path: &str) -> Result<String, FileError> {
        self.0.canonicalize(path).map(|path| places::text(&path)).map_err(file_error)
    }

    /// Returns the metadata at a path. Follows links.
    pub(crate) fn metadata(&self, path: &str) -> Result<Metadata, FileError> {
        self.0.metadata(path).map_err(file_error)
    }

    pub(crate) fn state(&self, path: &str) -> Result<FileState, FileError> {
        let metadata = self.metadata(path)?;
        if metadata.is_file() { Ok(FileState::of(&metadata)) } else { Err(FileError::NotAFile) }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes<Vec<u8>>, FileError> {
        let mut options = OpenOptions::new();
        // Without this, opening a FIFO blocks until a writer opens it.
        options.read(true).nonblock(true);
        let file = self.0.open_with(path, &options).map_err(file_error)?;
        let metadata = file.metadata().map_err(file_error)?;
        if !metadata.is_file() {
            return Err(FileError::NotAFile);
        }
        if metadata.len() > limit {
            return Err(FileError::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
        let mut file: File = file.into_std();
        // The file can grow while it is read.
        (&mut file).take(limit + 1).read_to_end(&mut bytes).map_err(file_error)?;
        if bytes.len() as u64 > limit {
            return Err(FileError::TooLarge(bytes.len() as u64));
        }
        Ok(FileBytes { bytes, state: FileState::of(&metadata) })
    }
}

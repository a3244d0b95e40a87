//! A folder that nothing leads out of, and what a file's state looked like.
//!
//! Every path is resolved by the operating system below an open folder, so a
//! symbolic link, or a folder that is exchanged while we look, cannot lead out.

use std::{
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read},
    path::Path,
    time::{Duration, SystemTime},
};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata, OpenOptions},
};

/// A folder that nothing leads out of.
#[derive(Debug)]
pub(crate) struct Confined(Dir);

/// A file's bytes and its state when they were read.
#[derive(Debug)]
pub(crate) struct FileBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: Stamp,
}

/// Why a file is not read.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing is there, or no longer.
    NotFound,
    /// The path leads out of the folder.
    Outside,
    /// A symbolic link leads back to itself.
    Circle,
    /// There is something that is no regular file.
    NoFile,
    /// It is larger than allowed.
    TooLarge(u64),
    /// The system says no.
    Failed(io::Error),
}

impl Refusal {
    fn of(error: io::Error) -> Refusal {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Refusal::NotFound,
            // Without a number of the system's it is the confinement that refuses.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Refusal::Outside,
            _ if is_one_of(&error, ELOOP) => Refusal::Circle,
            // A socket, or a FIFO or device with nobody behind it, cannot be opened.
            _ if is_one_of(&error, ENXIO) => Refusal::NoFile,
            _ => Refusal::Failed(error),
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

impl Confined {
    /// Opens a folder by a path that the operator or the author has named.
    pub(crate) fn open(path: &Path) -> io::Result<Confined> {
        Dir::open_ambient_dir(path, ambient_authority()).map(Confined)
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.0
    }

    /// What stands at a path, links followed.
    pub(crate) fn metadata(&self, path: &str) -> Result<Metadata, Refusal> {
        self.0.metadata(path).map_err(Refusal::of)
    }

    /// The state of a regular file.
    pub(crate) fn stamp(&self, path: &str) -> Result<Stamp, Refusal> {
        let metadata = self.metadata(path)?;
        if metadata.is_file() { Ok(Stamp::of(&metadata)) } else { Err(Refusal::NoFile) }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes, Refusal> {
        let mut options = OpenOptions::new();
        // Opening a FIFO would otherwise wait for a writer, for ever.
        options.read(true).nonblock(true);
        let file = self.0.open_with(path, &options).map_err(Refusal::of)?;
        let metadata = file.metadata().map_err(Refusal::of)?;
        if !metadata.is_file() {
            return Err(Refusal::NoFile);
        }
        if metadata.len() > limit {
            return Err(Refusal::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
        let mut file: File = file.into_std();
        // A file can grow while it is read.
        (&mut file).take(limit + 1).read_to_end(&mut bytes).map_err(Refusal::of)?;
        if bytes.len() as u64 > limit {
            return Err(Refusal::TooLarge(bytes.len() as u64));
        }
        Ok(FileBytes { bytes, stamp: Stamp::of(&metadata) })
    }
}

/// A file's state: while it is the same, so are the bytes, unless the file was
/// written to so lately that its clock had not moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// When anything about the file last changed, and which file it is. A
    /// program can set back the time of modification, but not these.
    changed: (i64, i64),
    file: (u64, u64),
}

/// The coarsest clock of a file system that is in use: FAT counts two seconds.
const CLOCK: Duration = Duration::from_secs(2);

/// A number for a stamp, to be kept for every file: no more is ever asked of an
/// old stamp than whether it is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Stamp {
    pub(crate) fn mark(&self) -> Mark {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        Mark(hasher.finish())
    }

    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        #[cfg(unix)]
        let (changed, file) = {
            use cap_std::fs::MetadataExt as _;
            ((metadata.ctime(), metadata.ctime_nsec()), (metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let (changed, file) = ((0, 0), (0, 0));
        let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
        Stamp { len: metadata.len(), modified, changed, file }
    }

    /// Of a text that is in no file yet.
    pub(crate) fn unsaved(len: u64) -> Stamp {
        Stamp { len, modified: None, changed: (0, 0), file: (0, 0) }
    }

    /// Whether bytes read at `read` are still those of the file as long as it
    /// has this stamp.
    pub(crate) fn is_settled(&self, read: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let since_epoch = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
        let changed =
            since_epoch.map(|(seconds, nanoseconds)| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        let latest = self.modified.max(changed);
        latest.is_some_and(|latest| read.duration_since(latest).is_ok_and(|age| age > CLOCK))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn modified(&self) -> Option<jiff::Timestamp> {
        self.modified.and_then(|time| jiff::Timestamp::try_from(time).ok())
    }
}

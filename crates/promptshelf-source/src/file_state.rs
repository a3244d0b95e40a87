//! The state of a file according to its metadata: shows changes without reading the file. A file in memory has a number
//! instead.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::{Duration, SystemTime},
};

use cap_std::fs::Metadata;
use promptshelf_core::Timestamp;

use crate::memory_tree::MemoryFile;

/// A file's metadata. Equal states mean equal bytes, unless the file was written so recently that the clock of the
/// file system has not advanced since; see [`is_stable`](FileState::is_stable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileState {
    len: u64,
    modified: Option<SystemTime>,
    /// Time of the last status change (seconds, nanoseconds), and device and inode. Programs can set the modification
    /// time back, but not these.
    changed: (i64, i64),
    file: (u64, u64),
    /// The number of a file in memory, and the time that it was created with.
    memory: Option<(u64, Option<Timestamp>)>,
}

/// The coarsest clock among the file systems in use: FAT has a resolution of two seconds.
const CLOCK: Duration = Duration::from_secs(2);

/// A hash of a [`FileState`], stored for every file in place of the state: only equality matters later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStateHash(u64);

impl FileState {
    pub(crate) fn hash64(&self) -> FileStateHash {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        FileStateHash(hasher.finish())
    }

    pub(crate) fn of(metadata: &Metadata) -> FileState {
        #[cfg(unix)]
        let (changed, file) = {
            use cap_std::fs::MetadataExt as _;
            ((metadata.ctime(), metadata.ctime_nsec()), (metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let (changed, file) = ((0, 0), (0, 0));
        let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
        FileState { len: metadata.len(), modified, changed, file, memory: None }
    }

    pub(crate) fn in_memory(file: &MemoryFile) -> FileState {
        let memory = Some((file.number(), file.modified()));
        FileState { len: file.bytes().len() as u64, modified: None, changed: (0, 0), file: (0, 0), memory }
    }

    /// Whether bytes that were read at the time `read` are certain to be those of the file as long as it has this
    /// state.
    pub(crate) fn is_stable(&self, read: SystemTime) -> bool {
        // The bytes with a number never change.
        if self.memory.is_some() {
            return true;
        }
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

    pub(crate) fn modified(&self) -> Option<Timestamp> {
        if let Some((_, modified)) = self.memory {
            return modified;
        }
        let time = jiff::Timestamp::try_from(self.modified?).ok()?;
        Timestamp::from_unix(time.as_second(), time.subsec_nanosecond()).ok()
    }
}

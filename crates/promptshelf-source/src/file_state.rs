//! The state of a file as its metadata shows it, to notice changes without reading.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::{Duration, SystemTime},
};

use cap_std::fs::Metadata;

/// A file's state: while it is the same, so are the bytes, unless the file was
/// written to so lately that its clock had not moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileState {
    len: u64,
    modified: Option<SystemTime>,
    /// When anything about the file last changed, and which file it is. A
    /// program can set back the time of modification, but not these.
    changed: (i64, i64),
    file: (u64, u64),
}

/// The coarsest clock of a file system that is in use: FAT counts two seconds.
const CLOCK: Duration = Duration::from_secs(2);

/// A number for a state, to be kept for every file: no more is ever asked of an
/// old state than whether it is another one.
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
        FileState { len: metadata.len(), modified, changed, file }
    }

    /// Of a text that is in no file yet.
    pub(crate) fn unsaved(len: u64) -> FileState {
        FileState { len, modified: None, changed: (0, 0), file: (0, 0) }
    }

    /// Whether bytes read at `read` are still those of the file as long as it
    /// has this state.
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

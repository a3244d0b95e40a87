//! The file that this process's log is written to, on stderr.
//!
//! A log inside a watched folder would feed itself: a reload writes to the log, and the changed log causes a reload.

use std::{fs::Metadata, path::Path};

/// The regular file behind stderr, by device and inode; `None` if stderr is something else.
#[derive(Debug, Default)]
pub(super) struct OwnOutput(Option<(u64, u64)>);

impl OwnOutput {
    pub(super) fn is(&self, metadata: &Metadata) -> bool {
        self.0.is_some() && identity(metadata) == self.0
    }

    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.0.is_some() && path.metadata().is_ok_and(|metadata| self.is(&metadata))
    }

    #[cfg(test)]
    pub(super) fn of_file(metadata: &Metadata) -> OwnOutput {
        OwnOutput(identity(metadata))
    }
}

#[cfg(unix)]
impl OwnOutput {
    pub(super) fn of_process() -> OwnOutput {
        use std::{fs::File, os::fd::AsFd as _};
        let file = std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
        OwnOutput(file.and_then(|file| file.metadata()).ok().as_ref().and_then(identity))
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// Without file identities, such a log is treated as any other file.
#[cfg(not(unix))]
impl OwnOutput {
    pub(super) fn of_process() -> OwnOutput {
        OwnOutput::default()
    }
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

//! Options of an audit file.

use std::{path::PathBuf, time::Duration};

/// Path, size and number of audit files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFileOptions {
    /// The newest file. The names of older files end with `.1`, `.2` and so on.
    pub path: PathBuf,
    /// Size of a file at which the next one begins, in bytes. A file grows beyond it only if it cannot be rotated.
    pub max_bytes: u64,
    /// Number of older files.
    pub keep: u32,
    /// The age up to which older files stay, even if there are more than `keep`.
    pub keep_for: Option<Duration>,
    /// The consequence of records that cannot be written.
    pub on_loss: OnLoss,
}

/// The consequence of records that cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLoss {
    /// Requests are answered, and lost records are counted.
    #[default]
    Count,
    /// A request is answered only after its record has been synchronised to disk, and refused otherwise.
    Refuse,
}

impl AuditFileOptions {
    /// Returns the default options: files of 64 MiB, eight older files, and losses are counted.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> AuditFileOptions {
        AuditFileOptions { path: path.into(), max_bytes: 64 << 20, keep: 8, keep_for: None, on_loss: OnLoss::Count }
    }
}

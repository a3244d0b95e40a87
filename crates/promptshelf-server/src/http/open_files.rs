//! File descriptors of the process: raising the soft limit, and the connections that it permits.

use std::io;

/// The part of all descriptors that connections leave for files, and its bounds: settings, tokens, certificates, the
/// library, the audit, watchers, metrics and requests to an issuer.
#[cfg(unix)]
const RESERVED_PART: u64 = 8;
#[cfg(unix)]
const RESERVED: std::ops::RangeInclusive<u64> = 64..=512;

/// Raises the soft limit of open files to the hard one, and returns the number of connections that it permits. Call it
/// once at the start of a process; programs that it starts inherit the limit.
pub fn raise_open_files() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        if limit.current != limit.maximum
            && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        {
            tracing::debug!(%error, "cannot raise the soft limit of open files");
        }
    }
    max_connections()
}

/// Returns whether an error means that the process or the system has no file descriptor left.
#[must_use]
pub fn is_out_of_files(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

pub(super) fn max_connections() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        let Some(files) = getrlimit(Resource::Nofile).current else { return usize::MAX };
        usize::try_from(files - reserved(files)).unwrap_or(usize::MAX).max(1)
    }
    #[cfg(not(unix))]
    usize::MAX
}

#[cfg(unix)]
fn reserved(files: u64) -> u64 {
    (files / RESERVED_PART).clamp(*RESERVED.start(), *RESERVED.end()).min(files / 2)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_reserved_for_files() {
        assert_eq!([20, 256, 1_024, 100_000].map(reserved), [10, 64, 128, 512]);
    }
}

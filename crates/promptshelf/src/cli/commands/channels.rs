//! The commands for channels: versions, review, promotion and rollback.

mod access;
mod connection;
pub(super) mod diff;
pub(super) mod evaluate;
pub(super) mod history;
mod impact;
pub(super) mod init;
pub(super) mod policy;
pub(super) mod promote;
pub(super) mod publish;
pub(super) mod pull;
mod rendered;
mod report;
pub(super) mod review;
pub(super) mod rollout;
pub(super) mod store;
pub(super) mod tokens;
mod transfer;
pub(super) mod usage;

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use promptshelf_server::channels::LibraryChecker;

pub(crate) use self::{
    access::check_channel,
    connection::{refresh_remote_source, remote_sources},
};
use crate::{library::granted_roots, output::count};

fn checker_with(config: Option<&Path>) -> LibraryChecker {
    LibraryChecker::new().grant_roots(granted_roots(config))
}

/// Shows the number of transferred files on a terminal, once it takes long.
struct FileProgress {
    start: Option<Instant>,
    done: usize,
    all: usize,
    is_shown: bool,
}

impl FileProgress {
    fn new(all: usize) -> FileProgress {
        let start = io::stderr().is_terminal().then(Instant::now);
        FileProgress { start, done: 0, all, is_shown: false }
    }

    fn advance(&mut self, files: usize) {
        const DELAY: Duration = Duration::from_secs(1);
        self.done += files;
        if self.start.is_some_and(|start| start.elapsed() > DELAY) {
            self.is_shown = true;
            write!(io::stderr(), "\r\x1b[K{} of {}", self.done, count(self.all, "file")).ok();
        }
    }
}

impl Drop for FileProgress {
    fn drop(&mut self) {
        if self.is_shown {
            write!(io::stderr(), "\r\x1b[K").ok();
        }
    }
}

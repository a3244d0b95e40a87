//! The progress of a transfer of files.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use crate::output::count;

/// Shows the number of transferred files on a terminal, once it takes long.
pub(super) struct FileProgress {
    start: Option<Instant>,
    done: usize,
    all: usize,
    is_shown: bool,
}

impl FileProgress {
    pub(super) fn new(all: usize) -> FileProgress {
        let start = io::stderr().is_terminal().then(Instant::now);
        FileProgress { start, done: 0, all, is_shown: false }
    }

    pub(super) fn advance(&mut self, files: usize) {
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

//! The progress of a wait for a server: on a terminal a line after one second, in a pipe nothing.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior};

const DELAY: Duration = Duration::from_secs(1);

/// Shows that the program waits for a server. Clones share their pauses.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    server: String,
    terminal: bool,
    pauses: Arc<AtomicUsize>,
}

/// Hides the progress until it is dropped.
pub(crate) struct Paused(Arc<AtomicUsize>);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Progress {
    /// Creates the progress of a wait for `server`, which is printed verbatim and must be safe to print.
    pub(crate) fn new(server: String) -> Progress {
        Progress { server, terminal: io::stderr().is_terminal(), pauses: Arc::default() }
    }

    /// Hides the progress while the user types at the same terminal.
    pub(crate) fn pause(&self) -> Paused {
        self.pauses.fetch_add(1, Ordering::AcqRel);
        if self.terminal {
            clear();
        }
        Paused(Arc::clone(&self.pauses))
    }

    /// Waits for an answer, and shows it once it takes long.
    pub(crate) async fn during<T>(&self, answer: impl Future<Output = T>) -> T {
        if !self.terminal {
            return answer.await;
        }
        let mut answer = std::pin::pin!(answer);
        let start = Instant::now();
        let mut ticks = tokio::time::interval_at(start + DELAY, Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut is_shown = false;
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                _ = ticks.tick() => {
                    if self.pauses.load(Ordering::Acquire) == 0 {
                        is_shown = true;
                        let seconds = start.elapsed().as_secs();
                        write!(io::stderr(), "\r\x1b[Kwaiting for {} ({seconds} s)", self.server).ok();
                    }
                }
            }
        };
        if is_shown {
            clear();
        }
        answer
    }
}

fn clear() {
    write!(io::stderr(), "\r\x1b[K").ok();
}

//! Says on a terminal that a server is being waited for; quiet in a pipe.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior};

/// How long a wait may be before it is mentioned.
const UNNOTICED: Duration = Duration::from_secs(1);

/// Somebody who waits for a server. Clones wait together.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    whom: String,
    terminal: bool,
    hushed: Arc<AtomicBool>,
}

impl Waiting {
    /// `whom` is shown as it is, so it has to be safe to show.
    pub(crate) fn new(whom: String) -> Waiting {
        Waiting { whom, terminal: io::stderr().is_terminal(), hushed: Arc::default() }
    }

    /// Says nothing while somebody is being asked something on the same terminal.
    pub(crate) fn hush(&self, hushed: bool) {
        self.hushed.store(hushed, Ordering::Release);
        if hushed && self.terminal {
            clear();
        }
    }

    /// Waits, and says so once it takes long.
    pub(crate) async fn during<T>(&self, answer: impl Future<Output = T>) -> T {
        if !self.terminal {
            return answer.await;
        }
        let mut answer = std::pin::pin!(answer);
        let began = Instant::now();
        let mut ticks = tokio::time::interval_at(began + UNNOTICED, Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut said = false;
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                _ = ticks.tick() => {
                    if !self.hushed.load(Ordering::Acquire) {
                        said = true;
                        let seconds = began.elapsed().as_secs();
                        write!(io::stderr(), "\r\x1b[Kwaiting for {} ({seconds} s)", self.whom).ok();
                    }
                }
            }
        };
        if said {
            clear();
        }
        answer
    }
}

fn clear() {
    write!(io::stderr(), "\r\x1b[K").ok();
}

//! Events that a crowd can cause any number of times, and lines about them in the log.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time between two lines of a log.
const INTERVAL: Duration = Duration::from_mins(1);

const MAX_LINES: u32 = 10;

/// Lets ten events a minute into the log, each with the number of those that were left out before it.
///
/// ```
/// let refusals = promptshelf_service::Few::default();
/// assert!((0..10).all(|_| refusals.admit() == Some(0)));
/// assert_eq!(refusals.admit(), None);
/// ```
#[derive(Debug, Default)]
pub struct Few(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    begun: Option<Instant>,
    admitted: u32,
    left_out: u64,
}

impl Few {
    /// Returns the number of events without a line before this one, or `None` if this one gets no line either.
    #[must_use]
    pub fn admit(&self) -> Option<u64> {
        let mut lines = self.0.lock();
        if lines.begun.is_none_or(|begun| begun.elapsed() >= INTERVAL) {
            (lines.begun, lines.admitted) = (Some(Instant::now()), 0);
        }
        if lines.admitted == MAX_LINES {
            lines.left_out += 1;
            return None;
        }
        lines.admitted += 1;
        Some(std::mem::take(&mut lines.left_out))
    }
}

/// Lets one event a minute into the log.
///
/// ```
/// let refusals = promptshelf_service::Seldom::default();
/// assert!(refusals.is_due());
/// assert!(!refusals.is_due());
/// ```
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Returns whether the last event that was due is a minute ago.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

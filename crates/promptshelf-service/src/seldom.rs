//! Events that a crowd can cause any number of times.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time between two lines of a log.
const INTERVAL: Duration = Duration::from_mins(1);

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

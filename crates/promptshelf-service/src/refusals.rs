//! Counts and logs refusals of one limit.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The requests that a limit has refused. The first one is logged at once, and further ones together at most once a
/// minute, because a caller could fill the log.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// The name of the limit in the settings; without one nothing is logged.
    limit: Option<&'static str>,
    count: AtomicU64,
    logged: Mutex<Logged>,
}

#[derive(Debug, Default)]
struct Logged {
    last: Option<Instant>,
    count: u64,
}

const LOG_INTERVAL: Duration = Duration::from_secs(60);

impl Refusals {
    pub(crate) fn new(limit: Option<&'static str>) -> Refusals {
        Refusals { limit, count: AtomicU64::default(), logged: Mutex::default() }
    }

    /// Counts a refused request of a caller or address.
    pub(crate) fn add(&self, key: &str) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(limit) = self.limit else { return };
        let mut logged = self.logged.lock();
        if logged.last.is_some_and(|last| last.elapsed() < LOG_INTERVAL) {
            return;
        }
        let new = count.saturating_sub(logged.count);
        *logged = Logged { last: Some(Instant::now()), count };
        drop(logged);
        // The key of a caller with a token has its issuer in front of the name.
        let last = key.rsplit_once('\n').map_or(key, |(_, name)| name);
        tracing::info!(limit, refused = new, last, "requests refused by a limit");
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

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
        tracing::info!(limit, refused = new, last = name(key), "requests refused by a limit");
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Returns the name of a caller as logs show it: the key of one who is signed in has the issuer in front.
fn name(key: &str) -> &str {
    key.rsplit_once('\n').map_or(key, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_names_callers_and_addresses_as_elsewhere() {
        for (key, shown) in [("token\nolga", "olga"), ("https://sso.example\nada", "ada"), ("10.0.0.1", "10.0.0.1")] {
            assert_eq!(name(key), shown);
        }
    }
}

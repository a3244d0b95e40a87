//! Pauses between attempts, which grow while none succeeds.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn is_first(&self) -> bool {
        self.failures == 0
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the pause after a failure. It doubles, and up to two fifths are added, so that many clients of a server
    /// spread their attempts.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        // The keys of a new state are random.
        let percent = 100 + RandomState::new().hash_one(0) % 41;
        pause * u32::try_from(percent).unwrap_or(100) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_minute_and_begin_again_after_a_success() {
        let mut backoff = Backoff::default();
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            let shortest = Duration::from_secs(seconds);
            assert!((shortest..=shortest * 7 / 5).contains(&backoff.pause()), "{seconds} s");
        }
        backoff.reset();
        assert!(backoff.is_first() && backoff.pause() < FIRST_PAUSE * 2);
    }

    #[test]
    fn pauses_of_several_clients_differ() {
        let pauses: Vec<Duration> = (0..100).map(|_| Backoff::default().pause()).collect();
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }
}

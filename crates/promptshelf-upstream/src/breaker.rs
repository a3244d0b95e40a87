//! A circuit breaker: calls fail at once while a server is known not to answer.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

const MAX_FAILURES: u32 = 3;

/// The time for which calls are refused, first and at most. It doubles with each failed attempt.
const PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// The time until which calls are refused.
    open_until: Option<Instant>,
}

impl Breaker {
    /// Returns whether a call may be tried. After a pause one call may, and the others when it has succeeded.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.with(|state| match state.open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                state.open_until = Some(now + pause(state.failures));
                true
            }
        })
    }

    /// Records an answer, whether or not it is an error of the protocol.
    pub(crate) fn succeed(&self) {
        self.with(|state| *state = State::default());
    }

    /// Records that no answer came.
    pub(crate) fn fail(&self, now: Instant) {
        self.with(|state| {
            state.failures = state.failures.saturating_add(1);
            if state.failures >= MAX_FAILURES {
                state.open_until = Some(now + pause(state.failures));
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock())
    }
}

fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(MAX_FAILURES).min(8);
    (PAUSE.0 * (1 << doublings)).min(PAUSE.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_refuse_calls_until_one_succeeds() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.fail(now);
        breaker.fail(now);
        assert!(breaker.admits(now));
        breaker.fail(now);
        assert!(!breaker.admits(now) && !breaker.admits(now + Duration::from_secs(4)));
        let later = now + Duration::from_secs(5);
        assert!(breaker.admits(later) && !breaker.admits(later), "one call tries");
        breaker.succeed();
        assert!(breaker.admits(later) && breaker.admits(later));
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        assert_eq!([3, 4, 5, 6, 7, 50].map(|failures| pause(failures).as_secs()), [5, 10, 20, 40, 60, 60]);
    }
}

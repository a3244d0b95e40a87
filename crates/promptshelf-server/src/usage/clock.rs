//! The steadiness of the system's clock. Figures are removed by age, so a clock that is wrong for a while would remove
//! all of them.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// The largest difference to the monotonic clock between two looks, in seconds.
const JUMP: i64 = 60 * 60;

const SETTLING: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Default)]
pub(super) struct Clock {
    last: Option<(Instant, Timestamp)>,
    jumped: Option<Instant>,
}

impl Clock {
    /// Returns whether the clock has not jumped for a day, as far as this process knows. The sleep of a machine counts as a
    /// jump where the monotonic clock stands still meanwhile.
    pub(super) fn is_steady(&mut self, at: Instant, now: Timestamp) -> bool {
        if let Some((before, then)) = self.last {
            let passed = i64::try_from(at.saturating_duration_since(before).as_secs()).unwrap_or(i64::MAX);
            let drift = (now.as_second() - then.as_second()).saturating_sub(passed);
            if drift.saturating_abs() > JUMP {
                tracing::warn!(seconds = drift, "the clock has jumped; old figures of usage are removed after a day");
                self.jumped = Some(at);
            }
        }
        self.last = Some((at, now));
        self.jumped.is_none_or(|jumped| at.saturating_duration_since(jumped) >= SETTLING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_steady_a_day_after_its_last_jump() {
        let (mut clock, start) = (Clock::default(), Instant::now());
        let mut look = |passed: u64, seconds: i64| {
            let now = Timestamp::from_second(1_000_000_000 + seconds).expect("a time");
            clock.is_steady(start + Duration::from_secs(passed), now)
        };
        assert!(look(0, 0) && look(10, 11) && look(3_600, 3_000), "small corrections");
        assert!(!look(3_610, 500_000_000) && !look(3_620, 500_000_010), "a jump forwards");
        assert!(!look(3_630, 3_030), "and back");
        assert!(!look(3_640 + 80_000, 83_040) && look(3_630 + 86_400, 3_030 + 86_400));
        assert!(!look(90_100, -500_000_000), "a jump backwards");
    }
}

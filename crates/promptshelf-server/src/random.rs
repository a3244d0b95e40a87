//! Random numbers of the operating system, and times that vary, so that many servers spread their requests.

use std::{ops::RangeInclusive, time::Duration};

/// Returns random bytes, as keys and ids need them.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}

pub(crate) fn share(time: Duration, percent: RangeInclusive<u32>) -> Duration {
    let count = percent.end() - percent.start() + 1;
    time * (percent.start() + u32::from_ne_bytes(bytes()) % count) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_within_their_range_and_differ() {
        let shares: Vec<Duration> = (0..1000).map(|_| share(Duration::from_secs(100), 80..=120)).collect();
        let whole_percent = |time: &Duration| (80..=120).contains(&time.as_secs()) && time.subsec_nanos() == 0;
        assert!(shares.iter().all(whole_percent));
        assert!(shares.iter().any(|time| *time != shares[0]));
        assert_eq!(share(Duration::from_secs(7), 100..=100), Duration::from_secs(7));
    }
}

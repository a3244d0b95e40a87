//! The time that a connection spends without a request.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};

/// The requests of a connection, and since when it has had none. It is kept here, and not by hyper's timer for the head
/// of a request, which takes an allocation, a reading of the clock and a new timer for each request.
#[derive(Debug)]
pub(super) struct Idle {
    started: Instant,
    requests: AtomicUsize,
    /// Milliseconds after `started`.
    since: AtomicU64,
}

impl Idle {
    /// Begins with a connection without a request. Times are counted from `started`.
    pub(super) fn new(started: Instant) -> Idle {
        let idle = Idle { started, requests: AtomicUsize::new(0), since: AtomicU64::new(0) };
        idle.since.store(idle.now(), Ordering::Relaxed);
        idle
    }

    /// Returns the milliseconds after `started`.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts a request whose head has arrived.
    pub(super) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a request. Returns the time if it was the only one: with pipelining the next one can begin before the client
    /// has taken the response.
    pub(super) fn end(&self) -> Option<u64> {
        if self.requests.fetch_sub(1, Ordering::Relaxed) > 1 {
            return None;
        }
        let now = self.now();
        self.since.store(now, Ordering::Relaxed);
        Some(now)
    }

    /// Completes when no request has been in progress for `limit`, however many bytes of the next head have arrived.
    pub(super) async fn expired(&self, limit: Duration) {
        let mut wait = limit;
        loop {
            sleep(wait).await;
            wait = limit;
            if self.requests.load(Ordering::Relaxed) == 0 {
                let idle = Duration::from_millis(self.now().saturating_sub(self.since.load(Ordering::Relaxed)));
                match limit.checked_sub(idle) {
                    Some(rest) if !rest.is_zero() => wait = rest,
                    _ => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn connection_expires_after_the_limit_without_a_request() {
        let start = Instant::now();
        let idle = Idle::new(start);
        idle.expired(LIMIT).await;
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn limit_counts_from_the_end_of_the_last_request() {
        let start = Instant::now();
        let idle = Idle::new(start);
        let work = async {
            sleep(Duration::from_secs(3)).await;
            idle.begin();
            sleep(Duration::from_secs(100)).await;
            idle.begin();
            assert_eq!(idle.end(), None, "the second one is in progress");
            sleep(Duration::from_secs(4)).await;
            assert_eq!(idle.end(), Some(107_000));
        };
        tokio::join!(idle.expired(LIMIT), work);
        assert_eq!(start.elapsed().as_secs(), 117);
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_started_earlier_does_not_shorten_the_limit() {
        let start = Instant::now();
        advance(Duration::from_secs(1_000)).await;
        Idle::new(start).expired(LIMIT).await;
        assert_eq!(start.elapsed().as_secs(), 1_010);
    }
}

//! A watchdog in all tests: the processor time of single polls.
//!
//! A poll occupies a thread of the runtime, which answers nobody else meanwhile. Processor time and not wall time is
//! measured, so that a busy machine changes nothing. Only builds with debug assertions measure; in these a longer poll
//! is a panic, and its request is answered with status 500.

use std::{pin::pin, time::Duration};

/// 50 ms of an optimized build: code without optimizations is about twenty times slower, and machines differ by five.
/// What a request may make too large takes minutes.
const MAX_POLL: Duration = Duration::from_millis(50 * 20 * 5);

pub(super) async fn watched<F: Future>(path: &str, request: F) -> F::Output {
    if !cfg!(debug_assertions) {
        return request.await;
    }
    let mut request = pin!(request);
    std::future::poll_fn(|context| {
        let before = processor_time();
        let polled = request.as_mut().poll(context);
        let took = processor_time().saturating_sub(before);
        assert!(
            took <= MAX_POLL,
            "one poll of {path} took {took:?} of processor time: such work belongs into the pool"
        );
        polled
    })
    .await
}

#[cfg(unix)]
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}

#[cfg(all(test, unix, debug_assertions))]
mod tests {
    use super::*;

    // req: S-275
    #[tokio::test]
    #[should_panic(expected = "one poll of /slow took 5")]
    async fn poll_that_keeps_a_thread_busy_is_a_failure() {
        let work = async {
            let before = processor_time();
            while processor_time() - before < MAX_POLL {}
        };
        watched("/slow", work).await;
    }
}

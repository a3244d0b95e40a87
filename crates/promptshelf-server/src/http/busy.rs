//! A watchdog for tests: the processor time of single polls.
//!
//! A poll occupies a thread of the runtime, which answers nobody else meanwhile. Processor time and not wall time is
//! measured, so that a busy machine changes nothing. Only builds with debug assertions measure.

use std::{
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

static LONGEST: Mutex<(Duration, String)> = Mutex::new((Duration::ZERO, String::new()));

/// Returns the processor time of the longest poll of a request since the start of the process, and the path of that request.
#[doc(hidden)]
#[must_use]
pub fn longest_poll() -> (Duration, String) {
    LONGEST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(super) async fn watched<F: Future>(path: &str, request: F) -> F::Output {
    if !cfg!(debug_assertions) {
        return request.await;
    }
    let mut request = pin!(request);
    std::future::poll_fn(|context| {
        let before = processor_time();
        let polled = request.as_mut().poll(context);
        let took = processor_time().saturating_sub(before);
        let mut longest = LONGEST.lock().unwrap_or_else(PoisonError::into_inner);
        if took > longest.0 {
            *longest = (took, path.to_owned());
        }
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

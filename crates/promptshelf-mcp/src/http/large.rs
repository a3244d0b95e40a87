//! Large messages, on threads of their own: parsing, rendering and encoding megabytes takes milliseconds, in which a
//! thread of the runtime could answer a hundred small requests.
//!
//! A second way, for the latency of other callers over HTTP: p99 1.7 instead of 3.2 ms while one core receives values of
//! 2 MiB (`docs/design/second-ways.md`).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        mpsc::{self, Sender},
    },
    thread,
};

use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
};
use tokio_util::sync::CancellationToken;

/// The size in bytes above which a message is large. Below it, a change of threads costs more than it saves.
pub(super) const MIN_BYTES: usize = 128 << 10;

type Job = Box<dyn FnOnce() + Send>;

/// The threads of the process for large messages, and a place for each. One processor is left to other requests, if
/// there are several.
struct Threads {
    count: usize,
    places: Arc<Semaphore>,
    jobs: Sender<Job>,
}

static THREADS: LazyLock<Threads> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (jobs, queue) = mpsc::channel::<Job>();
    let queue = Arc::new(Mutex::new(queue));
    let start = || {
        let queue = Arc::clone(&queue);
        let work = move || {
            give_way();
            loop {
                let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                // The sender is never dropped.
                let Ok(job) = job else { return };
                // The panic hook has logged it, and the sender of the result is dropped.
                drop(catch_unwind(AssertUnwindSafe(job)));
            }
        };
        let started = thread::Builder::new().name("large-message".to_owned()).spawn(work);
        started.inspect_err(|error| tracing::error!("cannot start a thread for large messages: {error}")).is_ok()
    };
    let count = (0..processors.saturating_sub(1).max(1)).filter(|_| start()).count();
    Threads { count, places: Arc::new(Semaphore::new(count)), jobs }
});

/// Runs a future on another thread, and drops it there soon after the returned future has been dropped. `None` means a
/// panic. The future is boxed, because every request, also a small one, has room for the arguments of this function.
pub(super) async fn run<T: Send + 'static>(handling: Pin<Box<dyn Future<Output = T> + Send>>) -> Option<T> {
    let Ok(runtime) = Handle::try_current() else { return Some(handling.await) };
    if THREADS.count == 0 {
        return Some(handling.await);
    }
    // Neither the semaphore nor the queue is ever closed.
    let place = Arc::clone(&THREADS.places).acquire_owned().await.ok()?;
    let token = CancellationToken::new();
    let dropped = token.clone();
    let _ends = token.drop_guard();
    let (sender, receiver) = oneshot::channel();
    let job = move || {
        let _place = place;
        // Nothing receives the result of a request that has ended.
        drop(sender.send(runtime.block_on(dropped.run_until_cancelled(handling))));
    };
    THREADS.jobs.send(Box::new(job)).ok()?;
    receiver.await.ok().flatten()
}

/// Lets the threads of the runtime run as soon as they have work. With the same priority, or a lower nice value, this
/// thread would keep a processor until its time slice ends, up to 4 ms on many kernels. A thread cannot raise its
/// priority again without privileges, so that these threads do nothing else.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, unix};
        let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let lowest = unix::set_thread_priority_and_policy(unix::thread_native_id(), ThreadPriority::Min, policy);
        if let Err(error) = lowest {
            tracing::debug!("large messages are handled with the usual priority: {error:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    // req: S-55
    #[tokio::test]
    async fn large_messages_do_not_occupy_the_thread_of_others() {
        let here = std::thread::current().id();
        let (release, released) = std::sync::mpsc::channel();
        // It blocks its thread until this one goes on.
        let blocked =
            tokio::spawn(run(Box::pin(async move { (released.recv().is_ok(), std::thread::current().id()) })));
        tokio::task::yield_now().await;
        release.send(()).expect("it waits");
        let (is_released, thread) = blocked.await.expect("no panic").expect("an answer");
        assert!(is_released && thread != here);
    }

    #[tokio::test]
    async fn message_ends_with_its_request() {
        let (alive, ended) = oneshot::channel::<()>();
        let (started, is_started) = oneshot::channel::<()>();
        let message = tokio::spawn(run(Box::pin(async move {
            started.send(()).ok();
            let _alive = alive;
            std::future::pending::<()>().await;
        })));
        is_started.await.expect("it starts");
        message.abort();
        assert!(ended.await.is_err(), "the future is dropped");
    }
}

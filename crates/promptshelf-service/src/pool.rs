//! Threads for work whose amount callers and authors choose: renderings, checks, comparisons, analyses, loading.
//!
//! The threads of the runtime answer all requests, so that none of them may compute for long. The places here are
//! bounded, each caller has one, and work ends with the request that wants it.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    task::Poll,
    thread,
};

use promptshelf_core::Interrupt;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
};

use crate::caller::Caller;

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Milliseconds up to a second: one rendering.
    Small,
    /// Up to the time-out of a request: the check of a library. It leaves one place to small work.
    Large,
}

/// The reason why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was stopped by a panic")]
pub struct Panicked;

struct Places {
    all: Arc<Semaphore>,
    large: Arc<Semaphore>,
    callers: Mutex<HashMap<(Amount, String), Arc<Semaphore>>>,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| Places {
    all: Arc::new(Semaphore::new(large_places() + 1)),
    large: Arc::new(Semaphore::new(large_places())),
    callers: Mutex::default(),
});

/// The number of places for large work: two at least, so that one caller alone does not delay all others.
fn large_places() -> usize {
    thread::available_parallelism().map_or(1, usize::from).max(2)
}

struct Place {
    key: (Amount, String),
    own: Option<OwnedSemaphorePermit>,
    _shared: [Option<OwnedSemaphorePermit>; 2],
}

impl Place {
    /// Waits for a place. Work of a caller who has one waits for its end first.
    async fn take(caller: &Caller, amount: Amount) -> Place {
        let key = (amount, caller.limit_key());
        let own = {
            let mut callers = PLACES.callers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(callers.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        // From here on a dropped future removes the caller, too. The semaphores are never closed.
        let mut place = Place { key, own: None, _shared: [None, None] };
        place.own = own.acquire_owned().await.ok();
        if amount == Amount::Large {
            place._shared[0] = Arc::clone(&PLACES.large).acquire_owned().await.ok();
        }
        place._shared[1] = Arc::clone(&PLACES.all).acquire_owned().await.ok();
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.own = None;
        let mut callers = PLACES.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.get(&self.key).is_some_and(|own| Arc::strong_count(own) == 1) {
            callers.remove(&self.key);
        }
    }
}

/// Runs work of a caller in the pool. It is stopped by its [`Interrupt`] when the returned future is dropped, as it is when
/// the request times out or its client goes away. Work inside of other work is done at once, as a part of it.
///
/// # Errors
///
/// [`Panicked`], of which the panic hook has logged the reason.
pub async fn run<T: Send + 'static>(
    caller: &Caller,
    amount: Amount,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> Result<T, Panicked> {
    if let Some(of_outer) = Interrupt::current() {
        return Ok(work(&of_outer));
    }
    let dropped = SetOnDrop(Interrupt::new());
    let Ok(runtime) = Handle::try_current() else { return Ok(dropped.0.scope(|| work(&dropped.0))) };
    let place = Place::take(caller, amount).await;
    let interrupt = dropped.0.clone();
    let working = runtime.spawn_blocking(move || {
        let _place = place;
        interrupt.scope(|| work(&interrupt))
    });
    working.await.map_err(|_| Panicked)
}

/// Runs a future of a caller in the pool like [`run`]: one that computes more than it waits. It is dropped soon after the
/// returned future has been dropped.
///
/// # Errors
///
/// [`Panicked`].
pub async fn run_future<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    caller: &Caller,
    amount: Amount,
    future: impl FnOnce() -> F + Send + 'static,
) -> Result<T, Panicked> {
    if Interrupt::current().is_some() {
        return Ok(future().await);
    }
    let Ok(runtime) = Handle::try_current() else { return Ok(future().await) };
    let (_wanted, dropped) = oneshot::channel::<()>();
    let work = move |_: &Interrupt| {
        let (mut future, mut dropped) = (Box::pin(future()), dropped);
        runtime.block_on(poll_fn(|context| match Pin::new(&mut dropped).poll(context) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(context).map(Some),
        }))
    };
    run(caller, amount, work).await?.ok_or(Panicked)
}

struct SetOnDrop(Interrupt);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::{Duration, Instant},
    };

    use promptshelf_core::is_interrupted;

    use super::*;

    fn caller(number: usize) -> Caller {
        Caller::anonymous().with_address([192, 0, 2, u8::try_from(number).expect("few callers")].into())
    }

    /// Threads without bound would take the processors from other requests.
    // req: S-55
    #[tokio::test]
    async fn work_at_a_time_is_bounded() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let work = |_: &Interrupt| {
            MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        };
        let start = |number| tokio::spawn(async move { run(&caller(number), Amount::Large, work).await });
        let all: Vec<_> = (0..4 * large_places()).map(start).collect();
        for one in all {
            one.await.expect("no panic").expect("no panic");
        }
        let most = MOST.load(Ordering::SeqCst);
        assert!(most <= large_places(), "{most}");
    }

    // req: S-276
    #[tokio::test]
    async fn caller_has_one_place_and_delays_no_other() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (started, is_started) = tokio::sync::oneshot::channel();
        let slow = tokio::spawn(async move {
            run(&caller(101), Amount::Large, move |_| {
                started.send(()).ok();
                released.recv().ok();
            })
            .await
        });
        is_started.await.expect("it has started");
        let second = tokio::spawn(async { run(&caller(101), Amount::Large, |_| ()).await });
        assert_eq!(run(&caller(102), Amount::Large, |_| "other").await, Ok("other"));
        assert!(!second.is_finished());
        drop(release);
        slow.await.expect("no panic").expect("no panic");
        second.await.expect("no panic").expect("no panic");
    }

    /// A request that timed out went on computing.
    // req: S-276
    #[tokio::test]
    async fn work_ends_with_its_request() {
        let (started, is_started) = tokio::sync::oneshot::channel();
        let (sender, ended) = tokio::sync::oneshot::channel();
        let request = tokio::spawn(async move {
            run(&caller(103), Amount::Large, move |_| {
                started.send(()).ok();
                while !is_interrupted() {
                    thread::yield_now();
                }
                sender.send(Instant::now()).ok();
            })
            .await
        });
        is_started.await.expect("it has started");
        let stopped = Instant::now();
        request.abort();
        let ended = ended.await.expect("the work ends");
        assert!(ended - stopped < Duration::from_secs(2), "{:?}", ended - stopped);
    }

    #[tokio::test]
    async fn future_that_waits_ends_with_its_request() {
        let (alive, ended) = oneshot::channel::<()>();
        let (started, is_started) = oneshot::channel::<()>();
        let waiting = move || async move {
            started.send(()).ok();
            let _alive = alive;
            std::future::pending::<()>().await;
        };
        let request = tokio::spawn(async move { run_future(&caller(105), Amount::Small, waiting).await });
        is_started.await.expect("it has started");
        request.abort();
        assert!(ended.await.is_err(), "the future is dropped");
    }

    #[tokio::test]
    async fn work_inside_of_work_needs_no_second_place() {
        let nested = || async { run(&caller(104), Amount::Large, |_| 7).await };
        assert_eq!(run_future(&caller(104), Amount::Large, nested).await, Ok(Ok(7)));
    }
}

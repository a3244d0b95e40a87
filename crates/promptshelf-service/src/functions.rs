//! Functions of the application: prompts in code, and their completions.
//!
//! Nothing can stop one. Each has a thread of its own, which does not belong to the runtime: one that never returns takes no
//! thread from others, and does not keep the process from ending. The number of those that run is bounded, also for each
//! caller.

use std::{
    collections::HashMap,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::LazyLock,
    task::Poll,
    thread,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::oneshot};

use crate::caller::Caller;

/// The most functions that run at a time.
const MOST: usize = 256;

/// The most functions of one caller that run at a time.
const MOST_OF_CALLER: usize = 64;

/// Templates in functions nest as deep as in the threads of the program.
const STACK_BYTES: usize = 8 << 20;

/// The numbers of functions that run, by caller.
static RUNNING: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

/// The reason why a function has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    #[error("too many functions of prompts run at present; try again later")]
    Busy,
    /// The panic hook has logged the reason.
    #[error("its function has panicked")]
    Panic,
}

/// Counts a function that runs, until it ends.
struct Place(String);

impl Place {
    fn take(caller: String) -> Option<Place> {
        let mut running = RUNNING.lock();
        if running.values().sum::<usize>() >= MOST {
            return None;
        }
        let own = running.entry(caller.clone()).or_default();
        if *own >= MOST_OF_CALLER {
            return None;
        }
        *own += 1;
        Some(Place(caller))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = RUNNING.lock();
        if let Some(own) = running.get_mut(&self.0) {
            *own -= 1;
        }
        running.retain(|_, own| *own > 0);
    }
}

/// Runs a function in a thread of its own, inside of the runtime; at once if there is none.
///
/// # Errors
///
/// [`Lost`].
pub(crate) async fn run<T: Send + 'static>(
    caller: &Caller,
    function: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Lost> {
    let caught = || catch_unwind(AssertUnwindSafe(function)).map_err(|_| Lost::Panic);
    let Ok(runtime) = Handle::try_current() else { return caught() };
    let place = Place::take(caller.limit_key()).ok_or(Lost::Busy)?;
    let (sender, result) = oneshot::channel();
    let running = move || {
        let _inside = runtime.enter();
        let returned = caught();
        drop(place);
        // Nobody waits for it any more.
        let _ = sender.send(returned);
    };
    let started = thread::Builder::new().name("function".to_owned()).stack_size(STACK_BYTES).spawn(running);
    started.map_err(|_| Lost::Busy)?;
    result.await.unwrap_or(Err(Lost::Panic))
}

/// Waits for an asynchronous function, which runs on the threads of the runtime.
///
/// # Errors
///
/// [`Lost::Panic`].
pub(crate) async fn wait<T>(function: impl Future<Output = T>) -> Result<T, Lost> {
    let mut function = pin!(function);
    let poll = poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| function.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(Lost::Panic)),
    });
    poll.await
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    fn caller(number: u8) -> Caller {
        Caller::anonymous().with_address([198, 51, 100, number].into())
    }

    /// Functions that never return used up the threads of the runtime, and with them all functions of other callers.
    // req: S-592
    #[tokio::test]
    async fn functions_that_never_return_are_bounded_and_leave_others_their_threads() {
        let mut held = Vec::new();
        for _ in 0..MOST_OF_CALLER {
            let (release, released) = mpsc::channel::<()>();
            let hanging = tokio::spawn(async move { run(&caller(1), move || released.recv().is_ok()).await });
            held.push((release, hanging));
        }
        let count = || RUNNING.lock().get(&caller(1).limit_key()).copied();
        while count() != Some(MOST_OF_CALLER) {
            tokio::task::yield_now().await;
        }
        assert_eq!(run(&caller(1), || 7).await, Err(Lost::Busy));
        assert_eq!(run(&caller(2), || 7).await, Ok(7));
        assert_eq!(run(&caller(2), || -> u8 { panic!("a bug") }).await, Err(Lost::Panic));
        for (release, hanging) in held {
            drop(release);
            assert_eq!(hanging.await.expect("it ends"), Ok(false));
        }
        while count().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(run(&caller(1), || 7).await, Ok(7));
    }

    /// A thread of the runtime would keep it from ending.
    // req: S-592
    #[test]
    fn function_that_never_returns_does_not_keep_the_runtime() {
        let (release, released) = mpsc::channel::<()>();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let caller = caller(3);
            let hanging = run(&caller, move || released.recv().is_ok());
            tokio::time::timeout(Duration::from_millis(50), hanging).await.expect_err("it hangs");
        });
        drop(runtime);
        drop(release);
    }
}

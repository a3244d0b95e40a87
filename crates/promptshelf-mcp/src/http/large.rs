//! Large messages, each on a thread of its own: parsing, rendering and encoding megabytes takes milliseconds, in which a
//! thread of the runtime could answer a hundred small requests.

use std::{
    pin::Pin,
    sync::{Arc, LazyLock},
};

use tokio::{runtime::Handle, sync::Semaphore, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

/// The size in bytes above which a message is large. Below it, a change of threads costs more than it saves.
pub(super) const MIN_BYTES: usize = 128 << 10;

/// The large messages of the process that are handled at a time. One processor is left to other requests, if there are
/// several.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(processors.saturating_sub(1).max(1)))
});

/// Runs a future on another thread, and drops it there soon after the returned future has been dropped. `None` means a
/// panic. The future is boxed, because every request, also a small one, has room for the arguments of this function.
pub(super) async fn run<T: Send + 'static>(handling: Pin<Box<dyn Future<Output = T> + Send>>) -> Option<T> {
    let Ok(runtime) = Handle::try_current() else { return Some(handling.await) };
    // The semaphore is never closed.
    let place = Arc::clone(&PLACES).acquire_owned().await.ok()?;
    let token = CancellationToken::new();
    let dropped = token.clone();
    let _ends = token.drop_guard();
    let handle = move || {
        let _place = place;
        runtime.block_on(dropped.run_until_cancelled(handling))
    };
    spawn_blocking(handle).await.ok().flatten()
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

//! Large messages, each on a thread of its own: parsing, rendering and encoding megabytes takes milliseconds, in which a
//! thread of the runtime could answer a hundred small requests.

use std::sync::{Arc, LazyLock};

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
/// panic.
pub(super) async fn run<T: Send + 'static>(handling: impl Future<Output = T> + Send + 'static) -> Option<T> {
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

//! Rendering of templates: at once if that takes little time, otherwise in a bounded pool of threads.
//!
//! Most renderings take a fraction of a millisecond, less than a change of threads and its wake-ups. So each one is
//! first tried with limits of a few milliseconds; one that exceeds them begins again in the pool, where it cannot keep
//! other requests waiting. Templates have no side effects.

use std::sync::{Arc, LazyLock};

use promptshelf_core::{
    Bindings, Interrupt, Part, Prompt, ReadError, RemoteInput, RemoteQuestion, RenderError, Resource, ResourceContents,
    Variables,
};
use tokio::{runtime::Handle, sync::Semaphore, task::JoinError};

use crate::permission::CallerPermission;

/// The places in the pool, shared by all services of the process. One processor is left to other work, if there are
/// several.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(processors.saturating_sub(1).max(1)))
});

/// Renders a prompt. A rendering in the pool ends soon after the returned future has been dropped, as it is when the
/// request times out or its client goes away.
pub(crate) async fn render(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
) -> Result<Vec<Part>, RenderError> {
    if prompt.is_function() {
        return prompt.render_async(permission.context(), &bindings).await;
    }
    match prompt.render(permission.context().brief(), &bindings) {
        Err(RenderError::OverBudget(_)) => {}
        other => return other,
    }
    let (permission, prompt) = (Arc::clone(permission), Arc::clone(prompt));
    let rendering =
        move |interrupt: &Interrupt| prompt.render(permission.context().interruptible(interrupt), &bindings);
    in_pool(rendering).await.unwrap_or_else(|error| Err(RenderError::Failed(error.to_string())))
}

/// Renders a prompt of another server, which can ask for input instead.
pub(crate) async fn render_remote(
    permission: &Arc<CallerPermission>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
    input: RemoteInput,
) -> Result<Result<Vec<Part>, RemoteQuestion>, RenderError> {
    prompt.render_remote(permission.context(), &bindings, input).await
}

/// Reads a resource, whose text may be a template.
pub(crate) async fn read(
    resource: &Arc<Resource>,
    uri: &str,
    variables: Variables,
) -> Result<ResourceContents, ReadError> {
    match resource.render_brief(uri, &variables) {
        None => return resource.read(uri, &variables).await,
        Some(Err(ReadError::TooLarge { .. })) => {}
        Some(other) => return other,
    }
    let (resource, uri) = (Arc::clone(resource), uri.to_owned());
    let rendering = move |interrupt: &Interrupt| {
        resource.render_interruptible(&uri, &variables, interrupt).unwrap_or(Err(ReadError::NotFound))
    };
    in_pool(rendering).await.unwrap_or_else(|error| Err(ReadError::Failed(error.to_string())))
}

/// Runs a rendering in the pool, and stops it when the returned future is dropped. An error means a panic.
async fn in_pool<T: Send + 'static>(rendering: impl FnOnce(&Interrupt) -> T + Send + 'static) -> Result<T, JoinError> {
    let dropped = SetOnDrop(Interrupt::new());
    let Ok(runtime) = Handle::try_current() else { return Ok(rendering(&dropped.0)) };
    let place = Arc::clone(&PLACES).acquire_owned().await;
    let interrupt = dropped.0.clone();
    runtime
        .spawn_blocking(move || {
            let _place = place;
            rendering(&interrupt)
        })
        .await
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
        thread,
        time::Duration,
    };

    use super::*;

    /// Threads without bound would take the processors from other requests.
    // req: S-55
    #[tokio::test]
    async fn renderings_at_a_time_are_bounded() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let rendering = |_: &Interrupt| {
            MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let all: Vec<_> = (0..4 * processors).map(|_| tokio::spawn(in_pool(rendering))).collect();
        for one in all {
            one.await.expect("no panic").expect("no panic");
        }
        let most = MOST.load(Ordering::SeqCst);
        assert!(most <= processors.saturating_sub(1).max(1), "{most} on {processors} processors");
    }
}

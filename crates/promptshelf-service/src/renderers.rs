//! Where templates are rendered: at once if that takes little time, otherwise in a bounded pool of threads.
//!
//! Most renderings take a fraction of a millisecond, less than a change of threads and its wake-ups. So each one is
//! first tried with limits of a few milliseconds; one that exceeds them begins again in the pool, where it cannot keep
//! other requests waiting. Templates have no side effects.

use std::sync::{Arc, LazyLock};

use promptshelf_core::{Bindings, Catalog, Interrupt, Part, Prompt, RenderError};
use tokio::{runtime::Handle, sync::Semaphore};

/// The places in the pool, shared by all services of the process. One processor is left to other work, if there are
/// several.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(processors.saturating_sub(1).max(1)))
});

/// Renders a prompt. A rendering in the pool ends soon after the returned future has been dropped, as it is when the
/// request times out or its client goes away.
pub(crate) async fn render(
    catalog: &Arc<Catalog>,
    prompt: &Arc<Prompt>,
    bindings: Bindings,
) -> Result<Vec<Part>, RenderError> {
    if prompt.is_function() {
        return prompt.render_async(catalog.render_context(), &bindings).await;
    }
    match prompt.render(catalog.render_context().brief(), &bindings) {
        Err(RenderError::OverBudget(_)) => {}
        other => return other,
    }
    let Ok(runtime) = Handle::try_current() else {
        return prompt.render(catalog.render_context(), &bindings);
    };
    let permit = Arc::clone(&PLACES).acquire_owned().await;
    let dropped = SetOnDrop(Interrupt::new());
    let (catalog, prompt, interrupt) = (Arc::clone(catalog), Arc::clone(prompt), dropped.0.clone());
    let rendering = runtime.spawn_blocking(move || {
        let _permit = permit;
        prompt.render(catalog.render_context().interruptible(&interrupt), &bindings)
    });
    rendering.await.unwrap_or_else(|error| Err(RenderError::Failed(error.to_string())))
}

struct SetOnDrop(Interrupt);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

//! A flag that stops a rendering from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Stops the renderings that it was passed to; see
/// [`RenderContext::interruptible`](crate::RenderContext::interruptible). Clones share one flag.
///
/// ```
/// let interrupt = promptshelf_core::Interrupt::new();
/// let of_another_thread = interrupt.clone();
/// of_another_thread.set();
/// assert!(interrupt.is_set());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Stops the renderings at their next metered step.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

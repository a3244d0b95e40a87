//! The bounds of a piece of work: a flag that stops it from another thread, and counters of what it may spend.
//!
//! Checks, bindings and analyses reach into every module, and parsers of other crates. So the bounds belong to the
//! thread, instead of being passed through all of them.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// The work of patterns and conditions in one check, analysis or rendering. One unit is about a nanosecond.
const WORK: u64 = 256 << 20;

/// The work of patterns and conditions that may be done without a pool of threads: a few milliseconds.
const BRIEF_WORK: u64 = 4 << 20;

/// The bytes of compiled patterns of one check.
const PATTERN_BYTES: u64 = 32 << 20;

/// The comparisons of names in one check: 20 mistakes with 1,000 candidates each.
const COMPARISONS: u64 = 20_000;

/// Bounds a piece of work, and stops it; see [`Interrupt::scope`] and
/// [`RenderContext::interruptible`](crate::RenderContext::interruptible). Clones share one flag and the same counters.
///
/// ```
/// let interrupt = promptshelf_core::Interrupt::new();
/// let of_another_thread = interrupt.clone();
/// of_another_thread.set();
/// assert!(interrupt.is_set());
/// assert!(interrupt.scope(promptshelf_core::is_interrupted));
/// assert!(!promptshelf_core::is_interrupted());
/// ```
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<Bounds>);

#[derive(Debug)]
struct Bounds {
    is_set: AtomicBool,
    work: AtomicU64,
    has_refused_work: AtomicBool,
    pattern_bytes: AtomicU64,
    comparisons: AtomicU64,
}

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt::with(WORK)
    }
}

impl Interrupt {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Creates bounds for work of a few milliseconds. [`has_refused_work`](Interrupt::has_refused_work) tells that it
    /// needs more, in another thread.
    #[must_use]
    pub fn brief() -> Interrupt {
        Interrupt::with(BRIEF_WORK)
    }

    fn with(work: u64) -> Interrupt {
        Interrupt(Arc::new(Bounds {
            is_set: AtomicBool::new(false),
            work: AtomicU64::new(work),
            has_refused_work: AtomicBool::new(false),
            pattern_bytes: AtomicU64::new(PATTERN_BYTES),
            comparisons: AtomicU64::new(COMPARISONS),
        }))
    }

    /// Stops the work at its next metered step.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Returns whether a pattern or a condition was not evaluated, because it would take too long.
    #[must_use]
    pub fn has_refused_work(&self) -> bool {
        self.0.has_refused_work.load(Ordering::Relaxed)
    }

    /// Bounds the work of a function on this thread. What an interrupted check or analysis returns is incomplete and
    /// has to be discarded.
    pub fn scope<T>(&self, work: impl FnOnce() -> T) -> T {
        let _scope = Scope { before: CURRENT.replace(Some(self.clone())) };
        work()
    }

    /// Returns the bounds of the work on this thread.
    #[must_use]
    pub fn current() -> Option<Interrupt> {
        CURRENT.with_borrow(Clone::clone)
    }
}

struct Scope {
    before: Option<Interrupt>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// Returns whether the work on this thread was stopped.
#[must_use]
pub fn is_interrupted() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Interrupt::is_set))
}

/// Bounds the work of a function, unless it belongs to a bounded one.
pub(crate) fn bounded<T>(bounds: impl FnOnce() -> Interrupt, work: impl FnOnce() -> T) -> T {
    if CURRENT.with_borrow(Option::is_some) { work() } else { bounds().scope(work) }
}

pub(crate) fn remaining_work() -> u64 {
    CURRENT.with_borrow(|current| current.as_ref().map_or(u64::MAX, |it| it.0.work.load(Ordering::Relaxed)))
}

/// Counts work of patterns and conditions, and returns whether it may be done.
pub(crate) fn spend_work(units: u64) -> bool {
    CURRENT.with_borrow(|current| {
        let Some(Interrupt(bounds)) = current else { return true };
        let may = !bounds.is_set.load(Ordering::Relaxed) && take(&bounds.work, units);
        if !may {
            bounds.has_refused_work.store(true, Ordering::Relaxed);
        }
        may
    })
}

/// Counts the bytes of a compiled pattern, and returns whether it may be kept.
pub(crate) fn spend_pattern(bytes: usize) -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_none_or(|it| take(&it.0.pattern_bytes, bytes as u64)))
}

/// Counts a comparison of names, and returns whether it may be made.
pub(crate) fn spend_comparison() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_none_or(|it| !it.is_set() && take(&it.0.comparisons, 1)))
}

/// Takes an amount from a counter; at once all that is left, if it is not enough.
fn take(counter: &AtomicU64, amount: u64) -> bool {
    let rest = counter.load(Ordering::Relaxed);
    counter.store(rest.saturating_sub(amount), Ordering::Relaxed);
    rest >= amount
}

//! The bounds of a piece of work: a flag that stops it from another thread, and counters of what it may spend.
//!
//! Checks, bindings and analyses reach into every module, and parsers of other crates. So the bounds belong to the
//! thread, instead of being passed through all of them.

use std::{
    any::Any,
    cell::RefCell,
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

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
    flag: Arc<Flag>,
    compiled: Arc<Compiled>,
    work: AtomicU64,
    has_refused_work: AtomicBool,
    counted_patterns: Mutex<HashSet<Box<str>>>,
    pattern_bytes: AtomicU64,
    comparisons: AtomicU64,
}

#[derive(Default)]
struct Flag {
    is_set: AtomicBool,
    step: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flag({:?})", self.is_set)
    }
}

#[derive(Default)]
struct Compiled(Mutex<HashMap<Box<str>, Arc<dyn Any + Send + Sync>>>);

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compiled")
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt::with(WORK, Arc::default(), Arc::default())
    }
}

impl Interrupt {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Creates a flag with a function that every metered step calls, and that returns whether the work has to stop. It may
    /// wait, so that other work has its turn: no lock is held over a metered step.
    #[must_use]
    pub fn with_step(step: impl Fn() -> bool + Send + Sync + 'static) -> Interrupt {
        let flag = Flag { is_set: AtomicBool::new(false), step: Some(Box::new(step)) };
        Interrupt::with(WORK, Arc::new(flag), Arc::default())
    }

    /// Creates bounds for work of a few milliseconds. [`has_refused_work`](Interrupt::has_refused_work) tells that it
    /// needs more, in another thread.
    #[must_use]
    pub fn brief() -> Interrupt {
        Interrupt::with(BRIEF_WORK, Arc::default(), Arc::default())
    }

    /// Creates bounds for one of several checks in one piece of work: it has counters of its own, is stopped with the work
    /// on this thread, and compiles no pattern that the others have compiled.
    #[must_use]
    pub fn of_part() -> Interrupt {
        let whole = Interrupt::current().unwrap_or_default();
        Interrupt::with(WORK, Arc::clone(&whole.0.flag), Arc::clone(&whole.0.compiled))
    }

    fn with(work: u64, flag: Arc<Flag>, compiled: Arc<Compiled>) -> Interrupt {
        Interrupt(Arc::new(Bounds {
            flag,
            compiled,
            work: AtomicU64::new(work),
            has_refused_work: AtomicBool::new(false),
            counted_patterns: Mutex::default(),
            pattern_bytes: AtomicU64::new(PATTERN_BYTES),
            comparisons: AtomicU64::new(COMPARISONS),
        }))
    }

    /// Stops the work at its next metered step.
    pub fn set(&self) {
        self.0.flag.is_set.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set. This is a metered step.
    #[must_use]
    pub fn is_set(&self) -> bool {
        let flag = &self.0.flag;
        if !flag.is_set.load(Ordering::Relaxed) && flag.step.as_ref().is_some_and(|step| step()) {
            flag.is_set.store(true, Ordering::Relaxed);
        }
        flag.is_set.load(Ordering::Relaxed)
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

    /// Bounds the work of a function, unless it belongs to a bounded one.
    pub fn bounded<T>(work: impl FnOnce() -> T) -> T {
        bounded(Interrupt::new, work)
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
        let Some(current) = current else { return true };
        let may = !current.is_set() && take(&current.0.work, units);
        if !may {
            current.0.has_refused_work.store(true, Ordering::Relaxed);
        }
        may
    })
}

/// Compiles a pattern, unless an equal one was compiled before, and counts its bytes, unless an equal one was counted.
/// `None` if patterns may take no more. Without a rest nothing is compiled: that takes time, too.
pub(crate) fn compiled_once<T: Send + Sync + 'static>(
    text: &str,
    compile: impl FnOnce() -> T,
    bytes: impl FnOnce(&T) -> usize,
) -> Option<Arc<T>> {
    let Some(Interrupt(bounds)) = Interrupt::current() else { return Some(Arc::new(compile())) };
    let is_counted = bounds.counted_patterns.lock().contains(text);
    if !is_counted && !take(&bounds.pattern_bytes, text.len() as u64) {
        return None;
    }
    let known = bounds.compiled.0.lock().get(text).cloned();
    let pattern = match known.and_then(|known| known.downcast().ok()) {
        Some(known) => known,
        None => {
            let made = Arc::new(compile());
            let mut all = bounds.compiled.0.lock();
            all.insert(text.into(), Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
            made
        }
    };
    if !is_counted {
        if !take(&bounds.pattern_bytes, bytes(&pattern) as u64) {
            return None;
        }
        bounds.counted_patterns.lock().insert(text.into());
    }
    Some(pattern)
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

//! Limits the work of one rendering that the engine's steps do not count.
//!
//! The engine counts one step for an operation, and one step can copy, compare or search a megabyte. Each operation
//! that walks a value spends bytes here before it does so. One byte stands for about a nanosecond: copies and
//! searches, which are faster, spend a fraction of their bytes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use minijinja::{
    Error, ErrorKind, State, Value,
    value::{Object, ValueKind},
};

use crate::interrupt::Interrupt;

/// The bytes per step, averaged over the whole rendering.
const BYTES_PER_STEP: u64 = 64;

/// The bytes that every rendering may spend, however few steps it has.
pub(super) const AT_LEAST: u64 = 16 << 20;

/// The variable that holds the meter. It is not an identifier, so that no template can use it.
const NAME: &str = " meter";

/// The most levels of lists and mappings inside each other; JSON arguments have at most 128. More would overflow the
/// stack when the value is printed, compared or dropped.
const MAX_DEPTH: usize = 200;

/// Copying or comparing this many bytes of text counts as one byte.
pub(super) const COPIED: u64 = 16;

/// Searching this many bytes of text, or counting its characters, counts as one byte.
pub(super) const SEARCHED: u64 = 4;

/// Bytes for one character of a text that is read character by character.
pub(super) const CHARACTER: u64 = 4;

/// Bytes for one item of a list, besides its content.
pub(super) const ITEM: u64 = size_of::<Value>() as u64;

/// Bytes for one member of a mapping: it is found again for each visit.
pub(super) const MEMBER: u64 = 8 * ITEM;

/// Bytes for comparing a list or mapping with another value.
const COMPARED: u64 = 3 * ITEM;

/// Returns the bytes that a rendering with this many steps may spend.
pub(crate) fn work_bytes(steps: u64) -> u64 {
    steps.saturating_mul(BYTES_PER_STEP).max(AT_LEAST)
}

/// The bytes that a rendering has spent and may spend.
#[derive(Debug)]
pub(super) struct Meter {
    spent: AtomicU64,
    limit: u64,
    interrupt: Option<Interrupt>,
}

impl Object for Meter {}

impl Meter {
    pub(super) fn new(limit: u64, interrupt: Option<Interrupt>) -> Arc<Meter> {
        Arc::new(Meter { spent: AtomicU64::new(0), limit, interrupt })
    }

    pub(super) fn variable(self: &Arc<Meter>) -> (&'static str, Value) {
        (NAME, Value::from_dyn_object(Arc::clone(self)))
    }

    /// Returns the bytes that are left.
    pub(super) fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.spent.load(Ordering::Relaxed))
    }

    /// Returns whether more was needed than was there.
    pub(super) fn is_used_up(&self) -> bool {
        self.spent.load(Ordering::Relaxed) > self.limit
    }

    fn spend(&self, bytes: u64) -> Result<(), Error> {
        let before = self.spent.load(Ordering::Relaxed);
        let spent = before.saturating_add(bytes);
        self.spent.store(spent, Ordering::Relaxed);
        if self.interrupt.as_ref().is_some_and(Interrupt::is_set) {
            return Err(Error::new(ErrorKind::OutOfFuel, "interrupted"));
        }
        if spent <= self.limit {
            return Ok(());
        }
        Err(Error::new(ErrorKind::OutOfFuel, format!("{} bytes of intermediate values", self.limit)))
    }
}

/// The meter of the current rendering, looked up once.
struct Current(Arc<Meter>);

fn current<'s>(state: &'s mut State<'_, '_>) -> &'s Meter {
    let found = match state.get_extension::<Current>() {
        Some(_) => None,
        None => state.lookup(NAME).and_then(|value| value.downcast_object::<Meter>()),
    };
    // Conditions are evaluated without a meter of their own.
    &state.get_or_insert_extension_with(|| Current(found.unwrap_or_else(|| Meter::new(AT_LEAST, None)))).0
}

/// Counts work that is about to be done.
pub(super) fn spend(state: &mut State<'_, '_>, bytes: u64) -> Result<(), Error> {
    current(state).spend(bytes)
}

/// Counts text that is about to be created.
pub(super) fn spend_text(state: &mut State<'_, '_>, bytes: usize) -> Result<(), Error> {
    spend(state, bytes as u64)
}

/// Returns how many bytes may still be spent before the rendering fails.
pub(super) fn left(state: &mut State<'_, '_>) -> u64 {
    current(state).remaining().saturating_add(1)
}

/// Counts a value with everything inside, `times` over.
pub(super) fn spend_deep(state: &mut State<'_, '_>, value: &Value, times: u64) -> Result<(), Error> {
    // Walking more than can be paid for is work, too.
    let most = left(state) / times.max(1);
    let size = deep_size(value, most)?;
    spend(state, size.saturating_mul(times))
}

/// Returns the bytes of a value with everything inside; more than `most` if it is larger.
pub(super) fn deep_size(value: &Value, most: u64) -> Result<u64, Error> {
    let mut size = 0;
    add_size(value, most, 0, &mut size)?;
    Ok(size)
}

fn add_size(value: &Value, most: u64, depth: usize, size: &mut u64) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::OutOfFuel, "values inside each other"));
    }
    let is_map = match value.kind() {
        ValueKind::String => {
            *size = size.saturating_add(value.as_str().map_or(0, str::len) as u64);
            return Ok(());
        }
        ValueKind::Seq | ValueKind::Iterable => false,
        ValueKind::Map => true,
        _ => return Ok(()),
    };
    for item in value.try_iter()? {
        *size = size.saturating_add(if is_map { MEMBER } else { ITEM });
        if *size > most {
            break;
        }
        if is_map {
            add_size(&value.get_item(&item)?, most, depth + 1, size)?;
        }
        add_size(&item, most, depth + 1, size)?;
    }
    Ok(())
}

/// Counts a comparison, which ends at the end of the smaller value.
pub(super) fn spend_comparison(state: &mut State<'_, '_>, one: &Value, other: &Value) -> Result<(), Error> {
    let bytes = comparison(one, other, left(state))?;
    spend(state, bytes)
}

/// Returns the work of a comparison; more than `most` if it is larger.
pub(super) fn comparison(one: &Value, other: &Value, most: u64) -> Result<u64, Error> {
    if let (Some(one), Some(other)) = (one.as_str(), other.as_str()) {
        return Ok(one.len().min(other.len()) as u64 / COPIED);
    }
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    let is_map = |value: &Value| value.kind() == ValueKind::Map;
    if !(is_list(one) && is_list(other) || is_map(one) && is_map(other)) {
        let are_objects = one.as_object().is_some() && other.as_object().is_some();
        return Ok(if are_objects { COMPARED } else { 0 });
    }
    // The larger value is never walked much further than the smaller one. Lists can share their parts, so that a few
    // tags make values of any size: each walk counts, and none goes beyond what can be paid for.
    let (mut work, mut bound) = (COMPARED, 4 * ITEM);
    loop {
        let of_other = deep_size(other, bound)?;
        let smaller = of_other.min(deep_size(one, of_other)?);
        work = work.saturating_add(of_other).saturating_add(smaller);
        if smaller <= bound || work > most {
            return Ok(work.saturating_add(smaller));
        }
        bound = (8 * bound).min(most);
    }
}

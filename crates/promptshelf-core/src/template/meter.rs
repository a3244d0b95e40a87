//! Limits the text that one rendering creates, including intermediate values.
//!
//! The engine counts steps, and one step can copy a megabyte. Text that is captured, filtered or stored in a sentinel
//! never reaches the bounded output, so it is counted here.

use minijinja::{Error, ErrorKind, State};

/// The bytes of text per step, averaged over the whole rendering.
const BYTES_PER_STEP: u64 = 64;

/// The bytes that every rendering may create, however few steps it has.
pub(super) const AT_LEAST: u64 = 16 << 20;

#[derive(Default)]
struct Made(u64);

/// Counts text that is about to be created.
pub(super) fn spend(state: &mut State<'_, '_>, bytes: usize) -> Result<(), Error> {
    let made = state.get_or_insert_extension_with(Made::default);
    made.0 = made.0.saturating_add(bytes as u64);
    if left(state) > 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::OutOfFuel, format!("{} bytes of intermediate text", limit(state))))
}

fn limit(state: &State<'_, '_>) -> u64 {
    let steps = state.fuel_levels().map_or(0, |(used, left)| used.saturating_add(left));
    steps.saturating_mul(BYTES_PER_STEP).max(AT_LEAST)
}

/// Returns how many bytes may still be created; zero once the limit is exceeded.
pub(super) fn left(state: &State<'_, '_>) -> u64 {
    let made = state.get_extension::<Made>().map_or(0, |made| made.0);
    (limit(state) + 1).saturating_sub(made)
}

//! What a prompt asks for, and what a caller sent for it.
//!
//! On the wire every value is a string. [`bind`] turns what a caller sent into
//! typed values and reports every problem of the call together, because a
//! person who has to fix one problem a round gives up.

mod bind;
mod checked;
mod parse;

pub use bind::{Problem, RawArgumentValue, RawArguments, bind};
pub use checked::Argument;
pub(crate) use checked::Declared;

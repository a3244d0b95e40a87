//! Arguments of prompts: checked declarations, and the values of a call.
//!
//! On the wire every value is a string. [`bind`] converts the strings of a call into typed values and reports all
//! problems of the call together, because people give up when they have to fix one problem per round.

mod bind;
mod checked;
mod parse;
mod pattern;

pub use bind::{Problem, RawArgumentValue, RawArguments, bind};
pub(crate) use bind::{bind_leniently, check_before_forms, unknown};
pub use checked::Argument;
pub(crate) use checked::Declared;

//! Templates: compiled on first use, rendered within a budget, and safe against forged structure.
//!
//! `role`, `attach`, `link` and `prompt` insert a sentinel into the output: a frame with a random number that is
//! unknown outside of the rendering. Afterwards, the text is cut at the sentinels and nowhere else. No value and no
//! filter can produce the number, so no value can start a message, change a role or add a block.
//!
//! This is the only module that uses the template engine.

mod analysis;
mod builtins;
mod compile_error;
mod compiled;
mod condition;
mod depth;
mod environment;
mod filters;
mod functions;
pub(crate) mod lint;
mod meter;
mod operators;
mod pieces;
mod syntax;

pub use analysis::{TemplateAnalysis, TemplateUse};
pub(crate) use compiled::{MAX_INCLUDE_DEPTH, Template};
pub(crate) use condition::{Condition, condition_names};
pub use environment::TemplateWords;
pub(crate) use environment::{is_filter, known_globals};
pub(crate) use functions::sent;
pub(crate) use lint::Lint;
pub(crate) use pieces::{Attach, Call, Directive, Link, Piece, Remaining};
pub(crate) use syntax::or_literally;

//! Templates: compiled once, when they are first rendered, within a budget, and
//! unable to be forged.
//!
//! `role`, `attach`, `link` and `prompt` leave a *mark* in the text that comes out: a
//! frame that holds a number nobody outside this rendering can know. After the
//! rendering the text is cut at the marks, and only there. Whatever a value
//! holds, and whatever filters do to it, it cannot spell that number, so it
//! cannot start a message, change a role or add a block.
//!
//! This room is the only one that knows the template engine.

mod analysis;
mod compile_error;
mod compiled;
mod condition;
mod depth;
mod environment;
mod filters;
mod functions;
mod kept;
pub(crate) mod lint;
mod meter;
mod piece;
mod plain;
mod print;
mod render;
mod sentinels;
mod syntax;

pub use analysis::{TemplateAnalysis, TemplateUse};
pub(crate) use compiled::{MAX_INCLUDE_DEPTH, Template};
pub(crate) use condition::{Condition, condition_names};
pub use environment::TemplateWords;
pub(crate) use environment::{is_filter, known_globals};
pub(crate) use functions::sent;
pub(crate) use lint::Lint;
pub(crate) use piece::{Attach, Call, Directive, Link, Piece, Remaining};

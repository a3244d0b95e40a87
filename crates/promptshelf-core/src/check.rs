//! The check: converts definitions into a catalog and diagnostics.
//!
//! A broken prompt never affects another one, and a prompt that was valid before keeps its previous version. Prompts
//! that have not changed since the previous catalog are taken from it instead of being compiled again.

mod arguments;
mod calls;
mod drafts;
mod each;
mod join;
mod library;
mod partials;
mod pieces;
mod prompt;
mod resource;
mod result;
mod scope;
mod skill_text;
mod skills;

pub use join::join;
pub use library::check;
pub use result::Checked;

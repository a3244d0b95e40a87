//! Definitions in; a catalog and diagnostics out.
//!
//! One broken prompt never takes another one down, and a prompt that was good
//! before stays as it was. What has not changed since the previous catalog is
//! taken over from it instead of being compiled again.

mod arguments;
mod calls;
mod drafts;
mod each;
mod edited;
mod library;
mod partials;
mod pieces;
mod prompt;
mod resource;
mod result;
mod scope;

pub use edited::check_edited;
pub use library::check;
pub use result::Checked;

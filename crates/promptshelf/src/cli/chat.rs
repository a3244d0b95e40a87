//! The terminal host: prompts of any servers at a person's fingertips.
//!
//! What servers send is shown only through `commands/visible.rs`; nothing of theirs
//! is run, opened or fetched unless the person types the command for it.

mod actions;
mod assist;
mod call;
mod form;
mod image;
mod memory;
mod preview;
mod reader;
mod session;
mod shelf;

pub(crate) use self::{
    form::{Asker, agrees},
    session::chat,
};

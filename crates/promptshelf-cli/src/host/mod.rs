//! The terminal host: prompts of any servers at a person's fingertips.
//!
//! What servers send is shown only through `verbs/visible.rs`; nothing of theirs
//! is run, opened or fetched unless the person types the command for it.

mod actions;
mod assist;
mod call;
mod chat;
mod form;
mod image;
mod memory;
mod preview;
mod reader;
mod shelf;

pub(crate) use self::{
    chat::chat,
    form::{Asker, agrees},
};

//! `promptshelf chat`: an interactive session with the prompts of several servers.
//!
//! Text of servers is printed only through `output::visible`. Nothing of a server is run, opened or fetched unless the
//! user types the command for it.

mod actions;
mod assist;
mod call;
mod image;
mod memory;
mod preview;
mod prompts;
mod servers;
mod session;
mod updates;

pub(crate) use self::session::chat;

//! Tools for authors of prompt libraries, and for the editors they use.
//!
//! - [`review`](fn@review) reports what can be served but deserves a second look.
//! - [`clients`] lists known incompatibilities of MCP clients and the prompts that they affect.
//! - [`explain`] holds a page of explanation for each diagnostic code.
//!
//! Nothing here depends on callers, transports or the protocol: a library is read from files and
//! checked by [`promptshelf_core::check`].

pub mod clients;
pub mod explain;
mod review;

pub use review::review;

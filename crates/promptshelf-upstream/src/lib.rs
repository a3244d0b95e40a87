//! Prompts of other MCP servers, as sources of prompts.
//!
//! The list of a server is mirrored into memory and served from there. `prompts/get` and `completion/complete` are passed
//! on, with the credentials of this server and never with those of a caller. Everything that the other server sends is
//! bounded and checked.
//!
//! - [`Upstream`] is one server, as an [`OpenSource`](promptshelf_source::OpenSource).
//! - [`UpstreamOptions`] has its address, times and limits, and how to sign in.
//! - [`Approvals`] keeps the definitions that an operator has approved.
//!
//! The protocol and the transport are deliberately elsewhere, in `promptshelf-client`.

mod approval;
mod breaker;
mod connection;
mod convert;
mod credentials;
mod definition;
mod form;
mod interactive;
mod known_resources;
mod questions;
mod replay;
mod resources;
mod state_file;
mod upstream;

pub use self::{
    approval::{Approvals, DefinitionChange},
    credentials::{OAuthClient, UpstreamCredentials},
    definition::Definition,
    upstream::{Upstream, UpstreamOptions},
};

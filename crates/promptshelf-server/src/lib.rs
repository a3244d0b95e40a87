//! A library of prompts, served: over HTTP with sign-in and TLS, on stdio, and
//! with a page for people.
//!
//! What a message means is not here but in [`promptshelf_mcp`], and where prompts
//! come from is in [`promptshelf_source`]; this crate brings them together in a
//! [`Library`] and gives it the sockets, pipes and certificates.

pub mod http;
mod library;
mod stdio;
#[cfg(feature = "web")]
mod web;

pub use library::{Builder, Library, McpService, OpenError};

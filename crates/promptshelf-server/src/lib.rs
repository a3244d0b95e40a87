//! Server for libraries of prompts: over HTTP with sign-in and TLS, over stdio, with a web page.
//!
//! A [`Library`] combines prompt files and prompts defined in code. It is served in one of five ways:
//!
//! - [`Library::serve_stdio`]: a program that MCP clients start;
//! - [`Library::serve_http`]: a local HTTP server with the defaults;
//! - [`http::App`] or [`http::serve`]: an HTTP server with options, sign-in, TLS and graceful shutdown;
//! - `Server`, with the feature `serve`: the whole server of the command, from its settings;
//! - [`Library::into_service`] or [`http::router`]: a part of your own application.
//!
//! MCP messages are parsed and answered by [`promptshelf_mcp`]; prompts are loaded by [`promptshelf_source`].

#[cfg(feature = "channels")]
pub mod api;
#[cfg(feature = "channels")]
pub mod channels;
#[cfg(feature = "channels")]
pub mod deliveries;
#[cfg(feature = "serve")]
pub mod failure;
#[cfg(feature = "http")]
pub mod http;
pub mod launcher;
mod library;
#[cfg(feature = "channels")]
mod preview;
#[cfg(feature = "channels")]
mod random;
#[cfg(feature = "http")]
mod replica;
#[cfg(feature = "http")]
mod service;
#[cfg(feature = "serve")]
pub mod settings;
#[cfg(feature = "serve")]
pub mod sources;
#[cfg(feature = "serve")]
mod start;
#[cfg(feature = "serve")]
pub mod state;
mod stdio;
#[cfg(feature = "testing")]
mod test_target;
#[cfg(feature = "channels")]
pub mod usage;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "serve")]
pub mod words;

#[cfg(feature = "serve")]
pub use failure::{Exit, Failure};
pub use library::{Builder, Library, OpenError};
#[cfg(feature = "channels")]
pub use preview::TreePreview;
#[cfg(feature = "http")]
pub use replica::{ReplicaMonitor, ReplicaStatus};
#[cfg(feature = "http")]
pub use service::McpService;
#[cfg(feature = "serve")]
pub use start::{CheckedSetting, Hangups, ReadSettings, Server, Start, check_settings};
#[cfg(feature = "testing")]
pub use test_target::ServiceTarget;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

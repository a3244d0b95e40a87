//! Prompt servers and clients for the [Model Context Protocol](https://modelcontextprotocol.io) (MCP).
//!
//! A library of prompts comes from a folder of Markdown files, from code, or from both. A prompt server in twenty lines:
//!
//! ```no_run
//! use promptshelf::{ArgumentDefinition, Library, Message, PromptDefinition};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let commit = PromptDefinition::new("git-commit", |arguments| {
//!         let changes = arguments.text("changes");
//!         Ok(vec![Message::user(format!("Write a commit message for these changes:\n\n{changes}"))])
//!     })
//!     .title("Commit message")
//!     .description("Writes a commit message")
//!     .argument(ArgumentDefinition::new("changes").description("The output of git diff").required());
//!
//!     let library = Library::builder().folder("prompts").prompt(commit).build()?;
//!     for diagnostic in library.diagnostics().iter() {
//!         eprintln!("{diagnostic}");
//!     }
//!     library.serve_stdio().await?;
//!     Ok(())
//! }
//! ```
//!
//! While a [`Library`] is served, its folder is watched: an edited file is served at once, an invalid edit keeps the last
//! valid version, and subscribed clients are notified. With [`http::App`] and `http::router` that is the task of
//! `library.loader().spawn()`.
//!
//! # Serving
//!
//! - [`Library::serve_stdio`]: a program that clients start;
//! - [`Library::serve_http`]: a local HTTP server with the defaults;
//! - [`http::App`]: an HTTP server with options, sign-in, TLS and graceful shutdown;
//! - [`Library::into_service`]: a tower service in your own application:
//!
//! ```
//! # async fn example() -> Result<(), promptshelf::OpenError> {
//! # let library = promptshelf::Library::builder().build()?;
//! let app: axum::Router = axum::Router::new().route_service("/mcp", library.into_service());
//! # Ok(())
//! # }
//! ```
//!
//! [`Library::service`] lists, renders and completes prompts without a protocol.
//!
//! # Crates
//!
//! This crate re-exports the crates of the project. The most common types are also at its root.
//!
//! | module | contents |
//! |---|---|
//! | [`core`] | definitions, catalog, arguments, templates and rendering, without I/O |
//! | [`source`] | prompt files in a folder, reloading, formats of other programs |
//! | [`service`] | callers, access rules, limits and audit |
//! | [`mcp`] | the protocol: JSON-RPC messages, stdio and Streamable HTTP |
//! | [`server`] | the HTTP application with sign-in, TLS and the web page |
//! | `author` | review, formatting, schemas, prompt tests, import and export, language server |
//! | `client` | a client for the prompts and resources of any MCP server |
//! | `git` | libraries in git repositories |
//! | `store` | channels in SQLite or PostgreSQL: versions, review, rollback |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `cli` | yes | the `promptshelf` command, with all other features |
//! | `author` | with `cli` | the module `author` |
//! | `channels` | with `cli` | the module `store`, and servers of its channels |
//! | `client` | with `cli` | the module `client` |
//! | `embedded-page` | no | the page in the program also without optimization; otherwise such a program reads it from the checkout |
//! | `git` | with `cli` | the module `git` |
//! | `http` | with `cli` | the module `http`: servers over HTTP, and `Library::into_service` |
//! | `sign-in` | with `cli` | bearer tokens over HTTP: static ones, and JWTs of an OAuth 2.1 authorization server |
//! | `tls` | with `cli` | HTTPS with certificates that are reloaded while the server runs |
//! | `web` | with `cli` | the web page next to the MCP endpoint |
//!
//! A program that embeds a library does not need the command: set `default-features = false`.
//!
//! # Guide
//!
//! The guide explains [prompt files][prompt-files], [arguments], [templates], [resources], [guided prompts][guided],
//! [tests][testing], [Rust programs][rust] and [serving a team][team].
//!
//! [prompt-files]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/writing/prompt-files.md
//! [arguments]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/writing/arguments.md
//! [templates]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/writing/templates.md
//! [resources]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/writing/resources.md
//! [guided]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/writing/guided.md
//! [testing]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/writing/testing.md
//! [rust]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/using/rust.md
//! [team]: https://github.com/promptshelf/promptshelf/blob/main/docs/guide/src/serving/overview.md

#[cfg(feature = "author")]
pub use promptshelf_author as author;
#[cfg(feature = "client")]
pub use promptshelf_client as client;
pub use promptshelf_core as core;
#[cfg(feature = "git")]
pub use promptshelf_git as git;
pub use promptshelf_mcp as mcp;
pub use promptshelf_server as server;
pub use promptshelf_service as service;
pub use promptshelf_source as source;
#[cfg(feature = "channels")]
pub use promptshelf_store as store;

pub use promptshelf_core::{
    About, Annotations, Argument, ArgumentDefinition, ArgumentType, Bindings, Blob, Catalog, Choice, Code,
    CompletionSource, Constraints, ContentBlock, Diagnostic, EmbeddedResource, Icon, Location, Media, Message,
    MimeType, Policy, Prompt, PromptDefinition, RawArguments, RenderError, ResourceBody, ResourceContent,
    ResourceContents, ResourceDefinition, ResourceLink, Role, Severity, SourceText, Text, Value, Variables, nearest,
};
pub use promptshelf_mcp::{StateKey, ToolMode};
pub use promptshelf_server::{Builder, Library, OpenError};
#[cfg(feature = "http")]
pub use promptshelf_server::{McpService, http};
pub use promptshelf_service::{Answer, Caller, Limits, Reference, Rejection, RenderedPrompt, Service};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

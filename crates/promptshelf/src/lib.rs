//! Prompts of the [Model Context Protocol](https://modelcontextprotocol.io) from
//! a folder of Markdown files, from code, or from both.
//!
//! A prompt server in twenty lines:
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
//! A [`Library`] is watched while it is served: an edited file is served at
//! once, a broken edit keeps the last good version, and clients that listen
//! hear of it. How prompt files are written is told in the project's README.
//!
//! There are three ways to serve:
//!
//! - [`Library::serve_stdio`]: as a program that clients start;
//! - [`Library::serve_http`]: as a program that clients connect to;
//! - [`Library::into_service`]: as a tower service inside your own application:
//!
//! ```
//! # async fn example() -> Result<(), promptshelf::OpenError> {
//! # let library = promptshelf::Library::builder().build()?;
//! let app: axum::Router = axum::Router::new().route_service("/mcp", library.into_service());
//! # Ok(())
//! # }
//! ```
//!
//! And there is [`Library::service`] to list, fill in and complete prompts
//! without any protocol in between. The parts are crates of their own, here as
//! [`core`], [`source`], [`service`] and [`mcp`].
//!
//! The other way round, `promptshelf::client` uses the prompts of any MCP server; it is the
//! feature `client`.
//!
//! The command line is the feature `cli`, on by default. A program that only
//! embeds the library leaves it out: `promptshelf = { version = "…",
//! default-features = false }`.

#[cfg(feature = "author")]
pub use promptshelf_author as author;
#[cfg(feature = "client")]
pub use promptshelf_client as client;
pub use promptshelf_core as core;
pub use promptshelf_mcp as mcp;
pub use promptshelf_service as service;
pub use promptshelf_source as source;

pub use promptshelf_core::{
    About, Annotations, Argument, ArgumentDefinition, ArgumentType, Bindings, Blob, Catalog, Choice, Code,
    CompletionSource, ContentBlock, Diagnostic, EmbeddedResource, Icon, Location, Media, Message, MimeType, Policy,
    Prompt, PromptDefinition, RawArguments, RenderError, ResourceBody, ResourceContent, ResourceContents,
    ResourceDefinition, ResourceLink, Role, Severity, SourceText, Text, Value, Variables, nearest,
};
pub use promptshelf_mcp::StateKey;
pub use promptshelf_server::{Builder, Library, McpService, OpenError, http};
pub use promptshelf_service::{Answer, Caller, Limits, Reference, Rejection, RenderedPrompt, Service};

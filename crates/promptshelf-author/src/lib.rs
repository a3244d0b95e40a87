//! Tools for authors of prompt libraries, and for the editors they use.
//!
//! - [`review`](fn@review) reports what can be served but deserves a second look.
//! - [`clients`] lists known incompatibilities of MCP clients and the prompts that they affect.
//! - [`import`] and [`export`] convert prompts from and to the files of other programs.
//! - [`fn@format`] formats prompt files, and [`schema`] describes them as JSON Schemas.
//! - [`explain`] holds a page of explanation for each diagnostic code.
//!
//! Nothing here depends on callers, transports or the protocol: a library is read from files and
//! checked by [`promptshelf_core::check`].

pub mod clients;
mod exchange;
pub mod explain;
mod format;
mod review;
pub mod schema;

pub use exchange::{ExportFormat, Exported, ImportFormat, Imported, ImportedFile, export, import};
pub use format::format;
pub use review::review;

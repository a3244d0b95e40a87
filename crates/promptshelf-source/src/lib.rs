//! Where prompts come from: a folder of files that becomes definitions, is
//! watched, and is loaded into a catalog that others read.
//!
//! ```no_run
//! use promptshelf_source::{Directory, Loader};
//!
//! # async fn example() -> Result<(), promptshelf_source::SourceError> {
//! let loader = Loader::open(vec![Box::new(Directory::new("prompts"))])?;
//! let catalog = loader.handle().current();
//! let following = loader.spawn(); // reloads until it is dropped
//! # drop(following);
//! # Ok(())
//! # }
//! ```
//!
//! [`Directory`] reads a folder, [`Fixed`] holds definitions made in code, and
//! a [`Loader`] merges any number of sources. For prompts in a new place,
//! implement [`Source`]; everything behind it stays the same.
//!
//! Who asks for a prompt, and how it goes over a wire, is deliberately not
//! here: this crate fills a [`CatalogHandle`](promptshelf_core::CatalogHandle)
//! and knows nobody who reads from it.

mod confined_dir;
mod directory;
mod error;
mod file_role;
mod file_state;
mod fixed;
mod format;
mod listing;
mod loader;
mod manifest;
mod media_type;
mod resource;
pub mod settings;
mod source;
pub mod syntax;
mod watch;

pub use directory::Directory;
pub use error::SourceError;
pub use fixed::Fixed;
pub use format::ForeignWords;
pub use listing::prompt_files;
pub use loader::{LoadReport, Loader, ReloadTask};
pub use source::{Fingerprint, ReloadSignal, Snapshot, Source, WatchGuard};

//! Sources of prompts: folders of prompt files, read, watched, and loaded into a catalog.
//!
//! ```no_run
//! use promptshelf_source::{Files, Loader};
//!
//! # async fn example() -> Result<(), promptshelf_source::SourceError> {
//! let loader = Loader::open(vec![Box::new(Files::folder("prompts"))])?;
//! let catalog = loader.handle().current();
//! let task = loader.spawn(); // reloads changes until it is dropped
//! # drop(task);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Files`] reads a folder of prompt files, in the native format and in those of other programs, or files in memory,
//!   such as a revision of a channel.
//! - [`Fixed`] contains definitions made in code.
//! - [`SourceSet`] consists of several sources, each loaded by itself.
//! - [`Source`] is the interface to implement for prompts in another place.
//! - [`Loader`] merges any number of sources, checks them, and replaces the catalog behind a
//!   [`CatalogHandle`](promptshelf_core::CatalogHandle).
//!
//! Callers of prompts and network protocols are deliberately not part of this crate.

mod editable_folder;
mod encoding;
mod error;
mod file_role;
mod files;
mod fixed;
mod folder_tree;
mod format;
mod listing;
mod loader;
mod manifest;
mod mark;
mod media_type;
mod memory_tree;
mod pipeline;
mod places;
mod private_folder;
mod resource;
mod root_grants;
mod set;
pub mod settings;
mod source;
pub mod syntax;
mod tree;
mod tree_path;
mod watch;

pub use editable_folder::{EditError, EditableFolder, ListedFile};
pub use encoding::{CONVERTIBLE, decoded};
pub use error::SourceError;
pub use file_role::is_named_only;
pub use files::Files;
pub use fixed::Fixed;
pub use folder_tree::{read_served_tree, read_tree};
pub use format::ForeignSyntax;
pub use listing::{is_foreign_file, is_prompt_path, prompt_files};
pub use loader::{LoadReport, Loader, ReloadTask};
pub use mark::{Mark, SKILL_RECORD};
pub use memory_tree::{FileFault, MemoryFile, MemoryTree};
pub use private_folder::{check_private_folder, create_private_folder, keep_owner};
pub use set::{Following, Health, MemberOptions, OpenSource, OpenedSource, SourceSet, SourceState, SourceStatus};
pub use source::{Fingerprint, ReloadSignal, Snapshot, Source, WatchGuard};
pub use tree_path::{
    InvalidTreePath, SamePath, check_file_path, check_tree_path, folded_path, is_library_file, is_obeyed_by_programs,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;

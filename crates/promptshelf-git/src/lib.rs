//! Prompt libraries in git repositories, as sources of prompts.
//!
//! The program `git` fetches one commit into a bare repository, and files are read from its object store: nothing is
//! ever checked out, so that no symbolic link, filter, hook or submodule of a repository has an effect.
//!
//! - [`GitAddress`] names a repository, a reference and a folder: `git+https://HOST/REPOSITORY#REF:PATH`.
//! - [`GitOptions`] adds credentials, signers, intervals and limits.
//! - [`GitState`] reports the served commit and the last problem.
//!
//! Merging several sources, settings, and routes for webhooks are deliberately elsewhere.

mod address;
mod error;
mod options;
mod state;

pub use address::GitAddress;
pub use error::GitError;
pub use options::{Credentials, GitLimits, GitOptions, OnErrors};
pub use state::{GitState, ServedCommit};

//! Prompt libraries in git repositories, as sources of prompts.
//!
//! The program `git` fetches one commit into a bare repository, and files are read from its object store: nothing is
//! ever checked out, so that no filter, hook or submodule of a repository has an effect, and symbolic links are followed
//! inside of the served folder only.
//!
//! - [`GitAddress`] names a repository, a reference and a folder: `git+https://HOST/REPOSITORY#REF:PATH`.
//! - [`GitOptions`] adds credentials, signers, intervals and limits.
//! - [`GitSource`] polls the repository, verifies and checks each commit, and replaces the tree of a
//!   [`Files`](promptshelf_source::Files).
//! - [`GitState`] reports the served commit and the last problem.
//! - [`verify_webhook`] verifies the webhooks of forges.
//!
//! Merging several sources, settings, and routes for webhooks are deliberately elsewhere.

mod address;
mod call;
mod commit;
mod condition;
mod error;
mod links;
mod objects;
mod options;
mod program;
mod repository;
mod source;
mod state;
mod stderr;
mod webhook;

pub use address::GitAddress;
pub use error::GitError;
pub use options::{Credentials, GitLimits, GitOptions, OnErrors};
pub use source::GitSource;
pub use state::{GitState, ServedCommit};
pub use webhook::{MAX_WEBHOOK_BYTES, WebhookError, verify_webhook};

/// Parses what git prints of a commit, for the fuzz targets: the list of its tree, whose links have the first line as their
/// text, and the commit with its signature.
#[doc(hidden)]
pub fn read_printed(printed: &[u8]) {
    let (text, listed) = printed.split_at(printed.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    if let Ok(entries) = objects::entries(listed, "fuzz", 1_000) {
        let text = promptshelf_source::MemoryFile::new(text.trim_ascii_end());
        let texts = entries.iter().map(|entry| (entry.id.clone(), text.clone())).collect();
        let _ = links::Links::new(&entries, &texts).items(1_000);
    }
    commit::signed(printed, false);
}

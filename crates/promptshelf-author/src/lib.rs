//! Tools for authors of prompt libraries, and for the editors they use.
//!
//! - [`review`](fn@review) reports servable prompts that deserve a second look.
//! - [`findings`] joins them with the mistakes that the check found.
//! - [`clients`] lists known behaviour of MCP clients, and the prompts that are incompatible with it.
//! - [`differences`] describes the difference between two libraries in words.
//! - [`explain`] holds a page of explanation for each diagnostic code.
//! - [`fn@format`] formats prompt files, and [`schema`] describes them as JSON Schemas.
//! - [`fn@fixes`] returns the changes that correct a finding.
//! - [`starter`] returns the texts that new prompts begin with.
//! - [`import`] and [`export`] convert prompts from and to the files of other programs.
//! - [`testing`] runs the tests of prompt files; [`add_samples`] fills in arguments for a preview.
//! - [`fn@sarif`] reports diagnostics to code hosts.
//! - `LanguageServer` (feature `language-server`, on by default) serves editors, `Analyzer` those over a network.
//!
//! Nothing here depends on callers, transports or the protocol: a library is read from files and
//! checked by [`promptshelf_core::check`]. Nothing prints.

pub mod clients;
mod comparison;
mod exchange;
pub mod explain;
mod fixes;
mod format;
#[cfg(feature = "language-server")]
mod language_server;
mod review;
mod sample;
mod sarif;
pub mod schema;
mod starter;
pub mod testing;

pub use comparison::{
    AffectedCalls, Difference, Impact, Opened, OpenedText, Subject, differences, opened_files, opened_moves,
    opened_prompts, opened_rules, opened_texts,
};
pub use exchange::{
    ActiveKind, ActivePart, ExportFormat, Exported, ImportFormat, Imported, ImportedFile, Loss, active_parts,
    active_parts_of_skill, export, import, import_all,
};
pub use fixes::{
    Change, Corrected, Corrections, Edit, Fix, Texts, Verdict, edited, fix_all, fixes, portable, renamed_to,
};
pub use format::format;
#[cfg(feature = "language-server")]
pub use language_server::{
    Analysis, Analyzer, LanguageServer, LanguageServerError, rename_file_references, rename_prompt_references,
};
pub use review::{Reviewer, findings, review, secrets::likely_secrets};
pub use sample::add_samples;
pub use sarif::sarif;
pub use starter::{STARTER_LIBRARY, starter};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

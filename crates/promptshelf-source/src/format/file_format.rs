//! The description of one file format.

use std::sync::Arc;

use promptshelf_core::SourceText;

use super::draft::Parsed;

/// One format of prompt files.
#[derive(Debug)]
pub(crate) struct Format {
    /// Whether the file at a path is written in it.
    pub(super) holds: fn(&str) -> bool,
    /// The name that a prompt has when its file gives none.
    pub(super) name: fn(&str) -> String,
    pub(super) read: fn(&Arc<SourceText>, &str) -> Parsed,
    /// What can be written in it; nothing is said of our own format, which has a schema.
    pub(super) words: ForeignWords,
}

/// What can be written in a file of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignWords {
    /// Keys at its top.
    pub keys: &'static [&'static str],
    /// What its text can hold in the place of values, and what that is.
    pub places: &'static [(&'static str, &'static str)],
}

impl ForeignWords {
    pub(super) const NONE: ForeignWords = ForeignWords { keys: &[], places: &[] };
}

//! The description of a file format.

use std::sync::Arc;

use promptshelf_core::SourceText;

use super::draft::Parsed;

#[derive(Debug)]
pub(crate) struct Format {
    pub(super) matches: fn(&str) -> bool,
    /// Returns the name of a prompt whose file does not set one.
    pub(super) name: fn(&str) -> String,
    pub(super) read: fn(&Arc<SourceText>, &str) -> Parsed,
    /// The syntax, for editors; empty for the native format, which has a schema.
    pub(super) syntax: ForeignSyntax,
}

/// The syntax of another program's prompt files, for completion in editors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForeignSyntax {
    /// The top-level keys.
    pub keys: &'static [&'static str],
    /// The placeholders in the text, each with a description.
    pub placeholders: &'static [(&'static str, &'static str)],
}

impl ForeignSyntax {
    pub(super) const NONE: ForeignSyntax = ForeignSyntax { keys: &[], placeholders: &[] };
}

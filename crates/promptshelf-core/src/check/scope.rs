//! The scope of a check: the library that prompts and resources may refer to.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    catalog::Catalog, definition::Budget, diagnostic::Diagnostic, library_files::LibraryFiles, prompt::Prompt,
    resource::Resource,
};

/// What prompts are checked against.
pub(super) struct Shelf<'a> {
    /// That of the catalog, for every template to share.
    pub(super) budget: Arc<Budget>,
    pub(super) files: &'a LibraryFiles,
    pub(super) uris: &'a Uris<'a>,
    pub(super) catalog: &'a Catalog,
    /// Absent where no prompt can be brought in.
    pub(super) prompts: Option<&'a dyn FindPrompt>,
    /// Files that are there but were not read, with the reason.
    pub(super) unread: &'a BTreeMap<String, Diagnostic>,
}

/// URIs of the resources that have a fixed one.
pub(super) enum Uris<'a> {
    /// As they are declared: none of them is checked yet.
    Declared(Vec<String>),
    Checked(&'a [Arc<Resource>]),
}

impl Uris<'_> {
    pub(super) fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        match self {
            Uris::Declared(uris) => uris.iter().any(|uri| fits(uri)),
            Uris::Checked(resources) => resources.iter().any(|resource| fits(resource.uri())),
        }
    }
}

/// Finds other prompts of the library.
pub(super) trait FindPrompt {
    /// Returns a prompt, checked.
    fn find(&self, name: &str, shelf: &Shelf<'_>) -> Result<Arc<Prompt>, Missing>;
}

/// Why a prompt cannot be brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It leads back to where it is brought in; names each one on the way.
    Circle(Vec<String>),
    /// Too many prompts stand in each other.
    TooDeep,
    /// It is there, but cannot be served.
    Broken,
    /// There is none; names one that may be meant.
    Unknown(Option<String>),
}

impl Shelf<'_> {
    /// Another prompt of the library, checked.
    pub(super) fn prompt(&self, name: &str) -> Result<Arc<Prompt>, Missing> {
        self.prompts.ok_or(Missing::Unknown(None))?.find(name, self)
    }
}

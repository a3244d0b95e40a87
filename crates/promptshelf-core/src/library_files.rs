//! The files of a library, by path and by URI.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    definition::{LIBRARY_SCHEME, LibraryFile},
    diagnostic::SourceText,
};

/// A library's files, and the URI of each.
#[derive(Debug, Default)]
pub(crate) struct LibraryFiles {
    pub(crate) by_path: BTreeMap<String, Arc<LibraryFile>>,
    /// URIs that the library declares for a file.
    pub(crate) declared: BTreeMap<String, Arc<str>>,
    /// Texts that templates can include, by path.
    pub(crate) partials: BTreeMap<String, Arc<SourceText>>,
}

impl LibraryFiles {
    pub(crate) fn uri(&self, file: &LibraryFile) -> Arc<str> {
        self.declared.get(&file.path).cloned().unwrap_or_else(|| Arc::from(file.uri()))
    }

    /// Returns the file of a `library:` URI. Files with a path part that begins with `_` are not served.
    pub(crate) fn find(&self, uri: &str) -> Option<&Arc<LibraryFile>> {
        let path = uri.strip_prefix(LIBRARY_SCHEME)?.strip_prefix(":///")?;
        let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
        self.by_path.get(&*path).filter(|file| file.is_served())
    }
}

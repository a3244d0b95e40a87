//! The files of a library, by path and by URI.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    content::ResourceBody,
    definition::{LIBRARY_SCHEME, LibraryFile, Links, library_uri},
    diagnostic::SourceText,
};

#[derive(Debug, Default)]
pub(crate) struct LibraryFiles {
    pub(crate) by_path: BTreeMap<String, Arc<LibraryFile>>,
    pub(crate) declared: BTreeMap<String, Arc<str>>,
    pub(crate) partials: BTreeMap<String, Arc<SourceText>>,
    /// Why files of the library are left out, by path.
    pub(crate) left_out: BTreeMap<String, String>,
    pub(crate) links: Links,
    /// The authority of the files' URIs; see [`Definitions::namespace`](crate::Definitions::namespace).
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) values: Values,
}

/// The values of the files that arguments are completed from, by path, as bytes of the text. Files can be long, and a request
/// comes with each letter.
#[derive(Debug, Default)]
pub(crate) struct Values(Mutex<HashMap<String, Arc<[Range<usize>]>>>);

/// The prompts that refer to each file, by path; prompts by their index in the list.
#[derive(Debug, Default)]
pub(crate) struct References(pub(crate) HashMap<String, Vec<u32>>);

impl References {
    pub(crate) fn prompts(&self, path: &str) -> &[u32] {
        self.0.get(path).map_or(&[], Vec::as_slice)
    }
}

impl LibraryFiles {
    pub(crate) fn uri(&self, file: &LibraryFile) -> Arc<str> {
        self.declared.get(&file.path).cloned().unwrap_or_else(|| Arc::from(self.library_uri(&file.path)))
    }

    /// Returns the values of a file that arguments are completed from: its lines, each once. Empty for other files.
    pub(crate) fn values(&self, path: &str) -> Vec<&str> {
        let Some(ResourceBody::Text(text)) = self.by_path.get(path).map(|file| &file.body) else { return Vec::new() };
        let known = self.values.0.lock().get(path).cloned();
        // Others need not wait while a long file is read; whoever reads it meanwhile finds the same.
        let places = known.unwrap_or_else(|| {
            let places = places_of_lines(text);
            self.values.0.lock().insert(path.to_owned(), Arc::clone(&places));
            places
        });
        places.iter().map(|place| &text[place.clone()]).collect()
    }

    pub(crate) fn library_uri(&self, path: &str) -> String {
        library_uri(self.namespace.as_deref().unwrap_or_default(), path)
    }

    /// Returns the `library:` URIs of a path: that of callers, and the one that the library itself uses.
    pub(crate) fn library_uris(&self, path: &str) -> impl Iterator<Item = String> {
        let own = self.namespace.as_ref().map(|_| library_uri("", path));
        std::iter::once(self.library_uri(path)).chain(own)
    }

    /// Returns whether a resource declares a file, or a prompt refers to it, and its path may be used by callers.
    pub(crate) fn is_referred_to(&self, file: &LibraryFile, references: &References) -> bool {
        let is_known = || self.declared.contains_key(&file.path) || !references.prompts(&file.path).is_empty();
        file.is_served() && is_known()
    }

    /// Returns the file of a `library:` URI, whether or not something refers to it. A path part that begins with `_`
    /// has no URI. The library itself may leave out its namespace.
    pub(crate) fn find(&self, uri: &str) -> Option<&Arc<LibraryFile>> {
        let (authority, path) = uri.strip_prefix(LIBRARY_SCHEME)?.strip_prefix("://")?.split_once('/')?;
        if !authority.is_empty() && self.namespace.as_deref() != Some(authority) {
            return None;
        }
        let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
        self.by_path.get(&*path).filter(|file| file.is_served())
    }
}

fn places_of_lines(text: &str) -> Arc<[Range<usize>]> {
    let mut seen = HashSet::new();
    let place = |line: &str| {
        let begin = line.as_ptr().addr() - text.as_ptr().addr();
        begin..begin + line.len()
    };
    let values = text.lines().map(str::trim).filter(|line| !line.is_empty());
    values.filter(|line| seen.insert(*line)).map(place).collect()
}

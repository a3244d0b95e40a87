//! The result of the last read of a folder, kept in memory to read single files again.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use promptshelf_core::Diagnostic;
use smol_str::SmolStr;

use super::{
    cached_file::{CachedFile, ReadContext},
    homes::Homes,
};
use crate::{manifest::Manifest, source::Fingerprint};

#[derive(Debug, Default)]
pub(super) struct ReadCache {
    pub(super) manifest: Option<Arc<Manifest>>,
    /// Sorted by path.
    pub(super) entries: Vec<(SmolStr, CachedFile)>,
    pub(super) manifest_diagnostics: Vec<Diagnostic>,
    pub(super) homes: Arc<Homes>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) links: Vec<(String, String)>,
    /// The number of skills that `sync` wrote.
    pub(super) generated: usize,
    /// Whether the entries are all files of the folder, each with a single path, so that one of them can be read
    /// again alone.
    pub(super) is_plain: bool,
    /// Whether resources hold the tree in memory that they are read from, so that another tree needs other resources.
    pub(super) holds_tree: bool,
    /// Indices of the entries that have to be read again even without a change event.
    unstable: Vec<usize>,
    bytes: u64,
    number: CacheFingerprint,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CacheFingerprint {
    /// A sum over the entries, so that a single one can be replaced.
    entries: u64,
    rest: u64,
    /// The number of the tree in memory; 0 for a folder on disk.
    tree: u64,
}

impl CacheFingerprint {
    fn fingerprint(self) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        (self.entries, self.rest, self.tree).hash(&mut hasher);
        Fingerprint::new(hasher.finish())
    }
}

fn number(path: &str, entry: &CachedFile) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, entry.content.number).hash(&mut hasher);
    hasher.finish()
}

impl ReadCache {
    pub(super) fn replace_all(&mut self, mut entries: Vec<(SmolStr, CachedFile)>) {
        entries.shrink_to_fit();
        let indices = entries.iter().enumerate();
        self.unstable = indices.filter(|(_, (_, entry))| !entry.is_stable()).map(|(index, _)| index).collect();
        self.bytes = entries.iter().map(|(_, entry)| entry.content.len).sum();
        self.number.entries = entries.iter().map(|(path, entry)| number(path, entry)).fold(0, u64::wrapping_add);
        self.entries = entries;
    }

    /// Sets the hash of everything but the entries, and returns the combined one.
    pub(super) fn set_rest(&mut self, rest: u64) -> Fingerprint {
        self.number.rest = rest;
        self.number.fingerprint()
    }

    pub(super) fn set_tree(&mut self, number: u64) {
        self.number.tree = number;
    }

    /// Reads the files with change events again, and no others. Returns whether that is enough: otherwise the whole
    /// folder has to be read.
    pub(super) fn reread(&mut self, paths: &BTreeSet<String>, context: &ReadContext<'_>, max_bytes: u64) -> bool {
        let mut indices = self.unstable.clone();
        for path in paths {
            match self.entries.binary_search_by(|(known, _)| known.as_str().cmp(path)) {
                Ok(index) => indices.push(index),
                Err(_) => return false,
            }
        }
        indices.sort_unstable();
        indices.dedup();
        let is_as_before = |index: &usize| {
            let (path, entry) = &self.entries[*index];
            entry.is_read() && context.root.is_plain_file(path)
        };
        if !self.is_plain || !indices.iter().all(is_as_before) {
            return false;
        }
        self.unstable.clear();
        for index in indices {
            let (path, entry) = &mut self.entries[index];
            let before = std::mem::replace(entry, context.reread(path, entry));
            if !entry.is_stable() {
                self.unstable.push(index);
            }
            if Arc::ptr_eq(&before.content, &entry.content) {
                continue;
            }
            self.bytes = self.bytes - before.content.len + entry.content.len;
            let sum = self.number.entries.wrapping_sub(number(path, &before));
            self.number.entries = sum.wrapping_add(number(path, entry));
        }
        self.bytes <= max_bytes
    }
}

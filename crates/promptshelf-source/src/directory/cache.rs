//! What the last reading of a folder gave, and what an edit changes of it.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use promptshelf_core::{Diagnostic, PromptDefinition};
use smol_str::SmolStr;

use super::cached_file::{CachedFile, ReadContext};
use crate::{manifest::Manifest, source::Fingerprint};

/// What the last reading gave.
#[derive(Debug, Default)]
pub(super) struct ReadCache {
    pub(super) manifest: Option<Arc<Manifest>>,
    /// By path.
    pub(super) entries: Vec<(SmolStr, CachedFile)>,
    /// What was wrong with the manifest.
    pub(super) manifest_diagnostics: Vec<Diagnostic>,
    /// What was wrong with the folder itself.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Whether the entries are all that the folder holds, each under its own
    /// path only, so that one of them can be read anew by itself.
    pub(super) is_plain: bool,
    /// SpanFinder of entries that have to be read anew before anybody says so.
    unsettled: Vec<usize>,
    /// The bytes of all files.
    bytes: u64,
    number: CacheFingerprint,
}

/// A number for all that definitions are made of, in two parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheFingerprint {
    /// A sum over the entries, so that one of them can be exchanged.
    entries: u64,
    /// Of everything else.
    pub(super) rest: u64,
}

impl CacheFingerprint {
    pub(super) fn fingerprint(self) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        (self.entries, self.rest).hash(&mut hasher);
        Fingerprint::new(hasher.finish())
    }
}

fn number(path: &str, entry: &CachedFile) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, entry.content.number).hash(&mut hasher);
    hasher.finish()
}

/// What was found when files were read anew.
pub(super) enum PartialRead {
    /// These prompts were edited, and nobody else is concerned by how they are
    /// read. None, where the files say what they said before.
    Edited(Vec<PromptDefinition>),
    /// Others may be concerned.
    Structural,
}

impl ReadCache {
    /// Takes all files of the folder.
    pub(super) fn take(&mut self, mut entries: Vec<(SmolStr, CachedFile)>) {
        entries.shrink_to_fit();
        let places = entries.iter().enumerate();
        self.unsettled = places.filter(|(_, (_, entry))| !entry.is_settled()).map(|(place, _)| place).collect();
        self.bytes = entries.iter().map(|(_, entry)| entry.content.len).sum();
        self.number.entries = entries.iter().map(|(path, entry)| number(path, entry)).fold(0, u64::wrapping_add);
        self.entries = entries;
    }

    /// The number of what was read, `rest` being that of everything else.
    pub(super) fn set_rest(&mut self, rest: u64) -> CacheFingerprint {
        self.number.rest = rest;
        self.number
    }

    /// What stands for the definitions that were given last.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.number.fingerprint()
    }

    /// Reads those files anew of which it was heard that they have changed, and
    /// nothing else; nothing where that would not do.
    pub(super) fn reread(
        &mut self,
        paths: &BTreeSet<String>,
        reading: &ReadContext<'_>,
        most_bytes: u64,
    ) -> Option<PartialRead> {
        let mut places = self.unsettled.clone();
        for path in paths {
            places.push(self.entries.binary_search_by(|(known, _)| known.as_str().cmp(path)).ok()?);
        }
        places.sort_unstable();
        places.dedup();
        let is_file = |path: &str| reading.root.dir().symlink_metadata(path).is_ok_and(|found| found.is_file());
        let is_as_before = |place: &usize| {
            let (path, entry) = &self.entries[*place];
            entry.is_read() && is_file(path)
        };
        if !self.is_plain || !places.iter().all(is_as_before) {
            return None;
        }
        let mut edited = Some(Vec::new());
        self.unsettled.clear();
        for place in places {
            let (path, entry) = &mut self.entries[place];
            let before = std::mem::replace(entry, reading.again(path, entry));
            if !entry.is_settled() {
                self.unsettled.push(place);
            }
            if Arc::ptr_eq(&before.content, &entry.content) {
                continue;
            }
            self.bytes = self.bytes - before.content.len + entry.content.len;
            let sum = self.number.entries.wrapping_sub(number(path, &before));
            self.number.entries = sum.wrapping_add(number(path, entry));
            match (&mut edited, before.content.by_itself(), entry.content.by_itself()) {
                (Some(edited), Some(before), Some(now)) if before.name == now.name => edited.push(now.clone()),
                _ => edited = None,
            }
        }
        let is_enough = self.bytes <= most_bytes;
        is_enough.then(|| edited.map_or(PartialRead::Structural, PartialRead::Edited))
    }
}

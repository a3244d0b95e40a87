//! A folder becomes definitions, confined to the folder.
//!
//! Snapshot goes in steps: the manifest, the names of all files, their contents
//! (side by side, and only of those that have changed), and then what refers
//! from one file to others. What is read stands in memory until the next
//! reading, so that one edit in a large library costs one file.

mod assemble;
mod cache;
mod cached_file;
mod context;
mod globs;
mod icons;
mod parallel;
mod resources;
mod walk;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use promptshelf_core::{Code, Definitions, Diagnostic};

pub(crate) use self::walk::{WalkOptions, walk};
use self::{
    cache::{PartialRead, ReadCache},
    cached_file::ReadContext,
    context::LibraryContext,
    globs::GlobIndex,
    walk::at,
};
use crate::{
    confined_dir::{ConfinedDir, FileError},
    error::SourceError,
    file_role::{self, MANIFEST},
    manifest::Manifest,
    source::{Fingerprint, ReloadSignal, Snapshot, Source, WatchGuard},
    watch::{self, ChangeScope, WatchOptions, WatchedTrees},
};

/// The most bytes of a manifest.
const MANIFEST_BYTES: u64 = 4 << 20;

/// A folder of prompt files.
///
/// Clones are the same source. Nothing is read before it is asked to.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    options: WatchOptions,
    /// Whether a manifest with mistakes counts as far as it can be understood.
    is_lenient: bool,
    last: Mutex<ReadCache>,
    /// Texts that stand in the place of files, by path.
    unsaved: Mutex<BTreeMap<String, Arc<str>>>,
    /// The folders that a reading depended on.
    trees: WatchedTrees,
}

impl Directory {
    /// The folder at a path, which is relative to the working directory.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory::with(path.into(), WatchOptions::default(), false)
    }

    /// The folder for its author, who wants to hear of every mistake at once: a
    /// manifest with mistakes counts as far as it can be understood, and keeps
    /// nothing else from being read. Not for serving, where a bound or a rule
    /// that is spelled wrongly must not be passed over.
    pub fn lenient(path: impl Into<PathBuf>) -> Directory {
        Directory::with(path.into(), WatchOptions::default(), true)
    }

    /// Looks for changes this often besides listening for them, or not at all.
    ///
    /// Network and container file systems do not always tell of changes. A look
    /// asks for the state of every file and is made more rarely where that
    /// takes long. The default is every two seconds.
    #[must_use]
    pub fn poll_interval(self, interval: Option<Duration>) -> Directory {
        let options = WatchOptions { poll_interval: interval, ..self.0.options };
        Directory::with(self.0.path.clone(), options, self.0.is_lenient)
    }

    /// Whether to listen for what the operating system tells of changes. The
    /// default is to listen.
    #[must_use]
    pub fn native_events(self, enabled: bool) -> Directory {
        let options = WatchOptions { native_events: enabled, ..self.0.options };
        Directory::with(self.0.path.clone(), options, self.0.is_lenient)
    }

    /// Reads a text in the place of a file from now on, or the file again
    /// without one: what an editor holds and has not saved. The path is inside
    /// the folder, with `/` between its parts; the file need not be there.
    pub fn set_unsaved(&self, path: &str, text: Option<&str>) {
        let mut unsaved = self.0.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        match text {
            Some(text) => unsaved.insert(path.to_owned(), Arc::from(text)),
            None => unsaved.remove(path),
        };
    }

    /// ChangeScope the folder is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn with(path: PathBuf, options: WatchOptions, is_lenient: bool) -> Directory {
        let trees = WatchedTrees::new(vec![path.clone()]);
        let (last, unsaved) = (Mutex::default(), Mutex::default());
        Directory(Arc::new(Inner { path, options, is_lenient, last, unsaved, trees }))
    }
}

impl Source for Directory {
    fn read(&self, known: Option<Fingerprint>) -> Result<Option<Snapshot>, SourceError> {
        let reading = self.read_at(&self.0.trees.take_scope(), known);
        if reading.is_err() {
            // What was to be read still is, and more may have changed meanwhile.
            self.0.trees.add_scope(ChangeScope::Anywhere);
        }
        reading
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        watch::watch(&self.0.trees, self.0.options, signal)
    }
}

impl Directory {
    fn read_at(&self, place: &ChangeScope, known: Option<Fingerprint>) -> Result<Option<Snapshot>, SourceError> {
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let root = self.root()?;
        let unsaved = self.0.unsaved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = last.manifest.clone();
        let (manifest, diagnostics) = self.manifest(&root, before.as_ref(), unsaved.get(MANIFEST))?;
        let is_same_manifest = before.is_some_and(|before| Arc::ptr_eq(&before, &manifest));
        last.manifest = Some(Arc::clone(&manifest));

        let roots = manifest.roots.values().map(|declared| self.0.path.join(&declared.path));
        self.0.trees.set([self.0.path.clone()].into_iter().chain(roots).collect());

        let limits = &manifest.limits;
        let now = SystemTime::now();
        let reading = ReadContext { root: &root, limit: limits.file_bytes, now, unsaved: &unsaved };
        let is_known = known == Some(last.fingerprint());
        let again = match place {
            ChangeScope::Paths(paths) if is_same_manifest && unsaved.is_empty() => {
                last.reread(paths, &reading, limits.library_bytes)
            }
            _ => None,
        };
        let is_as_loud = diagnostics == last.manifest_diagnostics;
        last.manifest_diagnostics = diagnostics;
        let globs = match again {
            Some(PartialRead::Edited(edited)) if is_known && is_as_loud => {
                let whole = self.clone();
                let reading = || Snapshot::edited(last.fingerprint(), edited, move || whole.known());
                return Ok((known != Some(last.fingerprint())).then(reading));
            }
            Some(_) => self.globs(&last, &manifest),
            None => self.walk(&mut last, &manifest, &reading),
        };
        let library = LibraryContext { path: &self.0.path, root: &root, manifest: &manifest, globs: &globs };
        Ok(library.definitions(known, &mut last))
    }

    /// Everything as it was read the last time.
    fn known(&self) -> Result<Definitions, SourceError> {
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (root, manifest) = (self.root()?, last.manifest.clone().unwrap_or_else(|| Arc::new(Manifest::none())));
        let globs = self.globs(&last, &manifest);
        let library = LibraryContext { path: &self.0.path, root: &root, manifest: &manifest, globs: &globs };
        library.definitions(None, &mut last).map_or_else(|| Ok(Definitions::default()), Snapshot::into_definitions)
    }

    fn root(&self) -> Result<ConfinedDir, SourceError> {
        // A folder can be opened that cannot be listed, and then nothing is known of it.
        let root = ConfinedDir::open(&self.0.path).and_then(|root| root.dir().entries().map(|_| root));
        root.map_err(|error| SourceError::folder(&self.0.path, &error))
    }

    /// What patterns match among the files that are known.
    fn globs(&self, last: &ReadCache, manifest: &Manifest) -> GlobIndex {
        let globs = GlobIndex::new(&self.0.path, manifest, last.entries.iter().map(|(path, _)| path));
        // They are part of what the definitions are known by.
        resources::declared(manifest, &globs);
        globs
    }

    /// Looks at everything in the folder, and reads what has changed.
    fn walk(&self, last: &mut ReadCache, manifest: &Manifest, reading: &ReadContext<'_>) -> GlobIndex {
        let bounds =
            WalkOptions { files: manifest.limits.files, states: !last.entries.is_empty(), foreign_folders: true };
        let mut found = walk(reading.root, bounds);
        walk::add_unsaved(&mut found.files, reading.unsaved.keys());
        last.diagnostics = found.diagnostics;
        let globs = GlobIndex::new(&self.0.path, manifest, found.files.iter().map(|found| &found.path));
        let before = std::mem::take(&mut last.entries);
        let mut is_declared = resources::declared(manifest, &globs);
        is_declared.extend(file_role::beside_skills(found.files.iter().map(|found| found.path.as_str())));
        let (mut entries, left_out) =
            parallel::read_all(found.files, reading, &before, &is_declared, manifest.limits.library_bytes);
        if left_out > 0 {
            let message = format!(
                "the library has more than {} bytes, and {left_out} of its files are left out",
                manifest.limits.library_bytes
            );
            let help = "raise `library-bytes` under [limits] in promptshelf.toml";
            last.diagnostics.push(at(".", Code::TooMany, true, message).help(help));
        }
        let unread = |path: &str| found.unread.iter().any(|folder| path.starts_with(&**folder));
        let lost = before.iter().filter(|(path, _)| unread(path));
        entries.extend(lost.filter_map(|(path, entry)| Some((path.clone(), entry.lost()?))));
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        // A folder that is read in part gives some of its files twice.
        entries.dedup_by(|(lost, _), (read, _)| lost == read);
        last.take(entries);
        last.is_plain = left_out == 0 && found.unread.is_empty() && !found.has_links;
        globs
    }

    /// The manifest, or the last good one with what is wrong with the present one.
    fn manifest(
        &self,
        root: &ConfinedDir,
        last: Option<&Arc<Manifest>>,
        unsaved: Option<&Arc<str>>,
    ) -> Result<(Arc<Manifest>, Vec<Diagnostic>), SourceError> {
        let fault = |code, message: String| vec![at(MANIFEST, code, true, message)];
        let read = match unsaved {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => root.read(MANIFEST, MANIFEST_BYTES).map(|file| file.bytes),
        };
        let parsed = match read {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => match last {
                    Some(last) if last.source.text == text => return Ok((Arc::clone(last), last.diagnostics.clone())),
                    // An editor that truncates and then writes is between the two.
                    Some(last) if text.trim().is_empty() && !last.source.text.trim().is_empty() => Err(vec![at(
                        MANIFEST,
                        Code::Syntax,
                        false,
                        "the file is empty, and what it said before still holds",
                    )]),
                    _ if self.0.is_lenient => {
                        Ok(Manifest::understood(promptshelf_core::SourceText::new(MANIFEST, text)))
                    }
                    _ => Manifest::parse(promptshelf_core::SourceText::new(MANIFEST, text)),
                },
                Err(_) => Err(fault(Code::NotUtf8, "this file is not UTF-8".to_owned())),
            },
            Err(FileError::NotFound) => match last {
                Some(last) if last.source.text.is_empty() => return Ok((Arc::clone(last), Vec::new())),
                _ => Ok(Manifest::none()),
            },
            Err(refusal) => Err(walk::refused(MANIFEST, &refusal, MANIFEST_BYTES)
                .map(|found| Diagnostic { severity: promptshelf_core::Severity::Error, ..found })
                .into_iter()
                .collect()),
        };
        match (parsed, last) {
            (Ok(manifest), _) => {
                let diagnostics = manifest.diagnostics.clone();
                Ok((Arc::new(manifest), diagnostics))
            }
            (Err(diagnostics), Some(last)) => Ok((Arc::clone(last), diagnostics)),
            (Err(diagnostics), None) if self.0.is_lenient => Ok((Arc::new(Manifest::none()), diagnostics)),
            (Err(diagnostics), None) => Err(SourceError::manifest(&self.0.path, diagnostics)),
        }
    }
}

//! The source for a folder of prompt files. All reads are confined to the folder.
//!
//! A read has four steps: the manifest, the names of all files, the contents of the changed files (in parallel), and
//! the references between files. The result stays in memory until the next read, so that one edit in a large library
//! costs one file.

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
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use promptshelf_core::{Code, Definitions, Diagnostic, Severity, SourceText};

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
    format::foreign_folders,
    manifest::{DeclaredRoot, Manifest},
    root_grants::RootGrants,
    source::{Fingerprint, ReloadSignal, Snapshot, Source, WatchGuard},
    watch::{self, ChangeScope, WatchOptions, WatchedTrees},
};

/// The largest manifest, in bytes.
const MANIFEST_BYTES: u64 = 4 << 20;

/// A folder of prompt files as a [`Source`].
///
/// Clones are the same source. Creating one does not read anything.
///
/// ```
/// use promptshelf_source::{Directory, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("hello.md"), "---\ndescription: Greets\n---\nSay hello.\n")?;
/// let source = Directory::new(folder.path());
/// let snapshot = source.read(None)?.expect("the first read returns a snapshot");
/// assert_eq!(snapshot.into_definitions()?.prompts[0].name, "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Directory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    options: WatchOptions,
    /// Whether the valid parts of a manifest with mistakes are used.
    is_lenient: bool,
    last: Mutex<ReadCache>,
    /// Texts that replace files, by path.
    unsaved: Mutex<BTreeMap<String, Arc<str>>>,
    /// The folders that the last read depended on.
    trees: WatchedTrees,
    roots: RootGrants,
}

impl Directory {
    /// Creates a source for the folder at a path, which is relative to the working directory.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory::with(path.into(), WatchOptions::default(), false)
    }

    /// Creates a source for authors' tools, which report every mistake at once: the valid parts of a manifest with
    /// mistakes are used, and the rest of the folder is read. Not for serving, where a misspelled limit or access
    /// rule must not be ignored.
    pub fn lenient(path: impl Into<PathBuf>) -> Directory {
        Directory::with(path.into(), WatchOptions::default(), true)
    }

    /// Sets how often the state of all files is compared, in addition to file system events; `None` turns polling
    /// off.
    ///
    /// Network and container file systems do not send events reliably. One comparison takes at most 1 % of the time
    /// between two: the interval grows for large folders. The default is two seconds.
    #[must_use]
    pub fn poll_interval(self, interval: Option<Duration>) -> Directory {
        let options = WatchOptions { poll_interval: interval, ..self.0.options };
        self.with_options(options)
    }

    /// Sets whether the file system events of the operating system are used. They are by default.
    #[must_use]
    pub fn native_events(self, enabled: bool) -> Directory {
        let options = WatchOptions { native_events: enabled, ..self.0.options };
        self.with_options(options)
    }

    /// Grants folders outside of the library, from now on and instead of those granted before: `[roots]` may point to
    /// them or below them. Without a grant, roots have to be inside the library. Paths are relative to the working
    /// directory. Clones of this source share the grants; a [`Loader`](crate::Loader) sees them at its next load.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        self.0.roots.set(folders.into_iter().collect());
        self.0.trees.add_scope(ChangeScope::Anywhere);
    }

    /// Replaces the text of a file with one that an editor has not saved, or restores the file's own text with
    /// `None`.
    ///
    /// The path is relative to the folder, with `/` between its parts. The file does not have to exist.
    pub fn set_unsaved(&self, path: &str, text: Option<&str>) {
        let mut unsaved = self.0.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        match text {
            Some(text) => unsaved.insert(path.to_owned(), Arc::from(text)),
            None => unsaved.remove(path),
        };
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn with(path: PathBuf, options: WatchOptions, is_lenient: bool) -> Directory {
        let trees = WatchedTrees::new(vec![path.clone()]);
        let (last, unsaved) = (Mutex::default(), Mutex::default());
        let roots = RootGrants::new(path.clone());
        Directory(Arc::new(Inner { path, options, is_lenient, last, unsaved, trees, roots }))
    }

    fn with_options(&self, options: WatchOptions) -> Directory {
        let Inner { path, is_lenient, roots, .. } = &*self.0;
        let (trees, roots) = (WatchedTrees::new(vec![path.clone()]), roots.clone());
        let (last, unsaved) = (Mutex::default(), Mutex::default());
        Directory(Arc::new(Inner { path: path.clone(), options, is_lenient: *is_lenient, last, unsaved, trees, roots }))
    }
}

impl Source for Directory {
    fn read(&self, known: Option<Fingerprint>) -> Result<Option<Snapshot>, SourceError> {
        let reading = self.read_at(&self.0.trees.take_scope(), known);
        if reading.is_err() {
            // The changes still have to be read, and others may have happened meanwhile.
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

        let is_granted = |declared: &&DeclaredRoot| self.0.roots.open(&declared.path).is_ok();
        let roots = manifest.roots.values().filter(is_granted).map(|declared| self.0.path.join(&declared.path));
        self.0.trees.set([self.0.path.clone()].into_iter().chain(roots).collect());

        let limits = &manifest.limits;
        let now = SystemTime::now();
        let home = self.home(&manifest)?;
        let reading = ReadContext { root: &root, limit: limits.file_bytes, now, unsaved: &unsaved, home };
        let is_known = known == Some(last.fingerprint());
        let reread = match place {
            ChangeScope::Paths(paths) if is_same_manifest && unsaved.is_empty() => {
                last.reread(paths, &reading, limits.library_bytes)
            }
            _ => None,
        };
        let has_same_diagnostics = diagnostics == last.manifest_diagnostics;
        last.manifest_diagnostics = diagnostics;
        let globs = match reread {
            Some(PartialRead::Edited(edited)) if is_known && has_same_diagnostics => {
                let source = self.clone();
                let reading = || Snapshot::edited(last.fingerprint(), edited, move || source.last_definitions());
                return Ok((known != Some(last.fingerprint())).then(reading));
            }
            Some(_) => self.globs(&last, &manifest),
            None => self.walk(&mut last, &manifest, &reading),
        };
        let library = LibraryContext::new(&self.0.roots, &root, &manifest, &globs, &last.links);
        Ok(library.definitions(known, &mut last))
    }

    /// Returns all definitions of the last read.
    fn last_definitions(&self) -> Result<Definitions, SourceError> {
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (root, manifest) = (self.root()?, last.manifest.clone().unwrap_or_else(|| Arc::new(Manifest::none())));
        let globs = self.globs(&last, &manifest);
        let library = LibraryContext::new(&self.0.roots, &root, &manifest, &globs, &last.links);
        library.definitions(None, &mut last).map_or_else(|| Ok(Definitions::default()), Snapshot::into_definitions)
    }

    /// Returns the path of the folder inside a project, if the folder is one in which another program stores prompts. A
    /// folder with a manifest is a library like any other.
    ///
    /// # Errors
    ///
    /// If the prompts of the program can only be imported.
    fn home(&self, manifest: &Manifest) -> Result<&'static str, SourceError> {
        if !manifest.source.text.is_empty() {
            return Ok("");
        }
        let path = fs::canonicalize(&self.0.path).unwrap_or_else(|_| self.0.path.clone());
        match foreign_folders::only_importable(&path) {
            Some(program) => Err(SourceError::only_importable(&self.0.path, program)),
            None => Ok(foreign_folders::home(&path)),
        }
    }

    fn root(&self) -> Result<ConfinedDir, SourceError> {
        // A folder can be opened without permission to list it, and then its contents are unknown.
        let root = ConfinedDir::open(&self.0.path).and_then(|root| root.dir().entries().map(|_| root));
        root.map_err(|error| SourceError::folder(&self.0.path, error))
    }

    /// Returns an index over the files of the last read, for path patterns.
    fn globs(&self, last: &ReadCache, manifest: &Manifest) -> GlobIndex {
        let globs = GlobIndex::new(&self.0.roots, manifest, last.entries.iter().map(|(path, _)| path));
        // Their matches are part of the fingerprint of the definitions.
        resources::declared(manifest, &globs);
        globs
    }

    /// Lists the whole folder, and reads the files that have changed.
    fn walk(&self, last: &mut ReadCache, manifest: &Manifest, reading: &ReadContext<'_>) -> GlobIndex {
        let bounds = WalkOptions {
            files: manifest.limits.files,
            states: !last.entries.is_empty(),
            foreign_folders: true,
            golden_files: false,
        };
        let mut found = walk(reading.root, bounds);
        walk::add_unsaved(&mut found.files, reading.unsaved.keys());
        last.diagnostics = found.diagnostics;
        let globs = GlobIndex::new(&self.0.roots, manifest, found.files.iter().map(|found| &found.path));
        let before = std::mem::take(&mut last.entries);
        let mut is_declared = resources::declared(manifest, &globs);
        is_declared.extend(file_role::beside_skills(found.files.iter().map(|found| found.path.as_str())));
        let (mut entries, left_out) =
            parallel::read_all(found.files, reading, &before, &is_declared, manifest.limits.library_bytes);
        if left_out > 0 {
            let message = format!(
                "the library has more than {} bytes; {left_out} files are left out",
                manifest.limits.library_bytes
            );
            let help = "raise `library-bytes` under [limits] in promptshelf.toml";
            last.diagnostics.push(at(".", Code::TooMany, true, message).help(help));
        }
        let unread = |path: &str| found.unread.iter().any(|folder| path.starts_with(&**folder));
        let unreadable = before.iter().filter(|(path, _)| unread(path));
        entries.extend(unreadable.filter_map(|(path, entry)| Some((path.clone(), entry.unreadable()?))));
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        // If only a part of a folder can be read, the files of that part occur twice.
        entries.dedup_by(|(next, _), (first, _)| next == first);
        last.replace_all(entries);
        last.is_plain = left_out == 0 && found.unread.is_empty() && found.links.is_empty();
        last.links = found.links;
        globs
    }

    /// Returns the manifest; if it is invalid, the last valid one with the mistakes in the present one.
    fn manifest(
        &self,
        root: &ConfinedDir,
        last: Option<&Arc<Manifest>>,
        unsaved: Option<&Arc<str>>,
    ) -> Result<(Arc<Manifest>, Vec<Diagnostic>), SourceError> {
        let rejected = |code, message: String| vec![at(MANIFEST, code, true, message)];
        let read = match unsaved {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => root.read(MANIFEST, MANIFEST_BYTES).map(|file| file.bytes),
        };
        let parsed = match read {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => match last {
                    Some(last) if *last.source.text == *text => {
                        return Ok((Arc::clone(last), last.diagnostics.clone()));
                    }
                    // The file is empty while an editor that truncates it first is saving.
                    Some(last) if text.trim().is_empty() && !last.source.text.trim().is_empty() => Err(vec![at(
                        MANIFEST,
                        Code::Syntax,
                        false,
                        "the file is empty; its previous content stays in effect",
                    )]),
                    _ if self.0.is_lenient => Ok(Manifest::understood(SourceText::new(MANIFEST, text))),
                    _ => Manifest::parse(SourceText::new(MANIFEST, text)),
                },
                Err(_) => Err(rejected(Code::NotUtf8, "this file is not UTF-8".to_owned())),
            },
            Err(FileError::NotFound) => match last {
                Some(last) if last.source.text.is_empty() => return Ok((Arc::clone(last), Vec::new())),
                _ => Ok(Manifest::none()),
            },
            Err(error) => Err(walk::unread_file(MANIFEST, &error, MANIFEST_BYTES)
                .map(|found| Diagnostic { severity: Severity::Error, ..found })
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

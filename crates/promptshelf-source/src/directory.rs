//! The source for a folder of prompt files. All reads are confined to the folder.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::{
    error::SourceError,
    pipeline::{Pipeline, Reading},
    root_grants::RootGrants,
    source::{ReloadSignal, Snapshot, Source, WatchGuard},
    watch::{self, WatchOptions, WatchedTrees},
};

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
/// assert_eq!(source.read()?.into_definitions().prompts[0].name, "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Directory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    options: WatchOptions,
    pipeline: Pipeline,
    unsaved: Mutex<BTreeMap<String, Arc<str>>>,
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
        self.0.trees.add_changes(None);
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
        let (pipeline, roots) = (Pipeline::new(is_lenient, trees.clone()), RootGrants::folder(path.clone()));
        Directory(Arc::new(Inner { path, options, pipeline, unsaved: Mutex::default(), trees, roots }))
    }

    fn with_options(&self, options: WatchOptions) -> Directory {
        let Inner { path, pipeline, roots, .. } = &*self.0;
        let (path, trees, roots) = (path.clone(), WatchedTrees::new(vec![path.clone()]), roots.clone());
        let pipeline = Pipeline::new(pipeline.is_lenient(), trees.clone());
        Directory(Arc::new(Inner { path, options, pipeline, unsaved: Mutex::default(), trees, roots }))
    }
}

impl Source for Directory {
    fn read(&self) -> Result<Snapshot, SourceError> {
        let unsaved = self.0.unsaved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let changed = self.0.trees.take_changes();
        let result = self.0.pipeline.read(&Reading {
            roots: &self.0.roots,
            unsaved: &unsaved,
            changed: changed.as_ref(),
            tree: 0,
        });
        if result.is_err() {
            // The changes still have to be read, and others may have happened meanwhile.
            self.0.trees.add_changes(None);
        }
        result
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        watch::watch(&self.0.trees, self.0.options, signal)
    }
}

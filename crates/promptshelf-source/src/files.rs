//! The source for files: a folder, or files in memory such as a revision of a channel.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use promptshelf_core::Provenance;

use crate::{
    error::SourceError,
    memory_tree::{MemoryFile, MemoryTree},
    pipeline::{LastRead, Reading},
    root_grants::RootGrants,
    source::{ReloadSignal, Snapshot, Source, WatchGuard, Watchers},
    watch::{self, WatchOptions, WatchedTrees},
};

/// A folder of prompt files, or files in memory, as a [`Source`]. All reads are confined to the files.
///
/// Both are read by the same rules. A folder is watched; files in memory are [replaced](Files::replace) as a whole, which
/// requests a reload from every watcher. Only changed files are parsed again. `[roots]` that lead out of the files need a
/// [grant](Files::grant_roots).
///
/// Clones are the same source. Creating one does not read anything.
///
/// ```
/// use promptshelf_source::{Files, Loader, MemoryTree, Source};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("hello.md"), "---\ndescription: Greets\n---\nSay hello.\n")?;
/// let source = Files::folder(folder.path());
/// assert_eq!(source.read()?.into_definitions().prompts[0].name, "hello");
///
/// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
/// let loader = Loader::open(vec![Box::new(Files::tree(tree))])?;
/// assert!(loader.handle().current().find("hello").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Files(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    roots: RootGrants,
    watched: WatchedTrees,
    watchers: Watchers,
    state: Mutex<State>,
    /// Locked during a read.
    last: Mutex<LastRead>,
}

#[derive(Clone, Debug, Default)]
struct State {
    is_lenient: bool,
    options: WatchOptions,
    /// The files in memory; `None` for those of the folder.
    tree: Option<MemoryTree>,
    /// The provenance of the tree. Its revision is the generation of the catalog.
    provenance: Option<Arc<Provenance>>,
    hides_provenance: bool,
    /// Counts the trees.
    number: u64,
    unsaved: BTreeMap<String, MemoryFile>,
}

impl Files {
    /// Creates a source for the folder at a path, which is relative to the working directory.
    pub fn folder(path: impl Into<PathBuf>) -> Files {
        let path = path.into();
        Files::with(RootGrants::folder(path.clone()), vec![path], None)
    }

    /// Creates a source for files in memory.
    #[must_use]
    pub fn tree(tree: MemoryTree) -> Files {
        Files::with(RootGrants::memory(), Vec::new(), Some(tree))
    }

    fn with(roots: RootGrants, watched: Vec<PathBuf>, tree: Option<MemoryTree>) -> Files {
        Files(Arc::new(Inner {
            roots,
            watched: WatchedTrees::new(watched),
            watchers: Watchers::default(),
            state: Mutex::new(State { tree, ..State::default() }),
            last: Mutex::default(),
        }))
    }

    /// Makes this a source for authors' tools, which report every mistake at once: the valid parts of a manifest with
    /// mistakes are used, and the other files are read. Not for serving, where a misspelled limit or access rule must
    /// not be ignored.
    #[must_use]
    pub fn lenient(self) -> Files {
        self.update(|state| state.is_lenient = true);
        self
    }

    /// Sets how often the state of all files of a folder is compared, in addition to file system events; `None` turns
    /// polling off.
    ///
    /// Network and container file systems do not send events reliably. One comparison takes at most 1 % of the time
    /// between two: the interval grows for large folders. The default is two seconds.
    #[must_use]
    pub fn poll_interval(self, interval: Option<Duration>) -> Files {
        self.update(|state| state.options.poll_interval = interval);
        self
    }

    /// Sets whether the file system events of the operating system are used. They are by default.
    #[must_use]
    pub fn native_events(self, enabled: bool) -> Files {
        self.update(|state| state.options.native_events = enabled);
        self
    }

    /// Grants folders outside of the files, from now on and instead of those granted before: `[roots]` may point to them
    /// or below them. Without a grant, roots have to be inside. Paths are relative to the working directory; for files
    /// in memory, relative ones are ignored. A [`Loader`](crate::Loader) sees the grants at its next load.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        self.0.roots.set(folders.into_iter().collect());
        self.0.watched.add_changes(None);
    }

    /// Creates a separate source for a tree, with the same granted roots: to check the tree before it replaces this one.
    #[must_use]
    pub fn candidate(&self, tree: MemoryTree) -> Files {
        Files::with(self.0.roots.clone(), Vec::new(), Some(tree))
    }

    /// Replaces the text of a file with one that an editor has not saved, or restores the file's own text with `None`.
    ///
    /// The path is relative to the folder, with `/` between its parts. The file does not have to exist. The next read of
    /// a folder looks at no other file unless others are [noted](Files::note_changes).
    pub fn set_unsaved(&self, path: &str, text: Option<&str>) {
        self.update(|state| match text {
            Some(text) => state.unsaved.insert(path.to_owned(), MemoryFile::new(text.as_bytes())),
            None => state.unsaved.remove(path),
        });
        self.note_changes(Some([path.to_owned()].into()));
    }

    /// Notes that files may have changed since the last read, by path; `None` for any of them, and for others. The next
    /// read looks at no others. A read without a note looks at all.
    pub fn note_changes(&self, paths: Option<BTreeSet<String>>) {
        self.0.watched.add_changes(paths);
    }

    /// Replaces all files, and requests a reload.
    ///
    /// Files that are clones of those in the earlier tree are not even compared.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use promptshelf_source::{Files, Loader, MemoryFile, MemoryTree};
    ///
    /// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
    /// let source = Files::tree(tree.clone());
    /// let loader = Loader::open(vec![Box::new(source.clone())]).unwrap();
    /// source.replace(tree.with([("bye.md", Some(MemoryFile::new(*b"Say goodbye.\n")))]));
    /// loader.reload().await.unwrap();
    /// assert_eq!(loader.handle().current().prompts().len(), 2);
    /// # }
    /// ```
    pub fn replace(&self, tree: MemoryTree) {
        self.change(|state| (state.tree, state.provenance) = (Some(tree), None));
    }

    /// Replaces all files by those of a revision of a channel or of a commit, and requests a reload. The number of a
    /// revision is then the catalog's [generation](promptshelf_core::Catalog::generation), and prompts have the versions of
    /// the provenance.
    ///
    /// ```
    /// use promptshelf_core::Provenance;
    /// use promptshelf_source::{Files, Loader, MemoryTree};
    ///
    /// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
    /// let source = Files::tree(MemoryTree::default());
    /// source.replace_revision(tree, Provenance::new("production", 7));
    /// let loader = Loader::open(vec![Box::new(source)]).unwrap();
    /// assert_eq!(loader.handle().current().generation(), 7);
    /// ```
    pub fn replace_revision(&self, tree: MemoryTree, provenance: impl Into<Arc<Provenance>>) {
        let provenance = provenance.into();
        self.change(|state| (state.tree, state.provenance) = (Some(tree), Some(provenance)));
    }

    /// Sets whether clients see the provenance of prompts, in `_meta`. They do by default.
    pub fn show_provenance(&self, is_shown: bool) {
        if self.update(|state| state.hides_provenance == is_shown) {
            self.change(|state| state.hides_provenance = !is_shown);
        }
    }

    /// Returns the files in memory that the next read returns; `None` for those of a folder.
    #[must_use]
    pub fn in_memory(&self) -> Option<MemoryTree> {
        self.update(|state| state.tree.clone())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.update(|state| {
            change(state);
            state.number += 1;
        });
        self.0.watchers.request();
    }

    fn update<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock())
    }
}

impl Source for Files {
    fn read(&self) -> Result<Snapshot, SourceError> {
        let mut last = self.0.last.lock();
        let changed = self.0.watched.take_changes();
        let State { is_lenient, tree, provenance, hides_provenance, number, unsaved, .. } =
            self.update(|state| state.clone());
        let (roots, unsaved) = match tree {
            Some(tree) => (
                self.0.roots.with_tree(tree.with(unsaved.into_iter().map(|(path, file)| (path, Some(file))))),
                BTreeMap::new(),
            ),
            None => (self.0.roots.clone(), unsaved),
        };
        let reading = Reading {
            roots: &roots,
            unsaved,
            changed: changed.as_ref(),
            tree: number,
            is_lenient,
            watched: &self.0.watched,
        };
        let read = reading.read(&mut last);
        if read.is_err() {
            // The changes still have to be read, and others may have happened meanwhile.
            self.0.watched.add_changes(None);
        }
        let snapshot = read?;
        Ok(match provenance {
            None => snapshot,
            Some(provenance) => {
                let snapshot = provenance.revision().into_iter().fold(snapshot, Snapshot::with_generation);
                snapshot.with_provenance(provenance, !hides_provenance)
            }
        })
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        let options = self.update(|state| state.options);
        let replaced = self.0.watchers.add(signal.clone());
        WatchGuard::new((replaced, watch::watch(&self.0.watched, options, signal)))
    }
}

//! The source for files in memory, such as a revision of a channel.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use promptshelf_core::Provenance;

use crate::{
    error::SourceError,
    memory_tree::MemoryTree,
    pipeline::{Pipeline, Reading},
    root_grants::RootGrants,
    source::{ReloadSignal, Snapshot, Source, WatchGuard},
    watch::{self, WatchOptions, WatchedTrees},
};

/// Files in memory as a [`Source`], read by the same rules as a [`Directory`](crate::Directory).
///
/// The tree can be replaced, which requests a reload from every watcher; only changed files are parsed again. Nothing
/// outside of the tree can be reached: `[roots]` that lead out of it need a [grant](TreeSource::grant_roots).
///
/// Clones are the same source.
///
/// ```
/// use promptshelf_source::{Loader, MemoryTree, TreeSource};
///
/// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
/// let source = TreeSource::new(tree);
/// let loader = Loader::open(vec![Box::new(source.clone())]).unwrap();
/// assert!(loader.handle().current().find("hello").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct TreeSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pipeline: Pipeline,
    roots: RootGrants,
    watched: WatchedTrees,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tree: MemoryTree,
    /// The provenance of the tree. Its revision is the generation of the catalog.
    provenance: Option<Arc<Provenance>>,
    is_provenance_shown: bool,
    /// Counts the trees, from 1.
    number: u64,
    watchers: Vec<(u64, ReloadSignal)>,
    next: u64,
}

impl TreeSource {
    /// Creates a source for a tree.
    #[must_use]
    pub fn new(tree: MemoryTree) -> TreeSource {
        TreeSource::with(tree, false)
    }

    /// Creates a source for authors' tools, which report every mistake at once: the valid parts of a manifest with
    /// mistakes are used, and the rest of the tree is read. Not for serving, where a misspelled limit or access rule must
    /// not be ignored.
    #[must_use]
    pub fn lenient(tree: MemoryTree) -> TreeSource {
        TreeSource::with(tree, true)
    }

    fn with(tree: MemoryTree, is_lenient: bool) -> TreeSource {
        let watched = WatchedTrees::new(Vec::new());
        let pipeline = Pipeline::new(is_lenient, watched.clone());
        let state =
            State { tree, provenance: None, is_provenance_shown: true, number: 1, watchers: Vec::new(), next: 0 };
        TreeSource(Arc::new(Inner { pipeline, roots: RootGrants::memory(), watched, state: Mutex::new(state) }))
    }

    /// Creates a separate source for another tree, with the same granted roots: to check the tree before it replaces
    /// that of this source.
    #[must_use]
    pub fn candidate(&self, tree: MemoryTree) -> TreeSource {
        let mut candidate = TreeSource::new(tree);
        if let Some(inner) = Arc::get_mut(&mut candidate.0) {
            inner.roots = self.0.roots.clone();
        }
        candidate
    }

    /// Replaces the tree, and requests a reload.
    ///
    /// Files that are clones of those in the earlier tree are not even compared.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use promptshelf_source::{Loader, MemoryFile, MemoryTree, TreeSource};
    ///
    /// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
    /// let source = TreeSource::new(tree.clone());
    /// let loader = Loader::open(vec![Box::new(source.clone())]).unwrap();
    /// source.replace(tree.with([("bye.md", Some(MemoryFile::new(*b"Say goodbye.\n")))]));
    /// loader.reload().await.unwrap();
    /// assert_eq!(loader.handle().current().prompts().len(), 2);
    /// # }
    /// ```
    pub fn replace(&self, tree: MemoryTree) {
        self.change(|state| (state.tree, state.provenance) = (tree, None));
    }

    /// Replaces the tree by a revision of a channel or a commit, and requests a reload. The number of a revision is then
    /// the catalog's [generation](promptshelf_core::Catalog::generation), and prompts have the versions of the provenance.
    ///
    /// ```
    /// use promptshelf_core::Provenance;
    /// use promptshelf_source::{Loader, MemoryTree, TreeSource};
    ///
    /// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
    /// let source = TreeSource::new(MemoryTree::default());
    /// source.replace_revision(tree, Provenance::new("production", 7));
    /// let loader = Loader::open(vec![Box::new(source)]).unwrap();
    /// assert_eq!(loader.handle().current().generation(), 7);
    /// ```
    pub fn replace_revision(&self, tree: MemoryTree, provenance: impl Into<Arc<Provenance>>) {
        let provenance = provenance.into();
        self.change(|state| (state.tree, state.provenance) = (tree, Some(provenance)));
    }

    /// Sets whether clients see the provenance of prompts, in `_meta`. They do by default.
    pub fn show_provenance(&self, is_shown: bool) {
        let is_changed = self.with_state(|state| state.is_provenance_shown != is_shown);
        if is_changed {
            self.change(|state| state.is_provenance_shown = is_shown);
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.with_state(|state| {
            change(state);
            state.number += 1;
            for (_, signal) in &state.watchers {
                signal.request();
            }
        });
    }

    /// Returns the tree that the next read returns.
    #[must_use]
    pub fn tree(&self) -> MemoryTree {
        self.with_state(|state| state.tree.clone())
    }

    /// Grants folders on disk, from now on and instead of those granted before: absolute paths in `[roots]` may point to
    /// them or below them. Relative folders are ignored. A [`Loader`](crate::Loader) sees the grants at its next load.
    pub fn grant_roots(&self, folders: impl IntoIterator<Item = PathBuf>) {
        self.0.roots.set(folders.into_iter().collect());
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Source for TreeSource {
    fn read(&self) -> Result<Snapshot, SourceError> {
        let (tree, number, provenance) = self.with_state(|state| {
            let provenance = state.provenance.clone().map(|provenance| (provenance, state.is_provenance_shown));
            (state.tree.clone(), state.number, provenance)
        });
        let roots = self.0.roots.with_tree(tree);
        let snapshot =
            self.0.pipeline.read(&Reading { roots: &roots, unsaved: &BTreeMap::new(), changed: None, tree: number })?;
        Ok(match provenance {
            None => snapshot,
            Some((provenance, is_shown)) => {
                let snapshot = provenance.revision().into_iter().fold(snapshot, Snapshot::with_generation);
                snapshot.with_provenance(provenance, is_shown)
            }
        })
    }

    fn watch(&self, signal: ReloadSignal) -> WatchGuard {
        let number = self.with_state(|state| {
            state.next += 1;
            state.watchers.push((state.next, signal.clone()));
            state.next
        });
        let roots = watch::watch(&self.0.watched, WatchOptions::default(), signal);
        WatchGuard::new((Unwatch { source: self.clone(), number }, roots))
    }
}

struct Unwatch {
    source: TreeSource,
    number: u64,
}

impl Drop for Unwatch {
    fn drop(&mut self) {
        self.source.with_state(|state| state.watchers.retain(|(number, _)| *number != self.number));
    }
}

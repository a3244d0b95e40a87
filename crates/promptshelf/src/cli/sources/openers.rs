//! Openers of folders and of channels.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use promptshelf_server::ReplicaMonitor;
use promptshelf_source::{Directory, Health, OpenSource, OpenedSource, SourceError, TreeSource, wait_for};

use super::SharedSettings;

pub(super) struct Grants(Mutex<State>);

struct State {
    roots: Vec<PathBuf>,
    is_provenance_shown: bool,
    directories: Vec<Directory>,
    trees: Vec<TreeSource>,
}

impl Grants {
    pub(super) fn new(shared: &SharedSettings) -> Grants {
        Grants(Mutex::new(State {
            roots: shared.granted_roots.clone(),
            is_provenance_shown: shared.shows_provenance,
            directories: Vec::new(),
            trees: Vec::new(),
        }))
    }

    pub(super) fn set_roots(&self, roots: &[PathBuf]) {
        self.with(|state| {
            state.roots = roots.to_vec();
            state.directories.iter().for_each(|directory| directory.grant_roots(roots.to_vec()));
            state.trees.iter().for_each(|tree| tree.grant_roots(roots.to_vec()));
        });
    }

    pub(super) fn set_shown(&self, is_shown: bool) {
        self.with(|state| {
            state.is_provenance_shown = is_shown;
            state.trees.iter().for_each(|tree| tree.show_provenance(is_shown));
        });
    }

    fn add_directory(&self, directory: &Directory) {
        self.with(|state| {
            directory.grant_roots(state.roots.clone());
            state.directories.push(directory.clone());
        });
    }

    pub(super) fn add_tree(&self, tree: &TreeSource) {
        self.with(|state| {
            tree.grant_roots(state.roots.clone());
            tree.show_provenance(state.is_provenance_shown);
            state.trees.push(tree.clone());
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) struct FolderOpener(Directory);

impl FolderOpener {
    pub(super) fn new(folder: &Path, grants: &Grants) -> FolderOpener {
        let directory = Directory::new(folder);
        grants.add_directory(&directory);
        FolderOpener(directory)
    }
}

impl OpenSource for FolderOpener {
    fn kind(&self) -> &'static str {
        "folder"
    }

    fn open(&self) -> Result<OpenedSource, SourceError> {
        Ok(OpenedSource::new(self.0.clone()))
    }
}

pub(super) struct StoreOpener {
    store: promptshelf_server::channels::StoreHandle,
    channel: promptshelf_store::ChannelName,
    cache: Option<PathBuf>,
    grants: Arc<Grants>,
    monitor: Mutex<Option<promptshelf_server::ReplicaMonitor>>,
}

impl StoreOpener {
    pub(super) fn new(
        store: promptshelf_server::channels::StoreHandle,
        channel: promptshelf_store::ChannelName,
        cache: Option<PathBuf>,
        grants: &Arc<Grants>,
    ) -> StoreOpener {
        StoreOpener { store, channel, cache, grants: Arc::clone(grants), monitor: Mutex::default() }
    }
}

impl OpenSource for StoreOpener {
    fn kind(&self) -> &'static str {
        "store"
    }

    fn open(&self) -> Result<OpenedSource, SourceError> {
        use promptshelf_server::channels::{FollowOptions, Follower};

        let mut options = FollowOptions::new(self.store.clone(), self.channel.clone());
        options.cache.clone_from(&self.cache);
        let started = wait_for(Follower::start(options))?;
        let follower = started.map_err(|error| SourceError::new(error.to_string()).with_source(error))?;
        let source = follower.source().clone();
        self.grants.add_tree(&source);
        *super::lock(&self.monitor) = Some(follower.monitor().clone());
        Ok(OpenedSource::new(source).following(Box::new(move |loader| Box::pin(follower.run(loader)))))
    }

    fn health(&self) -> Health {
        let Some(status) = super::lock(&self.monitor).as_ref().map(ReplicaMonitor::status) else {
            return Health::default();
        };
        let problem =
            status.degraded_since.map(|_| "its newest revision cannot be read; see the server's log".to_owned());
        Health { revision: status.revision, problem, behind_since: status.degraded_since, ..Health::default() }
    }
}

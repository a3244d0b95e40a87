//! The served libraries: that of a folder or a git repository, or those of a store's channels.

use std::path::PathBuf;

use promptshelf_git::GitSource;
use promptshelf_server::{
    Builder, Library, ReplicaMonitor,
    http::{self, App},
};
use promptshelf_source::{Directory, ReloadTask};

use super::{followed::Followed, log_changes};
use crate::{exit::Failure, sources::OpenSources};

/// The served libraries. The first one is served at `/mcp` and on stdio.
pub(super) struct Served {
    pub(super) library: Library,
    origin: Origin,
}

enum Origin {
    Folder(Directory),
    Git(GitSource),
    Channels(Vec<Followed>),
    Sources(OpenSources),
}

/// Keeps the libraries current until it is dropped.
#[must_use = "dropping it ends the following"]
pub(super) enum Following {
    Folder(#[expect(dead_code, reason = "kept alive for its destructor")] ReloadTask),
    Git {
        #[expect(dead_code, reason = "kept alive for its destructor")]
        loading: ReloadTask,
        #[expect(dead_code, reason = "kept alive for its destructor")]
        polling: tokio::task::JoinSet<()>,
    },
    Channels(#[expect(dead_code, reason = "kept alive for its destructor")] tokio::task::JoinSet<()>),
}

impl Served {
    /// Opens the library in a folder. `finished` adds everything but its source to a builder.
    pub(super) fn folder(
        folder: PathBuf,
        granted_roots: &[PathBuf],
        finished: impl Fn(Builder) -> Builder,
    ) -> Result<Served, Failure> {
        let directory = Directory::new(folder);
        directory.grant_roots(granted_roots.to_vec());
        let library = finished(Library::builder().source(directory.clone())).build()?;
        Ok(Served { library, origin: Origin::Folder(directory) })
    }

    pub(super) fn git(source: GitSource, finished: impl Fn(Builder) -> Builder) -> Result<Served, Failure> {
        let library = finished(Library::builder().source(source.source().clone())).build()?;
        Ok(Served { library, origin: Origin::Git(source) })
    }

    pub(super) fn sources(sources: OpenSources, finished: impl Fn(Builder) -> Builder) -> Result<Served, Failure> {
        let library = finished(Library::builder().source(sources.set.clone())).build()?;
        Ok(Served { library, origin: Origin::Sources(sources) })
    }

    /// The sources, if there may be several.
    pub(super) fn open_sources(&self) -> Option<&OpenSources> {
        match &self.origin {
            Origin::Sources(sources) => Some(sources),
            _ => None,
        }
    }

    /// Takes channels that have been read: the default one, and the others.
    pub(super) fn channels(channels: Vec<Followed>) -> Option<Served> {
        let library = channels.first()?.library().clone();
        Some(Served { library, origin: Origin::Channels(channels) })
    }

    pub(super) fn other_channels(&self) -> Vec<String> {
        match &self.origin {
            Origin::Folder(_) | Origin::Git(_) | Origin::Sources(_) => Vec::new(),
            Origin::Channels(channels) => {
                let exposed = channels.iter().skip(1).filter(|followed| followed.is_exposed());
                exposed.map(|followed| followed.name().to_owned()).collect()
            }
        }
    }

    pub(super) fn libraries(&self) -> Vec<(Option<&str>, &Library)> {
        match &self.origin {
            Origin::Folder(_) | Origin::Git(_) | Origin::Sources(_) => vec![(None, &self.library)],
            Origin::Channels(channels) => {
                channels.iter().map(|followed| (Some(followed.name()), followed.library())).collect()
            }
        }
    }

    pub(super) fn monitors(&self) -> Vec<ReplicaMonitor> {
        match &self.origin {
            Origin::Folder(_) | Origin::Git(_) | Origin::Sources(_) => Vec::new(),
            Origin::Channels(channels) => channels.iter().map(|followed| followed.channel().monitor).collect(),
        }
    }

    pub(super) fn app(&self, options: &http::Options) -> App {
        match &self.origin {
            Origin::Folder(_) | Origin::Git(_) | Origin::Sources(_) => App::new(&self.library, options),
            Origin::Channels(channels) => {
                let mut channels = channels.iter().filter(|followed| followed.is_exposed()).map(Followed::channel);
                match channels.next() {
                    Some(default) => App::with_channels(&default, &channels.collect::<Vec<_>>(), options),
                    None => App::new(&self.library, options),
                }
            }
        }
    }

    pub(super) fn log_changes(&self) {
        for (channel, library) in self.libraries() {
            tokio::spawn(log_changes(channel.map(str::to_owned), library.clone()));
        }
    }

    /// Follows the folder; or the channels, which have to be followed on every transport.
    pub(super) fn follow(&mut self) -> Following {
        match &mut self.origin {
            Origin::Folder(_) | Origin::Sources(_) => Following::Folder(self.library.loader().spawn()),
            Origin::Git(source) => {
                let mut polling = tokio::task::JoinSet::new();
                polling.spawn(source.clone().run());
                Following::Git { loading: self.library.loader().spawn(), polling }
            }
            Origin::Channels(channels) => {
                let mut tasks = tokio::task::JoinSet::new();
                for followed in channels {
                    let runs = [followed.run(), followed.run_rollout()];
                    runs.into_iter().flatten().for_each(|run| {
                        tasks.spawn(run);
                    });
                }
                Following::Channels(tasks)
            }
        }
    }

    /// Whether changes are read on stdio too without being followed here.
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.origin, Origin::Folder(_) | Origin::Sources(_))
    }

    /// Replaces the folders that libraries may read besides their own files. Takes effect at the next load.
    pub(super) fn grant_roots(&self, granted_roots: &[PathBuf]) {
        match &self.origin {
            Origin::Folder(directory) => directory.grant_roots(granted_roots.to_vec()),
            Origin::Git(source) => source.source().grant_roots(granted_roots.to_vec()),
            Origin::Sources(sources) => sources.grant_roots(granted_roots),
            Origin::Channels(channels) => {
                channels.iter().for_each(|followed| followed.grant_roots(granted_roots));
            }
        }
    }

    /// Sets whether clients see the provenance of prompts from channels. Takes effect at the next load.
    pub(super) fn show_provenance(&self, is_shown: bool) {
        match &self.origin {
            Origin::Folder(_) => {}
            Origin::Git(source) => source.source().show_provenance(is_shown),
            Origin::Sources(sources) => sources.show_provenance(is_shown),
            Origin::Channels(channels) => channels.iter().for_each(|followed| followed.show_provenance(is_shown)),
        }
    }

    /// Loads all libraries again, and polls a git repository soon. The loaders log their errors themselves.
    pub(super) async fn reload(&self) {
        if let Origin::Git(source) = &self.origin {
            source.nudge();
        }
        if let Some(sources) = self.open_sources() {
            sources.set.reload().await;
        }
        for (_, library) in self.libraries() {
            library.loader().reload().await.ok();
        }
    }
}

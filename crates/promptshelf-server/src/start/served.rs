//! The served libraries: that of a folder or a git repository, those of a store's channels, or one of several sources.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use promptshelf_core::AccessRule;
use promptshelf_git::{GitAddress, GitOptions, GitSource};
use promptshelf_source::{Files, ReloadTask};
use promptshelf_store::{ChannelName, StoreError};
use tokio::task::JoinSet;

use super::rollouts::RolloutFollower;
use crate::{
    channels::{FollowError, FollowOptions, Follower, StoreHandle},
    failure::{Exit, Failure},
    http::{self, App, Channel},
    library::{Builder, Library},
    replica::ReplicaMonitor,
    settings::{ConfiguredSource, ServedChannels, ServedLibrary, Settings, SourcePlace},
    sources::{OpenSources, SharedSettings, StateFolder},
    state,
    words::{count, count_all},
};

/// The time that the start waits for sources. Others appear when they have been read.
const START_WAIT: Duration = Duration::from_secs(2);

/// The served libraries. The first one is served at `/mcp` and on stdio.
pub(super) struct Served {
    pub(super) library: Library,
    origin: Origin,
    /// The sources, if there may be several; then those of further channels that take the place of one of them.
    sources: Vec<OpenSources>,
}

enum Origin {
    Folder(Files),
    Git(GitSource),
    Channels(Vec<Followed>, ChannelOpener),
    Sources,
}

struct Followed {
    name: String,
    library: Library,
    /// The files of the channel; `None` for one among the sources.
    files: Option<Files>,
    monitor: ReplicaMonitor,
    /// `None` once it runs.
    follower: Option<Follower>,
    /// The sources that take the place of those of the default channel.
    sources: Option<OpenSources>,
}

/// Keeps the libraries current until it is dropped.
#[must_use = "dropping it ends the following"]
pub(super) struct Following {
    _loading: Vec<ReloadTask>,
    _tasks: JoinSet<()>,
}

impl Served {
    /// Opens the library. `finished` adds everything but its source to a builder.
    pub(super) async fn open(settings: &Settings, finished: &Finished) -> Result<Served, Failure> {
        let roots = settings.live.granted_roots.clone();
        let (library, origin, sources) = match &settings.fixed.library {
            ServedLibrary::Folder(folder) => {
                let directory = Files::folder(folder);
                directory.grant_roots(roots);
                (finished(Library::builder().source(directory.clone())).build()?, Origin::Folder(directory), Vec::new())
            }
            ServedLibrary::Git(address) => {
                let source = git(address, settings).await?;
                let library = finished(Library::builder().source(source.source().clone())).build()?;
                (library, Origin::Git(source), Vec::new())
            }
            ServedLibrary::Channels(channels) => {
                let opener = ChannelOpener::new(channels, settings, finished).await?;
                let default = opener.open(&channels.default.channel).await?;
                let library = default.library.clone();
                let mut all = vec![default];
                for channel in &channels.others {
                    all.push(opener.open(channel).await?);
                }
                let own = all.iter().filter_map(|followed| followed.sources.clone());
                let sources = opener.0.sources.clone().into_iter().chain(own).collect();
                (library, Origin::Channels(all, opener), sources)
            }
            ServedLibrary::Sources(configured) => {
                let open = open_sources(configured, settings, None).await?;
                (finished(Library::builder().source(open.set.clone())).build()?, Origin::Sources, vec![open])
            }
        };
        Ok(Served { library, origin, sources })
    }

    fn channels(&self) -> &[Followed] {
        match &self.origin {
            Origin::Channels(channels, _) => channels,
            _ => &[],
        }
    }

    /// Returns the sources, if there may be several.
    pub(super) fn open_sources(&self) -> Option<&OpenSources> {
        self.sources.first()
    }

    /// Replaces the rules of the operator that bind all sources.
    pub(super) async fn replace_rules(&self, rules: &[AccessRule]) {
        for sources in &self.sources {
            sources.set.replace_rules(rules).await;
        }
        if let Origin::Channels(_, opener) = &self.origin {
            opener.0.shared.lock().rules = rules.to_vec();
        }
        for target in self.targets() {
            if let Some(sources) = &target.followed.sources {
                sources.set.replace_rules(rules).await;
            }
        }
    }

    pub(super) fn other_channels(&self) -> Vec<String> {
        self.channels().iter().skip(1).map(|followed| followed.name.clone()).collect()
    }

    pub(super) fn libraries(&self) -> Vec<(Option<&str>, &Library)> {
        match self.channels() {
            [] => vec![(None, &self.library)],
            channels => channels.iter().map(|followed| (Some(followed.name.as_str()), &followed.library)).collect(),
        }
    }

    pub(super) fn monitors(&self) -> Vec<ReplicaMonitor> {
        self.channels().iter().map(|followed| followed.monitor.clone()).collect()
    }

    pub(super) fn app(&self, options: &http::Options) -> App {
        let channel = |followed: &Followed| Channel {
            name: followed.name.clone(),
            library: followed.library.clone(),
            monitor: followed.monitor.clone(),
        };
        let mut channels = self.channels().iter().map(channel);
        match channels.next() {
            Some(default) => App::with_channels(&default, &channels.collect::<Vec<_>>(), options),
            None => App::new(&self.library, options),
        }
    }

    pub(super) fn log_changes(&self, tasks: &mut JoinSet<()>) {
        for (channel, library) in self.libraries() {
            tasks.spawn(log_changes(channel.map(str::to_owned), library.clone()));
        }
    }

    /// Follows the folder; or the channels, which have to be followed on every transport.
    pub(super) fn follow(&mut self) -> Following {
        let mut tasks = JoinSet::new();
        match &mut self.origin {
            Origin::Folder(_) | Origin::Sources => {}
            Origin::Git(source) => {
                tasks.spawn(source.clone().run());
            }
            Origin::Channels(channels, _) => {
                for followed in channels {
                    if let Some(follower) = followed.follower.take() {
                        tasks.spawn(follower.run(followed.library.loader().clone()));
                    }
                }
            }
        }
        // Followers of channels load what they have read themselves.
        let is_watched = self.channels().is_empty() || !self.sources.is_empty();
        let libraries = self.libraries().into_iter().filter(|_| is_watched);
        Following { _loading: libraries.map(|(_, library)| library.loader().spawn()).collect(), _tasks: tasks }
    }

    /// Whether changes are read on stdio too without being followed here.
    pub(super) fn is_folder(&self) -> bool {
        matches!(self.origin, Origin::Folder(_) | Origin::Sources)
    }

    /// Replaces the folders that libraries may read besides their own files. Takes effect at the next load.
    pub(super) fn grant_roots(&self, granted_roots: &[PathBuf]) {
        let roots = granted_roots.to_vec();
        match &self.origin {
            Origin::Folder(directory) => directory.grant_roots(roots),
            Origin::Git(source) => source.source().grant_roots(roots),
            Origin::Sources => {}
            Origin::Channels(all, opener) => {
                opener.0.shared.lock().granted_roots.clone_from(&roots);
                all.iter().filter_map(|followed| followed.files.as_ref()).for_each(|it| it.grant_roots(roots.clone()));
                for Target { followed, .. } in opener.targets().iter().map(Arc::as_ref) {
                    followed.files.iter().for_each(|it| it.grant_roots(roots.clone()));
                    followed.sources.iter().for_each(|sources| sources.grant_roots(granted_roots));
                }
            }
        }
        self.sources.iter().for_each(|sources| sources.grant_roots(granted_roots));
    }

    /// Sets whether clients see the provenance of prompts from channels. Takes effect at the next load.
    pub(super) fn show_provenance(&self, is_shown: bool) {
        match &self.origin {
            Origin::Folder(_) | Origin::Sources => {}
            Origin::Git(source) => source.source().show_provenance(is_shown),
            Origin::Channels(all, opener) => {
                opener.0.shared.lock().shows_provenance = is_shown;
                all.iter().filter_map(|followed| followed.files.as_ref()).for_each(|it| it.show_provenance(is_shown));
                for Target { followed, .. } in opener.targets().iter().map(Arc::as_ref) {
                    followed.files.iter().for_each(|it| it.show_provenance(is_shown));
                    followed.sources.iter().for_each(|sources| sources.show_provenance(is_shown));
                }
            }
        }
        self.sources.iter().for_each(|sources| sources.show_provenance(is_shown));
    }

    /// Loads all libraries again, and polls a git repository soon. The loaders log their errors themselves.
    pub(super) async fn reload(&self) {
        if let Origin::Git(source) = &self.origin {
            source.nudge();
        }
        for sources in &self.sources {
            sources.set.reload().await;
        }
        for (_, library) in self.libraries() {
            let _ = library.loader().reload().await;
        }
        for target in self.targets() {
            if let Some(sources) = &target.followed.sources {
                sources.set.reload().await;
            }
            let _ = target.library().loader().reload().await;
        }
    }

    fn targets(&self) -> Vec<Arc<Target>> {
        match &self.origin {
            Origin::Channels(_, opener) => opener.targets(),
            _ => Vec::new(),
        }
    }

    /// Returns what follows the rollouts of the channels, if there are channels.
    pub(super) fn rollouts(&self, settings: &Settings) -> Option<RolloutFollower> {
        let Origin::Channels(channels, opener) = &self.origin else { return None };
        let libraries = channels.iter().map(|one| (one.name.clone(), one.library.clone())).collect();
        let (access, signs_in) = (settings.live.http.channel_access.clone(), settings.live.sign_in.is_some());
        Some(RolloutFollower::new(opener.0.store.clone(), opener.clone(), libraries, access, signs_in))
    }
}

/// Reads the newest commit; that of the last run if the repository is away.
async fn git(address: &GitAddress, settings: &Settings) -> Result<GitSource, Failure> {
    let state = state::folder().ok_or_else(|| {
        Failure::new(Exit::Failed, "there is no folder for copies of git repositories")
            .help("set XDG_STATE_HOME to a folder that this user can write to")
    })?;
    let source = GitSource::new(GitOptions::new(address.clone(), state.join("git")))?;
    source.source().grant_roots(settings.live.granted_roots.iter().cloned());
    source.source().show_provenance(!settings.live.hides_provenance);
    match source.refresh().await {
        Ok(()) => {}
        Err(error) if source.state().served.is_some() => {
            tracing::error!("the newest commit is not served: {error}");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(source)
}

/// Begins to open sources, and waits a while for them.
async fn open_sources(
    configured: &[ConfiguredSource],
    settings: &Settings,
    store: Option<&StoreHandle>,
) -> Result<OpenSources, Failure> {
    let state = settings.file.as_deref().and_then(StateFolder::of);
    let open = OpenSources::open(configured, &shared_settings(settings, store, true), state.as_ref())?;
    open.set.settled(START_WAIT).await;
    if let Some(state) = state {
        tokio::spawn(state.serve(open.set.clone()));
    }
    Ok(open)
}

pub(super) fn shared_settings(settings: &Settings, store: Option<&StoreHandle>, is_server: bool) -> SharedSettings {
    SharedSettings {
        granted_roots: settings.live.granted_roots.clone(),
        shows_provenance: !settings.live.hides_provenance,
        cache: settings.fixed.cache.clone(),
        rules: settings.live.access.clone(),
        is_server,
        store: store.cloned(),
    }
}

/// Opens channels of a store: at the start those with addresses, later the targets of rollouts. Each is served together with
/// the sources: as their own library, or in the place of the source that the default channel is.
#[derive(Clone)]
pub(super) struct ChannelOpener(Arc<OpenerParts>);

struct OpenerParts {
    channels: ServedChannels,
    store: StoreHandle,
    shared: Mutex<SharedSettings>,
    finished: Finished,
    /// The library with which others share limits.
    first: OnceLock<Library>,
    sources: Option<OpenSources>,
    targets: Mutex<Vec<Weak<Target>>>,
}

/// Adds everything but the source to a builder.
pub(super) type Finished = Arc<dyn Fn(Builder) -> Builder + Send + Sync>;

/// The target of a rollout that has no address. It is followed until it is dropped.
pub(super) struct Target {
    followed: Followed,
    _loading: Option<ReloadTask>,
    _following: JoinSet<()>,
}

impl Target {
    pub(super) fn library(&self) -> &Library {
        &self.followed.library
    }
}

impl ChannelOpener {
    async fn new(
        channels: &ServedChannels,
        settings: &Settings,
        finished: &Finished,
    ) -> Result<ChannelOpener, Failure> {
        let store = StoreHandle::new(channels.default.store.clone());
        let sources = match channels.sources.is_empty() {
            true => None,
            false => Some(open_sources(&channels.sources, settings, Some(&store)).await?),
        };
        Ok(ChannelOpener(Arc::new(OpenerParts {
            channels: channels.clone(),
            shared: Mutex::new(shared_settings(settings, Some(&store), false)),
            store,
            finished: Arc::clone(finished),
            first: OnceLock::new(),
            sources,
            targets: Mutex::default(),
        })))
    }

    async fn open(&self, channel: &ChannelName) -> Result<Followed, Failure> {
        let OpenerParts { channels, store, shared, finished, first, sources, .. } = &*self.0;
        let (mut files, mut follower, mut own) = (None, None, None);
        let (builder, monitor) = match &channels.source {
            Some(source) => {
                let (builder, monitor, opened) = self.in_place_of(source, channel).await?;
                own = opened;
                (builder, monitor)
            }
            None => {
                let SharedSettings { granted_roots, shows_provenance, cache, .. } = shared.lock().clone();
                let mut options = FollowOptions::new(store.clone(), channel.clone());
                options.cache = cache;
                let started = match Follower::start(options).await {
                    Ok(follower) => follower,
                    Err(error) => return Err(self.unfollowed(error).await),
                };
                let (source, monitor) = (started.source().clone(), started.monitor().clone());
                source.grant_roots(granted_roots);
                source.show_provenance(shows_provenance);
                let builder = Library::builder().source(source.clone());
                (files, follower) = (Some(source), Some(started));
                (sources.iter().fold(builder, |builder, open| builder.source(open.set.clone())), monitor)
            }
        };
        let builder = finished(builder).channel(channel.as_str());
        // A caller has its limits once for all channels.
        let library = first.get().into_iter().fold(builder, Builder::limits_of).build()?;
        let _ = first.set(library.clone());
        Ok(Followed { name: channel.to_string(), library, files, monitor, follower, sources: own })
    }

    /// Returns the sources with a channel in the place of one of them.
    async fn in_place_of(
        &self,
        source: &str,
        channel: &ChannelName,
    ) -> Result<(Builder, ReplicaMonitor, Option<OpenSources>), Failure> {
        let OpenerParts { channels, shared, sources, .. } = &*self.0;
        let missing = || Failure::new(Exit::Failed, format!("the source {source} is not a channel"));
        let all = sources.as_ref().ok_or_else(missing)?;
        if *channel == channels.default.channel {
            let monitor = all.monitors.get(source).ok_or_else(missing)?;
            return Ok((Library::builder().source(all.set.clone()), monitor.clone(), None));
        }
        let configured = channels.sources.iter().find(|configured| configured.name == source);
        let mut configured = configured.ok_or_else(missing)?.clone();
        if let SourcePlace::Store(address) = &mut configured.place {
            address.channel = channel.clone();
        }
        let shared = shared.lock().clone();
        let open = OpenSources::open(&[configured], &shared, None)?;
        open.set.settled(START_WAIT).await;
        let monitor = open.monitors.get(source).ok_or_else(missing)?.clone();
        let builder = Library::builder().source(open.set.clone()).source(all.set.without(source));
        Ok((builder, monitor, Some(open)))
    }

    /// Opens the target of a rollout, and follows it.
    pub(super) async fn target(&self, channel: &ChannelName) -> Result<Arc<Target>, Failure> {
        let mut followed = self.open(channel).await?;
        let (mut following, library) = (JoinSet::new(), followed.library.clone());
        if let Some(follower) = followed.follower.take() {
            following.spawn(follower.run(library.loader().clone()));
        }
        following.spawn(log_changes(Some(followed.name.clone()), library.clone()));
        let has_sources = followed.sources.is_some() || self.0.sources.is_some();
        let loading = has_sources.then(|| library.loader().spawn());
        let target = Arc::new(Target { followed, _loading: loading, _following: following });
        let mut targets = self.0.targets.lock();
        targets.retain(|target| target.strong_count() > 0);
        targets.push(Arc::downgrade(&target));
        Ok(target)
    }

    fn targets(&self) -> Vec<Arc<Target>> {
        self.0.targets.lock().iter().filter_map(Weak::upgrade).collect()
    }

    async fn unfollowed(&self, error: FollowError) -> Failure {
        let OpenerParts { channels, store, shared, .. } = &*self.0;
        let is_away = match &error {
            FollowError::Store(error) => matches!(error, StoreError::Unreachable { .. } | StoreError::Database { .. }),
            FollowError::TimedOut => true,
            FollowError::Load { .. } => false,
        };
        let failure = match error {
            // The store itself, or the channel in it.
            FollowError::Store(error) if store.get().await.is_err() => Failure::unopened(error, &channels.default),
            FollowError::Store(error) => Failure::from(error),
            FollowError::TimedOut => Failure::new(Exit::Store, error.to_string()),
            error => Failure::new(Exit::Failed, error.to_string()),
        };
        match failure.exit {
            Exit::Store if !is_away => failure,
            Exit::Store if shared.lock().cache.is_some() => {
                failure.help("the cache has no copy of this channel of this store: start the database first")
            }
            Exit::Store => failure.help("start the database first; with --cache FOLDER, later starts do without it"),
            Exit::NotFound => failure.help("`promptshelf policy` lists the channels of the store"),
            _ => failure,
        }
    }
}

/// Logs a summary of a library after each load that changed it. The loader itself logs each new diagnostic.
async fn log_changes(channel: Option<String>, library: Library) {
    let loader = library.loader().clone();
    let mut reports = loader.reports();
    let mut known = reports.borrow_and_update().serial;
    while reports.changed().await.is_ok() {
        let serial = reports.borrow_and_update().serial;
        if serial == known {
            continue;
        }
        known = serial;
        let reviewed = library.clone();
        let findings = tokio::task::spawn_blocking(move || reviewed.findings()).await.unwrap_or_default();
        let findings = count_all(&findings);
        let prompts = count(loader.handle().current().prompts().len(), "prompt");
        match &channel {
            None => tracing::info!("library changed: {prompts}, {findings}"),
            Some(channel) => tracing::info!("channel {channel} changed: {prompts}, {findings}"),
        }
    }
}

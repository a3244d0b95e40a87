//! The served libraries: that of a folder or a git repository, those of a store's channels, or one of several sources.

use std::{path::PathBuf, time::Duration};

use promptshelf_core::AccessRule;
use promptshelf_git::{GitAddress, GitOptions, GitSource};
use promptshelf_service::Rollout;
use promptshelf_source::{Files, ReloadTask};
use promptshelf_store::ChannelName;
use tokio::task::JoinSet;

use crate::{
    channels::{FollowError, FollowOptions, Follower, StoreHandle},
    failure::{Exit, Failure},
    http::{self, App, Channel},
    library::{Builder, Library},
    replica::ReplicaMonitor,
    rollout::RolloutTask,
    settings::{ConfiguredRollout, ConfiguredSource, ServedChannels, ServedLibrary, Settings, SourcePlace},
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
    Channels(Vec<Followed>),
    Sources,
}

struct Followed {
    name: String,
    library: Library,
    /// The files of the channel; `None` for one among the sources.
    files: Option<Files>,
    monitor: ReplicaMonitor,
    /// Whether it has an address of its own; otherwise it is the target of a rollout only.
    is_exposed: bool,
    /// `None` once it runs.
    follower: Option<Follower>,
    /// The rollout of the channel; `None` once it runs.
    rollout: Option<RolloutTask>,
}

/// Keeps the libraries current until it is dropped.
#[must_use = "dropping it ends the following"]
pub(super) struct Following {
    _loading: Vec<ReloadTask>,
    _tasks: JoinSet<()>,
}

impl Served {
    /// Opens the library. `finished` adds everything but its source to a builder.
    pub(super) async fn open(settings: &Settings, finished: impl Fn(Builder) -> Builder) -> Result<Served, Failure> {
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
                let mut opening = OpeningChannels::new(channels, settings, &finished).await?;
                let (default, all) = opening.all().await?;
                (default, Origin::Channels(all), opening.sources)
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
            Origin::Channels(channels) => channels,
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
    }

    pub(super) fn other_channels(&self) -> Vec<String> {
        let others = self.channels().iter().skip(1).filter(|followed| followed.is_exposed);
        others.map(|followed| followed.name.clone()).collect()
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
        let mut channels = self.channels().iter().filter(|followed| followed.is_exposed).map(channel);
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
            Origin::Channels(channels) => {
                for followed in channels {
                    if let Some(follower) = followed.follower.take() {
                        tasks.spawn(follower.run(followed.library.loader().clone()));
                    }
                    if let Some(rollout) = followed.rollout.take() {
                        tasks.spawn(rollout.run());
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
            Origin::Channels(all) => {
                all.iter().filter_map(|followed| followed.files.as_ref()).for_each(|it| it.grant_roots(roots.clone()));
            }
        }
        self.sources.iter().for_each(|sources| sources.grant_roots(granted_roots));
    }

    /// Sets whether clients see the provenance of prompts from channels. Takes effect at the next load.
    pub(super) fn show_provenance(&self, is_shown: bool) {
        match &self.origin {
            Origin::Folder(_) | Origin::Sources => {}
            Origin::Git(source) => source.source().show_provenance(is_shown),
            Origin::Channels(all) => {
                all.iter().filter_map(|followed| followed.files.as_ref()).for_each(|it| it.show_provenance(is_shown));
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

/// The channels of a store while they are being opened. Each is served together with the sources: as their own library, or
/// in the place of the source that the default channel is.
struct OpeningChannels<'a, F> {
    channels: &'a ServedChannels,
    settings: &'a Settings,
    finished: &'a F,
    store: StoreHandle,
    sources: Vec<OpenSources>,
}

impl<'a, F: Fn(Builder) -> Builder> OpeningChannels<'a, F> {
    async fn new(
        channels: &'a ServedChannels,
        settings: &'a Settings,
        finished: &'a F,
    ) -> Result<OpeningChannels<'a, F>, Failure> {
        let store = StoreHandle::new(channels.default.store.clone());
        let mut sources = Vec::new();
        if !channels.sources.is_empty() {
            sources.push(open_sources(&channels.sources, settings, Some(&store)).await?);
        }
        Ok(OpeningChannels { channels, settings, finished, store, sources })
    }

    async fn open(&mut self, channel: &ChannelName, first: Option<&Library>) -> Result<Followed, Failure> {
        let mut followed = (None, None);
        let (builder, monitor) = match &self.channels.source {
            Some(source) => self.in_place_of(source, channel).await?,
            None => {
                let mut options = FollowOptions::new(self.store.clone(), channel.clone());
                options.cache.clone_from(&self.settings.fixed.cache);
                let follower = match Follower::start(options).await {
                    Ok(follower) => follower,
                    Err(error) => return Err(unfollowed(error, self.channels, self.settings, &self.store).await),
                };
                let (files, monitor) = (follower.source().clone(), follower.monitor().clone());
                files.grant_roots(self.settings.live.granted_roots.iter().cloned());
                files.show_provenance(!self.settings.live.hides_provenance);
                let builder = Library::builder().source(files.clone());
                followed = (Some(files), Some(follower));
                (self.sources.iter().fold(builder, |builder, open| builder.source(open.set.clone())), monitor)
            }
        };
        let builder = (self.finished)(builder).channel(channel.as_str());
        // A caller has its limits once for all channels.
        let library = first.into_iter().fold(builder, Builder::limits_of).build()?;
        let (name, (files, follower)) = (channel.to_string(), followed);
        Ok(Followed { name, library, files, monitor, is_exposed: true, follower, rollout: None })
    }

    /// Returns the sources with a channel in the place of one of them.
    async fn in_place_of(&mut self, source: &str, channel: &ChannelName) -> Result<(Builder, ReplicaMonitor), Failure> {
        let missing = || Failure::new(Exit::Failed, format!("the source {source} is not a channel"));
        let all = self.sources.first().ok_or_else(missing)?;
        if *channel == self.channels.default.channel {
            let monitor = all.monitors.get(source).ok_or_else(missing)?;
            return Ok((Library::builder().source(all.set.clone()), monitor.clone()));
        }
        let configured = self.channels.sources.iter().find(|configured| configured.name == source);
        let mut configured = configured.ok_or_else(missing)?.clone();
        if let SourcePlace::Store(address) = &mut configured.place {
            address.channel = channel.clone();
        }
        let shared = shared_settings(self.settings, Some(&self.store), false);
        let open = OpenSources::open(&[configured], &shared, None)?;
        open.set.settled(START_WAIT).await;
        let monitor = open.monitors.get(source).ok_or_else(missing)?.clone();
        let builder = Library::builder().source(open.set.clone()).source(all.set.without(source));
        self.sources.push(open);
        Ok((builder, monitor))
    }

    async fn all(&mut self) -> Result<(Library, Vec<Followed>), Failure> {
        let (channels, settings, store) = (self.channels, self.settings, self.store.clone());
        let default = self.open(&channels.default.channel, None).await?;
        let library = default.library.clone();
        let mut all = vec![default];
        for channel in &channels.others {
            all.push(self.open(channel, Some(&library)).await?);
        }
        for ConfiguredRollout { channel, target, plan } in &settings.fixed.rollouts {
            let find = |all: &[Followed], name: &str| all.iter().position(|followed| followed.name == name);
            let Some(divided) = find(&all, channel) else {
                let message = format!("[[rollout]] divides the callers of the channel {channel}, which is not served");
                return Err(Failure::new(Exit::Settings, message)
                    .help(format!("serve it: add `[channels.{channel}]`, or `--channel {channel}`")));
            };
            let name: ChannelName = target.parse()?;
            let served = match find(&all, target) {
                Some(served) => served,
                None => {
                    let followed = self.open(&name, Some(&library)).await?;
                    all.push(Followed { is_exposed: false, ..followed });
                    all.len() - 1
                }
            };
            let access = settings.live.http.channel_access.get(target).cloned();
            let rollout = Rollout::new(channel, target, access, plan.latency);
            let candidate = all[served].library.service().clone();
            let divided = &mut all[divided];
            let service = divided.library.service();
            service.set_rollout(&rollout, &candidate);
            divided.rollout = Some(RolloutTask::new(store.clone(), channel.parse()?, name, *plan, service, &rollout));
        }
        Ok((library, all))
    }
}

async fn unfollowed(
    error: FollowError,
    channels: &ServedChannels,
    settings: &Settings,
    store: &StoreHandle,
) -> Failure {
    let failure = match error {
        // The store itself, or the channel in it.
        FollowError::Store(error) if store.get().await.is_err() => Failure::unopened(error, &channels.default),
        FollowError::Store(error) => Failure::from(error),
        FollowError::TimedOut => Failure::new(Exit::Store, error.to_string()),
        error => Failure::new(Exit::Failed, error.to_string()),
    };
    match failure.exit {
        Exit::Store if failure.help.is_some() => failure,
        Exit::Store if settings.fixed.cache.is_some() => {
            failure.help("the cache has no copy of the channel: start the database first")
        }
        Exit::Store => failure.help("start the database first; with --cache FOLDER, later starts do without it"),
        Exit::NotFound => failure.help("`promptshelf policy` lists the channels of the store"),
        _ => failure,
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

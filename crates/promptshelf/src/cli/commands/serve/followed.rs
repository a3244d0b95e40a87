//! Channels of a store, each followed by a library.

use std::{path::PathBuf, pin::Pin};

use promptshelf_server::{
    Builder, Library, ReplicaMonitor, RolloutTask,
    channels::{FollowError, FollowOptions, Follower, StoreHandle},
    http::Channel,
};
use promptshelf_service::Rollout;
use promptshelf_source::TreeSource;
use promptshelf_store::{ChannelName, RolloutPlan};

use crate::{
    commands::channels::unopened,
    exit::{Exit, Failure},
    settings::{ConfiguredRollout, ServedChannels, Settings},
};

pub(super) struct Followed {
    name: String,
    library: Library,
    source: TreeSource,
    monitor: ReplicaMonitor,
    /// Whether it has an address of its own; otherwise it is the target of a rollout only.
    is_exposed: bool,
    /// `None` once it runs.
    follower: Option<Follower>,
    /// The rollout of the channel; `None` once it runs.
    rollout: Option<RolloutTask>,
}

/// Reads the default channel, the others, and the targets of rollouts. `finished` adds everything but its source to a builder.
pub(super) async fn open(
    channels: &ServedChannels,
    settings: &Settings,
    finished: impl Fn(Builder) -> Builder,
) -> Result<Vec<Followed>, Failure> {
    let store = StoreHandle::new(channels.default.store.clone());
    let open = async |channel: &ChannelName, first: Option<&Library>| {
        let mut options = FollowOptions::new(store.clone(), channel.clone());
        options.cache.clone_from(&channels.cache);
        let follower = match Follower::start(options).await {
            Ok(follower) => follower,
            Err(error) => return Err(failure(error, channels, &store).await),
        };
        let (source, monitor) = (follower.source().clone(), follower.monitor().clone());
        source.grant_roots(settings.granted_roots.iter().cloned());
        source.show_provenance(settings.shows_provenance);
        let builder = finished(Library::builder().source(source.clone())).channel(channel.as_str());
        // A caller has its limits once for all channels.
        let library = first.into_iter().fold(builder, Builder::limits_of).build()?;
        let (name, follower) = (channel.to_string(), Some(follower));
        Ok::<_, Failure>(Followed { name, library, source, monitor, is_exposed: true, follower, rollout: None })
    };
    let default = open(&channels.default.channel, None).await?;
    let mut others = Vec::with_capacity(channels.others.len());
    for channel in &channels.others {
        others.push(open(channel, Some(&default.library)).await?);
    }
    let mut all: Vec<Followed> = std::iter::once(default).chain(others).collect();
    for configured in &settings.rollouts {
        let ConfiguredRollout { channel, target, percent, steps, errors, declined, latency } = configured;
        let find = |all: &[Followed], name: &str| all.iter().position(|followed| followed.name == name);
        let Some(divided) = find(&all, channel) else {
            let message = format!("[[rollout]] divides the callers of the channel {channel}, which is not served");
            return Err(Failure::new(Exit::Settings, message)
                .help(format!("serve it: add `[channels.{channel}]`, or `--channel {channel}`")));
        };
        let name: ChannelName = target.parse().map_err(Failure::from)?;
        let served = match find(&all, target) {
            Some(served) => served,
            None => {
                let followed = open(&name, all.first().map(|first| &first.library)).await?;
                all.push(Followed { is_exposed: false, ..followed });
                all.len() - 1
            }
        };
        let mut plan = RolloutPlan::new(*percent);
        (plan.steps, plan.errors, plan.declined, plan.latency) = (*steps, *errors, *declined, *latency);
        let access = settings.http.options.channel_access.get(target).cloned();
        let rollout = Rollout::new(channel, target, access, *latency);
        let candidate = all[served].library.service().clone();
        let divided = &mut all[divided];
        let service = divided.library.service();
        service.set_rollout(&rollout, &candidate);
        let channel: ChannelName = channel.parse().map_err(Failure::from)?;
        divided.rollout = Some(RolloutTask::new(store.clone(), channel, name, plan, service, &rollout));
    }
    Ok(all)
}

async fn failure(error: FollowError, channels: &ServedChannels, store: &StoreHandle) -> Failure {
    let failure = match error {
        // The store itself, or the channel in it.
        FollowError::Store(error) if store.get().await.is_err() => unopened(error, &channels.default),
        FollowError::Store(error) => Failure::from(error),
        FollowError::TimedOut => Failure::new(Exit::Store, error.to_string()),
        error => Failure::new(Exit::Failed, error.to_string()),
    };
    match failure.exit {
        Exit::Store if failure.help.is_some() => failure,
        Exit::Store if channels.cache.is_some() => {
            failure.help("the cache has no copy of the channel: start the database first")
        }
        Exit::Store => failure.help("start the database first; with --cache FOLDER, later starts do without it"),
        Exit::NotFound => failure.help("`promptshelf policy` lists the channels of the store"),
        _ => failure,
    }
}

impl Followed {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_exposed(&self) -> bool {
        self.is_exposed
    }

    /// Returns the future that keeps the rollout of the channel equal on all replicas, once.
    pub(super) fn run_rollout(&mut self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        Some(Box::pin(self.rollout.take()?.run()))
    }

    pub(super) fn library(&self) -> &Library {
        &self.library
    }

    pub(super) fn channel(&self) -> Channel {
        Channel { name: self.name.clone(), library: self.library.clone(), monitor: self.monitor.clone() }
    }

    pub(super) fn show_provenance(&self, is_shown: bool) {
        self.source.show_provenance(is_shown);
    }

    pub(super) fn grant_roots(&self, granted_roots: &[PathBuf]) {
        self.source.grant_roots(granted_roots.to_vec());
    }

    /// Returns the future that follows the channel, once.
    pub(super) fn run(&mut self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let (follower, loader) = (self.follower.take()?, self.library.loader().clone());
        Some(Box::pin(follower.run(loader)))
    }
}

//! The libraries that programs can read.

use std::sync::Arc;

use jiff::Timestamp;
use promptshelf_core::Access;
use promptshelf_service::Caller;
use promptshelf_source::SourceSet;

use super::{
    super::{
        call::{Part, Site},
        problem::Problem,
    },
    versions::{self, RecentRevisions, RevisionId, Versions},
};
use crate::{http::Options, library::Library, usage::UsageLog};

/// The state of all handlers. Clones share it.
#[derive(Clone)]
pub(crate) struct ProgramState {
    pub(crate) site: Site,
    inner: Arc<Inner>,
}

impl Part for ProgramState {
    fn site(&self) -> &Site {
        &self.site
    }
}

struct Inner {
    channels: Vec<ServedChannel>,
    versions: Option<Versions>,
    usage: Option<UsageLog>,
    sources: Option<SourceSet>,
    default: Library,
    started: Timestamp,
}

pub(super) struct ServedChannel {
    /// `None` for a library that is not a channel.
    pub(super) name: Option<String>,
    pub(super) library: Library,
    pub(super) recent: RecentRevisions,
    access: Option<Arc<Access>>,
}

impl ServedChannel {
    fn is_open_to(&self, caller: &Caller) -> bool {
        self.access.as_ref().is_none_or(|access| caller.meets(access))
    }

    /// The revision that is served; `None` for a library that is not a channel.
    pub(super) fn revision(&self) -> Option<RevisionId> {
        let catalog = self.library.catalog();
        let provenance = &catalog.provenance()?.provenance;
        Some(RevisionId::new(provenance.revision()?, provenance.revision_digest()))
    }
}

impl ProgramState {
    /// Creates the state from the served libraries with the names of channels, the default one first.
    pub(crate) fn new(
        default: &Library,
        libraries: Vec<(Option<String>, Library)>,
        options: &Options,
        site: Site,
    ) -> ProgramState {
        let channel = |(name, library): (Option<String>, Library)| {
            let access = name.as_ref().and_then(|name| site.channel_access.get(name)).cloned();
            ServedChannel { name, library, recent: RecentRevisions::default(), access }
        };
        let channels = libraries.into_iter().map(channel).collect();
        let inner = Inner {
            channels,
            versions: options.versions.clone(),
            usage: options.usage.clone(),
            sources: options.sources.clone(),
            default: default.clone(),
            started: Timestamp::now(),
        };
        ProgramState { site, inner: Arc::new(inner) }
    }

    pub(super) fn channels<'a>(&'a self, caller: &'a Caller) -> impl Iterator<Item = &'a ServedChannel> {
        self.inner.channels.iter().filter(|channel| channel.is_open_to(caller))
    }

    pub(super) fn versions(&self) -> Option<&Versions> {
        self.inner.versions.as_ref()
    }

    pub(super) fn usage(&self) -> Option<&UsageLog> {
        self.inner.usage.as_ref()
    }

    pub(super) fn sources(&self) -> Option<&SourceSet> {
        self.inner.sources.as_ref()
    }

    pub(super) fn default_library(&self) -> &Library {
        &self.inner.default
    }

    pub(super) fn started(&self) -> Timestamp {
        self.inner.started
    }

    /// Finds the channel of a request; without a name the default one.
    pub(super) fn channel(&self, caller: &Caller, name: Option<&str>) -> Result<&ServedChannel, Problem> {
        let default = self.inner.channels.first();
        if name.is_some() && default.is_some_and(|default| default.name.is_none()) {
            return Err(Problem::invalid(
                "This server serves a folder, which has no channels: leave `channel` out, or serve a store",
            ));
        }
        let name = name.or_else(|| default?.name.as_deref());
        let found = self.inner.channels.iter().find(|channel| channel.name.as_deref() == name);
        found.filter(|channel| channel.is_open_to(caller)).ok_or_else(|| not_served(name.unwrap_or_default()))
    }

    /// Returns the library with a version of a prompt: the present one, unless another version is named.
    pub(super) async fn at_version(
        &self,
        channel: &ServedChannel,
        caller: &Caller,
        name: &str,
        version: Option<u64>,
    ) -> Result<Library, Problem> {
        let Some(version) = version else { return Ok(channel.library.clone()) };
        let Some(channel_name) = &channel.name else {
            return Err(Problem::invalid(
                "This server serves a folder, which has no versions: leave `version` out, or serve a store",
            ));
        };
        // The present rules hold for every version.
        let view = channel.library.service().view(caller);
        let prompt = view.find(name)?;
        let present = view.catalog().provenance().and_then(|found| found.prompt(&prompt));
        if present.is_some_and(|present| present.version() == version) {
            return Ok(channel.library.clone());
        }
        let Some(versions) = &self.inner.versions else {
            return Err(versions::unknown(channel_name, name, version));
        };
        let library = versions.library(caller, &channel.library, channel_name, name, version).await?;
        let unknown = |_| versions::unknown(channel_name, name, version);
        library.service().view(caller).find_earlier(name).map_err(unknown)?;
        Ok(library)
    }
}

fn not_served(name: &str) -> Problem {
    Problem::not_found(&format!("The channel `{}` on this server", &name[..name.floor_char_boundary(100)]))
}

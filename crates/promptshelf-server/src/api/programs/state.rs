//! The libraries that programs can read.

use std::sync::Arc;

use jiff::Timestamp;
use promptshelf_core::{Access, Catalog, CatalogPart};
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
        let (catalog, _) = self.part()?;
        let provenance = &catalog.provenance()?.provenance;
        Some(RevisionId::new(provenance.revision()?, provenance.revision_digest()))
    }

    /// The text before the names of the channel's prompts: other sources may be served together with it.
    pub(super) fn prefix(&self) -> Arc<str> {
        self.part().map_or_else(|| "".into(), |(_, prefix)| prefix)
    }

    /// The catalog of the channel alone, and the text before its names.
    fn part(&self) -> Option<(Arc<Catalog>, Arc<str>)> {
        let catalog = self.library.catalog();
        let is_own = |part: &&CatalogPart| {
            part.catalog.provenance().is_some_and(|found| found.provenance.channel() == self.name.as_deref())
        };
        match catalog.parts() {
            [] => Some((catalog, "".into())),
            parts => parts.iter().find(is_own).map(|part| (Arc::clone(&part.catalog), Arc::clone(&part.prefix))),
        }
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

    pub(super) fn is_default(&self, channel: &ServedChannel) -> bool {
        self.inner.channels.first().is_some_and(|default| default.name == channel.name)
    }

    pub(super) fn has_channel(&self, name: &str) -> bool {
        self.inner.channels.iter().any(|channel| channel.name.as_deref() == Some(name))
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
        let is_open = |channel: &&ServedChannel| match (&channel.access, name) {
            (Some(access), Some(name)) => self.site.gate.admits(caller, name, access),
            _ => channel.is_open_to(caller),
        };
        found.filter(is_open).ok_or_else(|| not_served(name.unwrap_or_default()))
    }

    /// Returns the library with a version of a prompt, and its name there: the present one, unless another version is named.
    pub(super) async fn at_version(
        &self,
        channel: &ServedChannel,
        caller: &Caller,
        name: &str,
        version: Option<u64>,
    ) -> Result<(Library, String), Problem> {
        let present = || Ok((channel.library.clone(), name.to_owned()));
        let Some(version) = version else { return present() };
        let Some(channel_name) = &channel.name else {
            return Err(Problem::invalid(
                "This server serves a folder, which has no versions: leave `version` out, or serve a store",
            ));
        };
        // The present rules hold for every version.
        let view = channel.library.service().view(caller);
        let prompt = view.find(name)?;
        let (rules, own) = match view.catalog().part_of(&prompt) {
            Some((part, own)) => (Arc::clone(&part.catalog), own),
            None => (channel.library.catalog(), prompt),
        };
        let found = rules.provenance();
        if found.and_then(|found| found.prompt(&own)).is_some_and(|served| served.version() == version) {
            return present();
        }
        let is_of_channel = found.is_some_and(|found| found.provenance.channel() == Some(channel_name));
        let unknown = || versions::unknown(channel_name, name, version);
        let versions = self.inner.versions.as_ref().filter(|_| is_of_channel).ok_or_else(unknown)?;
        let own = own.name().as_str();
        let library = versions.library(caller, (&channel.library, rules), channel_name, own, version).await?;
        library.service().view(caller).find_earlier(own).map_err(|_| unknown())?;
        Ok((library, own.to_owned()))
    }
}

fn not_served(name: &str) -> Problem {
    Problem::not_found(&format!("The channel `{}` on this server", &name[..name.floor_char_boundary(100)]))
}

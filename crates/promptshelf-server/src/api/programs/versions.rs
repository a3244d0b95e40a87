//! Earlier versions of prompts, and the history of channels, from the store.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::PathBuf,
    sync::Arc,
};

use promptshelf_core::{Catalog, Interrupt};
use promptshelf_service::{
    Caller, Present,
    pool::{self, Amount, Stopped},
};
use promptshelf_source::{Files, MemoryTree};
use promptshelf_store::{ChannelName, Digest, Head, HistoryQuery, Revision};
use tokio::sync::Mutex;

use super::super::problem::Problem;
use crate::{
    channels::{StoreHandle, prompt_files, provenance_of},
    library::{Library, OpenError},
};

const LOADED: usize = 16;

const MANIFEST: &str = "promptshelf.toml";

const RECENT: usize = 100;

/// The reader of versions that are not served at present. Clones share what is loaded.
///
/// A version is its prompt with the partials and attachments of that time, and the settings of the library. The access
/// rules of that time and those of today hold, for the prompt and each of its files, also where these stand today.
#[derive(Clone)]
pub struct Versions(Arc<Inner>);

struct Inner {
    store: StoreHandle,
    granted_roots: Vec<PathBuf>,
    loaded: Mutex<VecDeque<(Key, Library)>>,
}

/// The identity of a loaded version. The serial number of the present catalog changes with every change of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    channel: String,
    head: Head,
    prompt: String,
    serial: u64,
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Versions({:?})", self.0.store)
    }
}

impl Versions {
    /// Creates a reader. `granted_roots` are the folders that libraries may read besides their own files.
    #[must_use]
    pub fn new(store: StoreHandle, granted_roots: Vec<PathBuf>) -> Versions {
        Versions(Arc::new(Inner { store, granted_roots, loaded: Mutex::default() }))
    }

    /// Returns a library with a version of a prompt, as it was last served in a channel. `rules` is the present catalog of
    /// the channel alone.
    pub(super) async fn library(
        &self,
        caller: &Caller,
        (present, rules): (&Library, Arc<Catalog>),
        channel: &str,
        prompt: &str,
        version: u64,
    ) -> Result<Library, Problem> {
        let unknown = || unknown(channel, prompt, version);
        let name: ChannelName = channel.parse()?;
        let store = self.0.store.get().await?;
        let (head, served) = store.last_with_version(&name, prompt, version).await?.ok_or_else(unknown)?;
        let digest = served.digest;
        let key = Key { channel: channel.to_owned(), head, prompt: prompt.to_owned(), serial: rules.serial() };
        {
            let mut loaded = self.0.loaded.lock().await;
            if let Some(place) = loaded.iter().position(|(known, _)| *known == key)
                && let Some(known) = loaded.remove(place)
            {
                loaded.push_front(known.clone());
                return Ok(known.1);
            }
        }
        let provenance = provenance_of(&store, &name, &key.head, served).await?;
        let load = async |tree: MemoryTree, digest: Option<Digest>| -> Result<_, Problem> {
            let digests: HashMap<&str, Digest> =
                tree.iter().map(|(path, file)| (path, Digest::of(file.bytes()))).collect();
            let now = store.paths_of(&name, &digests.values().copied().collect::<Vec<_>>()).await?;
            let place = |(path, digest): (&str, Digest)| Some((path.to_owned(), now.get(&digest)?.clone()));
            let places = digests.into_iter().filter_map(place).collect();
            let rules = Present { catalog: Arc::clone(&rules), places };
            let source = Files::tree(MemoryTree::default());
            source.grant_roots(self.0.granted_roots.iter().cloned());
            source.replace_revision(tree.clone(), provenance.clone());
            let builder = Library::builder().source(source).earlier_than(rules).records_of(present);
            let prompt = prompt.to_owned();
            Ok(pool::run(caller, Amount::Large, move |_: &Interrupt| {
                let library = builder.build()?;
                let catalog = library.catalog();
                let is_found = match digest {
                    // The digest is that of all files of the prompt: none is missing.
                    Some(digest) => prompt_files(&catalog, &tree)
                        .into_iter()
                        .any(|found| found.name == prompt && found.digest == digest),
                    None => catalog.find(&prompt).is_some(),
                };
                Ok::<_, OpenError>(is_found.then_some(library))
            })
            .await)
        };
        let revision = key.head.revision;
        let loaded = |loaded: Result<Result<Option<Library>, OpenError>, Stopped>| {
            loaded.map_err(|_| Problem::internal())?.map_err(|error| {
                tracing::error!("revision {revision} of channel {channel} cannot be loaded: {error}");
                Problem::internal()
            })
        };
        // Most versions have files of the same names as the present one.
        let parts = rules.find(prompt).map(|prompt| rules.parts_of(prompt).0).unwrap_or_default();
        let few = store.tree_of(&name, revision, parts.iter().map(String::as_str).chain([MANIFEST])).await?;
        let mut library = loaded(load(few, Some(digest)).await?)?;
        if library.is_none() {
            let (_, all) = store.tree(&name, Some(revision)).await?;
            library = loaded(load(all, None).await?)?;
        }
        let library = library.ok_or_else(unknown)?;
        let mut all = self.0.loaded.lock().await;
        all.push_front((key, library.clone()));
        all.truncate(LOADED);
        Ok(library)
    }

    /// Returns the revisions up to `newest`, the newest first; `None` if the store cannot be read.
    pub(super) async fn history(&self, channel: &str, newest: u64) -> Option<Vec<Revision>> {
        let name: ChannelName = channel.parse().ok()?;
        let query = HistoryQuery { before: Some(newest + 1), limit: RECENT, ..HistoryQuery::default() };
        let history = async { self.0.store.get().await?.history(&name, &query).await };
        match history.await {
            Ok(revisions) => Some(revisions),
            Err(error) => {
                tracing::warn!("the history of channel {channel} cannot be read: {error}");
                None
            }
        }
    }
}

/// Returns the answer for a version that the channel never had, or that is closed to the caller by now.
pub(super) fn unknown(channel: &str, prompt: &str, version: u64) -> Problem {
    Problem::not_found(&format!("Version {version} of the prompt {prompt} in the channel {channel}"))
}

/// The identity of a revision, also as the id of its event: the number and the first digits of its digest, such as
/// `7-3f5a0c119e42`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RevisionId {
    pub(super) number: u64,
    digest: Option<String>,
}

impl RevisionId {
    pub(super) fn new(number: u64, digest: Option<&str>) -> RevisionId {
        RevisionId { number, digest: digest.and_then(|digest| digest.get(..12)).map(str::to_owned) }
    }

    /// Whether this is only the number of another one, from a client that has no digest.
    pub(super) fn is_number_of(&self, other: &RevisionId) -> bool {
        self.digest.is_none() && self.number == other.number
    }

    pub(super) fn of(revision: &Revision) -> RevisionId {
        RevisionId { number: revision.number, digest: revision.digest.map(|digest| digest.short()) }
    }

    pub(super) fn parse(text: &str) -> Option<RevisionId> {
        let (number, digest) = match text.split_once('-') {
            Some((number, digest)) => (number, Some(digest.to_owned())),
            None => (text, None),
        };
        Some(RevisionId { number: number.parse().ok()?, digest })
    }
}

impl fmt::Display for RevisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        self.digest.iter().try_for_each(|digest| write!(f, "-{digest}"))
    }
}

/// The newest revisions of a channel, read once for all streams.
#[derive(Debug, Default)]
pub(super) struct RecentRevisions(Mutex<Arc<[Revision]>>);

impl RecentRevisions {
    /// Returns the revisions after `known` up to `newest`, in order; `None` if they are not all known, or the history does
    /// not have these two.
    pub(super) async fn between(
        &self,
        versions: Option<&Versions>,
        channel: &str,
        known: Option<&RevisionId>,
        newest: &RevisionId,
    ) -> Option<Vec<Revision>> {
        let mut recent = self.0.lock().await;
        if recent.first().is_none_or(|first| RevisionId::of(first) != *newest) {
            *recent = versions?.history(channel, newest.number).await?.into();
        }
        // Without a known one, the newest alone.
        let after = known.map_or(newest.number.saturating_sub(1), |known| known.number);
        let is_in_history = |known: &RevisionId| {
            let found = recent.iter().map(RevisionId::of).find(|one| one.number == known.number);
            known.digest.is_none() || found.is_none_or(|found| found == *known)
        };
        if recent.first().map(RevisionId::of).as_ref() != Some(newest) || !known.is_none_or(is_in_history) {
            return None;
        }
        let new: Vec<Revision> = recent.iter().filter(|one| one.number > after).rev().cloned().collect();
        let expected = usize::try_from(newest.number.checked_sub(after)?).ok()?;
        (new.len() == expected).then_some(new)
    }
}

//! The versions of a channel's prompts and their approvers: the provenance of the library that follows it.

use std::collections::{BTreeSet, HashMap};

use promptshelf_core::{PromptProvenance, Provenance};
use promptshelf_store::{ChannelName, Digest, Head, HistoryQuery, Served, StoreError};
use serde::{Deserialize, Serialize};

use super::store_handle::ChannelReader;

const PAGE: usize = 1_000;

/// The version of a prompt in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PromptVersion {
    name: String,
    version: u64,
    digest: Digest,
    /// The first revision with it, and those who approved that.
    since: u64,
    approved_by: Vec<String>,
}

/// Reads the versions of a revision. `known` are those of an earlier revision in its history.
pub(super) async fn read(
    store: &dyn ChannelReader,
    channel: &ChannelName,
    head: &Head,
    known: &[PromptVersion],
) -> Result<Vec<PromptVersion>, StoreError> {
    if head.revision == 0 {
        return Ok(Vec::new());
    }
    approved(store, channel, store.served(channel, head.revision).await?, known).await
}

async fn approved(
    store: &dyn ChannelReader,
    channel: &ChannelName,
    served: Vec<Served>,
    known: &[PromptVersion],
) -> Result<Vec<PromptVersion>, StoreError> {
    let mut approvers: HashMap<u64, Vec<String>> =
        known.iter().map(|version| (version.since, version.approved_by.clone())).collect();
    let mut missing: BTreeSet<u64> =
        served.iter().map(|served| served.since).filter(|since| !approvers.contains_key(since)).collect();
    while let Some(newest) = missing.last() {
        let limit = if missing.len() == 1 { 1 } else { PAGE };
        let query = HistoryQuery { before: Some(newest + 1), limit, ..HistoryQuery::default() };
        let page = store.history(channel, &query).await?;
        // Revisions that retention has removed have no known approvers.
        let Some(oldest) = page.last().map(|revision| revision.number) else { break };
        for revision in page {
            if missing.remove(&revision.number) {
                approvers.insert(revision.number, revision.approved_by);
            }
        }
        missing.retain(|number| *number < oldest);
    }
    let version = |served: Served| PromptVersion {
        approved_by: approvers.get(&served.since).cloned().unwrap_or_default(),
        name: served.name,
        version: served.version,
        digest: served.digest,
        since: served.since,
    };
    Ok(served.into_iter().map(version).collect())
}

pub(crate) async fn provenance_of(
    store: &dyn ChannelReader,
    channel: &ChannelName,
    head: &Head,
    served: Served,
) -> Result<Provenance, StoreError> {
    Ok(provenance(channel, head, &approved(store, channel, vec![served], &[]).await?))
}

pub(super) fn provenance(channel: &ChannelName, head: &Head, versions: &[PromptVersion]) -> Provenance {
    let digest = head.digest.map(|digest| digest.to_string());
    let mut provenance = Provenance::new(channel.as_str(), head.revision).with_revision_digest(digest);
    provenance.extend(versions.iter().map(|version| {
        let PromptVersion { name, version, digest, approved_by, .. } = version;
        (name.as_str(), PromptProvenance::new(*version, *digest.bytes(), approved_by))
    }));
    provenance
}

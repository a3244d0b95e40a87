//! The proof that a store has what was published.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    StoreError,
    address::ChannelName,
    database::{Mode, Transaction},
    model::Digest,
    store::Store,
    tables::{
        blob, chain,
        channel::{self, Channel},
        entry,
    },
};

/// The result of [`Store::verify`] for a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedChannel {
    /// The name of the channel.
    pub name: ChannelName,
    /// The newest revision.
    pub revision: u64,
    /// The digest of the newest revision, which stands for its whole history.
    pub digest: Option<Digest>,
    /// The first revision that does not fit.
    pub misfit: Option<Misfit>,
}

/// A revision that is not as it was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Misfit {
    /// The number of the revision.
    pub revision: u64,
    /// What does not fit.
    pub reason: String,
}

impl Store {
    /// Reads all revisions and contents, and compares them with their digests. Returns the channels by name.
    ///
    /// # Errors
    ///
    /// Errors of the database. A store that does not fit is none.
    pub async fn verify(&self) -> Result<Vec<VerifiedChannel>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = verified(&mut transaction).await;
        transaction.finish(result).await
    }
}

pub(crate) async fn verified(transaction: &mut Transaction) -> Result<Vec<VerifiedChannel>, StoreError> {
    let mut verified = Vec::new();
    for channel in channel::all(transaction).await? {
        let misfit = misfit(transaction, &channel).await?;
        let Channel { name, revision, digest, .. } = channel;
        verified.push(VerifiedChannel { name, revision, digest, misfit });
    }
    Ok(verified)
}

async fn misfit(transaction: &mut Transaction, channel: &Channel) -> Result<Option<Misfit>, StoreError> {
    let links = chain::links(transaction, channel).await?;
    let found = |revision, reason: &str| Some(Misfit { revision, reason: reason.to_owned() });
    let mut first = None;
    let mut next = channel.oldest.max(1);
    for link in &links {
        if link.number != next {
            first = found(next, "it is missing");
        } else if link.stored.digest.is_none() {
            first = found(
                next,
                "it has no digest yet: a program of an earlier release wrote it; `store migrate` or the next publish adds it",
            );
        } else if link.stored.tree != link.expected.tree {
            first = found(next, "its files are not those that were published");
        } else if link.stored.parent != link.expected.parent {
            first = found(next, "it does not follow the revision before it");
        } else if link.stored.digest != link.expected.digest {
            first = found(next, "its author, message, approvals, policy or time are not those that were published");
        }
        if first.is_some() {
            break;
        }
        next += 1;
    }
    if first.is_none() {
        let newest = links.last().and_then(|link| link.stored.digest);
        if next <= channel.revision {
            first = found(next, "it is missing");
        } else if next > channel.revision + 1 || newest != channel.digest {
            first = found(channel.revision, "it is not the one that the channel serves");
        }
    }
    // Each content counts for the first revision that has it.
    let by_digest: BTreeMap<Digest, (u64, String)> = entry::first_uses(transaction, channel.id).await?;
    let damaged = blob::damaged(transaction, by_digest.keys().copied().collect()).await?;
    let damaged = damaged.iter().filter_map(|digest| by_digest.get(digest)).min();
    match damaged {
        Some((revision, path)) if first.as_ref().is_none_or(|first| *revision < first.revision) => {
            let revision = (*revision).max(channel.oldest);
            Ok(found(revision, &format!("the content of {path} does not fit its digest, or is missing")))
        }
        _ => Ok(first),
    }
}

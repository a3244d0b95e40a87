//! Epochs, garbage and old history.

use std::{collections::HashSet, time::Duration};

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    StoreError,
    address::ChannelName,
    database::{Mode, Transaction},
    model::{Digest, Epoch},
    store::Store,
    tables::{
        blob,
        channel::{self, Channel},
        entry, evaluation, prompt, proposal, revision, upload,
    },
};

impl Store {
    /// Gives the store a new epoch, after a restore: replicas read everything again, even if a revision with the same
    /// number had other files before.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn new_epoch(&self) -> Result<Epoch, StoreError> {
        let mut transaction = self.database().begin(Mode::Exclusive).await?;
        let epoch = Epoch(uuid::Uuid::new_v4().to_string());
        let result = channel::set_epoch(&mut transaction, &epoch).await;
        transaction.finish(result).await?;
        Ok(epoch)
    }

    /// Removes the contents that no revision and no open proposal refers to. Returns their number and bytes. Nothing is
    /// published meanwhile.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn gc(&self) -> Result<(u64, u64), StoreError> {
        let mut transaction = self.database().begin(Mode::Exclusive).await?;
        let result = gc(&mut transaction).await;
        transaction.finish(result).await
    }

    /// Removes the revisions before the one that was the newest so long ago, with the proposals that belong to them, and
    /// older results of evaluations of versions that no channel serves or has proposed. Returns the number of revisions. Version numbers of prompts are never given to other versions; contents go with
    /// the next [`Store::gc`].
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, StoreError> {
        let mut transaction = self.database().begin(Mode::Exclusive).await?;
        let result = prune(&mut transaction, older_than.as_secs()).await;
        transaction.finish(result).await
    }

    /// Returns what [`Store::prune`] would remove, by channel.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn prunable(&self, older_than: Duration) -> Result<Vec<Prunable>, StoreError> {
        let mut transaction = self.database().begin(Mode::Read).await?;
        let result = prunable(&mut transaction, older_than.as_secs()).await;
        Ok(transaction.finish(result).await?.into_iter().map(|(_, prunable)| prunable).collect())
    }
}

/// What is removed from the history of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prunable {
    /// The channel.
    pub channel: ChannelName,
    /// The number of revisions that are removed.
    pub revisions: u64,
    /// The number of those that stay.
    pub kept: u64,
    /// The oldest revision that stays.
    pub oldest: u64,
    /// The time from which on the history is known.
    pub since: Timestamp,
}

async fn gc(transaction: &mut Transaction) -> Result<(u64, u64), StoreError> {
    let mut used: HashSet<Digest> = entry::digests(transaction).await?.into_iter().collect();
    used.extend(proposal::open_digests(transaction).await?);
    let garbage: Vec<(Digest, u64)> =
        blob::all(transaction).await?.into_iter().filter(|(digest, _)| !used.contains(digest)).collect();
    let digests: Vec<Digest> = garbage.iter().map(|(digest, _)| *digest).collect();
    blob::delete(transaction, &digests).await?;
    upload::prune(transaction).await?;
    Ok((garbage.len() as u64, garbage.iter().map(|(_, size)| size).sum()))
}

async fn prunable(transaction: &mut Transaction, seconds: u64) -> Result<Vec<(i64, Prunable)>, StoreError> {
    let mut found = Vec::new();
    for Channel { id, name: channel, oldest: first, revision: newest, .. } in channel::all(transaction).await? {
        let Some((oldest, since)) = revision::newest_before(transaction, id, seconds).await? else { continue };
        if oldest > first {
            let (revisions, kept) = (oldest - first.max(1), newest + 1 - oldest);
            found.push((id, Prunable { channel, revisions, kept, oldest, since }));
        }
    }
    Ok(found)
}

async fn prune(transaction: &mut Transaction, seconds: u64) -> Result<u64, StoreError> {
    let mut count = 0;
    for (channel, Prunable { oldest, .. }) in prunable(transaction, seconds).await? {
        count += revision::prune(transaction, channel, oldest).await?;
        entry::prune(transaction, channel, oldest).await?;
        prompt::prune(transaction, channel, oldest).await?;
        channel::set_oldest(transaction, channel, oldest).await?;
    }
    evaluation::prune(transaction, seconds).await?;
    Ok(count)
}

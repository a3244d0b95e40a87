//! Reading channels, files and history.

use std::{collections::HashMap, sync::Arc};

use promptshelf_source::MemoryTree;

use crate::{
    StoreError,
    address::ChannelName,
    database::{Mode, Transaction},
    model::{ChannelInfo, Delta, Digest, Epoch, FileEntry, Head, HistoryQuery, Revision, Served},
    snapshot,
    store::Store,
    tables::{
        blob, chain,
        channel::{self, Channel},
        entry::{self, Files},
        prompt, revision,
    },
};

/// Runs an async expression over a reading transaction.
macro_rules! reading {
    ($store:expr, |$transaction:ident| $body:expr) => {{
        let mut transaction = $store.database().begin(Mode::Read).await?;
        let $transaction = &mut transaction;
        let result = async { $body }.await;
        transaction.finish(result).await
    }};
}

impl Store {
    /// Returns all channels, by name.
    ///
    /// # Errors
    ///
    /// Errors of the database.
    pub async fn channels(&self) -> Result<Vec<ChannelInfo>, StoreError> {
        reading!(self, |transaction| {
            let epoch = channel::epoch(transaction).await?;
            let channels = channel::all(transaction).await?;
            Ok(channels.into_iter().map(|channel| channel.info(&epoch)).collect())
        })
    }

    /// Returns one channel.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], and errors of the database.
    pub async fn channel(&self, channel: &ChannelName) -> Result<ChannelInfo, StoreError> {
        reading!(self, |transaction| {
            let epoch = channel::epoch(transaction).await?;
            Ok(channel::get(transaction, channel).await?.info(&epoch))
        })
    }

    /// Returns the head of a channel, at the cost of two indexed rows.
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn head(&self, channel: &ChannelName) -> Result<Head, StoreError> {
        self.channel(channel).await.map(|channel| channel.head)
    }

    /// Returns all files of a channel at a revision, by path, and that revision's head; of the newest one for `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the channel or the revision does not exist, and errors of the database.
    pub async fn files(
        &self,
        channel: &ChannelName,
        revision: Option<u64>,
    ) -> Result<(Head, Vec<FileEntry>), StoreError> {
        reading!(self, |transaction| {
            let (head, files) = files(transaction, channel, revision).await?;
            Ok((head, files.into_values().collect()))
        })
    }

    /// Returns one file of a channel at a revision, and that revision's head; `None` if it does not exist there.
    ///
    /// # Errors
    ///
    /// As [`Store::files`].
    pub async fn file(
        &self,
        channel: &ChannelName,
        revision: Option<u64>,
        path: &str,
    ) -> Result<(Head, Option<FileEntry>), StoreError> {
        reading!(self, |transaction| {
            let epoch = channel::epoch(transaction).await?;
            let channel = channel::get(transaction, channel).await?;
            let revision = revision.unwrap_or(channel.revision);
            must_exist(&channel, revision)?;
            let file = entry::file(transaction, channel.id, revision, path).await?;
            Ok((head_at(transaction, &channel, epoch, revision).await?, file))
        })
    }

    /// Returns the head that a channel had at a revision, which need not be the newest one.
    ///
    /// # Errors
    ///
    /// As [`Store::files`].
    pub async fn head_at(&self, channel: &ChannelName, revision: u64) -> Result<Head, StoreError> {
        reading!(self, |transaction| {
            let epoch = channel::epoch(transaction).await?;
            let channel = channel::get(transaction, channel).await?;
            must_exist(&channel, revision)?;
            head_at(transaction, &channel, epoch, revision).await
        })
    }

    /// Returns the files that changed since a head; all of them without one, or if the channel's history does not have
    /// this head: it is older, newer, of another epoch, or of a store that was restored since.
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn delta(&self, channel: &ChannelName, since: Option<&Head>) -> Result<Delta, StoreError> {
        reading!(self, |transaction| {
            let epoch = channel::epoch(transaction).await?;
            let channel = channel::get(transaction, channel).await?;
            let is_in_range = |since: &Head| (channel.oldest..=channel.revision).contains(&since.revision);
            let usable = match since.filter(|since| is_in_range(since)) {
                Some(since) => {
                    let known = head_at(transaction, &channel, epoch.clone(), since.revision).await?;
                    (known == *since).then_some(since)
                }
                None => None,
            };
            let (files, removed) = match usable {
                Some(since) if since.revision == channel.revision => (Files::new(), Vec::new()),
                Some(since) => entry::since(transaction, channel.id, since.revision).await?,
                None => (entry::newest(transaction, channel.id).await?, Vec::new()),
            };
            let (_, tree) = chain::at(transaction, channel.id, channel.revision).await?;
            let head = channel.head(epoch);
            let tree = tree.filter(|_| head.digest.is_some());
            Ok(Delta { head, tree, is_complete: usable.is_none(), files: files.into_values().collect(), removed })
        })
    }

    /// Returns the contents with these digests, each verified; the order is that of the digests.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if one does not exist, [`StoreError::Corrupt`], and errors of the database.
    pub async fn blobs(&self, digests: &[Digest]) -> Result<Vec<(Digest, Arc<[u8]>)>, StoreError> {
        reading!(self, |transaction| blob::read(transaction, digests).await)
    }

    /// Returns a channel's tree at a revision with all contents, and that revision's head; the newest one for `None`.
    ///
    /// # Errors
    ///
    /// As [`Store::files`], and [`StoreError::Corrupt`].
    pub async fn tree(&self, channel: &ChannelName, revision: Option<u64>) -> Result<(Head, MemoryTree), StoreError> {
        reading!(self, |transaction| {
            let (head, files) = files(transaction, channel, revision).await?;
            Ok((head, snapshot::tree(transaction, &files).await?))
        })
    }

    /// Returns those of some files that a revision has.
    ///
    /// # Errors
    ///
    /// As [`Store::files`], and [`StoreError::Corrupt`].
    pub async fn tree_of(
        &self,
        channel: &ChannelName,
        revision: u64,
        paths: impl IntoIterator<Item = &str> + Send,
    ) -> Result<MemoryTree, StoreError> {
        let paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
        reading!(self, |transaction| {
            let channel = channel::get(transaction, channel).await?;
            must_exist(&channel, revision)?;
            let files = entry::some_at(transaction, channel.id, revision, &paths).await?;
            snapshot::tree(transaction, &files).await
        })
    }

    /// Returns the paths at which contents stand in the newest revision of a channel, by digest; none for those that do not.
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn paths_of(
        &self,
        channel: &ChannelName,
        digests: &[Digest],
    ) -> Result<HashMap<Digest, Vec<String>>, StoreError> {
        reading!(self, |transaction| {
            let channel = channel::get(transaction, channel).await?;
            entry::paths_of(transaction, channel.id, digests).await
        })
    }

    /// Returns revisions, the newest first.
    ///
    /// # Errors
    ///
    /// As [`Store::channel`].
    pub async fn history(&self, channel: &ChannelName, query: &HistoryQuery) -> Result<Vec<Revision>, StoreError> {
        reading!(self, |transaction| {
            let channel = channel::get(transaction, channel).await?;
            revision::select(transaction, channel.id, query).await
        })
    }

    /// Returns one revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if the channel or the revision does not exist, and errors of the database.
    pub async fn revision(&self, channel: &ChannelName, number: u64) -> Result<Revision, StoreError> {
        reading!(self, |transaction| {
            let channel = channel::get(transaction, channel).await?;
            let revision = revision::get(transaction, channel.id, number).await?;
            revision.ok_or_else(|| no_revision(&channel, number))
        })
    }

    /// Returns the prompts that were served at a revision, by name.
    ///
    /// # Errors
    ///
    /// As [`Store::revision`].
    pub async fn served(&self, channel: &ChannelName, revision: u64) -> Result<Vec<Served>, StoreError> {
        reading!(self, |transaction| {
            let channel = channel::get(transaction, channel).await?;
            must_exist(&channel, revision)?;
            prompt::served(transaction, channel.id, revision).await
        })
    }
}

pub(crate) async fn files(
    transaction: &mut Transaction,
    name: &ChannelName,
    revision: Option<u64>,
) -> Result<(Head, Files), StoreError> {
    let epoch = channel::epoch(transaction).await?;
    let channel = channel::get(transaction, name).await?;
    let number = revision.unwrap_or(channel.revision);
    must_exist(&channel, number)?;
    let files = if number == channel.revision {
        entry::newest(transaction, channel.id).await?
    } else {
        entry::at(transaction, channel.id, number).await?
    };
    Ok((head_at(transaction, &channel, epoch, number).await?, files))
}

pub(crate) async fn head_at(
    transaction: &mut Transaction,
    channel: &Channel,
    epoch: Epoch,
    revision: u64,
) -> Result<Head, StoreError> {
    let digest = if revision == channel.revision {
        channel.digest
    } else {
        chain::at(transaction, channel.id, revision).await?.0
    };
    Ok(Head { epoch, revision, digest })
}

/// Fails unless a revision is in the history. Revision 0 is the empty channel before the first one.
fn must_exist(channel: &Channel, revision: u64) -> Result<(), StoreError> {
    if (channel.oldest..=channel.revision).contains(&revision) { Ok(()) } else { Err(no_revision(channel, revision)) }
}

fn no_revision(channel: &Channel, revision: u64) -> StoreError {
    let range = if channel.revision == 0 {
        "it has none".to_owned()
    } else {
        format!("it has {} to {}", channel.oldest.max(1), channel.revision)
    };
    StoreError::not_found(format!("revision {revision} of the channel `{}` ({range})", channel.name))
}

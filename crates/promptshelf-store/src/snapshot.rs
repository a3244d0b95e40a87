//! The newest revision of a channel in memory: publishers check the whole tree, and read only the changes since the
//! last time.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use promptshelf_source::{MemoryFile, MemoryTree};

use crate::{
    StoreError,
    database::Transaction,
    model::{Digest, Epoch, FileEntry},
    read::head_at,
    tables::{
        blob::{self, Contents},
        channel::Channel,
        entry::{self, Files, Replacement},
        prompt::{self, Live},
    },
};

/// The number of channels that stay in memory: the two of a promotion.
const CHANNELS: usize = 2;

#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    channel: i64,
    epoch: Epoch,
    revision: u64,
    digest: Option<Digest>,
    pub(crate) files: Files,
    pub(crate) live: Live,
    pub(crate) tree: MemoryTree,
}

impl Snapshot {
    /// Returns the snapshot of an empty channel.
    pub(crate) fn empty(epoch: Epoch) -> Snapshot {
        let (files, live, tree) = (Files::new(), Live::new(), MemoryTree::default());
        Snapshot { channel: 0, epoch, revision: 0, digest: None, files, live, tree }
    }

    pub(crate) fn published(
        &self,
        channel: i64,
        (revision, digest): (u64, Option<Digest>),
        changes: &[Replacement],
        tree: MemoryTree,
        live: Live,
    ) -> Snapshot {
        let mut files = self.files.clone();
        for change in changes {
            let path = change.path.clone();
            match change.after {
                Some((digest, size)) => files.insert(path.clone(), FileEntry { path, digest, size }),
                None => files.remove(&path),
            };
        }
        Snapshot { channel, epoch: self.epoch.clone(), revision, digest, files, live, tree }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Snapshots(Mutex<VecDeque<Arc<Snapshot>>>);

impl Snapshots {
    pub(crate) async fn newest(
        &self,
        transaction: &mut Transaction,
        channel: &Channel,
        epoch: &Epoch,
    ) -> Result<Arc<Snapshot>, StoreError> {
        let present = self.take(channel.id);
        let is_in_range = |snapshot: &Arc<Snapshot>| (channel.oldest..=channel.revision).contains(&snapshot.revision);
        let usable = match present.filter(is_in_range) {
            Some(snapshot) => {
                let head = head_at(transaction, channel, epoch.clone(), snapshot.revision).await?;
                let is_known = head.epoch == snapshot.epoch && head.digest == snapshot.digest;
                // Without a digest, another revision can have the same number.
                (is_known && (head.digest.is_some() || head.revision == 0)).then_some(snapshot)
            }
            None => None,
        };
        let snapshot = match usable {
            Some(snapshot) if snapshot.revision == channel.revision => snapshot,
            Some(snapshot) => Arc::new(advance(transaction, channel, &snapshot).await?),
            None => Arc::new(read(transaction, channel, epoch).await?),
        };
        self.put(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Forgets all revisions: something is not as they have it.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }

    fn take(&self, channel: i64) -> Option<Arc<Snapshot>> {
        let mut snapshots = self.0.lock();
        let index = snapshots.iter().position(|snapshot| snapshot.channel == channel)?;
        snapshots.remove(index)
    }

    pub(crate) fn put(&self, snapshot: Arc<Snapshot>) {
        let mut snapshots = self.0.lock();
        snapshots.retain(|other| other.channel != snapshot.channel);
        snapshots.push_front(snapshot);
        snapshots.truncate(CHANNELS);
    }
}

async fn read(transaction: &mut Transaction, channel: &Channel, epoch: &Epoch) -> Result<Snapshot, StoreError> {
    let files = entry::newest(transaction, channel.id).await?;
    let tree = tree(transaction, &files).await?;
    let live = prompt::newest(transaction, channel.id).await?;
    let (epoch, digest) = (epoch.clone(), channel.digest);
    Ok(Snapshot { channel: channel.id, epoch, revision: channel.revision, digest, files, live, tree })
}

async fn advance(transaction: &mut Transaction, channel: &Channel, from: &Snapshot) -> Result<Snapshot, StoreError> {
    let (changed, removed) = entry::since(transaction, channel.id, from.revision).await?;
    let digests: Vec<Digest> = changed.values().map(|file| file.digest).collect();
    let contents: Contents = blob::read(transaction, &digests).await?.into_iter().collect();
    let mut files = from.files.clone();
    for path in &removed {
        files.remove(path);
    }
    let gone = removed.into_iter().map(|path| (path, None));
    let new = changed
        .values()
        .map(|file| (file.path.clone(), contents.get(&file.digest).map(|bytes| MemoryFile::new(Arc::clone(bytes)))));
    let tree = from.tree.with(gone.chain(new));
    files.extend(changed);
    let (new, gone) = prompt::since(transaction, channel.id, from.revision).await?;
    let mut live = from.live.clone();
    for name in gone {
        live.remove(&name);
    }
    live.extend(new);
    let (epoch, digest) = (from.epoch.clone(), channel.digest);
    Ok(Snapshot { channel: channel.id, epoch, revision: channel.revision, digest, files, live, tree })
}

pub(crate) async fn tree(transaction: &mut Transaction, files: &Files) -> Result<MemoryTree, StoreError> {
    let digests: Vec<Digest> = files.values().map(|file| file.digest).collect();
    let contents: Contents = blob::read(transaction, &digests).await?.into_iter().collect();
    let file =
        |path: &String, digest: &Digest| Some((path.clone(), MemoryFile::new(Arc::clone(contents.get(digest)?))));
    Ok(files.iter().filter_map(|(path, entry)| file(path, &entry.digest)).collect())
}

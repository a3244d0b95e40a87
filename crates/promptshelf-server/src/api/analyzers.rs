//! Analyzers of channels that are being edited: each edit asks again, and reading a large library takes seconds.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use promptshelf_author::Analyzer;
use promptshelf_source::MemoryTree;
use promptshelf_store::{ChannelName, Head, Store};

use super::problem::Problem;

/// The number of channels whose analyzers stay.
const CHANNELS: usize = 4;

/// The largest number of files of all analyzers that stay, so that the memory is bounded.
const FILES: usize = 150_000;

/// An analyzer, and the tree that it has read.
#[derive(Debug)]
pub(super) struct ChannelAnalyzer {
    tree: MemoryTree,
    analyzer: Analyzer,
}

impl ChannelAnalyzer {
    /// Returns the analyzer of a tree, of which only the files that differ from those before are read.
    pub(super) fn of(&mut self, tree: &MemoryTree) -> &mut Analyzer {
        if self.tree != *tree {
            self.analyzer.replace_tree(tree.clone());
            self.tree = tree.clone();
        }
        &mut self.analyzer
    }
}

/// A channel that is being edited: its newest files, and an analyzer that has read them or earlier ones.
#[derive(Clone, Debug)]
pub(super) struct EditedChannel {
    channel: ChannelName,
    head: Head,
    pub(super) tree: MemoryTree,
    pub(super) analyzer: Arc<Mutex<ChannelAnalyzer>>,
}

/// Channels that are being edited, the most recently used last.
#[derive(Debug, Default)]
pub(super) struct EditedChannels(Mutex<VecDeque<EditedChannel>>);

impl EditedChannels {
    /// Returns the newest revision of a channel. The caller has a permit to read trees.
    pub(super) async fn newest(&self, store: &Store, channel: &ChannelName) -> Result<EditedChannel, Problem> {
        let head = store.head(channel).await?;
        let known = self.take(channel);
        if let Some(known) = known.iter().find(|known| known.head == head) {
            return Ok(self.put(known.clone()));
        }
        let (head, tree) = store.tree(channel, None).await?;
        let analyzer = match known {
            Some(known) => known.analyzer,
            None => {
                let analyzer = Analyzer::of_tree(tree.clone());
                Arc::new(Mutex::new(ChannelAnalyzer { tree: tree.clone(), analyzer }))
            }
        };
        Ok(self.put(EditedChannel { channel: channel.clone(), head, tree, analyzer }))
    }

    fn take(&self, channel: &ChannelName) -> Option<EditedChannel> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|known| known.channel == *channel)?;
        all.remove(place)
    }

    fn put(&self, edited: EditedChannel) -> EditedChannel {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.channel != edited.channel);
        all.push_back(edited.clone());
        while all.len() > CHANNELS || all.iter().map(|known| known.tree.len()).sum::<usize>() > FILES {
            all.pop_front();
        }
        edited
    }
}

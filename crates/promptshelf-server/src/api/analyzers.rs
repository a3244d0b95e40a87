//! Analyzers of channels that are being edited: each edit asks again, and reading a large library takes seconds.

use std::collections::VecDeque;

use parking_lot::Mutex;
use promptshelf_author::Analyzer;
use promptshelf_core::is_interrupted;
use promptshelf_source::MemoryTree;
use promptshelf_store::{ChannelName, Head, Store};

use super::problem::Problem;

const ANALYZERS: usize = 8;

/// The largest number of files of all analyzers that stay, so that the memory is bounded.
const FILES: usize = 150_000;

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
#[derive(Debug)]
pub(super) struct EditedChannel {
    channel: ChannelName,
    head: Head,
    pub(super) tree: MemoryTree,
    pub(super) analyzer: ChannelAnalyzer,
}

/// Idle analyzers of channels, the most recently used last. One that is in use is taken out: whoever comes meanwhile gets
/// another one instead of waiting for work that another author has chosen.
#[derive(Debug, Default)]
pub(super) struct EditedChannels(Mutex<VecDeque<EditedChannel>>);

impl EditedChannels {
    pub(super) async fn newest(&self, store: &Store, channel: &ChannelName) -> Result<EditedChannel, Problem> {
        let head = store.head(channel).await?;
        let known = match self.take(channel) {
            Some(known) if known.head == head => return Ok(known),
            known => known,
        };
        let (head, tree) = store.tree(channel, None).await?;
        let analyzer = known.map_or_else(
            || ChannelAnalyzer { tree: tree.clone(), analyzer: Analyzer::of_tree(tree.clone()) },
            |known| known.analyzer,
        );
        Ok(EditedChannel { channel: channel.clone(), head, tree, analyzer })
    }

    fn take(&self, channel: &ChannelName) -> Option<EditedChannel> {
        let mut all = self.0.lock();
        let place = all.iter().rposition(|known| known.channel == *channel)?;
        all.remove(place)
    }

    /// Gives an analyzer back. One whose work was stopped has read its files in part, and is dropped.
    pub(super) fn put(&self, edited: EditedChannel) {
        if is_interrupted() {
            return;
        }
        let mut all = self.0.lock();
        all.push_back(edited);
        while all.len() > ANALYZERS || all.iter().map(|known| known.tree.len()).sum::<usize>() > FILES {
            all.pop_front();
        }
    }
}

//! Trees that were opened for a comparison or a search: the same ones are requested again and again.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use promptshelf_service::Caller;
use promptshelf_source::MemoryTree;
use promptshelf_store::{ChannelName, CheckReport, Checker, Digest, Head, PromptFile};

use super::{Api, analysis::in_pool, problem::Problem};
use crate::preview::TreePreview;

/// The number of trees that stay open: the two sides of two comparisons.
const TREES: usize = 4;

/// The largest number of files of all trees that stay open, so that the memory is bounded.
const FILES: usize = 150_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Revision(ChannelName, Head),
    Changed(ChannelName, Head, Digest),
}

pub(super) struct OpenedTree {
    pub(super) tree: MemoryTree,
    /// The prompts; `None` for a tree that cannot be read, for which the report has a finding.
    pub(super) preview: Option<TreePreview>,
    /// The check, without tests.
    pub(super) report: CheckReport,
}

impl fmt::Debug for OpenedTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedTree({} files)", self.tree.len())
    }
}

impl OpenedTree {
    pub(super) fn prompts(&self) -> BTreeMap<&str, &PromptFile> {
        self.report.prompts.iter().map(|prompt| (prompt.name.as_str(), prompt)).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct OpenedTrees(Mutex<VecDeque<(Key, Arc<OpenedTree>)>>);

impl OpenedTrees {
    fn get(&self, key: &Key) -> Option<Arc<OpenedTree>> {
        let mut trees = self.0.lock();
        let place = trees.iter().position(|(known, _)| known == key)?;
        let found = trees.remove(place)?;
        let tree = Arc::clone(&found.1);
        trees.push_back(found);
        Some(tree)
    }

    fn put(&self, key: Key, tree: &Arc<OpenedTree>) {
        let mut trees = self.0.lock();
        trees.retain(|(known, _)| *known != key);
        trees.push_back((key, Arc::clone(tree)));
        let files =
            |trees: &VecDeque<(Key, Arc<OpenedTree>)>| trees.iter().map(|(_, tree)| tree.tree.len()).sum::<usize>();
        while trees.len() > TREES || files(&trees) > FILES {
            trees.pop_front();
        }
    }
}

impl Api {
    pub(super) fn known(&self, key: &Key) -> Option<Arc<OpenedTree>> {
        self.opened.get(key)
    }

    pub(super) async fn open(
        &self,
        caller: &Caller,
        key: Option<Key>,
        tree: MemoryTree,
    ) -> Result<Arc<OpenedTree>, Problem> {
        let checker: Arc<dyn Checker> = Arc::clone(&self.checker);
        let opened = in_pool(caller, move || {
            let report = checker.check(&tree, false);
            Arc::new(OpenedTree { preview: TreePreview::open(tree.clone()).ok(), report, tree })
        });
        let opened = opened.await?;
        if let Some(key) = key {
            self.opened.put(key, &opened);
        }
        Ok(opened)
    }
}

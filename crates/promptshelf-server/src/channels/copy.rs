//! A copy of a channel in memory, and the step from one revision to another.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use promptshelf_source::{MemoryFile, MemoryTree};
use promptshelf_store::{Delta, Digest, Head, StoreError};

use super::versions::PromptVersion;

/// A revision of a channel with all contents. Never a mixture of two revisions.
#[derive(Clone, Debug)]
pub(super) struct ChannelCopy {
    pub(super) head: Head,
    pub(super) tree: MemoryTree,
    pub(super) digests: BTreeMap<String, Digest>,
    pub(super) versions: Vec<PromptVersion>,
}

impl ChannelCopy {
    /// Returns the contents that a delta brings and that the copy lacks, each once.
    pub(super) fn missing(base: Option<&ChannelCopy>, delta: &Delta) -> Vec<Digest> {
        let present: HashSet<&Digest> = base.iter().flat_map(|copy| copy.digests.values()).collect();
        let mut missing: Vec<Digest> =
            delta.files.iter().map(|file| file.digest).filter(|digest| !present.contains(digest)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Applies a delta to the copy that it was read for. The versions of the prompts are to be added.
    pub(super) fn apply(
        base: Option<&ChannelCopy>,
        delta: Delta,
        contents: impl IntoIterator<Item = (Digest, Arc<[u8]>)>,
    ) -> Result<ChannelCopy, StoreError> {
        let mut contents: HashMap<Digest, Arc<[u8]>> = contents.into_iter().collect();
        if let Some(base) = base {
            let present =
                base.digests.iter().filter_map(|(path, digest)| Some((*digest, base.tree.get(path)?.shared())));
            contents.extend(present);
        }
        let mut changes = Vec::with_capacity(delta.files.len() + delta.removed.len());
        for file in &delta.files {
            let Some(bytes) = contents.get(&file.digest) else {
                return Err(StoreError::NotFound { what: format!("the content of {}", file.path) });
            };
            changes.push((file.path.clone(), Some(MemoryFile::new(Arc::clone(bytes)))));
        }
        let base = base.filter(|_| !delta.is_complete);
        let mut digests = base.map_or_else(BTreeMap::new, |base| base.digests.clone());
        for path in delta.removed {
            digests.remove(&path);
            changes.push((path, None));
        }
        digests.extend(delta.files.into_iter().map(|file| (file.path, file.digest)));
        if delta.tree.is_some_and(|tree| tree != Digest::of_tree(&digests)) {
            return Err(StoreError::Corrupt { what: format!("revision {}", delta.head.revision) });
        }
        let empty = MemoryTree::default();
        let tree = base.map_or(&empty, |base| &base.tree).with(changes);
        Ok(ChannelCopy { head: delta.head, tree, digests, versions: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_store::FileEntry;

    use super::*;

    fn head(epoch: &str, revision: u64) -> Head {
        serde_json::from_value(serde_json::json!({ "epoch": epoch, "revision": revision })).expect("a head")
    }

    type Contents = Vec<(Digest, Arc<[u8]>)>;

    /// A delta with its contents; an empty text removes the file.
    fn delta(head: Head, is_complete: bool, files: &[(&str, &str)]) -> (Delta, Contents) {
        let entry = |(path, text): &(&str, &str)| FileEntry {
            path: (*path).to_owned(),
            digest: Digest::of(text.as_bytes()),
            size: text.len() as u64,
        };
        let (removed, kept): (Vec<_>, Vec<_>) = files.iter().copied().partition(|(_, text)| text.is_empty());
        let contents = kept.iter().map(|(_, text)| (Digest::of(text.as_bytes()), Arc::from(text.as_bytes()))).collect();
        let removed = removed.iter().map(|(path, _)| (*path).to_owned()).collect();
        (Delta { head, tree: None, is_complete, files: kept.iter().map(entry).collect(), removed }, contents)
    }

    fn texts(copy: &ChannelCopy) -> Vec<(&str, &str)> {
        let text = |file: &MemoryFile| Digest::of(file.bytes());
        assert!(copy.tree.iter().all(|(path, file)| copy.digests[path] == text(file)), "each digest fits its file");
        assert_eq!(copy.tree.len(), copy.digests.len());
        copy.tree
            .iter()
            .map(|(path, _)| (path, std::str::from_utf8(copy.tree.get(path).expect("a file").bytes()).expect("text")))
            .collect()
    }

    #[test]
    fn delta_adds_changes_and_removes_files() {
        let (first, contents) = delta(head("e", 1), true, &[("a.md", "one"), ("b.md", "two"), ("c.md", "three")]);
        assert_eq!(ChannelCopy::missing(None, &first).len(), 3);
        let base = ChannelCopy::apply(None, first, contents).expect("a copy");
        let (next, contents) = delta(head("e", 2), false, &[("a.md", "new"), ("b.md", ""), ("d.md", "four")]);
        assert_eq!(ChannelCopy::missing(Some(&base), &next).len(), 2);
        let copy = ChannelCopy::apply(Some(&base), next, contents).expect("a copy");
        assert_eq!(texts(&copy), [("a.md", "new"), ("c.md", "three"), ("d.md", "four")]);
        assert_eq!(copy.head, head("e", 2));
        assert_eq!(texts(&base), [("a.md", "one"), ("b.md", "two"), ("c.md", "three")], "the base has not changed");
    }

    #[test]
    fn known_content_is_not_read_again() {
        let (first, contents) = delta(head("e", 1), true, &[("a.md", "one"), ("b.md", "two")]);
        let base = ChannelCopy::apply(None, first, contents).expect("a copy");
        // A renamed file, and a copy of another one.
        let (next, _) = delta(head("e", 2), false, &[("a.md", ""), ("z.md", "one"), ("c.md", "two")]);
        assert_eq!(ChannelCopy::missing(Some(&base), &next), []);
        let copy = ChannelCopy::apply(Some(&base), next, []).expect("a copy");
        assert_eq!(texts(&copy), [("b.md", "two"), ("c.md", "two"), ("z.md", "one")]);
    }

    #[test]
    fn complete_delta_replaces_a_later_revision_of_another_epoch() {
        let (first, contents) = delta(head("old", 9), true, &[("a.md", "one"), ("b.md", "two")]);
        let base = ChannelCopy::apply(None, first, contents).expect("a copy");
        let (restored, contents) = delta(head("new", 4), true, &[("a.md", "restored")]);
        let copy = ChannelCopy::apply(Some(&base), restored, contents).expect("a copy");
        assert_eq!(texts(&copy), [("a.md", "restored")]);
        assert_eq!(copy.head, head("new", 4));
    }

    /// The base is not what the store built the revision on.
    // req: S-307
    #[test]
    fn files_that_do_not_fit_the_digest_of_the_revision_are_refused() {
        let (first, contents) = delta(head("e", 3), true, &[("a.md", "LOST"), ("b.md", "LOST")]);
        let base = ChannelCopy::apply(None, first, contents).expect("a copy");
        let (mut next, contents) = delta(head("e", 4), false, &[("a.md", "four")]);
        let digests = [("a.md", "four"), ("b.md", "one")].map(|(path, text)| (path, Digest::of(text.as_bytes())));
        next.tree = Some(Digest::of_tree(&digests.into_iter().collect()));
        let error = ChannelCopy::apply(Some(&base), next, contents).expect_err("b.md is not that of the revision");
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }

    #[test]
    fn missing_content_refuses_the_whole_revision() {
        let (first, mut contents) = delta(head("e", 1), true, &[("a.md", "one"), ("b.md", "two")]);
        contents.pop();
        let error = ChannelCopy::apply(None, first, contents).expect_err("a content is missing");
        assert_eq!(error.to_string(), "the content of b.md does not exist");
    }
}

//! Folders that were pulled from a channel: the marker with the base, local changes, and replacing their files.
//!
//! A pull has two steps. First all new files are written to a hidden folder; if it is interrupted, the folder is
//! unchanged. Then a journal is written, and the files are moved to their places; if that is interrupted, the next
//! command that uses the folder completes it. So neither step shows a mixture to `publish`.

mod replace;

use std::collections::BTreeMap;

use promptshelf_source::MemoryTree;
use promptshelf_store::{Change, ChannelName, Digest, Epoch, FileChange, Head};
use serde::{Deserialize, Serialize};

pub(crate) use self::replace::{BothChanged, Replacement, WorkingCopy, named};

/// The name of the marker. Hidden files are never served or published.
pub(crate) const MARKER: &str = ".promptshelf-base";

const FORMAT: u32 = 1;

/// The revision of a channel that a folder was pulled from, or published to last, without the place of its store. The marker
/// has a line for each channel that the folder was published to since it was pulled; the last line is the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    format: u32,
    pub(crate) epoch: Epoch,
    pub(crate) channel: ChannelName,
    pub(crate) revision: u64,
    /// The digest of the revision; `None` in markers of earlier releases.
    #[serde(default)]
    pub(crate) digest: Option<Digest>,
    /// The content that each file had. After a publish this is the content of the folder, which can differ from that of
    /// the revision where other authors have changed other files.
    pub(crate) files: Listing,
    /// The proposals of the folder that were not decided yet: their contents by path, `None` for a removed file.
    #[serde(default)]
    pub(crate) proposals: BTreeMap<u64, BTreeMap<String, Option<Digest>>>,
}

impl Base {
    pub(crate) fn new(head: Head, channel: ChannelName, files: Listing) -> Base {
        let Head { epoch, revision, digest } = head;
        Base { format: FORMAT, epoch, channel, revision, digest, files, proposals: BTreeMap::new() }
    }

    /// Takes over a proposal of the folder that was published: the folder has its files in common with the channel, whatever
    /// happened to them since.
    pub(crate) fn publish(&mut self, files: BTreeMap<String, Option<Digest>>, published: &[FileChange]) {
        for (path, digest) in files {
            let is_same = published.iter().any(|change| change.path == path && change.after == digest);
            match digest.filter(|_| is_same) {
                Some(digest) => self.files.insert(path, digest),
                None if is_same => self.files.remove(&path),
                None => None,
            };
        }
    }

    /// Parses a line of a marker. The error describes the mistake.
    fn parse(text: &str) -> Result<Base, String> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }

        let Version { format } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if format > FORMAT {
            return Err("it was written by a newer release".to_owned());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn text(&self) -> String {
        // Serializing numbers, texts and a map with text keys cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

pub(crate) type Listing = BTreeMap<String, Digest>;

pub(crate) fn listing(tree: &MemoryTree) -> Listing {
    tree.iter().map(|(path, file)| (path.to_owned(), Digest::of(file.bytes()))).collect()
}

/// Returns the paths whose contents differ, sorted.
pub(crate) fn changed_paths<'l>(before: &'l Listing, after: &'l Listing) -> Vec<&'l str> {
    let changed = after.iter().filter(|(path, digest)| before.get(*path) != Some(digest));
    let removed = before.iter().filter(|(path, _)| !after.contains_key(*path));
    let mut paths: Vec<&str> = changed.chain(removed).map(|(path, _)| path.as_str()).collect();
    paths.sort_unstable();
    paths
}

/// Returns the changes that lead from the base to a tree, apart from those that `current` already has: another author
/// made the same change, or an earlier proposal of this folder was published.
pub(crate) fn changes(tree: &MemoryTree, base: &Listing, current: &Listing) -> Vec<Change> {
    let after = listing(tree);
    let is_missing = |path: &&str| after.get(*path) != current.get(*path);
    let change = |path: &str| Change {
        path: path.to_owned(),
        before: base.get(path).copied(),
        after: tree.get(path).map(|file| file.bytes().into()),
    };
    changed_paths(base, &after).into_iter().filter(is_missing).map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&'static str, &'static str)]) -> MemoryTree {
        files.iter().copied().collect()
    }

    #[test]
    fn changes_lead_from_the_base_to_the_tree() {
        let base = listing(&tree(&[("a", "1"), ("b", "1"), ("c", "1")]));
        let folder = tree(&[("a", "1"), ("b", "2"), ("d", "1")]);
        let found = changes(&folder, &base, &base);
        let found: Vec<_> =
            found.iter().map(|change| (&*change.path, change.before, change.after.as_deref())).collect();
        let one = Some(Digest::of(b"1"));
        assert_eq!(found, [("b", one, Some(&b"2"[..])), ("c", one, None), ("d", None, Some(&b"1"[..]))]);
    }

    #[test]
    fn changes_of_others_are_not_undone() {
        let base = listing(&tree(&[("a", "1"), ("b", "1")]));
        let current = listing(&tree(&[("a", "theirs"), ("b", "1"), ("new", "theirs")]));
        let found = changes(&tree(&[("a", "1"), ("b", "mine")]), &base, &current);
        assert_eq!(found.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn changes_that_are_already_published_are_left_out() {
        let base = listing(&tree(&[("a", "1"), ("b", "1")]));
        let current = listing(&tree(&[("a", "2")]));
        assert_eq!(changes(&tree(&[("a", "2")]), &base, &current), []);
    }
}

//! Differences between a folder, its base and a channel.

use std::collections::BTreeMap;

use promptshelf_source::MemoryTree;
use promptshelf_store::{Change, Digest};

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

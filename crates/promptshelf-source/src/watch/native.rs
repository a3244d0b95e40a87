//! Watches of the operating system on single folders or whole trees.
//!
//! On Linux the system watches single folders, so each folder is watched by itself and `.git` and `node_modules` cost
//! nothing; elsewhere one watch covers a whole tree. The parent folder of a tree is watched too: a deleted folder sends
//! no further events, so only its parent shows that it was created again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};

use super::{Changes, OwnOutput, merge};
use crate::{file_role::is_ignored, format::foreign_folders};

/// Whether the system watches single folders instead of trees.
const EACH_FOLDER: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The largest number of watched folders. Changes in further folders are found by polling.
const MAX_FOLDERS: usize = 16_384;

const MAX_DEPTH: usize = 32;

pub(super) struct NativeWatcher {
    /// `None` if watching is turned off or not available.
    watcher: Option<RecommendedWatcher>,
    trees: Vec<Tree>,
    folders: BTreeMap<PathBuf, FolderWatch>,
    /// Whether the log already has the warning that some folders cannot be watched.
    has_warned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderWatch {
    mode: RecursiveMode,
    identity: (u64, u64),
}

struct Tree {
    path: PathBuf,
    /// The path with links resolved; `None` while the folder does not exist.
    real: Option<PathBuf>,
    /// The topmost missing or replaceable entry on the way to the tree, inside a folder that exists: an event there
    /// can change which folder the tree is.
    anchor: Option<PathBuf>,
}

impl Tree {
    fn of(path: &Path) -> Tree {
        let real = fs::canonicalize(path).ok().filter(|real| real.is_dir());
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let anchor = absolute.ancestors().find_map(|below| {
            let parent = fs::canonicalize(below.parent()?).ok().filter(|parent| parent.is_dir())?;
            Some(parent.join(below.file_name()?))
        });
        Tree { path: path.to_owned(), real, anchor }
    }
}

impl NativeWatcher {
    /// Creates a watcher that passes relevant events to `send`.
    pub(super) fn new(send: impl Fn(notify::Result<Event>) + Send + 'static) -> NativeWatcher {
        let handler = move |event: notify::Result<Event>| {
            if event.as_ref().map_or(true, |event| !is_noise(event)) {
                send(event);
            }
        };
        // A link out of the library must not add watches to its target.
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(handler, config)
            .inspect_err(|error| {
                tracing::warn!("file system events are not available, so changes are found by polling: {error}");
            })
            .ok();
        NativeWatcher { watcher, ..NativeWatcher::disabled() }
    }

    /// Creates a watcher that never watches anything.
    pub(super) fn disabled() -> NativeWatcher {
        NativeWatcher { watcher: None, trees: Vec::new(), folders: BTreeMap::new(), has_warned: false }
    }

    /// Adds the missing watches and removes those that are no longer needed.
    pub(super) fn sync<'p>(&mut self, paths: impl IntoIterator<Item = &'p Path>) {
        if self.watcher.is_none() {
            return;
        }
        self.trees = paths.into_iter().map(Tree::of).collect();
        let before = std::mem::take(&mut self.folders);
        let wanted: Vec<_> = self.trees.iter().map(|tree| (tree.anchor.clone(), tree.real.clone())).collect();
        for (anchor, real) in wanted {
            // The parent comes first: it reports a replacement of the tree while the tree's watches are being added.
            if let Some(parent) = anchor.as_deref().and_then(Path::parent) {
                self.add(parent, RecursiveMode::NonRecursive, &before);
            }
            if let Some(real) = real {
                self.add_tree(&real, 0, &before);
            }
        }
        for gone in before.into_keys().filter(|folder| !self.folders.contains_key(folder)).collect::<Vec<_>>() {
            self.remove(&gone);
        }
    }

    /// Updates the watches after an event, and returns what it may have changed in the library; `None` for nothing.
    pub(super) fn handle(&mut self, event: notify::Result<Event>, own_output: &OwnOutput) -> Option<Changes> {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            // Events were lost, or a watch failed.
            _ => {
                self.sync_again();
                return Some(None);
            }
        };
        let is_structural = !matches!(
            event.kind,
            EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) | EventKind::Access(_)
        );
        let mut changes = None;
        for path in &event.paths {
            if is_structural
                && self.trees.iter().any(|tree| tree.anchor.as_ref() == Some(path) || tree.real.as_ref() == Some(path))
            {
                self.sync_again();
                return Some(None);
            }
            let first = self.trees.first().and_then(|tree| path.strip_prefix(tree.real.as_deref()?).ok());
            let mut roots = self.trees.iter().filter_map(|tree| tree.real.as_deref());
            if roots.any(|root| path.strip_prefix(root).is_ok_and(is_relevant)) && !own_output.is_at(path) {
                merge(&mut changes, first.map(|below| BTreeSet::from([joined(below)])));
                if is_structural && EACH_FOLDER {
                    self.update_below(path);
                }
            }
        }
        changes
    }

    fn sync_again(&mut self) {
        let trees = std::mem::take(&mut self.trees);
        self.sync(trees.iter().map(|tree| &*tree.path));
    }

    fn update_below(&mut self, path: &Path) {
        let below = self.folders.range(path.to_owned()..).map(|(folder, _)| folder.clone());
        let below: Vec<PathBuf> = below.take_while(|folder| folder.starts_with(path)).collect();
        for folder in below {
            self.folders.remove(&folder);
            self.remove(&folder);
        }
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            self.add_tree(path, 0, &BTreeMap::new());
        }
    }

    fn add_tree(&mut self, folder: &Path, depth: usize, before: &BTreeMap<PathBuf, FolderWatch>) {
        if !EACH_FOLDER {
            self.add(folder, RecursiveMode::Recursive, before);
            return;
        }
        if depth > MAX_DEPTH || self.folders.len() >= MAX_FOLDERS {
            self.warn("there are too many folders");
            return;
        }
        // The watch is added before the folder is read: later entries cause events, and earlier ones are listed.
        self.add(folder, RecursiveMode::NonRecursive, before);
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            let path = entry.path();
            if is_folder && !is_ignored(&self.inside(&path), true) {
                self.add_tree(&path, depth + 1, before);
            }
        }
    }

    fn inside(&self, path: &Path) -> String {
        let below = self.trees.iter().find_map(|tree| path.strip_prefix(tree.real.as_deref()?).ok());
        joined(below.unwrap_or(path))
    }

    fn add(&mut self, folder: &Path, mode: RecursiveMode, before: &BTreeMap<PathBuf, FolderWatch>) {
        let watched = FolderWatch { mode, identity: identity(folder) };
        if self.folders.get(folder).is_some_and(|known| known.mode == mode || known.mode == RecursiveMode::Recursive) {
            return;
        }
        if before.get(folder) != Some(&watched) {
            self.remove(folder);
            let Some(watcher) = &mut self.watcher else { return };
            match watcher.watch(folder, mode) {
                Ok(()) => {}
                // Deleted meanwhile; its parent sends an event.
                Err(notify::Error { kind: notify::ErrorKind::PathNotFound, .. }) => return,
                Err(error) => return self.warn(&error.to_string()),
            }
        }
        self.folders.insert(folder.to_owned(), watched);
    }

    fn remove(&mut self, folder: &Path) {
        if let Some(watcher) = &mut self.watcher {
            // Fails if the folder is not watched, or was deleted.
            watcher.unwatch(folder).ok();
        }
    }

    fn warn(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!("cannot watch every folder, so some changes are found by polling only: {reason}");
        }
    }
}

/// Whether an event is only an access. Reading a file is an event too, our own reading included; among accesses only
/// the end of a write means a change.
fn is_noise(event: &Event) -> bool {
    event.kind.is_access()
        && event.kind != EventKind::Access(AccessKind::Close(AccessMode::Write))
        && !event.need_rescan()
}

/// Whether a path inside a tree can matter to the library. Kubernetes replaces whole sets of files through a link
/// whose name begins with two dots.
fn is_relevant(path: &Path) -> bool {
    let path = joined(path);
    let (folders, last) = path.rsplit_once('/').unwrap_or(("", &path));
    let ends = folders.match_indices('/').map(|(end, _)| end).chain([folders.len()]);
    // A deleted entry may have been a folder.
    let is_last_relevant =
        || last.starts_with("..") || !is_ignored(&path, false) || foreign_folders::leads_to_foreign_folder(&path);
    ends.filter(|end| *end > 0).all(|end| !is_ignored(&folders[..end], true)) && (last.is_empty() || is_last_relevant())
}

fn joined(path: &Path) -> String {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

#[cfg(unix)]
fn identity(folder: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(folder).map_or((0, 0), |metadata| (metadata.dev(), metadata.ino()))
}

/// Without folder identities, a replaced folder is noticed by its events only.
#[cfg(not(unix))]
fn identity(_: &Path) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readable_paths_are_relevant() {
        for path in
            ["a.md", "a/b.md", "", "..data", "target", "a/_b", ".claude", ".claude/commands", ".claude/commands/x.md"]
        {
            assert!(is_relevant(Path::new(path)), "{path}");
        }
        for path in [
            ".a.swp",
            "a.md~",
            ".git/index",
            "node_modules/a",
            "a/target/b",
            "..2026/a.md",
            "a/.b/..c",
            ".claude/x.json",
        ] {
            assert!(!is_relevant(Path::new(path)), "{path}");
        }
    }
}

//! Which folders the operating system watches for us.
//!
//! Where it watches single folders (Linux) each folder is armed by itself, so
//! that `.git` and `node_modules` cost nothing; elsewhere a whole tree is armed
//! at once. The folder around a tree is watched too, because of a folder that
//! is deleted nothing is ever heard again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    sync::mpsc::Sender,
};

use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};

use super::Message;
use crate::{directory::is_passed_over, format::homes};

/// Whether the system watches folders and not trees.
const EACH_FOLDER: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The most folders that are armed. Beyond it, looking from time to time has to do.
const MAX_FOLDERS: usize = 16_384;

const MAX_DEPTH: usize = 32;

pub(super) struct Armed {
    watcher: Option<RecommendedWatcher>,
    trees: Vec<Tree>,
    folders: BTreeMap<PathBuf, Watched>,
    /// Whether it has been said that not everything can be watched.
    has_complained: bool,
}

/// What an event tells of.
#[derive(Debug)]
pub(super) enum Heard {
    Nothing,
    /// Of these paths below the first tree.
    Of(BTreeSet<String>),
    /// Of something else, or nobody knows of what.
    More,
}

impl Heard {
    fn add(&mut self, path: Option<String>) {
        match (&mut *self, path) {
            (Heard::Nothing, Some(path)) => *self = Heard::Of(BTreeSet::from([path])),
            (Heard::Of(paths), Some(path)) => drop(paths.insert(path)),
            (_, None) | (Heard::More, _) => *self = Heard::More,
        }
    }
}

/// How a folder is watched, and which one it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    mode: RecursiveMode,
    identity: (u64, u64),
}

/// A folder to watch with everything below it.
struct Tree {
    /// As it was named.
    path: PathBuf,
    /// Where it really is; `None` while it is not there.
    real: Option<PathBuf>,
    /// What could appear, vanish or be exchanged so that the tree is another
    /// one; it stands in a folder that is there.
    gate: Option<PathBuf>,
}

impl Tree {
    fn of(path: &Path) -> Tree {
        let real = fs::canonicalize(path).ok().filter(|real| real.is_dir());
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let gate = absolute.ancestors().find_map(|below| {
            let around = fs::canonicalize(below.parent()?).ok().filter(|around| around.is_dir())?;
            Some(around.join(below.file_name()?))
        });
        Tree { path: path.to_owned(), real, gate }
    }
}

impl Armed {
    /// Sends events; without a sender nothing is ever armed.
    pub(super) fn new(sender: Option<Sender<Message>>) -> Armed {
        let watcher = sender.and_then(|sender| {
            let handler = move |event: notify::Result<Event>| {
                if event.as_ref().map_or(true, |event| !is_noise(event)) {
                    // The watch has ended when nobody receives any more.
                    sender.send(Message::Event(event)).ok();
                }
            };
            // A link out of the library must not arm what is behind it.
            let config = Config::default().with_follow_symlinks(false);
            RecommendedWatcher::new(handler, config)
                .inspect_err(|error| {
                    tracing::warn!("the system does not tell of changes, so they are looked for: {error}");
                })
                .ok()
        });
        Armed { watcher, trees: Vec::new(), folders: BTreeMap::new(), has_complained: false }
    }

    /// Arms everything that should be, and nothing else.
    pub(super) fn sync<'p>(&mut self, paths: impl IntoIterator<Item = &'p Path>) {
        if self.watcher.is_none() {
            return;
        }
        self.trees = paths.into_iter().map(Tree::of).collect();
        let before = std::mem::take(&mut self.folders);
        let wanted: Vec<_> = self.trees.iter().map(|tree| (tree.gate.clone(), tree.real.clone())).collect();
        for (gate, real) in wanted {
            // The folder around comes first: what happens to the tree while it
            // is being armed is heard there.
            if let Some(around) = gate.as_deref().and_then(Path::parent) {
                self.arm(around, RecursiveMode::NonRecursive, &before);
            }
            if let Some(real) = real {
                self.tree(&real, 0, &before);
            }
        }
        for gone in before.into_keys().filter(|folder| !self.folders.contains_key(folder)).collect::<Vec<_>>() {
            self.disarm(&gone);
        }
    }

    /// Takes an event in.
    pub(super) fn takes(&mut self, event: notify::Result<Event>) -> Heard {
        let event = match event {
            Ok(event) if !event.need_rescan() => event,
            // Events were lost, or the system could not watch any longer.
            _ => {
                self.again();
                return Heard::More;
            }
        };
        let moves = !matches!(
            event.kind,
            EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) | EventKind::Access(_)
        );
        let mut heard = Heard::Nothing;
        for path in &event.paths {
            if moves
                && self.trees.iter().any(|tree| tree.gate.as_ref() == Some(path) || tree.real.as_ref() == Some(path))
            {
                self.again();
                return Heard::More;
            }
            let first = self.trees.first().and_then(|tree| path.strip_prefix(tree.real.as_deref()?).ok());
            let mut roots = self.trees.iter().filter_map(|tree| tree.real.as_deref());
            if roots.any(|root| path.strip_prefix(root).is_ok_and(is_ours)) {
                heard.add(first.map(joined));
                if moves && EACH_FOLDER {
                    self.moved(path);
                }
            }
        }
        heard
    }

    /// Arms everything anew after something above the trees, or unknown, happened.
    fn again(&mut self) {
        let trees = std::mem::take(&mut self.trees);
        self.sync(trees.iter().map(|tree| &*tree.path));
    }

    /// Something has come, gone or been renamed at a path.
    fn moved(&mut self, path: &Path) {
        let below = self.folders.range(path.to_owned()..).map(|(folder, _)| folder.clone());
        let below: Vec<PathBuf> = below.take_while(|folder| folder.starts_with(path)).collect();
        for folder in below {
            self.folders.remove(&folder);
            self.disarm(&folder);
        }
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            self.tree(path, 0, &BTreeMap::new());
        }
    }

    /// Arms a folder and what is below it.
    fn tree(&mut self, folder: &Path, depth: usize, before: &BTreeMap<PathBuf, Watched>) {
        if !EACH_FOLDER {
            self.arm(folder, RecursiveMode::Recursive, before);
            return;
        }
        if depth > MAX_DEPTH || self.folders.len() >= MAX_FOLDERS {
            self.complain("there are too many folders");
            return;
        }
        // The folder is armed before it is read: what is made in it from now on
        // is heard, and what is there already is seen.
        self.arm(folder, RecursiveMode::NonRecursive, before);
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            let path = entry.path();
            if is_folder && !is_passed_over(&self.inside(&path), true) {
                self.tree(&path, depth + 1, before);
            }
        }
    }

    /// A path below the tree that it stands in, with `/` between its parts.
    fn inside(&self, path: &Path) -> String {
        let below = self.trees.iter().find_map(|tree| path.strip_prefix(tree.real.as_deref()?).ok());
        joined(below.unwrap_or(path))
    }

    fn arm(&mut self, folder: &Path, mode: RecursiveMode, before: &BTreeMap<PathBuf, Watched>) {
        let watched = Watched { mode, identity: identity(folder) };
        if self.folders.get(folder).is_some_and(|known| known.mode == mode || known.mode == RecursiveMode::Recursive) {
            return;
        }
        if before.get(folder) != Some(&watched) {
            self.disarm(folder);
            let Some(watcher) = &mut self.watcher else { return };
            match watcher.watch(folder, mode) {
                Ok(()) => {}
                // Gone again; the folder around it tells.
                Err(notify::Error { kind: notify::ErrorKind::PathNotFound, .. }) => return,
                Err(error) => return self.complain(&error.to_string()),
            }
        }
        self.folders.insert(folder.to_owned(), watched);
    }

    fn disarm(&mut self, folder: &Path) {
        if let Some(watcher) = &mut self.watcher {
            // It fails where nothing is watched, or no longer because the folder is gone.
            watcher.unwatch(folder).ok();
        }
    }

    fn complain(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.has_complained, true) {
            tracing::warn!("not every folder can be watched, so some changes are found later: {reason}");
        }
    }
}

/// Reading a file is an event too, also our own reading. Only the end of a
/// write among these says that something has changed.
fn is_noise(event: &Event) -> bool {
    event.kind.is_access()
        && event.kind != EventKind::Access(AccessKind::Close(AccessMode::Write))
        && !event.need_rescan()
}

/// Whether a path inside a tree is of any concern. Kubernetes exchanges whole
/// sets of files by a link whose name begins with two dots.
fn is_ours(path: &Path) -> bool {
    let path = joined(path);
    let (folders, last) = path.rsplit_once('/').unwrap_or(("", &path));
    let ends = folders.match_indices('/').map(|(end, _)| end).chain([folders.len()]);
    // What an entry was that is gone nobody can tell: it may have been a folder.
    let is_last_ours = || last.starts_with("..") || !is_passed_over(&path, false) || homes::leads_home(&path);
    ends.filter(|end| *end > 0).all(|end| !is_passed_over(&folders[..end], true)) && (last.is_empty() || is_last_ours())
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

/// Without numbers for folders, one in the place of another is noticed by its events only.
#[cfg(not(unix))]
fn identity(_: &Path) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_are_read_are_of_concern() {
        for path in
            ["a.md", "a/b.md", "", "..data", "target", "a/_b", ".claude", ".claude/commands", ".claude/commands/x.md"]
        {
            assert!(is_ours(Path::new(path)), "{path}");
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
            assert!(!is_ours(Path::new(path)), "{path}");
        }
    }
}

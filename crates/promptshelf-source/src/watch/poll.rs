//! One fingerprint over the state of every file, for file systems without reliable events.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use cap_std::fs::Metadata;

use crate::{file_role::is_ignored, file_state::FileState};

/// Bounds of one poll; deeper folders and further entries are not compared.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 1_000_000;

/// Returns a number that differs when the state of anything below the folders does.
pub(super) fn fingerprint(trees: &[PathBuf]) -> u64 {
    let mut poll = Poll { sum: 0, entries: 0 };
    for tree in trees {
        poll.add(tree, fs::metadata(tree));
        poll.folder(tree, "", 0);
    }
    poll.sum
}

struct Poll {
    /// A sum, because the order of a folder's entries is not defined.
    sum: u64,
    entries: usize,
}

impl Poll {
    /// Adds the entries of a folder; `inside` is its path below its tree.
    fn folder(&mut self, folder: &Path, inside: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let (name, Ok(file_type)) = (entry.file_name(), entry.file_type()) else { continue };
            let inside = match inside {
                "" => name.to_string_lossy().into_owned(),
                around => format!("{around}/{}", name.to_string_lossy()),
            };
            if is_ignored(&inside, file_type.is_dir()) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return;
            }
            let path = entry.path();
            // A link is followed for the state of its target only: a target inside the folder is visited by itself, and
            // one outside does not belong to the library.
            let metadata = if file_type.is_symlink() { fs::metadata(&path) } else { entry.metadata() };
            self.add(&path, metadata);
            if file_type.is_dir() {
                self.folder(&path, &inside, depth + 1);
            }
        }
    }

    fn add(&mut self, path: &Path, metadata: std::io::Result<fs::Metadata>) {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let state = metadata.ok().map(|metadata| FileState::of(&Metadata::from_just_metadata(metadata)));
        state.hash(&mut hasher);
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

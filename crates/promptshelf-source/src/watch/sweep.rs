//! One look at the state of every file, for file systems that do not tell.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use cap_std::fs::Metadata;

use crate::{confined::Stamp, directory::is_passed_over};

/// How deep a look goes, and how many entries it takes in.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 1_000_000;

/// A number that differs when anything below the folders does.
pub(super) fn sweep(trees: &[PathBuf]) -> u64 {
    let mut sweep = Sweep { sum: 0, entries: 0 };
    for tree in trees {
        sweep.add(tree, fs::metadata(tree));
        sweep.folder(tree, "", 0);
    }
    sweep.sum
}

struct Sweep {
    /// A sum, because folders give their entries in any order.
    sum: u64,
    entries: usize,
}

impl Sweep {
    /// `inside` is the folder's path below its tree.
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
            if is_passed_over(&inside, file_type.is_dir()) {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return;
            }
            let path = entry.path();
            // A link is followed for its state only: what is behind it inside
            // the folder is met by itself, and what is outside is not ours.
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
        let stamp = metadata.ok().map(|metadata| Stamp::of(&Metadata::from_just_metadata(metadata)));
        stamp.hash(&mut hasher);
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

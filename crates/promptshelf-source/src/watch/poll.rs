//! One fingerprint over the state of every file, for file systems without reliable events.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use cap_std::fs::Metadata;

use super::own_output::OwnOutput;
use crate::{file_role::is_ignored, file_state::FileState};

/// Bounds of one poll; deeper folders and further entries are not compared.
const MAX_DEPTH: usize = 32;
const MAX_ENTRIES: usize = 1_000_000;

/// Returns a number that differs when the state of anything below the folders does, apart from this process's log.
pub(super) fn fingerprint(trees: &[PathBuf], own_output: &OwnOutput) -> u64 {
    let mut poll = Poll { sum: 0, entries: 0, own_output };
    for tree in trees {
        poll.add(tree, fs::metadata(tree));
        poll.folder(tree, "", 0);
    }
    poll.sum
}

struct Poll<'o> {
    /// A sum, because the order of a folder's entries is not defined.
    sum: u64,
    entries: usize,
    own_output: &'o OwnOutput,
}

impl Poll<'_> {
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
        if metadata.as_ref().is_ok_and(|metadata| self.own_output.is(metadata)) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let state = metadata.ok().map(|metadata| FileState::of(&Metadata::from_just_metadata(metadata)));
        state.hash(&mut hasher);
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // req: S-67
    #[cfg(unix)]
    #[test]
    fn own_log_changes_no_fingerprint() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, other) = (folder.path().join("server.log"), folder.path().join("a.txt"));
        fs::write(&log, "first line").expect("written");
        fs::write(&other, "first line").expect("written");
        let own = OwnOutput::of_file(&fs::metadata(&log).expect("a file"));
        let poll = || fingerprint(&[folder.path().to_owned()], &own);
        let before = poll();
        fs::write(&log, "first line\nsecond line").expect("written");
        assert_eq!(poll(), before);
        fs::write(&other, "first line\nsecond line").expect("written");
        assert_ne!(poll(), before);
    }
}

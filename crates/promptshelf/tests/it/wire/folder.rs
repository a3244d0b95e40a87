//! Libraries on disk, to be served and edited.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A folder that is gone when the test is over.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn empty() -> Folder {
        Folder(TempDir::new().expect("a folder"))
    }

    /// A copy of a folder of this repository.
    pub(crate) fn copy_of(path: &str) -> Folder {
        let folder = Folder::empty();
        copy(&repository(path), folder.path());
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file in one go, as careful editors save: whoever reads it meets
    /// the old text or the new one, and never half of it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        let beside = path.with_extension("tmp");
        fs::create_dir_all(path.parent().expect("a folder around it")).expect("a folder");
        fs::write(&beside, text).expect("a file");
        fs::rename(&beside, &path).expect("a file");
    }

    /// Replaces words of a file, as its author does.
    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path().join(path)).expect("a text file");
        assert!(text.contains(from), "{path} does not say {from:?}");
        self.write(path, &text.replace(from, to));
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path().join(path)).expect("a file to remove");
    }
}

/// A path of this repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder of the repository") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a kind of file").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copied file");
        }
    }
}

//! Temporary folders with libraries, to be served and edited.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
#[cfg(unix)]
use std::{
    io::Write,
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// A temporary folder. It is removed with its last clone, so a running server keeps a clone.
#[derive(Clone, Debug)]
pub struct Folder(Arc<TempDir>);

impl Folder {
    /// Creates an empty folder.
    pub fn empty() -> Folder {
        Folder(Arc::new(TempDir::new().expect("a folder")))
    }

    /// Creates a folder with a library in `prompts`, so that command lines in it contain no absolute path.
    pub fn library(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::empty();
        fs::create_dir(folder.path().join("prompts")).expect("a folder for the prompts");
        for (path, text) in files {
            folder.write(&format!("prompts/{path}"), text);
        }
        folder
    }

    /// Creates a copy of a folder of this repository.
    pub fn copy_of(path: &str) -> Folder {
        let folder = Folder::empty();
        copy(&repository(path), folder.path());
        folder
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Replaces a file atomically, as editors save: a reader gets the old text or the new one.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        let temporary = path.with_extension("tmp");
        fs::create_dir_all(path.parent().expect("a parent folder")).expect("a folder");
        fs::write(&temporary, text).expect("a file");
        fs::rename(&temporary, &path).expect("a file");
    }

    /// Replaces a part of a file, which must contain it.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path().join(path)).expect("a text file");
        assert!(text.contains(from), "{path} does not contain {from:?}");
        self.write(path, &text.replace(from, to));
    }

    /// Removes a file.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path().join(path)).expect("a file to remove");
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

/// Writes a program that can be started at once, and the folders above it. Returns its path.
///
/// Another process writes it: one that a concurrent test starts would have our descriptor until it executes its
/// program, and a file that is open for writing cannot be executed.
#[cfg(unix)]
pub fn executable(path: PathBuf, content: impl AsRef<[u8]>) -> PathBuf {
    fs::create_dir_all(path.parent().expect("a parent folder")).expect("a folder");
    let mut write = Command::new("sh");
    write.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(&path).stdin(Stdio::piped());
    let mut writer = write.spawn().expect("a shell");
    let mut input = writer.stdin.take().expect("a pipe");
    input.write_all(content.as_ref()).expect("a reader");
    drop(input);
    assert!(writer.wait().expect("an exit status").success(), "{} is not written", path.display());
    path
}

/// Returns a path of this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder of the repository") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a file type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copied file");
        }
    }
}

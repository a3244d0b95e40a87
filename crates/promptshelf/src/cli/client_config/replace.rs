//! Reading a configuration file, and replacing it atomically.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::exit::{Exit, Failure};

/// The largest file that is edited, in bytes. Claude Code keeps its history in the same file.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    target: PathBuf,
    /// The content; `None` if the file does not exist.
    pub(crate) bytes: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    Done,
    /// Another program changed the file since it was read; nothing was written.
    Changed,
}

impl ConfigFile {
    /// Reads a file. Symbolic links are followed and kept, because dotfiles are often links; with `within`, only inside
    /// of this folder, because others may write a project's files.
    pub(crate) fn read(path: &Path, within: Option<&Path>) -> Result<ConfigFile, Failure> {
        let target = resolved(path).map_err(|error| failure(path, "cannot be read", &error))?;
        if let Some(folder) = within {
            let root = resolved(folder).map_err(|error| failure(folder, "cannot be read", &error))?;
            if !target.starts_with(&root) {
                let message = format!("{} leads out of the project, to {}", path.display(), target.display());
                return Err(Failure::new(Exit::Failed, message).help("replace the symbolic link by a file"));
            }
        }
        let bytes = match fs::metadata(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure(path, "cannot be read", &error)),
            Ok(found) if !found.is_file() => {
                return Err(Failure::new(Exit::Failed, format!("{} is not a regular file", path.display())));
            }
            Ok(found) if found.len() > MAX_BYTES => {
                return Err(Failure::new(Exit::Failed, format!("{} is larger than 64 MiB", path.display())));
            }
            Ok(_) => Some(fs::read(&target).map_err(|error| failure(path, "cannot be read", &error))?),
        };
        Ok(ConfigFile { path: path.to_owned(), target, bytes })
    }

    /// Returns the content as text; empty for a missing file.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(self.bytes.as_deref().unwrap_or_default()).map_err(|_| {
            let message = format!("{} is not UTF-8 text", self.path.display());
            Failure::new(Exit::Failed, message).help("save it as UTF-8 in an editor, and try again")
        })
    }

    /// Replaces the content, or removes the file for `None`, if it is still the one that was read. A reader sees the old
    /// or the new content, never a part, even after a crash. Permissions stay.
    pub(crate) fn replace(&self, new: Option<&[u8]>, is_private: bool) -> Result<Replaced, Failure> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        let cannot_write = |error: &io::Error| failure(&self.path, "cannot be written", error);
        let permissions = fs::metadata(&self.target).ok().map(|found| found.permissions());
        if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
            let message = format!("{} is read-only", self.path.display());
            return Err(Failure::new(Exit::Failed, message).help("make it writable, and try again"));
        }
        let Some(new) = new else {
            if !self.is_unchanged() {
                return Ok(Replaced::Changed);
            }
            return match fs::remove_file(&self.target) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(&error)),
                _ => Ok(Replaced::Done),
            };
        };
        fs::create_dir_all(folder).map_err(|error| cannot_write(&error))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".promptshelf-");
        #[cfg(unix)]
        if permissions.is_none() {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(if is_private { 0o600 } else { 0o666 }));
        }
        #[cfg(not(unix))]
        let _ = is_private;
        let mut file = builder.tempfile_in(folder).map_err(|error| cannot_write(&error))?;
        let written = file.write_all(new).and_then(|()| match permissions {
            Some(permissions) => file.as_file().set_permissions(permissions),
            None => Ok(()),
        });
        written.and_then(|()| file.as_file().sync_all()).map_err(|error| cannot_write(&error))?;
        if !self.is_unchanged() {
            return Ok(Replaced::Changed);
        }
        file.persist(&self.target).map_err(|error| cannot_write(&error.error))?;
        Ok(Replaced::Done)
    }

    fn is_unchanged(&self) -> bool {
        match fs::read(&self.target) {
            Ok(now) => Some(now.as_slice()) == self.bytes.as_deref(),
            Err(error) => error.kind() == io::ErrorKind::NotFound && self.bytes.is_none(),
        }
    }
}

/// Resolves symbolic links, also above a file that does not exist and of a link to a missing file.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(target) = fs::read_link(path) {
                let folder = path.parent().unwrap_or(Path::new("."));
                return resolved(&folder.join(target));
            }
            match (path.parent(), path.file_name()) {
                (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => Ok(resolved(folder)?.join(name)),
                _ => std::path::absolute(path),
            }
        }
        Err(error) => Err(error),
    }
}

fn failure(path: &Path, what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{} {what}: {error}", path.display()))
}

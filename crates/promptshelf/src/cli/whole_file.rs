//! Writing a file as a whole: a full disk, a failing one or a kill leaves the old content, or no file.

use std::{fs, io, io::Write as _, path::Path};

use promptshelf_source::keep_owner;

/// Writes a new file. One that exists is an error of the kind `AlreadyExists`.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Before the work of writing it; the decision is that of the last step.
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    staged(path, bytes, None, NEW)?.persist_noclobber(path).map(|_| ()).map_err(|error| error.error)
}

/// Writes a file in place of the one that is there, if there is one. It keeps its owner and permissions, and a link leads
/// to it as before.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let present = target.metadata().ok();
    if present.as_ref().is_some_and(|present| present.permissions().readonly()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    staged(&target, bytes, present.as_ref(), NEW)?.persist(&target).map(|_| ()).map_err(|error| error.error)
}

/// What others may do with a new file, within the `umask`.
pub(crate) const NEW: u32 = 0o666;

/// A new file that only its user can read.
pub(crate) const PRIVATE: u32 = 0o600;

/// A file next to the path, with the content on the disk. It is removed unless it takes the path. It has the owner and the
/// permissions of the file that it is to replace, or the given mode.
pub(crate) fn staged(
    path: &Path,
    bytes: &[u8],
    replaced: Option<&fs::Metadata>,
    mode: u32,
) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".promptshelf-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(if replaced.is_some() { PRIVATE } else { mode }));
    }
    #[cfg(not(unix))]
    let _ = mode;
    // The message would name the file next to it.
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(bytes)?;
    if let Some(replaced) = replaced {
        // In this order: the permissions are those of the present owner to give.
        file.as_file().set_permissions(replaced.permissions())?;
        keep_owner(file.as_file(), replaced);
    }
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn replaced_file_keeps_owner_group_and_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("settings.json");
        fs::write(&file, "{}").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("its own file");
        // Only root can give files away.
        let is_root = chown(&file, Some(12_345), Some(54_321)).is_ok();
        let before = file.metadata().expect("a file");
        replace(&file, b"{\"new\":1}").expect("replaced");
        let after = file.metadata().expect("a file");
        assert_ne!(after.ino(), before.ino());
        assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
        assert_eq!(after.uid() == 12_345, is_root);
    }
}

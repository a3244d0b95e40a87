//! Writing a file as a whole: a full disk, a failing one or a kill leaves the old content, or no file.

use std::{fs, io, io::Write as _, path::Path};

/// Writes a new file. One that exists is an error of the kind `AlreadyExists`.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Before the work of writing it; the decision is that of the last step.
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    staged(path, bytes, None)?.persist_noclobber(path).map(|_| ()).map_err(|error| error.error)
}

/// Writes a file in place of the one that is there, if there is one. It keeps its permissions, and a link leads to it as
/// before.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let permissions = target.metadata().ok().map(|metadata| metadata.permissions());
    if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    staged(&target, bytes, permissions)?.persist(&target).map(|_| ()).map_err(|error| error.error)
}

/// A file next to the path, with the content on the disk. It is removed unless it takes the path.
fn staged(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".promptshelf-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // The message would name the file next to it.
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

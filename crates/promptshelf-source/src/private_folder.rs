//! Folders for copies of libraries, which may be restricted to some callers, and whose a file is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Creates a folder that only this user can read and write, and those around it. One that exists is checked as by
/// [`check_private_folder`].
///
/// # Errors
///
/// If it cannot be created, or others can write it.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    check_private_folder(folder)
}

/// Checks that no other user can write a folder: a file that was put there would be served.
///
/// # Errors
///
/// [`io::ErrorKind::PermissionDenied`] if others can, and if the folder does not exist.
pub fn check_private_folder(folder: &Path) -> io::Result<()> {
    let found = fs::metadata(folder)?;
    if is_shared(&found) {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, Shared(folder.to_owned()).to_string()))
    } else {
        Ok(())
    }
}

/// Gives a new file the owner and the group of the one that it is to replace, as far as this user may. Otherwise files that
/// are changed with `sudo`, or by a server in a container, would be those of root.
pub fn keep_owner(new: &fs::File, replaced: &fs::Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        let is_other = new.metadata().is_ok_and(|new| (new.uid(), new.gid()) != (replaced.uid(), replaced.gid()));
        if is_other && fchown(new, Some(replaced.uid()), Some(replaced.gid())).is_err() {
            // A group of this user.
            let _ = fchown(new, None, Some(replaced.gid()));
        }
    }
    #[cfg(not(unix))]
    let _ = (new, replaced);
}

struct Shared(PathBuf);

impl std::fmt::Display for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let folder = self.0.display();
        write!(
            f,
            "other users can write the folder {folder}, so that its files are not used: take the permission from them \
             (`chmod go-w`), or name a new folder inside of it"
        )
    }
}

#[cfg(unix)]
fn is_shared(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let owner = found.uid();
    found.mode() & 0o022 != 0 || owner != 0 && owner != rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_shared(_: &fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // req: S-273
    #[test]
    fn folder_that_others_can_write_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("a/b");
        create_private_folder(&folder).expect("a folder");
        assert_eq!(fs::metadata(&folder).expect("it").permissions().mode() & 0o777, 0o700);
        for (mode, is_accepted) in [(0o777, false), (0o770, false), (0o702, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("permissions");
            let checked = create_private_folder(&folder);
            assert_eq!(checked.is_ok(), is_accepted, "{mode:o}");
            assert!(checked.err().is_none_or(|error| error.to_string().contains("other users can write the folder")));
        }
    }
}

//! Writing a file as a whole: a full disk, a failing one or a kill leaves the old content, or no file.

use std::{fs, io, io::Write as _, path::Path, time::Duration};

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
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(if replaced.is_some() { PRIVATE } else { mode }));
    }
    #[cfg(not(unix))]
    let _ = mode;
    // The message would name the file next to it.
    let mut file = builder.tempfile_in(folder_of(path)).map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(bytes)?;
    if let Some(replaced) = replaced {
        // In this order: the permissions are those of the present owner to give.
        file.as_file().set_permissions(replaced.permissions())?;
        keep_owner(file.as_file(), replaced);
    }
    file.as_file().sync_all()?;
    Ok(file)
}

const PREFIX: &str = ".promptshelf-";
const SUFFIX: &str = ".tmp";
const RANDOM: usize = 6;

/// No file is written for as long as this.
const LEFT: Duration = Duration::from_secs(60 * 60);

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed runs of this user have left next to a path.
pub(crate) fn remove_leftovers(path: &Path) {
    for file in fs::read_dir(folder_of(path)).into_iter().flatten().flatten().filter(is_leftover) {
        fs::remove_file(file.path()).ok();
    }
}

fn is_leftover(file: &fs::DirEntry) -> bool {
    let name = file.file_name();
    let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
    let is_named = random.is_some_and(|random| random.len() == RANDOM);
    // Of a link, and not of its target.
    is_named && file.metadata().is_ok_and(|found| found.is_file() && is_own(&found) && is_old(&found))
}

fn is_old(file: &fs::Metadata) -> bool {
    file.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > LEFT)
}

#[cfg(unix)]
fn is_own(file: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(file) == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
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

    #[test]
    fn only_old_own_leftovers_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("settings.json");
        let old = std::time::SystemTime::now() - 2 * LEFT;
        let files = [
            (".promptshelf-aB3dE6.tmp", old, false),
            (".promptshelf-aB3dE7.tmp", std::time::SystemTime::now(), true),
            (".promptshelf-base", old, true),
            (".promptshelf-sync-aB3dE6.tmp", old, true),
            (".promptshelf-aB3dE6", old, true),
            (".other-aB3dE6.tmp", old, true),
            ("settings.json", old, true),
        ];
        for (name, time, _) in files {
            let file = fs::File::create(folder.path().join(name)).expect("a file");
            file.set_modified(time).expect("a time");
        }
        let foreign = folder.path().join(".promptshelf-aB3dE8.tmp");
        fs::File::create(&foreign).expect("a file").set_modified(old).expect("a time");
        // Only root can give files away.
        let is_root = chown(&foreign, Some(12_345), None).is_ok();
        remove_leftovers(&target);
        for (name, _, stays) in files {
            assert_eq!(folder.path().join(name).exists(), stays, "{name}");
        }
        assert_eq!(foreign.exists(), is_root);
        let staged = staged(&target, b"", None, NEW).expect("a file").keep().expect("a file that a kill leaves").1;
        fs::File::options().write(true).open(&staged).expect("a file").set_modified(old).expect("a time");
        remove_leftovers(&target);
        assert!(!staged.exists(), "the names of the files that are written are those that are removed");
    }
}

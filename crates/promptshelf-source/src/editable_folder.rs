//! A library's folder whose files can be read and changed one by one, for editors over a network.

use std::{
    error::Error,
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use cap_std::fs::{Dir, Metadata, OpenOptions};
use parking_lot::Mutex;

use crate::{
    file_role::MANIFEST,
    format::foreign_folders,
    pipeline::{WalkOptions, walk},
    private_folder::keep_owner,
    tree::{ConfinedDir, FileBytes, FileError, Tree},
    tree_path::{InvalidTreePath, SamePath, check_file_path, check_tree_path, folded_path, is_obeyed_by_programs},
};

/// The largest file that is read or written, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

const MAX_FILES: usize = 200_000;

/// The depth to which leftovers are looked for.
const MAX_DEPTH: usize = 64;

/// The prefix of temporary files. Libraries ignore hidden files.
const TEMPORARY: &str = ".promptshelf-edit-";

/// A folder whose files can be changed.
///
/// All paths are relative to the folder, with `/` between their parts, and follow [`check_tree_path`]. The operating
/// system resolves them below the open folder. A change names the content that it replaces: a file that has another
/// content by now stays as it is. Files are replaced as a whole, so a reader or a crash never sees half of one.
///
/// Other programs are not locked out: a change by one of them between the last comparison and the replacement, which
/// follow each other immediately, is lost.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use promptshelf_source::{EditError, EditableFolder};
///
/// let folder = tempfile::tempdir()?;
/// let files = EditableFolder::open(folder.path())?;
/// files.create("git/commit.md", b"Write a commit message.\n")?;
/// let refused = files.replace("git/commit.md", b"mine", |now| now == b"an earlier content");
/// assert!(matches!(refused, Err(EditError::Changed { .. })));
/// files.replace("git/commit.md", b"Write it.\n", |now| now.starts_with(b"Write"))?;
/// assert_eq!(files.read("git/commit.md")?, b"Write it.\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EditableFolder {
    folder: PathBuf,
    /// Orders the changes of this process.
    changing: Mutex<()>,
    is_local: bool,
}

/// A file of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedFile {
    /// Relative to the folder.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// The reason why a file was not read or changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum EditError {
    /// The path is not that of a library's file.
    InvalidPath(InvalidTreePath),
    /// No file is at the path.
    NotFound,
    /// A file that should be created, or the target of a rename, exists.
    Exists,
    /// A file that should be created, or the target of a rename, has the path of another file or folder on some systems.
    SamePath(SamePath),
    /// The file has another content than the change expects.
    Changed {
        /// The present content.
        present: Vec<u8>,
    },
    /// A symbolic link is at the path, and replacing it would not change the file that it leads to.
    Link,
    /// Something other than a regular file is at the path, or a part of the path is not a folder.
    NotAFile,
    /// The path leads out of the folder.
    Outside,
    /// Other programs obey the file, and it is no prompt: see [`is_obeyed_by_programs`].
    Obeyed,
    /// The file is larger than 16 MiB.
    TooLarge {
        /// The size in bytes.
        bytes: u64,
    },
    /// The system refused the operation.
    Io(io::Error),
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::InvalidPath(error) => error.fmt(f),
            EditError::NotFound => f.write_str("the file does not exist"),
            EditError::Exists => f.write_str("a file exists at this path"),
            EditError::SamePath(same) => write!(f, "{same}: choose another name"),
            EditError::Changed { .. } => f.write_str("the file has changed since it was read"),
            EditError::Link => f.write_str("the file is a symbolic link: change the file that it leads to"),
            EditError::NotAFile => f.write_str("the path is not that of a regular file"),
            EditError::Outside => f.write_str("the path leads out of the folder"),
            EditError::Obeyed => f.write_str(
                "programs such as agents and editors obey this file, and it is no prompt: change it on the machine itself",
            ),
            EditError::TooLarge { bytes } => write!(f, "the file has {bytes} bytes; the limit is {MAX_FILE_BYTES}"),
            EditError::Io(error) => write!(f, "the system refused it: {error}"),
        }
    }
}

impl Error for EditError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            EditError::InvalidPath(error) => Some(error),
            EditError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<FileError> for EditError {
    fn from(error: FileError) -> EditError {
        match error {
            FileError::NotFound => EditError::NotFound,
            FileError::OutsideRoot => EditError::Outside,
            FileError::LinkCycle => EditError::Link,
            FileError::NotAFile => EditError::NotAFile,
            FileError::TooLarge(bytes) => EditError::TooLarge { bytes },
            FileError::Io(error) => EditError::Io(error),
        }
    }
}

impl From<io::Error> for EditError {
    fn from(error: io::Error) -> EditError {
        match error.kind() {
            io::ErrorKind::NotFound => EditError::NotFound,
            io::ErrorKind::AlreadyExists => EditError::Exists,
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => EditError::NotAFile,
            // The confinement of `cap-std` returns an error without a system error number.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => EditError::Outside,
            _ => EditError::Io(error),
        }
    }
}

struct Place<'p> {
    folder: Dir,
    name: &'p str,
}

impl EditableFolder {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// If the folder does not exist or cannot be opened.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<EditableFolder> {
        let folder = fs::canonicalize(folder.into())?;
        ConfinedDir::open(&folder)?;
        Ok(EditableFolder { folder, changing: Mutex::new(()), is_local: false })
    }

    /// Opens a folder for commands on this machine, and creates it. They also write files of any size, files that a library
    /// ignores, and files that other programs obey.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created or opened.
    pub fn local(folder: impl Into<PathBuf>) -> io::Result<EditableFolder> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(EditableFolder { is_local: true, ..EditableFolder::open(folder)? })
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Lists the files of the library, sorted by path: at most 200,000. Those that other programs obey are left out: they
    /// are no prompts, and cannot be changed.
    ///
    /// # Errors
    ///
    /// If the folder cannot be opened.
    pub fn list(&self) -> Result<Vec<ListedFile>, EditError> {
        let root = self.root()?;
        let manifest = root.state(MANIFEST).ok().map(|state| (MANIFEST.to_owned(), state.len()));
        let root = Tree::folder(root);
        let options = WalkOptions { files: MAX_FILES, states: true, foreign_folders: true, golden_files: true };
        let found = walk(&root, options).files.into_iter().map(|file| {
            let state = file.state.or_else(|| root.state(&file.path).ok());
            (file.path.to_string(), state.map_or(0, |state| state.len()))
        });
        let mut files: Vec<ListedFile> = manifest
            .into_iter()
            .chain(found)
            .filter(|(path, _)| check_tree_path(path).is_ok() && self.refuse_obeyed(path).is_ok())
            .map(|(path, bytes)| ListedFile { path, bytes })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Reads a file of at most 16 MiB.
    ///
    /// # Errors
    ///
    /// [`EditError`] with the reason.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, EditError> {
        Ok(self.read_with_state(path)?.bytes)
    }

    /// Creates a file, and the folders around it.
    ///
    /// # Errors
    ///
    /// [`EditError::Exists`] or [`EditError::SamePath`] if something is at the path; otherwise [`EditError`] with
    /// the reason.
    pub fn create(&self, path: &str, bytes: &[u8]) -> Result<(), EditError> {
        let _changing = self.changing();
        self.refuse_size(bytes)?;
        let place = self.new_place(path, None)?;
        let temporary = place.write_temporary(bytes)?;
        place.put_new(&temporary)
    }

    /// Replaces the content of a file, unless `is_expected` refuses the present one.
    ///
    /// # Errors
    ///
    /// [`EditError::Changed`] with the present content if it is refused; otherwise [`EditError`] with the reason.
    pub fn replace(&self, path: &str, bytes: &[u8], is_expected: impl Fn(&[u8]) -> bool) -> Result<(), EditError> {
        let _changing = self.changing();
        self.refuse_size(bytes)?;
        let place = self.place(path)?;
        let present = self.expected(path, &place, is_expected)?;
        let permissions = place.folder.symlink_metadata(place.name)?.permissions();
        if permissions.readonly() {
            return Err(EditError::Io(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only")));
        }
        let temporary = place.write_temporary(bytes)?;
        let like_before = || {
            let replaced = place.folder.open(place.name)?.into_std().metadata()?;
            place.folder.set_permissions(&temporary, permissions)?;
            keep_owner(&place.folder.open(&temporary)?.into_std(), &replaced);
            io::Result::Ok(())
        };
        let replaced = like_before().map_err(EditError::from).and_then(|()| {
            // The file may have been changed while the new one was written.
            if self.root()?.state(path)? != present.state {
                return Err(EditError::Changed { present: self.read(path)? });
            }
            Ok(place.folder.rename(&temporary, &place.folder, place.name)?)
        });
        if replaced.is_err() {
            place.folder.remove_file(&temporary).ok();
        }
        replaced
    }

    /// Creates a file, or replaces its content.
    ///
    /// # Errors
    ///
    /// [`EditError`] with the reason.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), EditError> {
        match self.replace(path, bytes, |_| true) {
            Err(EditError::NotFound) => self.create(path, bytes),
            replaced => replaced,
        }
    }

    /// Lets everyone execute a file who may read it, where systems have such a permission.
    ///
    /// # Errors
    ///
    /// [`EditError`] with the reason.
    pub fn set_executable(&self, path: &str) -> Result<(), EditError> {
        let place = self.place(path)?;
        #[cfg(unix)]
        {
            use cap_std::fs::PermissionsExt as _;
            let mut permissions = place.folder.symlink_metadata(place.name)?.permissions();
            permissions.set_mode(permissions.mode() | (permissions.mode() & 0o444) >> 2);
            place.folder.set_permissions(place.name, permissions)?;
        }
        #[cfg(not(unix))]
        let _ = place;
        Ok(())
    }

    /// Deletes a file, unless `is_expected` refuses its content.
    ///
    /// # Errors
    ///
    /// [`EditError::Changed`] with the present content if it is refused; otherwise [`EditError`] with the reason.
    pub fn delete(&self, path: &str, is_expected: impl Fn(&[u8]) -> bool) -> Result<(), EditError> {
        let _changing = self.changing();
        let place = self.place(path)?;
        self.expected(path, &place, is_expected)?;
        Ok(place.folder.remove_file(place.name)?)
    }

    /// Gives a file a second path, unless `is_expected` refuses its content: the first step of a rename, whose last one
    /// deletes the first path. A link that is there already is that of an interrupted rename.
    ///
    /// # Errors
    ///
    /// [`EditError::Exists`] or [`EditError::SamePath`] if something is at the new path; [`EditError::Changed`] with the
    /// present content if it is refused; otherwise [`EditError`] with the reason.
    pub fn link(&self, from: &str, to: &str, is_expected: impl Fn(&[u8]) -> bool) -> Result<(), EditError> {
        let _changing = self.changing();
        let place = self.place(from)?;
        let present = self.expected(from, &place, is_expected)?;
        let target = self.new_place(to, Some(from))?;
        if self.is_linked(from, to)? {
            return Ok(());
        }
        match place.folder.hard_link(place.name, &target.folder, target.name) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(EditError::Exists),
            // A file system without hard links.
            Err(_) => target.put_new(&target.write_temporary(&present.bytes)?),
        }
    }

    /// Moves a file to another path of the library, unless `is_expected` refuses its content.
    ///
    /// # Errors
    ///
    /// Those of [`link`](EditableFolder::link) and [`delete`](EditableFolder::delete).
    pub fn rename(&self, from: &str, to: &str, is_expected: impl Fn(&[u8]) -> bool) -> Result<(), EditError> {
        self.link(from, to, &is_expected)?;
        self.delete(from, is_expected)
    }

    /// Whether two paths are hard links to one file, and not one path by way of symbolic links or letter case.
    fn is_linked(&self, from: &str, to: &str) -> Result<bool, EditError> {
        let root = self.root()?;
        let (Ok(one), Ok(other)) = (root.metadata(from), root.metadata(to)) else { return Ok(false) };
        let is_one_path = folded_path(&self.canonical(from)?) == folded_path(&self.canonical(to)?);
        Ok(!is_one_path && are_links(&one, &other))
    }

    /// Removes the temporary files of processes that have ended.
    pub fn remove_leftovers(&self) {
        if let Ok(root) = self.root() {
            remove_leftovers(root.dir(), MAX_DEPTH);
        }
    }

    fn changing(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.changing.lock()
    }

    fn root(&self) -> Result<ConfinedDir, EditError> {
        ConfinedDir::open(&self.folder).map_err(EditError::Io)
    }

    fn read_with_state(&self, path: &str) -> Result<FileBytes<Vec<u8>>, EditError> {
        self.canonical(path)?;
        Ok(self.root()?.read(path, self.max_bytes())?)
    }

    fn max_bytes(&self) -> u64 {
        if self.is_local { u64::MAX - 1 } else { MAX_FILE_BYTES }
    }

    fn refuse_size(&self, bytes: &[u8]) -> Result<(), EditError> {
        let bytes = bytes.len() as u64;
        if bytes > self.max_bytes() { Err(EditError::TooLarge { bytes }) } else { Ok(()) }
    }

    /// Returns the path that a path leads to, with all links followed: that of the file, or of the new file in the nearest
    /// folder that exists.
    ///
    /// # Errors
    ///
    /// [`EditError::InvalidPath`] for a path that is none of a library's file, [`EditError::Outside`] if it leads to one.
    pub fn canonical(&self, path: &str) -> Result<String, EditError> {
        let is_ignored = self.is_local && check_tree_path(path).is_err();
        let check_path = if is_ignored { check_file_path } else { check_tree_path };
        check_path(path).map_err(EditError::InvalidPath)?;
        let root = self.root()?;
        let ends = path.match_indices('/').map(|(end, _)| end).rev();
        let mut canonical = path.to_owned();
        for end in std::iter::once(path.len()).chain(ends) {
            match root.canonicalize(&path[..end]) {
                Ok(existing) => {
                    let rest = &path[end..];
                    canonical = match &*existing {
                        "." | "" => rest.trim_start_matches('/').to_owned(),
                        folder => format!("{folder}{rest}"),
                    };
                    break;
                }
                Err(FileError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // A link may lead to a hidden file of the folder.
        check_path(&canonical).map_err(|_| EditError::Outside)?;
        Ok(canonical)
    }

    /// Refuses a file that instructs other programs without being a prompt, in a library that may itself be the folder of
    /// such a program.
    fn refuse_obeyed(&self, canonical: &str) -> Result<(), EditError> {
        let home = foreign_folders::home(&self.folder);
        let is_prompt = |path: &str| path.starts_with('.') && check_tree_path(path).is_ok();
        let is_obeyed = if self.is_local {
            false
        } else if foreign_folders::is_ancestor_of_foreign_folder(home) {
            canonical != MANIFEST && !is_prompt(&format!("{home}/{canonical}"))
        } else {
            is_obeyed_by_programs(canonical) && !is_prompt(canonical)
        };
        if is_obeyed { Err(EditError::Obeyed) } else { Ok(()) }
    }

    fn expected(
        &self,
        path: &str,
        place: &Place<'_>,
        is_expected: impl Fn(&[u8]) -> bool,
    ) -> Result<FileBytes<Vec<u8>>, EditError> {
        if place.folder.symlink_metadata(place.name)?.is_symlink() {
            return Err(EditError::Link);
        }
        let present = self.read_with_state(path)?;
        if is_expected(&present.bytes) { Ok(present) } else { Err(EditError::Changed { present: present.bytes }) }
    }

    /// `renamed` is a file that goes away.
    fn new_place<'p>(&self, path: &'p str, renamed: Option<&str>) -> Result<Place<'p>, EditError> {
        // Before anything is created.
        self.refuse_obeyed(&self.canonical(path)?)?;
        let root = self.root()?;
        if !self.is_local {
            refuse_same_path(root.dir(), path, renamed)?;
        }
        if let Some((parent, _)) = path.rsplit_once('/') {
            root.dir().create_dir_all(parent)?;
        }
        self.place(path)
    }

    fn place<'p>(&self, path: &'p str) -> Result<Place<'p>, EditError> {
        self.refuse_obeyed(&self.canonical(path)?)?;
        let root = self.root()?;
        let Some((parent, name)) = path.rsplit_once('/') else {
            return Ok(Place { folder: root.dir().try_clone()?, name: path });
        };
        Ok(Place { folder: root.dir().open_dir(parent)?, name })
    }
}

/// Refuses a new path that some systems take for that of another file, or whose folders they take for others.
fn refuse_same_path(root: &Dir, path: &str, renamed: Option<&str>) -> Result<(), EditError> {
    // Including an empty folder, which no other system gets.
    let goes_away = |present: &str| {
        let is_renamed = |name: String| renamed == Some(&format!("{present}/{name}"));
        Some(present) == renamed || names(root, present).is_ok_and(|inside| inside.into_iter().all(is_renamed))
    };
    let mut above = String::new();
    for name in path.split('/') {
        let folder = if above.is_empty() { "." } else { above.trim_end_matches('/') };
        let entries = match names(root, folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let folded = folded_path(name);
        let others = entries.into_iter().filter(|other| other != name && folded_path(other) == folded);
        let mut present = others.map(|other| format!("{above}{other}")).filter(|present| !goes_away(present));
        if let Some(present) = present.next() {
            return Err(EditError::SamePath(SamePath { present, new: format!("{above}{name}") }));
        }
        above.push_str(name);
        above.push('/');
    }
    Ok(())
}

fn names(root: &Dir, folder: &str) -> io::Result<Vec<String>> {
    root.read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

impl Place<'_> {
    fn write_temporary(&self, bytes: &[u8]) -> Result<String, EditError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{TEMPORARY}{}-{number}", std::process::id());
            let mut file = match self.folder.open_with(&name, OpenOptions::new().write(true).create_new(true)) {
                Ok(file) => file,
                // Left behind by an earlier process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error.into()),
            };
            let written = file.write_all(bytes).and_then(|()| file.sync_all());
            return match written {
                Ok(()) => Ok(name),
                Err(error) => {
                    self.folder.remove_file(&name).ok();
                    Err(error.into())
                }
            };
        }
    }

    /// Moves a temporary file to the place, where nothing is. A link is made first, which never replaces a file.
    fn put_new(&self, temporary: &str) -> Result<(), EditError> {
        let moved = match self.folder.hard_link(temporary, &self.folder, self.name) {
            Ok(()) => self.folder.remove_file(temporary),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // A file system without hard links.
            Err(_) if self.folder.symlink_metadata(self.name).is_err() => {
                self.folder.rename(temporary, &self.folder, self.name)
            }
            Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
        };
        if moved.is_err() {
            self.folder.remove_file(temporary).ok();
        }
        Ok(moved?)
    }
}

#[cfg(unix)]
fn are_links(one: &Metadata, other: &Metadata) -> bool {
    use cap_std::fs::MetadataExt as _;
    let file = |found: &Metadata| (found.dev(), found.ino());
    file(one) == file(other) && one.nlink() > 1
}

#[cfg(not(unix))]
fn are_links(_: &Metadata, _: &Metadata) -> bool {
    false
}

fn remove_leftovers(folder: &Dir, depth: usize) {
    for entry in folder.entries().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type() {
            Ok(kind) if kind.is_file() && is_leftover(&name) => {
                entry.remove_file().ok();
            }
            Ok(kind) if kind.is_dir() && depth > 0 && name != ".git" && name != "node_modules" => {
                if let Ok(inside) = entry.open_dir() {
                    remove_leftovers(&inside, depth - 1);
                }
            }
            _ => {}
        }
    }
}

fn is_leftover(name: &str) -> bool {
    let process = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split_once('-')?.0.parse().ok());
    // In a container, the process before this one had the same id.
    process.is_some_and(|process: u32| process == std::process::id() || !is_running(process))
}

#[cfg(unix)]
fn is_running(process: u32) -> bool {
    use rustix::{io::Errno, process as processes};
    let id = i32::try_from(process).ok().and_then(processes::Pid::from_raw);
    id.is_some_and(|id| processes::test_kill_process(id) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn is_running(_: u32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn replaced_file_keeps_owner_group_and_permissions() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.md");
        fs::write(&file, "old").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("its own file");
        // Only root can give files away.
        let is_root = chown(&file, Some(12_345), Some(54_321)).is_ok();
        let before = file.metadata().expect("a file");
        EditableFolder::open(folder.path()).expect("a folder").replace("a.md", b"new", |_| true).expect("replaced");
        let after = file.metadata().expect("a file");
        assert_ne!(after.ino(), before.ino());
        assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), before.gid(), before.mode()));
        assert_eq!(after.uid() == 12_345, is_root);
    }

    #[test]
    fn new_path_is_no_other_one_on_any_system() {
        const PRESENT: [&str; 4] = ["caf\u{e9}.md", "_shared/tone.md", "Git/a.md", "Alone/a.md"];
        for (new, same) in [
            ("cafe\u{301}.md", Some("`caf\\u{e9}.md` and as `cafe\\u{301}.md`")),
            ("CAF\u{c9}.md", Some("`café.md` and `CAFÉ.md`")),
            ("CAFE\u{301}.md", Some("ignore case")),
            ("_SHARED/z.md", Some("`_shared` and `_SHARED`")),
            ("_Shared/new/z.md", Some("`_shared` and `_Shared`")),
            ("_shared/Tone.md", Some("`_shared/tone.md` and `_shared/Tone.md`")),
            ("git/b.md", Some("`Git` and `git`")),
            ("_shared/z.md", None),
            ("empty/z.md", None),
            ("x/y/cafe\u{301}.md", None),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            fs::create_dir(folder.path().join("Empty")).expect("created");
            let files = EditableFolder::open(folder.path()).expect("a folder");
            PRESENT.into_iter().for_each(|path| files.create(path, b"x").expect("created"));
            let refusals = [files.create(new, b"x"), files.link("Alone/a.md", new, |_| true)];
            // The second one finds the file of the first one.
            let refusals = if same.is_some() { &refusals[..] } else { &refusals[..1] };
            let said: Vec<Option<String>> =
                refusals.iter().map(|done| done.as_ref().err().map(ToString::to_string)).collect();
            let is_as_expected = |said: &Option<String>| match (said, same) {
                (Some(said), Some(same)) => said.contains(same) && said.ends_with(": choose another name"),
                (said, same) => said.is_none() && same.is_none(),
            };
            assert!(said.iter().all(is_as_expected), "{new}: {said:?}");
        }
    }

    #[test]
    fn rename_changes_case_and_normalization_of_the_file_itself() {
        for (from, to) in [("caf\u{e9}.md", "cafe\u{301}.md"), ("A.md", "a.md"), ("Sub/a.md", "sub/a.md")] {
            let folder = tempfile::tempdir().expect("a folder");
            let files = EditableFolder::open(folder.path()).expect("a folder");
            files.create(from, b"x").expect("created");
            files.rename(from, to, |_| true).expect("renamed");
            assert_eq!(files.list().expect("a list").into_iter().map(|file| file.path).collect::<Vec<_>>(), [to]);
        }
    }

    #[test]
    fn only_the_link_of_an_interrupted_rename_is_accepted() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = EditableFolder::open(folder.path()).expect("a folder");
        files.create("sub/a.md", b"x").expect("created");
        files.create("same.md", b"x").expect("created");
        assert!(matches!(files.link("sub/a.md", "same.md", |_| true), Err(EditError::Exists)));
        assert!(matches!(files.link("sub/a.md", "sub/a.md", |_| true), Err(EditError::Exists)));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("sub", folder.path().join("linked")).expect("a link");
            files.link("sub/a.md", "new.md", |_| true).expect("linked");
            files.link("sub/a.md", "new.md", |_| true).expect("linked before");
            assert!(matches!(files.link("sub/a.md", "linked/a.md", |_| true), Err(EditError::Exists)));
        }
    }

    #[cfg(unix)]
    #[test]
    fn leftovers_are_those_of_ended_processes() {
        let mut ended = std::process::Command::new("true").spawn().expect("a process");
        ended.wait().expect("its end");
        let (ended, own, running) = (ended.id(), std::process::id(), std::os::unix::process::parent_id());
        let folder = tempfile::tempdir().expect("a folder");
        for (name, stays) in [
            (format!("{TEMPORARY}{ended}-0"), false),
            (format!("a/b/{TEMPORARY}{ended}-7"), false),
            (format!(".claude/commands/{TEMPORARY}{ended}-7"), false),
            (format!("a/{TEMPORARY}{own}-1"), false),
            (format!("a/{TEMPORARY}{running}-1"), true),
            (format!("{TEMPORARY}notes"), true),
            (format!("{TEMPORARY}x-1"), true),
            (format!(".git/{TEMPORARY}{ended}-1"), true),
            ("a/prompt.md".to_owned(), true),
        ] {
            let file = folder.path().join(&name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("created");
            fs::write(&file, "half").expect("written");
            EditableFolder::open(folder.path()).expect("a folder").remove_leftovers();
            assert_eq!(file.exists(), stays, "{name}");
        }
    }

    /// Writes a file below a link at each depth to a place inside or outside of the folder.
    #[cfg(unix)]
    #[test]
    fn links_out_of_the_folder_are_never_written_through() {
        let around = tempfile::tempdir().expect("a folder");
        let folder = around.path().join("lib");
        for made in ["lib/a", "lib/.git", "lib/inside", "out"] {
            fs::create_dir_all(around.path().join(made)).expect("created");
        }
        fs::write(around.path().join("out/present.md"), "theirs").expect("written");
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(to, folder.join(from)).expect("a link");
        link("out", "../out");
        link("absolute", around.path().join("out").to_str().expect("a path"));
        link("a/out", "../../out");
        link("dangling", "../nowhere");
        link("_shared", "out");
        link(".hidden", "../out");
        link("git", ".git");
        link("linked", "inside");
        let local = EditableFolder::local(&folder).expect("a folder");
        for files in [&local, &EditableFolder::open(&folder).expect("a folder")] {
            for above in ["out", "absolute", "a/out", "dangling", "_shared", "git", "out/new", "_shared/new"] {
                for name in ["new.md", "present.md"] {
                    let path = format!("{above}/{name}");
                    for refused in [files.create(&path, b"x"), files.write(&path, b"x")] {
                        assert!(matches!(refused, Err(EditError::Outside)), "{path}: {refused:?}");
                    }
                }
            }
        }
        assert!(matches!(local.write(".hidden/x.json", b"x"), Err(EditError::Outside)));
        assert_eq!(fs::read_dir(around.path().join("out")).expect("a folder").count(), 1);
        assert_eq!(fs::read(around.path().join("out/present.md")).expect("a file"), b"theirs");
        assert!(!around.path().join("nowhere").exists());
        local.create("linked/a.md", b"x").expect("a link inside of the folder");
        local.write(".promptshelf/schema.json", b"x").expect("a hidden file");
        assert_eq!(local.read("inside/a.md").expect("a file"), b"x");
    }

    /// A library in the folder of another program has the settings of that program next to its prompts.
    #[test]
    fn settings_of_the_program_around_a_library_are_not_changed() {
        let around = tempfile::tempdir().expect("a folder");
        let folder = around.path().join(".claude");
        fs::create_dir_all(folder.join("commands")).expect("created");
        let files = EditableFolder::open(&folder).expect("a folder");
        for path in ["settings.json", "settings.local.json", "agents/a.md", "commands/run.sh", "hooks/a.py", "a.md"] {
            assert!(matches!(files.create(path, b"x"), Err(EditError::Obeyed)), "{path}");
        }
        for path in ["commands/a.md", "skills/team/SKILL.md", MANIFEST] {
            files.create(path, b"x").expect("created");
        }
        let files = EditableFolder::open(folder.join("commands")).expect("a folder");
        files.create("b.md", b"x").expect("created");
        assert!(matches!(files.create("CLAUDE.md", b"x"), Err(EditError::Obeyed)));
    }
}

//! A tree of files: a folder on disk, or files in memory. Nothing above this module depends on the kind.
//!
//! The operating system resolves every path below an open folder, so neither a symbolic link nor a folder that is
//! replaced during the read leads out of it. A folder in memory has the same rules for paths and links.

use std::{
    collections::BTreeMap,
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read},
    ops::Deref,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata, OpenOptions},
};
use promptshelf_core::Timestamp;
use smol_str::SmolStr;

use crate::{
    memory_tree::{FileFault, MemoryFile, MemoryTree},
    places,
};

/// An open tree. Paths are relative to it, with `/` between their parts; those that lead out of it are refused.
#[derive(Debug)]
pub(crate) enum Tree {
    /// A folder, and the texts that an editor has not saved, by path.
    Folder(ConfinedDir, BTreeMap<String, MemoryFile>),
    Memory(MemoryDir),
}

impl Tree {
    pub(crate) fn folder(folder: ConfinedDir) -> Tree {
        Tree::Folder(folder, BTreeMap::new())
    }

    /// Returns the path in this tree to which a path leads, without links, `.` and `..`.
    pub(crate) fn canonicalize(&self, path: &str) -> Result<String, FileError> {
        match self {
            Tree::Folder(folder, _) => folder.canonicalize(path),
            Tree::Memory(memory) => memory.canonicalize(path),
        }
    }

    /// Returns the state of a file. Follows links.
    pub(crate) fn state(&self, path: &str) -> Result<FileState, FileError> {
        match self {
            Tree::Folder(_, unsaved) if let Some(file) = unsaved.get(path) => Ok(FileState::in_memory(file)),
            Tree::Folder(folder, _) => folder.state(path),
            Tree::Memory(memory) => memory.state(path),
        }
    }

    /// Reads a file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes, FileError> {
        match self {
            Tree::Folder(_, unsaved) if let Some(file) = unsaved.get(path) => match file.bytes().len() as u64 {
                len if len > limit => Err(FileError::TooLarge(len)),
                _ => Ok(FileBytes { bytes: FileData::Shared(file.shared()), state: FileState::in_memory(file) }),
            },
            Tree::Folder(folder, _) => folder.read(path, limit).map(|FileBytes { bytes, state }| {
                let bytes = FileData::Read(bytes);
                FileBytes { bytes, state }
            }),
            Tree::Memory(memory) => memory.read(path, limit),
        }
    }

    /// Whether a regular file, and not a link to one, or an unsaved text is at a path of a folder.
    pub(crate) fn is_plain_file(&self, path: &str) -> bool {
        match self {
            Tree::Folder(_, unsaved) if unsaved.contains_key(path) => true,
            Tree::Folder(folder, _) => folder.dir().symlink_metadata(path).is_ok_and(|found| found.is_file()),
            Tree::Memory(_) => false,
        }
    }

    /// Returns a number that changes with the content of a file: from the metadata of a file on disk, and from the bytes
    /// of one in memory.
    pub(crate) fn version(&self, path: &str) -> Result<u64, FileError> {
        let mut hasher = DefaultHasher::new();
        match self {
            Tree::Folder(folder, _) => folder.state(path)?.hash(&mut hasher),
            Tree::Memory(memory) => memory.file(path)?.bytes().hash(&mut hasher),
        }
        Ok(hasher.finish())
    }
}

/// The bytes of a file, and its state when they were read.
#[derive(Debug)]
pub(crate) struct FileBytes<B = FileData> {
    pub(crate) bytes: B,
    pub(crate) state: FileState,
}

/// Bytes that were read from a disk, or those of a file in memory, which other files may share.
#[derive(Debug)]
pub(crate) enum FileData {
    Read(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl FileData {
    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            FileData::Read(bytes) => bytes,
            FileData::Shared(bytes) => bytes.to_vec(),
        }
    }
}

impl Deref for FileData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FileData::Read(bytes) => bytes,
            FileData::Shared(bytes) => bytes,
        }
    }
}

/// The reason why a file was not read.
#[derive(Debug)]
pub(crate) enum FileError {
    /// Nothing exists at the path, or it was deleted meanwhile.
    NotFound,
    OutsideRoot,
    LinkCycle,
    /// Something other than a regular file exists at the path.
    NotAFile,
    /// The file has this many bytes, more than the limit.
    TooLarge(u64),
    Io(io::Error),
}

/// A file's metadata. Equal states mean equal bytes, unless the file was written so recently that the clock of the
/// file system has not advanced since; see [`is_stable`](FileState::is_stable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileState {
    len: u64,
    modified: Option<SystemTime>,
    /// Time of the last status change (seconds, nanoseconds), and device and inode. Programs can set the modification
    /// time back, but not these.
    changed: (i64, i64),
    file: (u64, u64),
    /// The number of a file in memory, and the time that it was created with.
    memory: Option<(u64, Option<Timestamp>)>,
}

/// The coarsest clock among the file systems in use: FAT has a resolution of two seconds.
const CLOCK: Duration = Duration::from_secs(2);

/// A hash of a [`FileState`], stored for every file in place of the state: only equality matters later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStateHash(u64);

impl FileState {
    pub(crate) fn hash64(&self) -> FileStateHash {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        FileStateHash(hasher.finish())
    }

    pub(crate) fn of(metadata: &Metadata) -> FileState {
        #[cfg(unix)]
        let (changed, file) = {
            use cap_std::fs::MetadataExt as _;
            ((metadata.ctime(), metadata.ctime_nsec()), (metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let (changed, file) = ((0, 0), (0, 0));
        let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
        FileState { len: metadata.len(), modified, changed, file, memory: None }
    }

    pub(crate) fn in_memory(file: &MemoryFile) -> FileState {
        let memory = Some((file.number(), file.modified()));
        FileState { len: file.bytes().len() as u64, modified: None, changed: (0, 0), file: (0, 0), memory }
    }

    /// Whether bytes that were read at the time `read` are certain to be those of the file as long as it has this
    /// state.
    pub(crate) fn is_stable(&self, read: SystemTime) -> bool {
        // The bytes with a number never change.
        if self.memory.is_some() {
            return true;
        }
        let (seconds, nanoseconds) = self.changed;
        let since_epoch = u64::try_from(seconds).ok().zip(u32::try_from(nanoseconds).ok());
        let changed =
            since_epoch.map(|(seconds, nanoseconds)| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        let latest = self.modified.max(changed);
        latest.is_some_and(|latest| read.duration_since(latest).is_ok_and(|age| age > CLOCK))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn modified(&self) -> Option<Timestamp> {
        if let Some((_, modified)) = self.memory {
            return modified;
        }
        let time = jiff::Timestamp::try_from(self.modified?).ok()?;
        Timestamp::from_unix(time.as_second(), time.subsec_nanosecond()).ok()
    }
}

/// An open folder. Paths that lead out of it are refused.
#[derive(Debug)]
pub(crate) struct ConfinedDir(Dir);

fn file_error(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NotFound,
        // An error without a system error number comes from the confinement of `cap-std`.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => FileError::OutsideRoot,
        _ if is_one_of(&error, ELOOP) => FileError::LinkCycle,
        // A socket, and a FIFO or a device without a peer, cannot be opened.
        _ if is_one_of(&error, ENXIO) => FileError::NotAFile,
        _ => FileError::Io(error),
    }
}

/// Error numbers without a stable name in the standard library. They differ between Linux and the BSDs, which include
/// macOS.
const ELOOP: &[i32] = if cfg!(any(target_os = "linux", target_os = "android")) { &[40] } else { &[62] };
const ENXIO: &[i32] = &[6];

fn is_one_of(error: &io::Error, numbers: &[i32]) -> bool {
    cfg!(unix) && error.raw_os_error().is_some_and(|number| numbers.contains(&number))
}

impl ConfinedDir {
    pub(crate) fn open(path: &Path) -> io::Result<ConfinedDir> {
        Dir::open_ambient_dir(path, ambient_authority()).map(ConfinedDir)
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.0
    }

    /// Returns the path below this folder to which a path leads, with `/` between its parts and without links.
    pub(crate) fn canonicalize(&self, path: &str) -> Result<String, FileError> {
        self.0.canonicalize(path).map(|path| places::text(&path)).map_err(file_error)
    }

    /// Returns the metadata at a path. Follows links.
    pub(crate) fn metadata(&self, path: &str) -> Result<Metadata, FileError> {
        self.0.metadata(path).map_err(file_error)
    }

    pub(crate) fn state(&self, path: &str) -> Result<FileState, FileError> {
        let metadata = self.metadata(path)?;
        if metadata.is_file() { Ok(FileState::of(&metadata)) } else { Err(FileError::NotAFile) }
    }

    /// Reads a regular file of at most `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes<Vec<u8>>, FileError> {
        let mut options = OpenOptions::new();
        // Without this, opening a FIFO blocks until a writer opens it.
        options.read(true).nonblock(true);
        let file = self.0.open_with(path, &options).map_err(file_error)?;
        let metadata = file.metadata().map_err(file_error)?;
        if !metadata.is_file() {
            return Err(FileError::NotAFile);
        }
        if metadata.len() > limit {
            return Err(FileError::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
        let mut file: File = file.into_std();
        // The file can grow while it is read.
        (&mut file).take(limit + 1).read_to_end(&mut bytes).map_err(file_error)?;
        if bytes.len() as u64 > limit {
            return Err(FileError::TooLarge(bytes.len() as u64));
        }
        Ok(FileBytes { bytes, state: FileState::of(&metadata) })
    }
}

/// The longest path of a file, in bytes: as on Linux.
const MAX_PATH: usize = 4_096;

/// A folder in memory. Paths that lead out of it are refused.
#[derive(Clone, Debug)]
pub(crate) struct MemoryDir {
    tree: MemoryTree,
    /// The path of the folder in the tree: empty, or with a trailing `/`.
    prefix: SmolStr,
}

impl MemoryDir {
    pub(crate) fn new(tree: MemoryTree) -> MemoryDir {
        MemoryDir { tree, prefix: SmolStr::default() }
    }

    /// Returns a folder in this one; `None` if it does not exist.
    pub(crate) fn folder(&self, path: &str) -> Option<MemoryDir> {
        let path = self.resolve(path).ok().filter(|path| self.is_folder(path))?;
        let prefix = match path.as_str() {
            "" => self.prefix.clone(),
            path => smol_str::format_smolstr!("{}{path}/", self.prefix),
        };
        Some(MemoryDir { tree: self.tree.clone(), prefix })
    }

    /// Returns a path without `.` and `..`, whether or not a file exists there.
    pub(crate) fn resolve(&self, path: &str) -> Result<String, FileError> {
        if path.starts_with('/') {
            return Err(FileError::OutsideRoot);
        }
        if path.contains('\0') {
            return Err(FileError::NotFound);
        }
        let mut resolved = String::with_capacity(path.len());
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." if resolved.is_empty() => return Err(FileError::OutsideRoot),
                ".." if !self.is_folder(&resolved) => return Err(FileError::NotFound),
                ".." => resolved.truncate(resolved.rfind('/').unwrap_or_default()),
                part => {
                    if !resolved.is_empty() {
                        resolved.push('/');
                    }
                    resolved.push_str(part);
                }
            }
        }
        Ok(resolved)
    }

    /// Returns the path of a file or folder without links, `.` and `..`.
    pub(crate) fn canonicalize(&self, path: &str) -> Result<String, FileError> {
        let path = self.resolve(path)?;
        match self.get(&path) {
            Some(file) => Ok(self.link(file).map_or(path, str::to_owned)),
            None if self.is_folder(&path) => Ok(path),
            None => Err(FileError::NotFound),
        }
    }

    pub(crate) fn link<'f>(&self, file: &'f MemoryFile) -> Option<&'f str> {
        file.link().and_then(|target| target.strip_prefix(&*self.prefix))
    }

    pub(crate) fn file(&self, path: &str) -> Result<&MemoryFile, FileError> {
        let path = self.resolve(path)?;
        match self.get(&path) {
            Some(file) => Ok(file),
            None if self.is_folder(&path) => Err(FileError::NotAFile),
            None => Err(FileError::NotFound),
        }
    }

    pub(crate) fn state(&self, path: &str) -> Result<FileState, FileError> {
        self.file(path).map(FileState::in_memory)
    }

    pub(crate) fn read(&self, path: &str, limit: u64) -> Result<FileBytes, FileError> {
        let file = self.file(path)?;
        match file.fault() {
            None => {}
            Some(FileFault::Unreadable(reason)) => return Err(FileError::Io(io::Error::other(reason.to_string()))),
            Some(FileFault::LinkOutside) => return Err(FileError::OutsideRoot),
            Some(FileFault::LinkCycle) => return Err(FileError::LinkCycle),
            Some(FileFault::NameNotUtf8 | FileFault::LinkWithoutTarget | FileFault::NamedOnly) => {
                return Err(FileError::NotFound);
            }
        }
        let len = file.bytes().len() as u64;
        if len > limit {
            return Err(FileError::TooLarge(len));
        }
        Ok(FileBytes { bytes: FileData::Shared(file.shared()), state: FileState::in_memory(file) })
    }

    /// Returns the paths below this folder and their files, by path. The paths are not checked.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &MemoryFile)> {
        self.tree.below(&self.prefix).filter_map(|(path, file)| Some((path.strip_prefix(&*self.prefix)?, file)))
    }

    /// Returns the reason why no folder on disk can have a file at a path of this tree; `None` for a usable path.
    pub(crate) fn fault(path: &str) -> Option<&'static str> {
        if path.len() > MAX_PATH {
            return Some("its path is longer than 4096 bytes");
        }
        if path.contains('\0') {
            return Some("its path contains a NUL character");
        }
        let is_odd = path.split('/').any(|part| matches!(part, "" | "." | ".."));
        is_odd.then_some("its path is absolute, or has an empty part, `.` or `..`")
    }

    fn get(&self, path: &str) -> Option<&MemoryFile> {
        let found = match &*self.prefix {
            "" => self.tree.get(path),
            prefix => self.tree.get(&format!("{prefix}{path}")),
        };
        found.filter(|_| !self.is_below_a_file(path))
    }

    /// Whether a folder around a path is a file. On disk this cannot happen.
    pub(crate) fn is_below_a_file(&self, path: &str) -> bool {
        let at = |end: usize| match &*self.prefix {
            "" => self.tree.get(&path[..end]).is_some(),
            prefix => self.tree.get(&format!("{prefix}{}", &path[..end])).is_some(),
        };
        path.match_indices('/').any(|(end, _)| at(end))
    }

    fn is_folder(&self, path: &str) -> bool {
        if path.is_empty() {
            return true;
        }
        let folder = format!("{}{path}/", self.prefix);
        let is_file = self.tree.get(folder.trim_end_matches('/')).is_some();
        !is_file && !self.is_below_a_file(path) && self.tree.below(&folder).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> MemoryDir {
        let files =
            [("a.md", "a"), ("docs/b.md", "bb"), ("docs/deep/c.md", "ccc"), ("../up.md", "x"), ("a.md/x.md", "x")];
        MemoryDir::new(files.into_iter().collect())
    }

    fn shown(result: Result<String, FileError>) -> String {
        result.unwrap_or_else(|error| format!("{error:?}"))
    }

    // req: S-89
    #[test]
    fn paths_stay_in_the_folder() {
        let (library, docs) = (library(), library().folder("docs").expect("a folder"));
        for (path, expected) in [
            ("a.md", "a.md"),
            ("docs/../a.md", "a.md"),
            ("./docs//b.md", "docs/b.md"),
            ("docs", "docs"),
            ("docs/..", ""),
            ("../up.md", "OutsideRoot"),
            ("docs/../../up.md", "OutsideRoot"),
            ("/a.md", "OutsideRoot"),
            ("nowhere/../a.md", "NotFound"),
            ("a.md/../a.md", "NotFound"),
            ("a.md/x.md", "NotFound"),
            ("a.md\0", "NotFound"),
            ("A.md", "NotFound"),
        ] {
            assert_eq!(shown(library.canonicalize(path)), expected, "{path}");
        }
        assert_eq!(docs.file("b.md").expect("a file").bytes(), b"bb");
        assert_eq!(docs.file("deep/../b.md").expect("a file").bytes(), b"bb");
        assert!(matches!(docs.file("../a.md"), Err(FileError::OutsideRoot)));
        assert!(matches!(docs.file("deep"), Err(FileError::NotAFile)));
        assert!(matches!(docs.read("deep/c.md", 2), Err(FileError::TooLarge(3))));
        assert!(library.folder("a.md/nothing").is_none() && library.folder("..").is_none());
        assert_eq!(docs.files().map(|(path, _)| path).collect::<Vec<_>>(), ["b.md", "deep/c.md"]);
    }
}

//! A folder of a [`MemoryTree`], with the same rules for paths and links as a folder on disk.

use std::io;

use smol_str::SmolStr;

use crate::{
    file_access::{FileBytes, FileData, FileError},
    file_state::FileState,
    memory_tree::{FileFault, MemoryFile, MemoryTree},
};

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

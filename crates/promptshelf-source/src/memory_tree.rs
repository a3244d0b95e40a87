//! A tree of files in memory.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use promptshelf_core::Timestamp;
use smol_str::SmolStr;

/// An immutable set of files in memory, such as a revision of a channel or a commit of a git repository.
///
/// Cheap to clone. Nothing outside of it can be reached: it has no links and no parent folder.
///
/// ```
/// use promptshelf_source::MemoryTree;
///
/// let tree: MemoryTree = [("hello.md", "Say hello.\n")].into_iter().collect();
/// assert_eq!(tree.get("hello.md").unwrap().bytes(), b"Say hello.\n");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MemoryTree(Arc<BTreeMap<SmolStr, MemoryFile>>);

/// A file of a [`MemoryTree`].
///
/// Cheap to clone. A tree that is read again takes over the results for all files that are clones of those before.
#[derive(Clone)]
pub struct MemoryFile {
    /// The same number means the same bytes.
    number: u64,
    bytes: Arc<[u8]>,
    modified: Option<Timestamp>,
    fault: Option<FileFault>,
    link: Option<Arc<str>>,
}

/// The reason why a file of a tree has no content. A library reports it as it does for such a file on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFault {
    /// A file that cannot be kept in memory. The reason completes "cannot read this file: ".
    Unreadable(Arc<str>),
    /// A name that is not UTF-8; the path of the file is an approximation.
    NameNotUtf8,
    /// A symbolic link that leads out of the tree.
    LinkOutside,
    /// A symbolic link without a target.
    LinkWithoutTarget,
    /// A symbolic link that leads back to itself, or to a folder around it.
    LinkCycle,
    /// A file whose name makes it no prompt; see [`is_named_only`](crate::is_named_only).
    NamedOnly,
}

impl MemoryFile {
    /// Creates a file.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> MemoryFile {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        MemoryFile {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            bytes: bytes.into(),
            modified: None,
            fault: None,
            link: None,
        }
    }

    /// Creates a file without content, which a library reports.
    #[must_use]
    pub fn faulty(fault: FileFault) -> MemoryFile {
        MemoryFile { fault: Some(fault), ..MemoryFile::new([]) }
    }

    /// Marks the file as the target of a symbolic link: as on disk, access rules for one of the two paths apply to both.
    #[must_use]
    pub fn linked_to(self, target: impl Into<Arc<str>>) -> MemoryFile {
        MemoryFile { link: Some(target.into()), ..self }
    }

    /// Sets the time of the last change.
    #[must_use]
    pub fn modified_at(self, time: Timestamp) -> MemoryFile {
        MemoryFile { modified: Some(time), ..self }
    }

    /// Returns the content; that of an unreadable file is empty.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the content, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Returns the time of the last change.
    #[must_use]
    pub fn modified(&self) -> Option<Timestamp> {
        self.modified
    }

    /// Returns the reason why the file has no content.
    #[must_use]
    pub fn fault(&self) -> Option<&FileFault> {
        self.fault.as_ref()
    }

    /// Returns the path that the file has without the symbolic link that leads to it.
    #[must_use]
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// Compares content, link and time.
impl PartialEq for MemoryFile {
    fn eq(&self, other: &MemoryFile) -> bool {
        self.modified == other.modified
            && self.fault == other.fault
            && self.link == other.link
            && (self.number == other.number || self.bytes == other.bytes)
    }
}

impl Eq for MemoryFile {}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFile({} bytes)", self.bytes.len())
    }
}

impl MemoryTree {
    /// Returns the file at a path, which has `/` between its parts.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&MemoryFile> {
        self.0.get(path)
    }

    /// Returns all files, by path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &MemoryFile)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    pub(crate) fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &MemoryFile)> {
        let files = self.0.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        files.map(|(path, file)| (path.as_str(), file)).take_while(move |(path, _)| path.starts_with(prefix))
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns this tree with some files replaced; `None` removes one.
    #[must_use]
    pub fn with(&self, changes: impl IntoIterator<Item = (impl Into<SmolStr>, Option<MemoryFile>)>) -> MemoryTree {
        let mut files = (*self.0).clone();
        for (path, file) in changes {
            let path = path.into();
            match file {
                Some(file) => files.insert(path, file),
                None => files.remove(&path),
            };
        }
        MemoryTree(Arc::new(files))
    }
}

impl fmt::Debug for MemoryTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTree({} files)", self.0.len())
    }
}

impl<P: Into<SmolStr>> FromIterator<(P, MemoryFile)> for MemoryTree {
    fn from_iter<I: IntoIterator<Item = (P, MemoryFile)>>(files: I) -> MemoryTree {
        MemoryTree(Arc::new(files.into_iter().map(|(path, file)| (path.into(), file)).collect()))
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for MemoryTree {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(files: I) -> MemoryTree {
        files.into_iter().map(|(path, text)| (path, MemoryFile::new(text.as_bytes()))).collect()
    }
}

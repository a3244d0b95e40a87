//! Reads the files of a commit from the object store: names and sizes first, then the contents that are needed.

use std::collections::{HashMap, HashSet};

use promptshelf_source::{FileFault, MemoryFile, MemoryTree, is_library_file, is_named_only};

use crate::{
    address::is_commit,
    error::GitError,
    links::Links,
    options::GitLimits,
    repository::{Locked, Repository},
};

/// The bytes of the contents that one call returns.
const BYTES_PER_CALL: u64 = 32 << 20;

/// The first line of a pointer of Git LFS, and the longest pointer; see its specification.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";
const MAX_LFS: u64 = 1_024;

const LINK_MODE: &str = "120000";

pub(crate) type KnownFiles = HashMap<Box<str>, MemoryFile>;

#[derive(Clone, Debug, Default)]
pub(crate) struct CommitTree {
    pub(crate) tree: MemoryTree,
    pub(crate) files: KnownFiles,
}

/// An entry of a tree, as `git ls-tree -r -z` prints it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) id: Box<str>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
    Submodule,
    Other,
    /// The name of the file is not UTF-8.
    Unnamed,
    /// The library names the file, and does not read it.
    NamedOnly,
}

impl Kind {
    /// Returns the reason why such an entry has no content.
    fn fault(self) -> Option<FileFault> {
        match self {
            Kind::File | Kind::Link => None,
            Kind::Submodule => Some(FileFault::Unreadable("it is a submodule, and submodules are not fetched".into())),
            Kind::Other => Some(FileFault::Unreadable("it is not a regular file".into())),
            Kind::Unnamed => Some(FileFault::NameNotUtf8),
            Kind::NamedOnly => Some(FileFault::NamedOnly),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Item<'e> {
    pub(crate) path: String,
    /// The entry, or the reason why there is none.
    pub(crate) entry: Result<&'e Entry, FileFault>,
    pub(crate) is_linked: bool,
}

/// Reads the folder of a commit. Contents that are known by their ids are not read again.
pub(crate) async fn read(
    repository: &Repository,
    lock: &Locked,
    commit: &str,
    folder: &str,
    known: &KnownFiles,
    limits: &GitLimits,
) -> Result<CommitTree, GitError> {
    let root = root(repository, commit, folder).await?;
    let listed = repository.reading("ls-tree").arguments(["-r", "-z", "--full-tree", &root]).run().await?;
    let entries = entries(&listed, commit, limits.files)?;
    drop(listed);
    let mut links: Vec<&str> =
        entries.iter().filter(|entry| entry.kind == Kind::Link).map(|entry| &*entry.id).collect();
    let texts = load(repository, lock, &mut links, known, limits).await?;
    let items = Links::new(&entries, &texts).items(limits.files)?;
    let mut needed: Vec<&str> = items
        .iter()
        .filter_map(|item| item.entry.as_ref().ok().filter(|entry| entry.kind.fault().is_none()))
        .map(|entry| &*entry.id)
        .collect();
    let mut files = load(repository, lock, &mut needed, known, limits).await?;
    let mut total = 0;
    let mut seen = HashSet::with_capacity(items.len());
    let mut tree = Vec::with_capacity(items.len());
    for Item { path, entry, is_linked } in &items {
        let file = match entry {
            _ if !seen.insert(path.as_str()) => {
                MemoryFile::faulty(FileFault::Unreadable("two entries of the commit have its name".into()))
            }
            Err(fault) => MemoryFile::faulty(fault.clone()),
            Ok(entry) => match (entry.kind.fault(), files.get(&entry.id)) {
                (Some(fault), _) => MemoryFile::faulty(fault),
                (None, Some(file)) if *is_linked => file.clone().linked_to(&*entry.path),
                (None, Some(file)) => file.clone(),
                (None, None) => {
                    return Err(GitError::Protocol { reason: format!("the object {} is missing", entry.id) });
                }
            },
        };
        total += file.bytes().len() as u64;
        if total > limits.total_bytes {
            return Err(too_large(limits.total_bytes));
        }
        tree.push((path.as_str(), file));
    }
    let tree = tree.into_iter().collect();
    files.extend(texts);
    Ok(CommitTree { tree, files })
}

async fn load(
    repository: &Repository,
    lock: &Locked,
    ids: &mut Vec<&str>,
    known: &KnownFiles,
    limits: &GitLimits,
) -> Result<KnownFiles, GitError> {
    ids.sort_unstable();
    ids.dedup();
    let found = ids.iter().filter_map(|id| Some(((*id).into(), known.get(*id)?.clone())));
    let mut files: KnownFiles = found.collect();
    ids.retain(|id| !files.contains_key(*id));
    files.extend(contents(repository, lock, ids, limits).await?);
    Ok(files)
}

async fn root(repository: &Repository, commit: &str, folder: &str) -> Result<String, GitError> {
    let name = format!("{commit}:{folder}\n");
    let output = repository.reading("cat-file").arguments(["--batch-check"]).input(name).run().await?;
    let line = String::from_utf8_lossy(&output);
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some(id), Some("tree")) if is_commit(id) => Ok(id.to_owned()),
        (Some(id), Some(_)) if is_commit(id) => {
            Err(GitError::NotFound { what: format!("folder {folder:?}: a file is at this path") })
        }
        _ => Err(GitError::NotFound { what: format!("folder {folder:?} at commit {}", crate::error::short(commit)) }),
    }
}

/// Parses the list of a tree. Files that a library ignores are left out, unless links can lead to them.
pub(crate) fn entries(listed: &[u8], commit: &str, max_files: usize) -> Result<Vec<Entry>, GitError> {
    let refused = |reason: String| GitError::Refused { commit: commit.to_owned(), reason };
    let has_links = listed.split(|byte| *byte == 0).any(|line| line.starts_with(LINK_MODE.as_bytes()));
    let mut entries = Vec::new();
    let mut library_files = 0;
    for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t');
        let parsed = tab.and_then(|tab| Some((std::str::from_utf8(&line[..tab]).ok()?, &line[tab + 1..])));
        let Some((meta, name)) = parsed else {
            return Err(GitError::Protocol { reason: "a line of `git ls-tree` has another form".to_owned() });
        };
        let mut words = meta.split(' ');
        let (Some(mode), Some(_), Some(id)) = (words.next(), words.next(), words.next()) else {
            return Err(GitError::Protocol { reason: "a line of `git ls-tree` has another form".to_owned() });
        };
        let (path, is_utf8) = match std::str::from_utf8(name) {
            Ok(path) => (path.to_owned(), true),
            Err(_) => (String::from_utf8_lossy(name).into_owned(), false),
        };
        // git itself never makes or checks out such a tree.
        if path.split('/').any(is_forbidden) {
            return Err(refused(format!(
                "its tree has the path {path:?}, which git itself refuses to check out: the commit was made to attack its \
                 readers"
            )));
        }
        match is_library_file(&path) {
            true if library_files >= max_files => return Err(too_many(max_files)),
            true => library_files += 1,
            false if has_links => {}
            false if is_named_only(&path) => {
                entries.push(Entry { path, id: id.into(), kind: Kind::NamedOnly });
                continue;
            }
            false => continue,
        }
        let kind = match mode {
            _ if !is_utf8 => Kind::Unnamed,
            LINK_MODE => Kind::Link,
            "160000" => Kind::Submodule,
            mode if mode.starts_with("100") => Kind::File,
            _ => Kind::Other,
        };
        entries.push(Entry { path, id: id.into(), kind });
    }
    Ok(entries)
}

pub(crate) fn too_many(max_files: usize) -> GitError {
    let reason = format!("the commit has more than {max_files} files: serve a folder of the repository, or fewer");
    GitError::TooLarge { reason }
}

fn is_forbidden(part: &str) -> bool {
    matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git")
}

/// Reads contents by their ids. Those above a limit become unreadable files, and are not read.
async fn contents(
    repository: &Repository,
    lock: &Locked,
    ids: &[&str],
    limits: &GitLimits,
) -> Result<KnownFiles, GitError> {
    let mut files = KnownFiles::with_capacity(ids.len());
    if ids.is_empty() {
        return Ok(files);
    }
    let mut sizes = sizes(repository).await?;
    let missing: Vec<&str> = ids.iter().filter(|id| !sizes.contains_key(**id)).copied().collect();
    if !missing.is_empty() {
        repository.fetch_objects(lock, &missing).await?;
        sizes = self::sizes(repository).await?;
    }
    let mut chunk: Vec<(&str, u64)> = Vec::new();
    let (mut bytes, mut total) = (0, 0);
    for id in ids {
        let size = sizes.get(*id).copied();
        let size = size.ok_or_else(|| GitError::Protocol { reason: format!("the object {id} is missing") })?;
        if size > limits.file_bytes {
            let reason = format!("it has {size} bytes; the limit of the server is {}", limits.file_bytes);
            files.insert((*id).into(), MemoryFile::faulty(FileFault::Unreadable(reason.into())));
            continue;
        }
        total += size;
        if total > limits.total_bytes {
            return Err(too_large(limits.total_bytes));
        }
        if bytes + size > BYTES_PER_CALL && !chunk.is_empty() {
            read_chunk(repository, &std::mem::take(&mut chunk), &mut files).await?;
            bytes = 0;
        }
        bytes += size;
        chunk.push((id, size));
    }
    if !chunk.is_empty() {
        read_chunk(repository, &chunk, &mut files).await?;
    }
    Ok(files)
}

fn too_large(limit: u64) -> GitError {
    let reason =
        format!("the files of the commit have more than {limit} bytes: serve a folder of the repository, or less");
    GitError::TooLarge { reason }
}

/// Returns the sizes of the blobs on disk. All of them are listed, because older releases of git fetch each object that is
/// missing when they are asked for it by its id.
async fn sizes(repository: &Repository) -> Result<HashMap<Box<str>, u64>, GitError> {
    let format = "--batch-check=%(objectname) %(objecttype) %(objectsize)";
    let call = repository.reading("cat-file").arguments([format, "--batch-all-objects", "--unordered", "--buffer"]);
    let output = call.run().await?;
    let text = String::from_utf8_lossy(&output);
    let sizes = text.lines().filter_map(|line| {
        let (id, rest) = line.split_once(' ')?;
        Some((id.into(), rest.strip_prefix("blob ")?.parse().ok()?))
    });
    Ok(sizes.collect())
}

async fn read_chunk(repository: &Repository, chunk: &[(&str, u64)], files: &mut KnownFiles) -> Result<(), GitError> {
    let ids: String = chunk.iter().map(|(id, _)| format!("{id}\n")).collect();
    let call = repository.reading("cat-file").arguments(["--batch=%(objectname) %(objectsize)", "--buffer"]);
    let output = call.input(ids).run().await?;
    let mut rest = output.as_slice();
    for (id, size) in chunk {
        let header = format!("{id} {size}\n");
        let after = rest.strip_prefix(header.as_bytes());
        let content = after.and_then(|after| after.split_at_checked(usize::try_from(*size).ok()?));
        let Some((content, [b'\n', after @ ..])) = content else {
            return Err(GitError::Protocol { reason: format!("`git cat-file` printed no content of {id}") });
        };
        rest = after;
        let is_pointer = *size <= MAX_LFS && content.starts_with(LFS);
        let file = if is_pointer {
            MemoryFile::faulty(FileFault::Unreadable(
                "it is a pointer of Git LFS, and its content is not fetched".into(),
            ))
        } else {
            MemoryFile::new(content)
        };
        files.insert((*id).into(), file);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "45b983be36b73c0788dc9cbcb76cbb80fc7bb057";

    fn parsed(entries: &[(&str, &[u8])]) -> Result<Vec<Entry>, GitError> {
        let mut listed = Vec::new();
        for (mode, name) in entries {
            listed.extend(format!("{mode} blob {ID}\t").bytes());
            listed.extend(*name);
            listed.push(0);
        }
        super::entries(&listed, ID, 3)
    }

    #[test]
    fn entries_have_their_kinds_and_ignored_files_are_only_kept_for_links() {
        let of = |path: &str, kind| Entry { path: path.to_owned(), id: ID.into(), kind };
        let all = parsed(&[("100644", b"a\n\tb.md"), ("100644", b".github/x.yml")]).unwrap();
        assert_eq!(all, [of("a\n\tb.md", Kind::File)]);
        let all = parsed(&[("120000", b"l.md"), ("100644", b".github/x.yml")]).unwrap();
        assert_eq!(all, [of("l.md", Kind::Link), of(".github/x.yml", Kind::File)]);
        let odd = parsed(&[("160000", b"s.md"), ("100644", b"\xff.md"), ("040000", b"t.md")]).unwrap();
        assert_eq!(
            odd.iter().map(|entry| entry.kind).collect::<Vec<_>>(),
            [Kind::Submodule, Kind::Unnamed, Kind::Other]
        );
    }

    // req: S-142
    #[test]
    fn paths_that_lead_elsewhere_refuse_the_commit() {
        for name in ["../a.md", "a/../b.md", "/etc/a.md", "a//b.md", "./a.md", ".git/config", "a/.GIT/hooks/x"] {
            let error = parsed(&[("100644", b"good.md"), ("100644", name.as_bytes())]).unwrap_err();
            assert!(matches!(error, GitError::Refused { .. }), "{name}: {error}");
        }
        let many: Vec<_> = ["a.md", "b.md", "c.md", "d.md"].map(|name| ("100644", name.as_bytes())).into();
        assert!(matches!(parsed(&many), Err(GitError::TooLarge { .. })));
    }
}

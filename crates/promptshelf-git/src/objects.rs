//! Reads the files of a commit from the object store: names and sizes first, then the contents that are needed.

use std::collections::{HashMap, HashSet};

use promptshelf_source::{MemoryFile, MemoryTree, is_library_file};

use crate::{
    address::is_commit,
    error::GitError,
    options::GitLimits,
    repository::{Locked, Repository},
};

/// The bytes of the contents that one call returns.
const BYTES_PER_CALL: u64 = 32 << 20;

/// The first line of a pointer of Git LFS, and the longest pointer; see its specification.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";
const MAX_LFS: u64 = 1_024;

/// The files of a commit, by the ids of their contents.
pub(crate) type KnownFiles = HashMap<Box<str>, MemoryFile>;

/// The files of a library at one commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommitTree {
    pub(crate) tree: MemoryTree,
    pub(crate) files: KnownFiles,
}

/// An entry of a tree, as `git ls-tree -r -z` prints it.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    path: String,
    id: Box<str>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Link,
    Submodule,
    Other,
    /// The name of the file is not UTF-8.
    Unnamed,
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
    let mut needed: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.kind == Kind::File && !known.contains_key(&entry.id))
        .map(|entry| &*entry.id)
        .collect();
    needed.sort_unstable();
    needed.dedup();
    let read = contents(repository, lock, &needed, limits).await?;
    let total: u64 = entries
        .iter()
        .filter_map(|entry| read.get(&entry.id).or_else(|| known.get(&entry.id)))
        .map(|file| file.bytes().len() as u64)
        .sum();
    if total > limits.total_bytes {
        return Err(too_large(limits.total_bytes));
    }
    let mut files = KnownFiles::with_capacity(entries.len());
    let mut seen = HashSet::with_capacity(entries.len());
    let mut tree = Vec::with_capacity(entries.len());
    for entry in &entries {
        let file = match entry.kind {
            Kind::File => match read.get(&entry.id).or_else(|| known.get(&entry.id)).cloned() {
                Some(file) => {
                    files.insert(entry.id.clone(), file.clone());
                    file
                }
                None => return Err(GitError::Protocol { reason: format!("the object {} is missing", entry.id) }),
            },
            Kind::Link => MemoryFile::unreadable("it is a symbolic link, and links of a commit are not followed"),
            Kind::Submodule => MemoryFile::unreadable("it is a submodule, and submodules are not fetched"),
            Kind::Other => MemoryFile::unreadable("it is not a regular file"),
            Kind::Unnamed => MemoryFile::unreadable("its name is not UTF-8"),
        };
        let is_first = seen.insert(entry.path.as_str());
        let file = if is_first { file } else { MemoryFile::unreadable("two entries of the commit have its name") };
        tree.push((entry.path.as_str(), file));
    }
    Ok(CommitTree { tree: tree.into_iter().collect(), files })
}

/// Returns the id of the folder.
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

/// Parses the list of a tree. Files that a library ignores are left out.
fn entries(listed: &[u8], commit: &str, max_files: usize) -> Result<Vec<Entry>, GitError> {
    let refused = |reason: String| GitError::Refused { commit: commit.to_owned(), reason };
    let mut entries = Vec::new();
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
        if !is_library_file(&path) {
            continue;
        }
        if entries.len() >= max_files {
            return Err(GitError::TooLarge {
                reason: format!(
                    "the commit has more than {max_files} files: serve a folder of the repository, or fewer"
                ),
            });
        }
        let kind = match mode {
            _ if !is_utf8 => Kind::Unnamed,
            "120000" => Kind::Link,
            "160000" => Kind::Submodule,
            mode if mode.starts_with("100") => Kind::File,
            _ => Kind::Other,
        };
        entries.push(Entry { path, id: id.into(), kind });
    }
    Ok(entries)
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
            files.insert((*id).into(), MemoryFile::unreadable(reason));
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

/// Reads the contents of a number of objects.
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
        let file = match is_pointer {
            true => MemoryFile::unreadable("it is a pointer of Git LFS, and its content is not fetched"),
            false => MemoryFile::new(content),
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
    fn entries_have_their_kinds_and_ignored_files_are_left_out() {
        let all = parsed(&[("100644", b"a\n\tb.md"), ("120000", b"l.md"), ("100644", b".github/x.yml")]).unwrap();
        let of = |path: &str, kind| Entry { path: path.to_owned(), id: ID.into(), kind };
        assert_eq!(all, [of("a\n\tb.md", Kind::File), of("l.md", Kind::Link)]);
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

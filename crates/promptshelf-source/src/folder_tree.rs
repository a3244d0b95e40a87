//! Reads a folder as a tree of files in memory.

use std::{collections::BTreeSet, path::Path};

use crate::{
    error::SourceError,
    file_role::MANIFEST,
    format::foreign_folders,
    manifest::Manifest,
    memory_tree::{MemoryFile, MemoryTree},
    pipeline::{WalkOptions, unread_file, walk},
    tree::{ConfinedDir, FileError, Tree},
    tree_path::check_tree_path,
};
use promptshelf_core::{Code, Diagnostic, SourceText};
use smol_str::{SmolStr, format_smolstr};

const MAX_PROBLEMS: usize = 20;

/// Reads all files of a library: those that a [`Files`](crate::Files) of the folder reads, and the golden
/// files of its tests. Hidden files and temporary files of editors are left out. A link to a file of the library
/// becomes a copy of that file.
///
/// The limits are those of the library's promptshelf.toml; a file may be as large as a resource. [`read_served_tree`]
/// leaves out what is refused here and not served from a folder either.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("hello.md"), "Say hello.\n")?;
/// std::fs::write(folder.path().join(".secret"), "hidden")?;
/// let tree = promptshelf_source::read_tree(folder.path())?;
/// assert_eq!(tree.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["hello.md"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`SourceError`] if the folder or a file cannot be read, a link leads out of the folder or nowhere, a name is not
/// UTF-8 or not portable, or a limit is exceeded. The message names the files.
pub fn read_tree(folder: &Path) -> Result<MemoryTree, SourceError> {
    let (tree, left_out) = read_served_tree(folder)?;
    if left_out.is_empty() { Ok(tree) } else { Err(SourceError::new(report(folder, left_out.iter().map(problem)))) }
}

/// Reads the files of a library as [`read_tree`] does, but leaves out what a [`Files`](crate::Files) does not serve
/// either: symbolic links that lead out of the folder, nowhere or to themselves, names that are not UTF-8 or not portable,
/// and what is not a file. Returns a finding for each.
///
/// # Errors
///
/// [`SourceError`] if the folder or a file cannot be read, or a limit is exceeded. The message names the files.
pub fn read_served_tree(folder: &Path) -> Result<(MemoryTree, Vec<Diagnostic>), SourceError> {
    let root = ConfinedDir::open(folder).map(Tree::folder).map_err(|error| SourceError::folder(folder, error))?;
    let limits = limits(&root);
    if let Some(problem) = foreign_home(folder, &root) {
        return Err(SourceError::new(problem));
    }
    let options = WalkOptions { files: limits.files, states: false, foreign_folders: true, golden_files: true };
    let found = walk(&root, options);
    let (mut left_out, refused): (Vec<Diagnostic>, Vec<Diagnostic>) =
        found.diagnostics.into_iter().partition(|found| matches!(found.code, Code::Outside | Code::NotUtf8));
    let mut problems: Vec<String> = refused.iter().map(problem).collect();
    let mut manifests: BTreeSet<SmolStr> = BTreeSet::new();
    let folders = found.files.iter().filter_map(|file| foreign_folders::around_plugin(&file.path));
    for folder in folders.chain([""]).collect::<BTreeSet<&str>>() {
        let paths = foreign_folders::hidden_manifests().map(|manifest| format_smolstr!("{folder}{manifest}"));
        manifests.extend(paths.chain([MANIFEST.into()]).filter(|path| root.state(path).is_ok()));
    }
    let (mut files, mut bytes) = (Vec::with_capacity(found.files.len() + manifests.len()), 0);
    let limit = limits.file_bytes.max(limits.resource_bytes);
    for path in manifests.into_iter().chain(found.files.into_iter().map(|file| file.path)) {
        if let Err(reason) = check_tree_path(&path) {
            problems.push(format!("{path}: {reason}"));
            continue;
        }
        match root.read(&path, limit) {
            Ok(read) => {
                bytes += read.bytes.len() as u64;
                if bytes > limits.library_bytes {
                    problems.push(format!(
                        "the library has more than {} bytes: raise `library-bytes` under [limits] in promptshelf.toml",
                        limits.library_bytes
                    ));
                    break;
                }
                let file = MemoryFile::new(read.bytes.into_vec());
                let modified = read.state.modified();
                files.push((path, modified.map_or(file.clone(), |time| file.modified_at(time))));
            }
            // Deleted since the walk.
            Err(FileError::NotFound) => {}
            Err(FileError::TooLarge(bytes)) => problems.push(format!(
                "{path}: this file has {bytes} bytes; the limit is {limit}: make it smaller, or raise `resource-bytes` \
                 under [limits] in promptshelf.toml"
            )),
            Err(error) => match unread_file(&path, &error, limit) {
                Some(found) if found.code == Code::Outside => left_out.push(found),
                found => problems.extend(found.iter().map(problem)),
            },
        }
    }
    if problems.is_empty() {
        return Ok((files.into_iter().collect(), left_out));
    }
    Err(SourceError::new(report(folder, problems.into_iter())))
}

fn problem(found: &Diagnostic) -> String {
    format!("{}: {}", found.location.source.path, found.message)
}

/// Returns the limits in the library's manifest, also in one with mistakes: the check reports those.
fn limits(root: &Tree) -> crate::manifest::Limits {
    const MANIFEST_BYTES: u64 = 4 << 20;
    let text = root.read(MANIFEST, MANIFEST_BYTES).ok().and_then(|file| String::from_utf8(file.bytes.into_vec()).ok());
    text.map_or_else(Manifest::none, |text| Manifest::understood(SourceText::new(MANIFEST, text))).limits
}

/// Rejects a folder such as `.claude/commands`: its formats depend on the name of the folder, which is not a part of
/// the tree.
fn foreign_home(folder: &Path, root: &Tree) -> Option<String> {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let home = foreign_folders::home(&path);
    (!home.is_empty() && root.state(MANIFEST).is_err()).then(|| {
        format!("the format of the files in {} depends on its name {home}: use the folder above it", folder.display())
    })
}

fn report(folder: &Path, problems: impl ExactSizeIterator<Item = String>) -> String {
    let count = problems.len();
    let shown = problems.take(MAX_PROBLEMS).map(|problem| format!("\n  {problem}")).collect::<String>();
    let more = match count.saturating_sub(MAX_PROBLEMS) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    format!("the folder {} cannot be read as a whole:{shown}{more}", folder.display())
}

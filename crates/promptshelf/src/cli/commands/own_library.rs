//! The rule that `sync` and `export` do not write between the prompts of the library that they read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use promptshelf_source::{Mark, SKILL_RECORD, is_prompt_path};

use crate::{
    command_line,
    exit::{Exit, Failure},
    source::Source,
};

const MAX_DEPTH: usize = 8;
/// The largest file that is looked at, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Rejects a folder that the library itself reads, unless each prompt file in it was written by `sync` or `export`:
/// those are never prompts. `folder` is below `to`, and `sample` the name of a file to be written.
pub(super) fn refuse(source: &Source, to: &Path, folder: &str, sample: &str) -> Result<(), Failure> {
    let Some((library, root, target, prefix)) = read_itself(source, to, folder, sample) else { return Ok(()) };
    let Some(unmarked) = unmarked(&root, &target, &prefix, MAX_DEPTH) else { return Ok(()) };
    Err(failure(library, to, folder, &format!("{unmarked} is one of its prompts")))
}

/// Rejects a folder that the library itself reads, for files without a mark.
pub(super) fn refuse_any(source: &Source, to: &Path, folder: &str, sample: &str) -> Result<(), Failure> {
    match read_itself(source, to, folder, sample) {
        Some((library, ..)) => Err(failure(library, to, folder, "each skill would be one of its prompts again")),
        None => Ok(()),
    }
}

/// Rejects the library's own folder for a plugin whose manifest is at the top: only `commands` would be served from it.
pub(super) fn refuse_top(source: &Source, to: &Path) -> Result<(), Failure> {
    let Source::Folder(library) = source else { return Ok(()) };
    let is_itself = fs::canonicalize(library).is_ok_and(|root| root == resolved(to));
    if !is_itself || library.join(promptshelf_source::syntax::LIBRARY_FILE).exists() {
        return Ok(());
    }
    Err(failure(library, to, "", "its own prompts would not be served from a plugin"))
}

fn failure(library: &Path, to: &Path, folder: &str, reason: &str) -> Failure {
    let message = format!(
        "the library {} reads {} itself, where the files would be written: {reason}",
        command_line::path(library),
        command_line::path(&to.join(folder.trim_end_matches('/'))),
    );
    Failure::new(Exit::Usage, message).help(
        "write to another project with --to, or move the library's prompts to a folder of their own, such as `prompts`",
    )
}

/// Returns the library, its path and that of the folder without links, and the path between them, if the library reads
/// files in this folder as prompts.
fn read_itself<'s>(
    source: &'s Source,
    to: &Path,
    folder: &str,
    sample: &str,
) -> Option<(&'s Path, PathBuf, PathBuf, String)> {
    let Source::Folder(library) = source else { return None };
    // An address of a repository is not a folder.
    let root = fs::canonicalize(library).ok()?;
    let target = resolved(&to.join(folder));
    let below = target.strip_prefix(&root).ok()?;
    let prefix: String = below.iter().map(|part| format!("{}/", part.to_string_lossy())).collect();
    let is_read = is_prompt_path(&root, &format!("{prefix}{sample}"));
    is_read.then_some((library, root, target, prefix))
}

/// Returns the path of a folder that may not exist, without links.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    let mut present = absolute.as_path();
    loop {
        if let Ok(found) = fs::canonicalize(present) {
            return missing.iter().rev().fold(found, |path, part| path.join(part));
        }
        let (Some(parent), Some(name)) = (present.parent(), present.file_name()) else { return absolute };
        missing.push(name.to_owned());
        present = parent;
    }
}

/// Returns a file of the folder that the library reads as a prompt and that has no mark.
fn unmarked(root: &Path, folder: &Path, prefix: &str, depth: usize) -> Option<String> {
    if folder.join(SKILL_RECORD).exists() || depth == 0 {
        return None;
    }
    let mut entries: Vec<_> = fs::read_dir(folder).ok()?.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    entries.into_iter().find_map(|entry| {
        let path = format!("{prefix}{}", entry.file_name().to_str()?);
        let metadata = fs::metadata(entry.path()).ok()?;
        if metadata.is_dir() {
            return unmarked(root, &entry.path(), &format!("{path}/"), depth - 1);
        }
        let is_marked = || {
            let text = (metadata.len() <= MAX_BYTES).then(|| fs::read_to_string(entry.path()).ok()).flatten();
            text.is_some_and(|text| Mark::find(&text).is_some())
        };
        (is_prompt_path(root, &path) && !is_marked()).then_some(path)
    })
}

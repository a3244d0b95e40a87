//! The files that a walk found, and the diagnostics for those that it left out.

use std::collections::BTreeMap;

use promptshelf_core::{Code, Diagnostic, Location, SourceText, invisible::is_invisible};
use smol_str::SmolStr;

use crate::{
    file_access::FileError,
    file_role::{FileRole, MANIFEST, is_ignored, is_skipped},
    file_state::FileState,
    format::foreign_folders,
    memory_tree::MemoryFile,
    tree_path::is_golden,
};

pub(super) const MAX_DEPTH: usize = 32;

const MAX_SHOWN: usize = 200;

#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkOptions {
    pub(crate) files: usize,
    pub(crate) states: bool,
    pub(crate) foreign_folders: bool,
    pub(crate) golden_files: bool,
}

#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    /// Sorted by path.
    pub(crate) files: Vec<FoundFile>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Folders that could not be read, each with a trailing `/`. Their files may still exist.
    pub(crate) unread: Vec<String>,
    /// Links to files and folders, each with the path that it leads to. Changes of their targets cause no events.
    pub(crate) links: Vec<(String, String)>,
    /// Files that look like prompts of other programs, and are none by their names.
    pub(crate) named: Vec<String>,
    /// The number of folders of skills that `sync` wrote, whose files are left out.
    pub(crate) generated: usize,
}

#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: SmolStr,
    /// The file's state, if it was requested and the file is not a link.
    pub(crate) state: Option<FileState>,
    /// Whether the file is known to be the same as at the last read.
    pub(crate) is_unchanged: bool,
}

/// Whether an entry does not belong to the library, according to its path alone. Entries with a name that is left out for
/// files and folders alike are left out without a look at their type: `is_folder` of `None`.
pub(super) fn is_left_out(path: &str, is_folder: Option<bool>, options: WalkOptions) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if options.foreign_folders && path.starts_with('.') {
        return !foreign_folders::leads_to_foreign_folder(path)
            || is_folder.is_some_and(|is_folder| is_ignored(path, is_folder));
    }
    let is_golden = || options.golden_files && is_golden(path);
    (is_skipped(name, false) && !is_golden()) || (is_folder == Some(true) && is_skipped(name, true)) || path == MANIFEST
}

pub(super) fn shown(path: &str) -> String {
    let shown = |c: char| if is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut short: String = path.chars().take(MAX_SHOWN).map(shown).collect();
    if short.len() < path.len() && path.chars().nth(MAX_SHOWN).is_some() {
        short.push('…');
    }
    short
}

pub(super) fn too_deep(prefix: &str) -> Diagnostic {
    let message = format!("this folder is nested more than {MAX_DEPTH} levels deep and is left out");
    at(display_path(prefix), Code::TooMany, true, message)
}

/// Returns the diagnostic for a name that is not UTF-8.
pub(super) fn name_not_utf8(path: &str) -> Diagnostic {
    at(path, Code::NotUtf8, false, "this file is left out: its name is not UTF-8").help("rename it")
}

pub(super) fn link_without_target(path: &str) -> Diagnostic {
    at(path, Code::Outside, false, "the target of this symbolic link does not exist").help("remove it")
}

/// Adds the texts that an editor has not saved, in place of files or in addition to them.
pub(super) fn add_unsaved(files: &mut Vec<FoundFile>, unsaved: &BTreeMap<String, MemoryFile>) {
    for (path, file) in unsaved.iter().filter(|(path, _)| *path != MANIFEST) {
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        if is_ignored(path, false) || folders.into_iter().any(|folder| is_ignored(folder, true)) {
            continue;
        }
        let found = FoundFile { path: path.into(), state: Some(FileState::in_memory(file)), is_unchanged: false };
        match files.binary_search_by(|found| found.path.as_str().cmp(path)) {
            Ok(index) => files[index] = found,
            Err(index) => files.insert(index, found),
        }
    }
}

pub(super) fn at(path: &str, code: Code, is_error: bool, message: impl Into<String>) -> Diagnostic {
    let location = Location::file(&SourceText::new(path, ""));
    match is_error {
        true => Diagnostic::error(code, location, message),
        false => Diagnostic::warning(code, location, message),
    }
}

/// Returns the diagnostic for a file that was not read: an error for a prompt, and a warning for other files, which
/// nothing may refer to.
pub(crate) fn unread_file(path: &str, error: &FileError, limit: u64) -> Option<Diagnostic> {
    let is_error = FileRole::of(path).is_prompt();
    let diagnostic = match error {
        FileError::NotFound => return None,
        FileError::OutsideRoot => at(path, Code::Outside, is_error, "this path leads out of the library")
            .help("copy the file into the library, or link to it by a relative path that stays inside"),
        FileError::LinkCycle => {
            at(path, Code::Outside, is_error, "this symbolic link is part of a cycle").help("remove it")
        }
        FileError::NotAFile => {
            at(path, Code::Outside, is_error, "this is not a regular file").help("move it out of the library")
        }
        FileError::TooLarge(len) => {
            let message = format!("this file has {len} bytes; the limit is {limit}");
            at(path, Code::TooLarge, is_error, message)
                .help("make it smaller, or raise `file-bytes` under [limits] in promptshelf.toml")
        }
        FileError::Io(error) => at(path, Code::Unreadable, is_error, format!("cannot read this file: {error}")),
    };
    Some(diagnostic)
}

pub(super) fn display_path(prefix: &str) -> &str {
    match prefix.trim_end_matches('/') {
        "" => ".",
        path => path,
    }
}

//! Listing of the files in a folder. Links are followed while they stay inside.

use cap_std::fs::{Dir, DirEntry};
use promptshelf_core::{Code, Diagnostic, Location, SourceText};
use smol_str::{SmolStr, format_smolstr};

use crate::{
    confined_dir::{ConfinedDir, FileError},
    file_role::{FileRole, MANIFEST, is_ignored, is_skipped},
    file_state::FileState,
    format::foreign_folders,
    tree_path::is_golden,
};

/// The largest depth of nested folders.
const MAX_DEPTH: usize = 32;

/// The extent of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkOptions {
    /// The largest number of files.
    pub(crate) files: usize,
    /// Whether to read the state of every file too.
    pub(crate) states: bool,
    /// Whether to list the hidden folders in which other programs store prompts.
    pub(crate) foreign_folders: bool,
    /// Whether to list the golden files of tests.
    pub(crate) golden_files: bool,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    /// Sorted by path.
    pub(crate) files: Vec<FoundFile>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Folders that could not be read, each with a trailing `/`. Their files may still exist.
    pub(crate) unread: Vec<String>,
    /// Links to files and folders, each with the path that it leads to. Changes of their targets cause no events.
    pub(crate) links: Vec<(String, String)>,
}

/// A regular file.
#[derive(Debug)]
pub(crate) struct FoundFile {
    /// With `/` between its parts.
    pub(crate) path: SmolStr,
    /// The file's state, if it was requested and the file is not a link.
    pub(crate) state: Option<FileState>,
}

/// Lists the files below a folder.
pub(crate) fn walk(root: &ConfinedDir, options: WalkOptions) -> WalkResult {
    let mut walker = Walker { root, options, found: WalkResult::default(), enclosing: Vec::new(), full: false };
    walker.folder(root.dir(), "");
    let Walker { mut found, full, .. } = walker;
    found.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // The system's order is not defined, and two reads of an unchanged folder have to be equal.
    found.diagnostics.sort_by(|a, b| a.location.source.path.cmp(&b.location.source.path));
    if full {
        let message = format!("the library has more than {} files; some are left out", options.files);
        found
            .diagnostics
            .push(at(".", Code::TooMany, true, message).help("raise `files` under [limits] in promptshelf.toml"));
    }
    found
}

/// Adds the files that exist only as unsaved text in an editor.
pub(super) fn add_unsaved<'p>(files: &mut Vec<FoundFile>, unsaved: impl Iterator<Item = &'p String>) {
    for path in unsaved.filter(|path| *path != MANIFEST) {
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        if is_ignored(path, false) || folders.into_iter().any(|folder| is_ignored(folder, true)) {
            continue;
        }
        if let Err(index) = files.binary_search_by(|found| found.path.as_str().cmp(path)) {
            files.insert(index, FoundFile { path: path.into(), state: None });
        }
    }
}

/// Creates a diagnostic about a whole file or folder.
pub(super) fn at(path: &str, code: Code, is_error: bool, message: impl Into<String>) -> Diagnostic {
    let location = Location::file(&SourceText::new(path, ""));
    match is_error {
        true => Diagnostic::error(code, location, message),
        false => Diagnostic::warning(code, location, message),
    }
}

/// Returns the diagnostic for a file that was not read: an error for a prompt, and a warning for other files, which
/// nothing may refer to.
pub(super) fn unread_file(path: &str, error: &FileError, limit: u64) -> Option<Diagnostic> {
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

struct Walker<'a> {
    root: &'a ConfinedDir,
    options: WalkOptions,
    found: WalkResult,
    /// Device and inode of every enclosing folder: a link to one of them would cause an endless walk.
    enclosing: Vec<(u64, u64)>,
    full: bool,
}

/// The type of an entry, with links followed.
enum EntryKind {
    Folder { linked: bool },
    File { linked: bool },
    Rejected(FileError),
}

impl Walker<'_> {
    fn folder(&mut self, dir: &Dir, prefix: &str) {
        if self.enclosing.len() >= MAX_DEPTH {
            let message = format!("this folder is nested more than {MAX_DEPTH} levels deep and is left out");
            self.found.diagnostics.push(at(display_path(prefix), Code::TooMany, true, message));
            return;
        }
        let entries = match dir.dir_metadata().and_then(|metadata| Ok((identity(&metadata), dir.entries()?))) {
            Ok((identity, _)) if self.enclosing.contains(&identity) => {
                self.found.diagnostics.extend(unread_file(display_path(prefix), &FileError::LinkCycle, 0));
                return;
            }
            Ok((identity, entries)) => {
                self.enclosing.push(identity);
                entries
            }
            Err(error) => return self.unread(prefix, &error),
        };
        for entry in entries {
            if self.full {
                break;
            }
            match entry {
                Ok(entry) => self.entry(&entry, prefix),
                Err(error) => {
                    self.unread(prefix, &error);
                    break;
                }
            }
        }
        self.enclosing.pop();
    }

    fn entry(&mut self, entry: &DirEntry, prefix: &str) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let path = format!("{prefix}{}", name.to_string_lossy());
            let message = "this file is left out: its name is not UTF-8";
            self.found.diagnostics.push(at(&path, Code::NotUtf8, false, message).help("rename it"));
            return;
        };
        let path = format_smolstr!("{prefix}{name}");
        let is_hidden = self.options.foreign_folders && path.starts_with('.');
        let is_passed = match is_hidden {
            true => !foreign_folders::leads_to_foreign_folder(&path),
            false => is_skipped(name, false) && !(self.options.golden_files && is_golden(&path)),
        };
        if is_passed || (prefix.is_empty() && name == MANIFEST) {
            return;
        }
        match self.kind(entry, &path) {
            EntryKind::File { .. } | EntryKind::Rejected(_) if is_hidden && is_ignored(&path, false) => {}
            EntryKind::Folder { .. } if is_hidden && is_ignored(&path, true) => {}
            EntryKind::Folder { .. } if !is_hidden && is_skipped(name, true) => {}
            EntryKind::Folder { linked } => {
                self.link(&path, linked);
                let dir = if linked { self.root.dir().open_dir(&path) } else { entry.open_dir() };
                match dir {
                    Ok(dir) => self.folder(&dir, &format!("{path}/")),
                    // Deleted since the enclosing folder was listed.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => self.unread(&format!("{path}/"), &error),
                }
            }
            EntryKind::File { .. } if self.found.files.len() >= self.options.files => self.full = true,
            EntryKind::File { linked } => {
                self.link(&path, linked);
                let state = match self.options.states && !linked {
                    true => entry.metadata().ok().map(|metadata| FileState::of(&metadata)),
                    false => None,
                };
                self.found.files.push(FoundFile { path, state });
            }
            EntryKind::Rejected(FileError::NotFound) => {
                let message = "the target of this symbolic link does not exist";
                self.found.diagnostics.push(at(&path, Code::Outside, false, message).help("remove it"));
            }
            EntryKind::Rejected(error) => self.found.diagnostics.extend(unread_file(&path, &error, 0)),
        }
    }

    /// Records a link.
    fn link(&mut self, path: &str, linked: bool) {
        if linked
            && let Ok(target) = self.root.canonicalize(path)
            && target != path
        {
            self.found.links.push((path.to_owned(), target));
        }
    }

    fn unread(&mut self, prefix: &str, error: &std::io::Error) {
        let message = format!("cannot read this folder: {error}");
        self.found.diagnostics.push(at(display_path(prefix), Code::Unreadable, true, message));
        self.found.unread.push(prefix.to_owned());
    }

    fn kind(&self, entry: &DirEntry, path: &str) -> EntryKind {
        let file_type = match entry.file_type() {
            Ok(file_type) if file_type.is_dir() => return EntryKind::Folder { linked: false },
            Ok(file_type) if file_type.is_file() => return EntryKind::File { linked: false },
            Ok(file_type) => file_type,
            Err(error) => return EntryKind::Rejected(FileError::Io(error)),
        };
        // Some file systems do not return the type with the entry, so the metadata of everything else is read.
        match self.root.metadata(path) {
            Ok(metadata) if metadata.is_dir() => EntryKind::Folder { linked: file_type.is_symlink() },
            Ok(metadata) if metadata.is_file() => EntryKind::File { linked: true },
            Ok(_) => EntryKind::Rejected(FileError::NotAFile),
            Err(error) => EntryKind::Rejected(error),
        }
    }
}

fn display_path(prefix: &str) -> &str {
    match prefix.trim_end_matches('/') {
        "" => ".",
        path => path,
    }
}

#[cfg(unix)]
fn identity(metadata: &cap_std::fs::Metadata) -> (u64, u64) {
    use cap_std::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

/// Without folder identities, only the depth limit ends a cycle of links.
#[cfg(not(unix))]
fn identity(_: &cap_std::fs::Metadata) -> (u64, u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (0, NEXT.fetch_add(1, Ordering::Relaxed))
}

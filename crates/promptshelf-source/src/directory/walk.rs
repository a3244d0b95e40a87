//! Which files a folder holds, links followed as long as they stay inside.

use cap_std::fs::{Dir, DirEntry};
use promptshelf_core::{Code, Diagnostic, Location, SourceText};
use smol_str::{SmolStr, format_smolstr};

use crate::{
    confined_dir::{ConfinedDir, FileError},
    file_role::{FileRole, MANIFEST, is_ignored, is_skipped},
    file_state::FileState,
    format::foreign_folders,
};

/// How deep folders may stand in each other.
const MAX_DEPTH: usize = 32;

/// What is looked for, and where that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkOptions {
    /// The most files.
    pub(crate) files: usize,
    /// Whether every file's state is asked for on the way.
    pub(crate) states: bool,
    /// Whether to look into the hidden folders in which other programs keep prompts.
    pub(crate) foreign_folders: bool,
}

/// What a folder holds.
#[derive(Debug, Default)]
pub(crate) struct WalkResult {
    /// By path.
    pub(crate) files: Vec<FoundFile>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Folders that could not be read, each with a `/` at its end. What was in
    /// them may still be there.
    pub(crate) unread: Vec<String>,
    /// Whether there are links: what is behind one changes without a word about it.
    pub(crate) has_links: bool,
}

/// A regular file.
#[derive(Debug)]
pub(crate) struct FoundFile {
    /// With `/` between its parts.
    pub(crate) path: SmolStr,
    /// Its state, where it was asked for and the file is no link.
    pub(crate) state: Option<FileState>,
}

/// Walks through a folder.
pub(crate) fn walk(root: &ConfinedDir, bounds: WalkOptions) -> WalkResult {
    let mut walker = Walker { root, bounds, found: WalkResult::default(), around: Vec::new(), full: false };
    walker.folder(root.dir(), "");
    let Walker { mut found, full, .. } = walker;
    found.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // A system gives entries in any order, and two readings of one folder have to be equal.
    found.diagnostics.sort_by(|a, b| a.location.source.path.cmp(&b.location.source.path));
    if full {
        let message = format!("there are more than {} files, and some are left out", bounds.files);
        found
            .diagnostics
            .push(at(".", Code::TooMany, true, message).help("raise `files` under [limits] in promptshelf.toml"));
    }
    found
}

/// Files that are in an editor only are found as if they were there.
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

/// A diagnostic about a whole file or folder.
pub(super) fn at(path: &str, code: Code, is_error: bool, message: impl Into<String>) -> Diagnostic {
    let location = Location::file(&SourceText::new(path, ""));
    match is_error {
        true => Diagnostic::error(code, location, message),
        false => Diagnostic::warning(code, location, message),
    }
}

/// What an author hears about a file that is not read. A file that would not
/// be a prompt is missed by nobody yet, so that is a warning.
pub(super) fn refused(path: &str, refusal: &FileError, limit: u64) -> Option<Diagnostic> {
    let is_error = FileRole::of(path).is_prompt();
    let diagnostic = match refusal {
        FileError::NotFound => return None,
        FileError::OutsideRoot => at(path, Code::Outside, is_error, "this leads out of the library")
            .help("copy the file into the library, or link to it by a relative path that stays inside"),
        FileError::LinkCycle => {
            at(path, Code::Outside, is_error, "this symbolic link leads in a circle").help("remove it")
        }
        FileError::NotAFile => {
            at(path, Code::Outside, is_error, "this is no regular file").help("move it out of the library")
        }
        FileError::TooLarge(len) => {
            let message = format!("this file has {len} bytes, and {limit} are allowed");
            at(path, Code::TooLarge, is_error, message)
                .help("make it smaller, or raise `file-bytes` under [limits] in promptshelf.toml")
        }
        FileError::Io(error) => at(path, Code::Unreadable, is_error, format!("this file cannot be read: {error}")),
    };
    Some(diagnostic)
}

struct Walker<'a> {
    root: &'a ConfinedDir,
    bounds: WalkOptions,
    found: WalkResult,
    /// Device and number of every folder around the present one: a link to one
    /// of them would never end.
    around: Vec<(u64, u64)>,
    full: bool,
}

/// What an entry is, links followed.
enum EntryKind {
    Folder { linked: bool },
    File { linked: bool },
    Rejected(FileError),
}

impl Walker<'_> {
    fn folder(&mut self, dir: &Dir, prefix: &str) {
        if self.around.len() >= MAX_DEPTH {
            let message = format!("folders are nested more than {MAX_DEPTH} deep, and this one is left out");
            self.found.diagnostics.push(at(shown(prefix), Code::TooMany, true, message));
            return;
        }
        let entries = match dir.dir_metadata().and_then(|metadata| Ok((identity(&metadata), dir.entries()?))) {
            Ok((identity, _)) if self.around.contains(&identity) => {
                self.found.diagnostics.extend(refused(shown(prefix), &FileError::LinkCycle, 0));
                return;
            }
            Ok((identity, entries)) => {
                self.around.push(identity);
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
        self.around.pop();
    }

    fn entry(&mut self, entry: &DirEntry, prefix: &str) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let path = format!("{prefix}{}", name.to_string_lossy());
            let message = "the name of this file is not UTF-8, and it is left out";
            self.found.diagnostics.push(at(&path, Code::NotUtf8, false, message).help("rename it"));
            return;
        };
        let path = format_smolstr!("{prefix}{name}");
        let is_hidden = self.bounds.foreign_folders && path.starts_with('.');
        let is_passed =
            if is_hidden { !foreign_folders::leads_to_foreign_folder(&path) } else { is_skipped(name, false) };
        if is_passed || (prefix.is_empty() && name == MANIFEST) {
            return;
        }
        match self.kind(entry, &path) {
            EntryKind::File { .. } | EntryKind::Rejected(_) if is_hidden && is_ignored(&path, false) => {}
            EntryKind::Folder { .. } if is_hidden && is_ignored(&path, true) => {}
            EntryKind::Folder { .. } if !is_hidden && is_skipped(name, true) => {}
            EntryKind::Folder { linked } => {
                self.found.has_links |= linked;
                let dir = if linked { self.root.dir().open_dir(&path) } else { entry.open_dir() };
                match dir {
                    Ok(dir) => self.folder(&dir, &format!("{path}/")),
                    // Gone since the folder around it was read.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => self.unread(&format!("{path}/"), &error),
                }
            }
            EntryKind::File { .. } if self.found.files.len() >= self.bounds.files => self.full = true,
            EntryKind::File { linked } => {
                self.found.has_links |= linked;
                let state = match self.bounds.states && !linked {
                    true => entry.metadata().ok().map(|metadata| FileState::of(&metadata)),
                    false => None,
                };
                self.found.files.push(FoundFile { path, state });
            }
            EntryKind::Rejected(FileError::NotFound) => {
                let message = "this symbolic link leads nowhere";
                self.found.diagnostics.push(at(&path, Code::Outside, false, message).help("remove it"));
            }
            EntryKind::Rejected(refusal) => self.found.diagnostics.extend(refused(&path, &refusal, 0)),
        }
    }

    fn unread(&mut self, prefix: &str, error: &std::io::Error) {
        let message = format!("this folder cannot be read: {error}");
        self.found.diagnostics.push(at(shown(prefix), Code::Unreadable, true, message));
        self.found.unread.push(prefix.to_owned());
    }

    fn kind(&self, entry: &DirEntry, path: &str) -> EntryKind {
        let file_type = match entry.file_type() {
            Ok(file_type) if file_type.is_dir() => return EntryKind::Folder { linked: false },
            Ok(file_type) if file_type.is_file() => return EntryKind::File { linked: false },
            Ok(file_type) => file_type,
            Err(error) => return EntryKind::Rejected(FileError::Io(error)),
        };
        // Some file systems do not say here what an entry is, so everything
        // that is no plain file or folder is asked about.
        match self.root.metadata(path) {
            Ok(metadata) if metadata.is_dir() => EntryKind::Folder { linked: file_type.is_symlink() },
            Ok(metadata) if metadata.is_file() => EntryKind::File { linked: true },
            Ok(_) => EntryKind::Rejected(FileError::NotAFile),
            Err(refusal) => EntryKind::Rejected(refusal),
        }
    }
}

fn shown(prefix: &str) -> &str {
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

/// Without numbers for folders, only the depth ends a circle.
#[cfg(not(unix))]
fn identity(_: &cap_std::fs::Metadata) -> (u64, u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (0, NEXT.fetch_add(1, Ordering::Relaxed))
}

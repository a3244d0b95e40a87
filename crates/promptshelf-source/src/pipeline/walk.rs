//! Listing of the files in a tree: a folder on disk, whose links are followed while they stay inside, or files in memory,
//! by the same rules.

use std::collections::BTreeMap;

use cap_std::fs::{Dir, DirEntry};
use promptshelf_core::{Code, Diagnostic, Location, SourceText, invisible::is_invisible};
use smol_str::{SmolStr, format_smolstr};

use crate::{
    file_role::{FileRole, MANIFEST, is_ignored, is_named_only, is_skipped},
    format::{SKILL, foreign_folders},
    mark::SKILL_RECORD,
    memory_tree::{FileFault, MemoryFile},
    tree::{ConfinedDir, FileError, FileState, MemoryDir, Tree},
    tree_path::{check_file_path, is_golden},
};

const MAX_DEPTH: usize = 32;

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

pub(crate) fn walk(tree: &Tree, options: WalkOptions) -> WalkResult {
    let (mut found, is_full) = match tree {
        Tree::Folder(folder, _) => walk_folder(folder, options),
        Tree::Memory(memory) => walk_memory(memory, options),
    };
    let diagnostics = &mut found.diagnostics;
    found.files.retain(|file| {
        let checked = check_file_path(&file.path);
        if let Err(reason) = &checked {
            let message = format!("this file is left out: {reason}");
            diagnostics.push(at(&shown(&file.path), Code::Outside, false, message).help("rename it"));
        }
        checked.is_ok()
    });
    found.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if let Tree::Folder(_, unsaved) = tree {
        add_unsaved(&mut found.files, unsaved);
    }
    // The system's order is not defined, and two reads of an unchanged folder have to be equal.
    found.diagnostics.sort_by(|a, b| a.location.source.path.cmp(&b.location.source.path));
    if is_full {
        let message = format!("the library has more than {} files; some are left out", options.files);
        found
            .diagnostics
            .push(at(".", Code::TooMany, true, message).help("raise `files` under [limits] in promptshelf.toml"));
    }
    found
}

/// Whether an entry does not belong to the library, according to its path alone. Entries with a name that is left out for
/// files and folders alike are left out without a look at their type: `is_folder` of `None`.
fn is_left_out(path: &str, is_folder: Option<bool>, options: WalkOptions) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if options.foreign_folders && path.starts_with('.') {
        return !foreign_folders::leads_to_foreign_folder(path)
            || is_folder.is_some_and(|is_folder| is_ignored(path, is_folder));
    }
    let is_golden = || options.golden_files && is_golden(path);
    (is_skipped(name, false) && !is_golden()) || (is_folder == Some(true) && is_skipped(name, true)) || path == MANIFEST
}

fn shown(path: &str) -> String {
    let shown = |c: char| if is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut short: String = path.chars().take(MAX_SHOWN).map(shown).collect();
    if short.len() < path.len() && path.chars().nth(MAX_SHOWN).is_some() {
        short.push('…');
    }
    short
}

fn too_deep(prefix: &str) -> Diagnostic {
    let message = format!("this folder is nested more than {MAX_DEPTH} levels deep and is left out");
    at(display_path(prefix), Code::TooMany, true, message)
}

/// Returns the diagnostic for a name that is not UTF-8.
fn name_not_utf8(path: &str) -> Diagnostic {
    at(path, Code::NotUtf8, false, "this file is left out: its name is not UTF-8").help("rename it")
}

fn link_without_target(path: &str) -> Diagnostic {
    at(path, Code::Outside, false, "the target of this symbolic link does not exist").help("remove it")
}

/// Adds the texts that an editor has not saved, in place of files or in addition to them.
fn add_unsaved(files: &mut Vec<FoundFile>, unsaved: &BTreeMap<String, MemoryFile>) {
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
    if is_error { Diagnostic::error(code, location, message) } else { Diagnostic::warning(code, location, message) }
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

fn display_path(prefix: &str) -> &str {
    match prefix.trim_end_matches('/') {
        "" => ".",
        path => path,
    }
}

/// Lists the files below a folder; returns whether there are more than the limit.
fn walk_folder(root: &ConfinedDir, options: WalkOptions) -> (WalkResult, bool) {
    let mut walker = Walker { root, options, found: WalkResult::default(), enclosing: Vec::new(), full: false };
    walker.folder(root.dir(), "");
    (walker.found, walker.full)
}

struct Walker<'a> {
    root: &'a ConfinedDir,
    options: WalkOptions,
    found: WalkResult,
    /// Device and inode of every enclosing folder: a link to one of them would cause an endless walk.
    enclosing: Vec<(u64, u64)>,
    full: bool,
}

enum EntryKind {
    Folder { linked: bool },
    File { linked: bool },
    Rejected(FileError),
}

impl Walker<'_> {
    fn folder(&mut self, dir: &Dir, prefix: &str) {
        if self.enclosing.len() >= MAX_DEPTH {
            self.found.diagnostics.push(too_deep(prefix));
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
        let (start, links) = (self.found.files.len(), self.found.links.len());
        let mut is_generated = false;
        for entry in entries {
            if self.full {
                break;
            }
            match entry {
                Ok(entry) => {
                    is_generated |= !prefix.is_empty() && entry.file_name() == SKILL_RECORD;
                    self.entry(&entry, prefix);
                }
                Err(error) => {
                    self.unread(prefix, &error);
                    break;
                }
            }
        }
        self.enclosing.pop();
        if is_generated && self.found.files[start..].iter().any(|file| file.path.as_str() == format!("{prefix}{SKILL}"))
        {
            self.found.files.truncate(start);
            self.found.links.truncate(links);
            self.found.generated += 1;
        }
    }

    fn entry(&mut self, entry: &DirEntry, prefix: &str) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            self.found.diagnostics.push(name_not_utf8(&format!("{prefix}{}", name.to_string_lossy())));
            return;
        };
        let path = format_smolstr!("{prefix}{name}");
        let is_left_out = |is_folder| is_left_out(&path, is_folder, self.options);
        if is_left_out(None) {
            if self.options.foreign_folders && path == foreign_folders::RULES {
                self.rules(entry);
            }
            return;
        }
        let kind = self.kind(entry, &path);
        match kind {
            EntryKind::File { .. } | EntryKind::Rejected(_) if is_left_out(Some(false)) => {
                if is_named_only(&path) {
                    self.found.named.push(path.into());
                }
            }
            EntryKind::Folder { .. } if is_left_out(Some(true)) => {}
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
                let state = if self.options.states && !linked {
                    entry.metadata().ok().map(|metadata| FileState::of(&metadata))
                } else {
                    None
                };
                self.found.files.push(FoundFile { path, state, is_unchanged: false });
            }
            EntryKind::Rejected(FileError::NotFound) => {
                self.found.diagnostics.push(link_without_target(&path));
            }
            EntryKind::Rejected(error) => self.found.diagnostics.extend(unread_file(&path, &error, 0)),
        }
    }

    /// Notes the rules of Cursor, which are not read.
    fn rules(&mut self, folder: &DirEntry) {
        let entries = folder.open_dir().and_then(|dir| dir.entries()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let paths = names.map(|name| format!("{}/{name}", foreign_folders::RULES));
        self.found.named.extend(paths.filter(|path| is_named_only(path)));
    }

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

/// Lists the files below a folder; returns whether there are more than the limit.
fn walk_memory(root: &MemoryDir, options: WalkOptions) -> (WalkResult, bool) {
    let mut found = WalkResult::default();
    // Files of one folder follow each other, so that most decisions on folders are those of the file before.
    let (mut last_folder, mut is_last_listed) = (String::new(), true);
    let mut last_too_deep = String::new();
    let mut generated: Vec<String> = Vec::new();
    for (path, file) in root.files() {
        if let Some(fault) = MemoryDir::fault(path) {
            let message = format!("this file is left out: {fault}");
            found.diagnostics.push(at(&shown(path), Code::Outside, false, message).help("rename it"));
            continue;
        }
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        if folder != last_folder {
            folder.clone_into(&mut last_folder);
            is_last_listed = match listing(folder, options) {
                Listing::Listed if root.is_below_a_file(path) => {
                    let message = "this folder is left out: a file has the same path, or that of a folder around it";
                    found.diagnostics.push(at(folder, Code::Outside, false, message).help("rename it"));
                    false
                }
                Listing::Listed => true,
                Listing::LeftOut => false,
                Listing::TooDeep(deep) => {
                    if deep != last_too_deep {
                        deep.clone_into(&mut last_too_deep);
                        found.diagnostics.push(too_deep(deep));
                    }
                    false
                }
            };
        }
        if is_last_listed && path.ends_with(SKILL_RECORD) && path.len() == folder.len() + 1 + SKILL_RECORD.len() {
            generated.push(format!("{folder}/"));
        }
        if options.foreign_folders && is_named_only(path) {
            found.named.push(path.to_owned());
            continue;
        }
        if !is_last_listed || is_left_out(path, None, options) || is_left_out(path, Some(false), options) {
            // A link to a folder around it.
            if file.fault() == Some(&FileFault::LinkCycle) && is_last_listed && !is_left_out(path, Some(true), options)
            {
                found.diagnostics.extend(unread_file(path, &FileError::LinkCycle, 0));
            }
            continue;
        }
        match file.fault() {
            Some(FileFault::NameNotUtf8) => {
                found.diagnostics.push(name_not_utf8(&shown(path)));
                continue;
            }
            Some(FileFault::LinkWithoutTarget) => {
                found.diagnostics.push(link_without_target(path));
                continue;
            }
            _ => {}
        }
        if found.files.len() >= options.files {
            return (found, true);
        }
        found.links.extend(root.link(file).map(|target| (path.to_owned(), target.to_owned())));
        found.files.push(FoundFile { path: path.into(), state: Some(FileState::in_memory(file)), is_unchanged: false });
    }
    for folder in generated {
        if found.files.iter().any(|file| file.path.strip_prefix(&*folder) == Some(SKILL)) {
            found.files.retain(|file| !file.path.starts_with(&*folder));
            found.generated += 1;
        }
    }
    (found, false)
}

enum Listing<'p> {
    Listed,
    LeftOut,
    TooDeep(&'p str),
}

fn listing(folder: &str, options: WalkOptions) -> Listing<'_> {
    let ends = folder.match_indices('/').map(|(end, _)| end).chain([folder.len()]);
    for (depth, end) in (1..).zip(ends.filter(|end| *end > 0)) {
        let path = &folder[..end];
        if is_left_out(path, None, options) || is_left_out(path, Some(true), options) {
            return Listing::LeftOut;
        }
        if depth >= MAX_DEPTH {
            return Listing::TooDeep(path);
        }
    }
    Listing::Listed
}

//! Listing of the files in a folder on disk. Links are followed while they stay inside.

use cap_std::fs::{Dir, DirEntry};
use promptshelf_core::Code;
use smol_str::format_smolstr;

use super::found_files::{
    FoundFile, MAX_DEPTH, WalkOptions, WalkResult, at, display_path, is_left_out, link_without_target, name_not_utf8,
    too_deep, unread_file,
};
use crate::{
    confined_dir::ConfinedDir,
    file_access::FileError,
    file_role::is_named_only,
    file_state::FileState,
    format::{SKILL, foreign_folders},
    mark::SKILL_RECORD,
};

/// Lists the files below a folder; returns whether there are more than the limit.
pub(super) fn walk_folder(root: &ConfinedDir, options: WalkOptions) -> (WalkResult, bool) {
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
                let state = match self.options.states && !linked {
                    true => entry.metadata().ok().map(|metadata| FileState::of(&metadata)),
                    false => None,
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

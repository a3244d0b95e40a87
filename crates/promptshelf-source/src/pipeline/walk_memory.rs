//! Listing of the files in memory, with the same rules as for a folder on disk.

use promptshelf_core::Code;

use super::found_files::{
    FoundFile, MAX_DEPTH, WalkOptions, WalkResult, at, is_left_out, link_without_target, name_not_utf8, shown,
    too_deep, unread_file,
};
use crate::{
    file_access::FileError, file_role::is_named_only, file_state::FileState, format::SKILL, mark::SKILL_RECORD,
    memory_dir::MemoryDir, memory_tree::FileFault,
};

/// Lists the files below a folder; returns whether there are more than the limit.
pub(super) fn walk_memory(root: &MemoryDir, options: WalkOptions) -> (WalkResult, bool) {
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

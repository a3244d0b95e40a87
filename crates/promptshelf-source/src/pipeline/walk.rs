//! Listing of the files in a tree.

use promptshelf_core::Code;

use super::{
    found_files::{WalkOptions, WalkResult, add_unsaved, at, shown},
    walk_folder::walk_folder,
    walk_memory::walk_memory,
};
use crate::{tree::Tree, tree_path::check_file_path};

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

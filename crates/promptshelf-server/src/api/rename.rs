//! Renames of a file with every reference to it. Those of a channel are not stored: the answer has the new texts of the
//! files that refer to it, which the author proposes together with the renamed file.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use promptshelf_author::{Analyzer, rename_file_references, rename_prompt_references};
use promptshelf_source::{MemoryFile, MemoryTree, check_tree_path};
use promptshelf_wire::{ChangedReference, ChangedReferences, ChannelRenameBody, UnsavedFile, op};

use super::{
    ApiState,
    analysis::in_pool,
    call::{Answer, Call, Operations},
    content::decoded,
    problem::Problem,
};

const MAX_CHANGES: usize = 1_000;

#[derive(Debug)]
pub(super) struct Renaming<'r> {
    from: &'r str,
    to: &'r str,
    names: Option<(String, String)>,
}

impl<'r> Renaming<'r> {
    /// `names` are the names of the file's prompt before and after, if it is one.
    pub(super) fn new(from: &'r str, to: &'r str, names: (Option<String>, Option<String>)) -> Renaming<'r> {
        let names = names.0.zip(names.1).filter(|(old, new)| old != new);
        Renaming { from, to, names }
    }

    /// Returns the text of the file at `path` with changed references; `None` if it has none.
    pub(super) fn edited(&self, path: &str, text: &str) -> Option<String> {
        let edited = rename_file_references(path, text, self.from, self.to);
        let Some((old, new)) = &self.names else { return edited };
        let now = edited.as_deref().unwrap_or(text);
        rename_prompt_references(path, now, old, new).or(edited)
    }
}

/// Adds the operations of this module.
pub(super) fn operations(all: Operations<ApiState>) -> Operations<ApiState> {
    all.on(rename_in_channel)
}

async fn rename_in_channel(call: Call<op::RenameInChannel>) -> Answer {
    let channel = &call.path.channel;
    let ChannelRenameBody { from, to, changes } = call.body().await?;
    call.note("path", &from);
    call.note("to", &to);
    let changes = unsaved(changes)?;
    check_tree_path(&to).map_err(|error| Problem::invalid_path("The new path is invalid", &error))?;
    let (_, tree) = call.store().await?.tree(channel, None).await?;
    let references = in_pool(call.caller(), move || changed_references(&tree.with(changes), &from, &to)).await??;
    call.changed(StatusCode::OK, &ChangedReferences { references }, &())
}

fn unsaved(changes: Vec<UnsavedFile>) -> Result<Vec<(String, Option<MemoryFile>)>, Problem> {
    if changes.len() > MAX_CHANGES {
        return Err(Problem::invalid(format!("The request has more than {MAX_CHANGES} files")));
    }
    let decoded = changes.into_iter().map(|UnsavedFile { path, content }| {
        let bytes = content.map(|content| decoded(content, &format!("The content of {path}"))).transpose()?;
        Ok((path, bytes.map(MemoryFile::new)))
    });
    decoded.collect()
}

fn changed_references(tree: &MemoryTree, from: &str, to: &str) -> Result<Vec<ChangedReference>, Problem> {
    let Some(file) = tree.get(from) else { return Err(Problem::not_found("The file")) };
    if tree.get(to).is_some() {
        return Err(Problem::exists("a file exists at this path"));
    }
    let moved = tree.with([(from, None), (to, Some(file.clone()))]);
    let renaming = Renaming::new(from, to, (prompt_at(tree.clone(), from), prompt_at(moved.clone(), to)));
    let edited = moved.iter().filter_map(|(path, file)| {
        let text = renaming.edited(path, std::str::from_utf8(file.bytes()).ok()?)?;
        Some(ChangedReference { path: path.to_owned(), text })
    });
    Ok(edited.collect())
}

/// Returns the name of a file's prompt. A library that cannot be analysed has none to refer to.
fn prompt_at(tree: MemoryTree, path: &str) -> Option<String> {
    let mut analyzer = Analyzer::of_tree(tree);
    let analysis = analyzer.analyze(&BTreeMap::new()).ok()?;
    analysis.prompt(path).map(|prompt| prompt.name().to_string())
}

//! Prompt files laid out in one way: keys in order, lists indented, one kind of
//! quotation mark. For `promptshelf fmt` and editors.

use std::sync::Arc;

use promptshelf_core::{Diagnostic, SourceText};

use crate::{
    SourceError,
    confined_dir::ConfinedDir,
    directory::{WalkOptions, walk},
    file_role::is_prompt,
    format::{Format, layout},
};

/// The most files that are looked for in one folder.
const MOST_FILES: usize = 200_000;

/// A prompt file's text, laid out. The text below the front matter stays as it
/// is, byte by byte, and so does everything that could not be moved without a
/// doubt about its meaning or its comments.
///
/// ```
/// use promptshelf_core::SourceText;
///
/// let file = SourceText::new("hello.md", "---\ndescription:   'Greets'\nname: hello\n---\nHello!\n");
/// let laid_out = promptshelf_source::layout::lay_out(&file).unwrap();
/// assert_eq!(laid_out, "---\nname: hello\ndescription: \"Greets\"\n---\nHello!\n");
/// ```
///
/// # Errors
///
/// What keeps the front matter from being read.
pub fn lay_out(source: &Arc<SourceText>) -> Result<String, Vec<Diagnostic>> {
    layout::lay_out(source)
}

/// The prompt files of a library, by their paths in it.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn prompt_files(library: &std::path::Path) -> Result<Vec<String>, SourceError> {
    let root = ConfinedDir::open(library).map_err(|error| SourceError::folder(library, &error))?;
    let found = walk(&root, WalkOptions { files: MOST_FILES, states: false, foreign_folders: false });
    Ok(found
        .files
        .into_iter()
        .map(|file| file.path.to_string())
        .filter(|path| is_prompt(path) && Format::is_ours(path))
        .collect())
}

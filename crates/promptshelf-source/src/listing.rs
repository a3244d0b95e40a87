//! Lists the prompt files of a folder without reading them.

use crate::{
    confined_dir::ConfinedDir,
    error::SourceError,
    file_role::is_prompt,
    format::Format,
    pipeline::{WalkOptions, walk},
    tree::Tree,
};

/// The largest number of files that are listed.
const MAX_FILES: usize = 200_000;

/// Returns the paths of a library's prompt files that are written in the native format, relative to the library.
///
/// # Errors
///
/// [`SourceError`] if the folder cannot be read.
pub fn prompt_files(library: &std::path::Path) -> Result<Vec<String>, SourceError> {
    let root = ConfinedDir::open(library).map_err(|error| SourceError::folder(library, error))?;
    let found = walk(
        &Tree::Folder(root),
        WalkOptions { files: MAX_FILES, states: false, foreign_folders: false, golden_files: false },
    );
    Ok(found
        .files
        .into_iter()
        .map(|file| file.path.to_string())
        .filter(|path| is_prompt(path) && Format::is_native(path))
        .collect())
}

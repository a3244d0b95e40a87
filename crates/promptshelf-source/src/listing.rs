//! Lists the prompt files of a folder without reading them.

use std::path::Path;

use crate::{
    error::SourceError,
    file_role::{MANIFEST, is_prompt},
    format::{ForeignSyntax, Format, foreign_folders},
    pipeline::{WalkOptions, walk},
    tree::{ConfinedDir, Tree},
    tree_path::is_library_file,
};

const MAX_FILES: usize = 200_000;

/// Returns the paths of a library's prompt files that are written in the native format, relative to the library.
///
/// # Errors
///
/// [`SourceError`] if the folder cannot be read.
pub fn prompt_files(library: &Path) -> Result<Vec<String>, SourceError> {
    let root = ConfinedDir::open(library).map_err(|error| SourceError::folder(library, error))?;
    let found = walk(
        &Tree::folder(root),
        WalkOptions { files: MAX_FILES, states: false, foreign_folders: false, golden_files: false },
    );
    let place = place(library);
    Ok(found
        .files
        .into_iter()
        .map(|file| file.path.to_string())
        .filter(|path| is_prompt(path) && Format::is_native(&format!("{place}{path}")))
        .collect())
}

/// Returns whether a library reads the file at a path below it as a prompt, by the path alone.
#[must_use]
pub fn is_prompt_path(library: &Path, path: &str) -> bool {
    let home = if library.join(MANIFEST).exists() { "" } else { foreign_folders::home(library) };
    let whole = if home.is_empty() { path.to_owned() } else { format!("{home}/{path}") };
    is_library_file(path) && is_prompt(&whole)
}

/// Returns whether a file has the format of another program, by its path: it is in a folder such as `.claude/commands`,
/// or has a suffix such as `.prompt.yml`.
#[must_use]
pub fn is_foreign_file(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ForeignSyntax::for_path(&format!("{}{name}", place(folder))).is_some()
}

/// Returns the path of a folder below the project of another program, with a final `/`; an empty one for others.
fn place(folder: &Path) -> String {
    // A relative path can begin inside of such a folder.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let place = folder.ancestors().find_map(|ancestor| {
        let home = foreign_folders::home(ancestor);
        let rest = folder.strip_prefix(ancestor).ok().filter(|_| !home.is_empty())?;
        let parts = rest.iter().map(|part| part.to_string_lossy());
        Some(std::iter::once(home.into()).chain(parts).map(|part| part + "/").collect())
    });
    place.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_foreign() {
        for file in ["/p/.claude/commands/a.md", "/p/.claude/commands/git/a.md", "/p/.github/prompts/a.prompt.md"] {
            assert!(is_foreign_file(Path::new(file)), "{file}");
        }
        for file in ["a.md", "/p/a.md", "/p/commands/git/a.md", "/p/.claude/notes/a.md", "/p/_shared/a.md", "a.txt"] {
            assert!(!is_foreign_file(Path::new(file)), "{file}");
        }
    }
}

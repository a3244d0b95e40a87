//! Hidden folders in which other programs store the prompts of a project. They are read directly below the library's
//! folder only.

use std::path::Path;

use promptshelf_core::PromptName;

/// The paths of the folders, relative to the library.
pub(crate) const FOREIGN_FOLDERS: &[&str] = &[
    ".claude/commands",
    ".claude/skills",
    ".gemini/commands",
    ".github/prompts",
    ".opencode/command",
    ".opencode/commands",
];

/// Returns the part of a path below a folder.
pub(crate) fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// Whether a folder is one of these, inside one, or the parent of one.
pub(crate) fn leads_to_foreign_folder(folder: &str) -> bool {
    FOREIGN_FOLDERS.iter().any(|home| folder == *home || below(folder, home).is_some())
        || is_ancestor_of_foreign_folder(folder)
}

/// Whether a folder only contains one of these: its other entries do not belong to the library.
pub(crate) fn is_ancestor_of_foreign_folder(folder: &str) -> bool {
    FOREIGN_FOLDERS.iter().any(|home| below(home, folder).is_some())
}

/// Returns the path of a library that is one of these folders or the parent of one, such as `.claude/commands` or
/// `.claude`; otherwise an empty one. The formats of its files depend on this path.
pub(crate) fn home(library: &Path) -> &'static str {
    let is_at = |home: &&str| library.ends_with(home);
    let parents = FOREIGN_FOLDERS.iter().filter_map(|home| home.split_once('/')).map(|(parent, _)| parent);
    FOREIGN_FOLDERS.iter().copied().find(is_at).or_else(|| parents.into_iter().find(is_at)).unwrap_or_default()
}

/// Returns the program whose prompts are in a library's folder, if their format is not read here.
pub(crate) fn only_importable(library: &Path) -> Option<&'static str> {
    [".codex", ".codex/prompts"].iter().any(|home| library.ends_with(home)).then_some("Codex")
}

/// Derives a prompt's name from its path: without the foreign folder and the suffix, and with `-` between the parts.
pub(super) fn name_from_path(path: &str, ending: &str) -> String {
    let inner = FOREIGN_FOLDERS.iter().find_map(|home| below(path, home)).unwrap_or(path);
    inner.strip_suffix(ending).unwrap_or(inner).replace('/', "-")
}

/// The `name` that a foreign file sets: used as the name if it is valid as one, and as the title otherwise.
pub(super) enum NameOrTitle {
    Name(String),
    Title(String),
}

impl NameOrTitle {
    pub(super) fn of(written: String) -> NameOrTitle {
        match PromptName::new(&written) {
            Ok(name) if name.is_portable() => NameOrTitle::Name(written),
            _ => NameOrTitle::Title(written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_foreign_folders_are_read() {
        for folder in [".claude", ".claude/commands", ".claude/commands/git", ".github", ".opencode/command"] {
            assert!(leads_to_foreign_folder(folder), "{folder}");
        }
        for folder in [".git", ".claude/agents", ".github/workflows", "a/.claude", ".claudes", ".claude/commandsx"] {
            assert!(!leads_to_foreign_folder(folder), "{folder}");
        }
    }

    #[test]
    fn home_is_the_end_of_the_path() {
        for (library, expected) in [
            ("/srv/project/.claude/commands", ".claude/commands"),
            ("/srv/project/.claude", ".claude"),
            ("/srv/project/.gemini/commands", ".gemini/commands"),
            ("/srv/project/.claude/commands/git", ""),
            ("/srv/project/.claude/agents", ""),
            ("/srv/project/commands", ""),
            ("/srv/project", ""),
        ] {
            assert_eq!(home(Path::new(library)), expected, "{library}");
        }
    }

    #[test]
    fn name_is_the_path_below_the_foreign_folder() {
        assert_eq!(name_from_path(".gemini/commands/git/commit.toml", ".toml"), "git-commit");
        assert_eq!(name_from_path("team/x.prompt.md", ".prompt.md"), "team-x");
    }
}

//! Hidden folders in which other programs store the prompts of a project. They are read directly below the library's
//! folder only.

use std::{borrow::Cow, path::Path};

use promptshelf_core::{Code, PromptName};

use super::{github, skill, tree::Notes, vscode};

/// The paths of the folders, relative to the library, in order of precedence: of several prompts with one name, the first
/// is served.
pub(crate) const FOREIGN_FOLDERS: &[&str] = &[
    ".agents/skills",
    ".claude/skills",
    ".claude/commands",
    ".github/prompts",
    ".github/skills",
    ".gemini/skills",
    ".gemini/commands",
    ".opencode/skills",
    ".opencode/commands",
    ".opencode/command",
    ".cursor/skills",
    ".cursor/commands",
    ".codex/skills",
    ".codex/prompts",
];

/// The folder of Cursor's rules. They are no prompts, and are counted only.
pub(crate) const RULES: &str = ".cursor/rules";

pub(crate) const RULE_ENDING: &str = ".mdc";

/// Files at the top of a plugin, each with the hidden folder whose formats the folders of the plugin have.
const PLUGINS: &[(&str, &str)] = &[
    (".claude-plugin/plugin.json", ".claude"),
    ("gemini-extension.json", ".gemini"),
    (".cursor-plugin/plugin.json", ".cursor"),
    (".codex-plugin/plugin.json", ".codex"),
];

/// Returns the precedence of the prompt at a path among those with the same name; the smallest is served.
pub(crate) fn rank(path: &str) -> u8 {
    let path = &*with_small_ending(path);
    let of = |home: &str| FOREIGN_FOLDERS.iter().position(|known| *known == home).map(|index| 2 + 3 * index);
    let is_hidden = path.starts_with('.');
    let home = FOREIGN_FOLDERS.iter().find(|home| is_hidden && below(path, home).is_some());
    let rank = match home {
        // `a-b.md` precedes `a/b.md`, which has the same name here.
        Some(home) => {
            let is_nested = !home.ends_with("/skills") && below(path, home).is_some_and(|inside| inside.contains('/'));
            of(home).map(|rank| rank + usize::from(is_nested))
        }
        // Files of VS Code and GitHub Models follow those in `.github`.
        None if (vscode::FORMAT.matches)(path) => of(".github/prompts").map(|rank| rank + 2),
        None if (github::FORMAT.matches)(path) => of(".github/skills").map(|rank| rank + 2),
        None if (skill::FORMAT.matches)(path) => Some(1),
        None => Some(0),
    };
    rank.and_then(|rank| u8::try_from(rank).ok()).unwrap_or(u8::MAX)
}

pub(crate) fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

pub(crate) fn leads_to_foreign_folder(folder: &str) -> bool {
    FOREIGN_FOLDERS.iter().any(|home| folder == *home || below(folder, home).is_some())
        || is_ancestor_of_foreign_folder(folder)
}

/// Whether a folder only contains one of these: its other entries do not belong to the library.
pub(crate) fn is_ancestor_of_foreign_folder(folder: &str) -> bool {
    FOREIGN_FOLDERS.iter().any(|home| below(home, folder).is_some())
}

/// Whether a path is below one of these folders in which every subfolder is a skill.
pub(crate) fn is_in_skills(path: &str) -> bool {
    FOREIGN_FOLDERS.iter().any(|home| home.ends_with("/skills") && below(path, home).is_some())
}

/// Returns the path of a library that is one of these folders or the parent of one, such as `.claude/commands` or
/// `.claude`; otherwise an empty one. The formats of its files depend on this path.
pub(crate) fn home(library: &Path) -> &'static str {
    let is_at = |home: &&str| library.ends_with(home);
    let parents = FOREIGN_FOLDERS.iter().filter_map(|home| home.split_once('/')).map(|(parent, _)| parent);
    FOREIGN_FOLDERS.iter().copied().find(is_at).or_else(|| parents.into_iter().find(is_at)).unwrap_or_default()
}

/// Returns the hidden folder whose formats the files of a plugin have; an empty path for other libraries.
pub(crate) fn plugin_home(has_file: impl Fn(&str) -> bool) -> &'static str {
    PLUGINS.iter().find(|(manifest, _)| has_file(manifest)).map_or("", |(_, home)| home)
}

/// Returns the folder of the plugin that a hidden manifest describes: empty, or with a trailing `/`.
pub(crate) fn plugin_of_manifest(path: &str) -> Option<&str> {
    let folder = hidden_manifests().find_map(|manifest| path.strip_suffix(manifest))?;
    (folder.is_empty() || folder.ends_with('/')).then_some(folder)
}

pub(crate) fn hidden_manifests() -> impl Iterator<Item = &'static str> {
    PLUGINS.iter().map(|(manifest, _)| *manifest).filter(|manifest| manifest.starts_with('.'))
}

/// Returns the folder that would be a plugin, by the path of a file in its `commands` or `skills`, with a trailing `/`.
pub(crate) fn around_plugin(path: &str) -> Option<&str> {
    let at = ["/commands/", "/skills/"].iter().find_map(|inner| path.find(inner))?;
    (!path.starts_with('.')).then(|| &path[..=at])
}

/// Derives a prompt's name from its path: without the foreign folder and the suffix, and with `-` between the parts.
pub(super) fn name_from_path(path: &str, ending: &str) -> String {
    let inner = FOREIGN_FOLDERS.iter().find_map(|home| below(path, home)).unwrap_or(path);
    without_ending(inner, ending).replace('/', "-")
}

/// Returns a path without an ending in capital or small letters.
pub(super) fn without_ending<'p>(path: &'p str, ending: &str) -> &'p str {
    let at = path.len().saturating_sub(ending.len());
    match path.get(at..) {
        Some(last) if last.eq_ignore_ascii_case(ending) => &path[..at],
        _ => path,
    }
}

/// Returns the path with the endings of its file's name in small letters: formats are recognised by them.
pub(super) fn with_small_ending(path: &str) -> Cow<'_, str> {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    let endings = path[name..].find('.').map_or(path.len(), |dot| name + dot);
    if path[endings..].bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(path[..endings].to_owned() + &path[endings..].to_ascii_lowercase())
    } else {
        Cow::Borrowed(path)
    }
}

pub(super) fn valid_name(name: &str) -> Cow<'_, str> {
    let is_apart = |c: char| c.is_whitespace() || c.is_control();
    if !name.contains(is_apart) {
        return Cow::Borrowed(name);
    }
    let words: Vec<&str> = name.split(is_apart).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join("-"))
}

/// The `name` that a file sets: used as the name if it is valid as one, and as the title otherwise.
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

/// Reports a `name` that is used as the title.
pub(super) fn warn_of_title(key: &str, name: &str, notes: &mut Notes<'_>) {
    let span = notes.spans.remove(key).unwrap_or_default();
    let message = format!("this is not the name of a prompt, and is used as its title; its name is `{name}`");
    notes.warning(Code::InvalidName, &span, message).help =
        Some("names have small letters, digits, `-` and `_`; write `title` for a name that people read".to_owned());
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
            ("/srv/project/.codex/prompts", ".codex/prompts"),
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
        assert_eq!(name_from_path("team/x.Prompt.MD", ".prompt.md"), "team-x");
        assert_eq!(valid_name("my prompt  file"), "my-prompt-file");
        assert_eq!(with_small_ending("A.B/My.Prompt.MD"), "A.B/My.prompt.md");
    }

    #[test]
    fn own_format_precedes_skills_and_other_programs() {
        let order = [
            "a.md",
            "a/SKILL.md",
            ".agents/skills/a/SKILL.md",
            ".claude/skills/a/SKILL.md",
            ".claude/commands/a-b.md",
            ".claude/commands/a/b.md",
            ".github/prompts/a.prompt.md",
            "a.prompt.md",
            ".github/skills/a/SKILL.md",
            "a.prompt.yml",
            ".gemini/commands/a.toml",
            ".opencode/commands/a.md",
            ".cursor/commands/a.md",
            ".codex/prompts/a.md",
        ];
        assert!(order.iter().map(|path| rank(path)).is_sorted_by(|a, b| a < b));
    }
}

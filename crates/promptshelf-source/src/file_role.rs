//! The role of a library file, decided by its path alone.

use crate::format::{Format, GOLDEN, SKILL, foreign_folders};

pub(crate) const MANIFEST: &str = "promptshelf.toml";

#[derive(Clone, Copy, Debug)]
pub(crate) enum FileRole {
    Prompt(&'static Format),
    Asset,
}

impl FileRole {
    /// Returns the role of the file at a path. No file is a prompt if any part of its path begins with `_`, except where
    /// another program keeps its prompts: it has no such rule, and lists a `README.md`, too.
    pub(crate) fn of(path: &str) -> FileRole {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_elsewhere = path.starts_with('.') && foreign_folders::leads_to_foreign_folder(path);
        if is_elsewhere && foreign_folders::is_in_skills(path) && is_mistaken_skill(path) {
            return FileRole::Asset;
        }
        if !is_elsewhere && (is_document_name(name) || path.split('/').any(|part| part.starts_with('_'))) {
            return FileRole::Asset;
        }
        Format::for_path(path).map_or(FileRole::Asset, FileRole::Prompt)
    }

    pub(crate) fn is_prompt(self) -> bool {
        matches!(self, FileRole::Prompt(_))
    }
}

const DOCUMENTS: &[&str] = &[
    "AGENTS",
    "ARCHITECTURE",
    "AUTHORS",
    "CHANGELOG",
    "CHANGES",
    "CLAUDE",
    "CODE_OF_CONDUCT",
    "CONTRIBUTING",
    "CONTRIBUTORS",
    "COPYING",
    "GEMINI",
    "GOVERNANCE",
    "HISTORY",
    "INSTALL",
    "ISSUE_TEMPLATE",
    "LICENCE",
    "LICENSE",
    "MAINTAINERS",
    "MIGRATION",
    "NOTICE",
    "PULL_REQUEST_TEMPLATE",
    "RELEASES",
    "RELEASE_NOTES",
    "ROADMAP",
    "SECURITY",
    "SUPPORT",
    "TODO",
    "UPGRADING",
];

/// Whether a file's name is that of a text about a project: `README.md`, `AGENTS.md`, `LICENSE-MIT.md`.
fn is_document_name(name: &str) -> bool {
    if !has_ending(name, ".md") {
        return false;
    }
    let stem = &name[..name.len() - 3];
    // With a language or a variant: `README.de.md`, `LICENSE-MIT.md`.
    let first = stem.split(['.', '-']).next().unwrap_or(stem);
    stem.eq_ignore_ascii_case("readme")
        || ["README", "LICENSE", "LICENCE", "CLAUDE", "CHANGELOG"].contains(&first)
        || DOCUMENTS.contains(&stem)
}

/// Whether the file at a path is left out as a text about a project. Every library may have a `README.md`.
pub(crate) fn is_project_document(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_private = path.starts_with('.') || path.split('/').any(|part| part.starts_with('_'));
    is_document_name(name) && !is_private && !name.to_ascii_lowercase().starts_with("readme")
}

/// Endings of Markdown files that are not read as prompts.
const OTHER_MARKDOWN: &[&str] = &["markdown", "mdown", "mdwn", "mkd", "mkdn", "mdx"];

/// Whether the file at a path is Markdown with another ending than `.md`.
pub(crate) fn is_other_markdown(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_private = path.starts_with('.') || path.split('/').any(|part| part.starts_with('_'));
    // Some systems hide the second ending.
    let is_text_of_markdown = path.to_ascii_lowercase().ends_with(".md.txt");
    !is_private && (is_text_of_markdown || OTHER_MARKDOWN.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Whether the file at a path lies where other programs keep prompts, and is none by its name: a rule of Cursor, a
/// `SKILL.MD`, or Markdown with another ending. Such files are named, and not read.
///
/// ```
/// use promptshelf_source::is_named_only;
///
/// for path in [".cursor/rules/style.mdc", ".claude/commands/a.markdown", ".claude/skills/x/skill.md"] {
///     assert!(is_named_only(path), "{path}");
/// }
/// assert!(!is_named_only(".claude/commands/a.md") && !is_named_only(".claude/settings.json"));
/// ```
#[must_use]
pub fn is_named_only(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_hidden = name.starts_with('.') || folder.split('/').skip(1).any(|part| part.starts_with(['.', '_']));
    if !path.starts_with('.') || is_hidden {
        return false;
    }
    if folder == foreign_folders::RULES {
        return name.ends_with(foreign_folders::RULE_ENDING);
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_markdown = OTHER_MARKDOWN.iter().any(|known| ending.eq_ignore_ascii_case(known));
    foreign_folders::leads_to_foreign_folder(folder)
        && !foreign_folders::is_ancestor_of_foreign_folder(folder)
        && (if foreign_folders::is_in_skills(path) { is_mistaken_skill(path) } else { is_markdown })
        && !(stem.is_empty() || is_temporary(name))
}

/// Whether a file would be the text of a skill if its name were `SKILL.md`.
pub(crate) fn is_mistaken_skill(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    name != SKILL
        && stem.eq_ignore_ascii_case("skill")
        && (ending.eq_ignore_ascii_case("md") || OTHER_MARKDOWN.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Returns the Markdown files inside the folders of skills: a skill's text refers to them, and they are not prompts.
pub(crate) fn beside_skills<'p>(paths: impl Iterator<Item = &'p str> + Clone) -> impl Iterator<Item = String> {
    let folder = |path: &'p str| path.strip_suffix(SKILL)?.strip_suffix('/');
    let folders: Vec<&str> = paths.clone().filter_map(folder).collect();
    paths.filter_map(move |path| {
        let is_inside =
            folders.iter().any(|folder| foreign_folders::below(path, folder).is_some_and(|name| name != SKILL));
        (is_inside && has_ending(path, ".md")).then(|| path.to_owned())
    })
}

pub(crate) fn is_prompt(path: &str) -> bool {
    FileRole::of(path).is_prompt()
}

/// Whether a folder entry with this name is ignored without a diagnostic: hidden entries, folders of other tools, and
/// temporary files of editors.
pub(crate) fn is_skipped(name: &str, is_folder: bool) -> bool {
    name.starts_with('.')
        // Golden files hold the output of a test, including its argument values.
        || (!is_folder && has_ending(name, GOLDEN))
        || (is_folder && matches!(name, "node_modules" | "target"))
        || (!is_folder && is_temporary(name))
}

/// Whether the entry at a path relative to the library is ignored. Unlike [`is_skipped`], keeps the hidden folders in
/// which other programs store prompts, with nothing but the prompts in them.
pub(crate) fn is_ignored(path: &str, is_folder: bool) -> bool {
    let (around, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !path.starts_with('.') {
        return is_skipped(name, is_folder);
    }
    if !is_folder {
        return !foreign_folders::leads_to_foreign_folder(around)
            || foreign_folders::is_ancestor_of_foreign_folder(around)
            || is_skipped(name, false)
            || !FileRole::of(path).is_prompt();
    }
    match foreign_folders::leads_to_foreign_folder(path) {
        true if foreign_folders::is_ancestor_of_foreign_folder(path)
            || foreign_folders::FOREIGN_FOLDERS.contains(&path) =>
        {
            false
        }
        leads_to_foreign_folder => !leads_to_foreign_folder || is_skipped(name, true),
    }
}

fn has_ending(name: &str, ending: &str) -> bool {
    name.get(name.len().saturating_sub(ending.len())..).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

fn is_temporary(name: &str) -> bool {
    is_backup(name)
        || (name.len() > 1 && name.starts_with('#') && name.ends_with('#'))
        // Vim creates a file of this name to test whether it may create files.
        || name == "4913"
}

const BACKUPS: &[&str] = &["bak", "backup", "old", "orig", "rej", "save", "swo", "swp", "swx", "temp", "tmp"];

/// Whether a name is that of a copy of another file: `a.md~`, `a.md.BAK`, or with a number, `a.md.1`. The name of a
/// manual page, `tool.1`, is not a backup: only a number as second extension counts the copies.
pub(crate) fn is_backup(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return name.ends_with('~') };
    let is_number = || !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_digit());
    name.ends_with('~')
        || BACKUPS.iter().any(|known| ending.eq_ignore_ascii_case(known))
        || (is_number() && stem.trim_start_matches('.').contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_depends_on_the_path() {
        for path in ["a.md", "git/commit.md", "readme/a.md", "a_b.md", "secret.MD", "changelog.md", "Security.md"] {
            assert!(FileRole::of(path).is_prompt(), "{path}");
        }
        for path in [".claude/commands/a/b.md", ".gemini/commands/a.toml", "x.prompt.yml", "a.prompt.md", "x/SKILL.md"]
        {
            assert!(FileRole::of(path).is_prompt(), "{path}");
        }
        for path in [".claude/commands/README.md", ".claude/commands/_team/x.md", ".github/prompts/_q.prompt.md"] {
            assert!(FileRole::of(path).is_prompt(), "{path}");
        }
        for path in [".claude/agents/a.md", ".x.md", "commands/a.toml", ".gemini/commands/a.md", "SKILL.txt"] {
            assert!(!FileRole::of(path).is_prompt(), "{path}");
        }
        for path in [
            "README.md",
            "x/ReadMe.MD",
            "AGENTS.md",
            "a/CHANGELOG.md",
            "LICENSE-MIT.md",
            "CLAUDE.local.md",
            "README.de.md",
            "_a.md",
            "_shared/a.md",
            "a/_b/c.md",
            "a.txt",
            "md",
            ".md",
            "x.markdown",
        ] {
            assert!(!FileRole::of(path).is_prompt(), "{path}");
        }
    }

    #[test]
    fn foreign_folders_are_read_for_prompts_only() {
        for folder in [".claude", ".claude/commands", ".claude/commands/git", ".claude/skills/x", "a"] {
            assert!(!is_ignored(folder, true), "{folder}");
        }
        for folder in [".git", ".claude/agents", ".claude/commands/.x", "a/.claude", ".claude/commands/node_modules"] {
            assert!(is_ignored(folder, true), "{folder}");
        }
        for file in [".claude/commands/a.md", ".claude/skills/x/SKILL.md", ".github/prompts/a.prompt.md", "a.md"] {
            assert!(!is_ignored(file, false), "{file}");
        }
        for file in [
            ".claude/settings.json",
            ".claude/CLAUDE.md",
            ".claude/commands/.a.md",
            ".claude/commands/a.md~",
            ".claude/skills/x/notes.md",
            ".github/prompts/README.md",
            ".x.md",
        ] {
            assert!(is_ignored(file, false), "{file}");
        }
    }

    // req: S-50
    #[test]
    fn editor_leftovers_are_ignored() {
        for name in ["a.md.bak", "a.MD.Orig", "a.OLD", "a.md.1", "a.md.12", "a.rej", "a.md.save", "a.TMP"] {
            assert!(is_skipped(name, false), "{name}");
        }
        for name in ["tool.1", "1", "v1.2.md", "bak", "a.bak.md", "CHANGES.old.md", "a."] {
            assert!(!is_skipped(name, false), "{name}");
        }
        for name in ["a.golden.md", "a.md~", ".a.md.swp", "a.swp", "#a.md#", ".#a.md", "a.tmp", "4913", ".git"] {
            assert!(is_skipped(name, false), "{name}");
        }
        for name in ["node_modules", "target", ".git"] {
            assert!(is_skipped(name, true), "{name}");
        }
        for name in ["target", "a.md", "_a.md", "#", "~a"] {
            assert!(!is_skipped(name, false), "{name}");
        }
    }
}

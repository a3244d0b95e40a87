//! What a file of the library is, told by its path alone.

use super::walk::Found;
use crate::format::{Format, GOLDEN, SKILL, homes};

/// The file that says how a library is served.
pub(crate) const MANIFEST: &str = "promptshelf.toml";

/// What becomes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    /// It defines a prompt, in this format.
    Prompt(&'static Format),
    /// It is attached, linked, included or completed from.
    File,
}

impl Use {
    /// What a file is for. Nothing below a part with a leading `_` is a prompt.
    pub(super) fn of(path: &str) -> Use {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.eq_ignore_ascii_case("readme.md") || path.split('/').any(|part| part.starts_with('_')) {
            return Use::File;
        }
        Format::of(path).map_or(Use::File, Use::Prompt)
    }

    pub(super) fn is_prompt(self) -> bool {
        matches!(self, Use::Prompt(_))
    }
}

/// Markdown files that belong to a skill: they are what its text refers to, and
/// no prompts of their own.
pub(super) fn beside_skills(files: &[Found]) -> impl Iterator<Item = String> {
    let folder = |found: &Found| Some(found.path.strip_suffix(SKILL)?.strip_suffix('/')?.to_owned());
    let folders: Vec<String> = files.iter().filter_map(folder).collect();
    files.iter().filter_map(move |found| {
        let is_inside =
            folders.iter().any(|folder| homes::below(&found.path, folder).is_some_and(|name| name != SKILL));
        (is_inside && found.path.ends_with(".md")).then(|| found.path.to_string())
    })
}

/// Whether a file defines a prompt.
pub(crate) fn is_prompt(path: &str) -> bool {
    Use::of(path).is_prompt()
}

/// Whether an entry of a folder is passed over without a word: what is hidden,
/// what other programs keep there, and what editors leave for a moment.
pub(crate) fn is_skipped(name: &str, is_folder: bool) -> bool {
    name.starts_with('.')
        // What tests compare with says what a prompt said once, values and all.
        || (!is_folder && name.ends_with(GOLDEN))
        || (is_folder && matches!(name, "node_modules" | "target"))
        || (!is_folder && is_temporary(name))
}

/// The same for a path below the library's folder, where the hidden folders in
/// which other programs keep prompts are not passed over: only prompts in them
/// are ours.
pub(crate) fn is_passed_over(path: &str, is_folder: bool) -> bool {
    let (around, name) = path.rsplit_once('/').unwrap_or(("", path));
    if !path.starts_with('.') {
        return is_skipped(name, is_folder);
    }
    if !is_folder {
        return !homes::leads_home(around)
            || homes::is_on_the_way(around)
            || is_skipped(name, false)
            || !Use::of(path).is_prompt();
    }
    match homes::leads_home(path) {
        true if homes::is_on_the_way(path) || homes::HOMES.contains(&path) => false,
        leads_home => !leads_home || is_skipped(name, true),
    }
}

fn is_temporary(name: &str) -> bool {
    name.ends_with('~')
        || [".swp", ".swx", ".tmp"].iter().any(|ending| name.ends_with(ending))
        || (name.len() > 1 && name.starts_with('#') && name.ends_with('#'))
        // Vim asks by this name whether it may create files.
        || name == "4913"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_a_file_is_for() {
        for path in ["a.md", "git/commit.md", "readme/a.md", "a_b.md"] {
            assert!(Use::of(path).is_prompt(), "{path}");
        }
        for path in [".claude/commands/a/b.md", ".gemini/commands/a.toml", "x.prompt.yml", "a.prompt.md", "x/SKILL.md"]
        {
            assert!(Use::of(path).is_prompt(), "{path}");
        }
        for path in [".claude/agents/a.md", ".x.md", "commands/a.toml", ".gemini/commands/a.md", "SKILL.txt"] {
            assert!(!Use::of(path).is_prompt(), "{path}");
        }
        for path in
            ["README.md", "x/ReadMe.MD", "_a.md", "_shared/a.md", "a/_b/c.md", "a.txt", "md", ".md", "x.markdown"]
        {
            assert!(!Use::of(path).is_prompt(), "{path}");
        }
    }

    #[test]
    fn hidden_folders_of_other_programs_are_looked_into_for_prompts_only() {
        for folder in [".claude", ".claude/commands", ".claude/commands/git", ".claude/skills/x", "a"] {
            assert!(!is_passed_over(folder, true), "{folder}");
        }
        for folder in [".git", ".claude/agents", ".claude/commands/.x", "a/.claude", ".claude/commands/node_modules"] {
            assert!(is_passed_over(folder, true), "{folder}");
        }
        for file in [".claude/commands/a.md", ".claude/skills/x/SKILL.md", ".github/prompts/a.prompt.md", "a.md"] {
            assert!(!is_passed_over(file, false), "{file}");
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
            assert!(is_passed_over(file, false), "{file}");
        }
    }

    #[test]
    fn what_editors_leave_is_passed_over() {
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

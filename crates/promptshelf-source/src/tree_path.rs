//! Paths of files in a tree, which may come from a database or another machine.

use std::{error::Error, fmt};

use promptshelf_core::invisible::hidden;
use unicode_normalization::UnicodeNormalization as _;

use crate::{
    file_role::{self, MANIFEST},
    format::{GOLDEN, foreign_folders},
    mark::SKILL_RECORD,
};

/// The longest path, in bytes. Below the limit of every file system, with space for the folder above.
const MAX_BYTES: usize = 1024;

/// The longest part of a path, in bytes: the limit of common file systems.
const MAX_PART_BYTES: usize = 255;

/// The reason why a path is not that of a library's file. The message does not contain the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTreePath {
    code: &'static str,
    message: &'static str,
}

impl InvalidTreePath {
    /// Returns the stable name of the reason, such as `path-device`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for InvalidTreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl Error for InvalidTreePath {}

/// Checks that a path is one that [`read_tree`](crate::read_tree) can return, and that it is safe to write below a
/// folder on every operating system.
///
/// ```
/// use promptshelf_source::check_tree_path;
///
/// assert!(check_tree_path("git/commit.md").is_ok());
/// for path in ["../a.md", "/a.md", ".git/hooks/pre-commit", "a\\b.md", "con.md", "a.md "] {
///     assert!(check_tree_path(path).is_err(), "{path}");
/// }
/// ```
///
/// # Errors
///
/// [`InvalidTreePath`] with the reason.
pub fn check_tree_path(path: &str) -> Result<(), InvalidTreePath> {
    check_file_path(path)?;
    if is_library_file(path) && !is_skill_record(path) {
        Ok(())
    } else {
        refuse("path-ignored", "a library ignores files at this path")
    }
}

/// Checks that a path is relative, with `/` between its parts, and that each part means one file name to every person and
/// on every operating system. Folders, commits, channels and the editor have the same rule; this one includes files that
/// a library ignores.
///
/// # Errors
///
/// [`InvalidTreePath`] with the reason.
pub fn check_file_path(path: &str) -> Result<(), InvalidTreePath> {
    if path.is_empty() {
        return refuse("path-empty", "the path is empty");
    }
    if path.len() > MAX_BYTES || path.split('/').any(|part| part.len() > MAX_PART_BYTES) {
        return refuse("path-long", "the path is longer than 1,024 bytes, or a part of it longer than 255");
    }
    if path.contains(|c: char| c.is_control() || matches!(c, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')) {
        return refuse("path-character", "the path has a character that not every file system accepts");
    }
    if path.starts_with('\u{feff}') || hidden(path).next().is_some() {
        return refuse("path-invisible", "the path has an invisible character");
    }
    // Such as U+FF0F, which looks like `/` and is one after a compatibility normalization.
    let looks_like = |c: char| !c.is_ascii() && std::iter::once(c).nfkc().any(|c| matches!(c, '/' | '\\' | '.' | ':'));
    if path.contains(looks_like) {
        return refuse("path-lookalike", "the path has a character that looks like `/`, `\\`, `.` or `:`");
    }
    for part in path.split('/') {
        if matches!(part, "" | "." | "..") {
            return refuse("path-relative", "the path is absolute, or has an empty part, `.` or `..`");
        }
        if part.starts_with(' ') || part.ends_with(['.', ' ']) {
            return refuse("path-ends", "a part of the path starts or ends with a space, or ends with a dot");
        }
        if is_device(part) {
            return refuse("path-device", "a part of the path is the name of a device on Windows");
        }
        if is_short_name(part) {
            return refuse(
                "path-short-name",
                "a part of the path is the short name of another file on Windows, such as `git~1` of `.git`",
            );
        }
    }
    Ok(())
}

fn refuse(code: &'static str, message: &'static str) -> Result<(), InvalidTreePath> {
    Err(InvalidTreePath { code, message })
}

/// Returns a path as systems compare it that ignore case and the Unicode normalization of names.
///
/// ```
/// use promptshelf_source::folded_path;
///
/// assert_eq!(folded_path("Git/Cafe\u{301}.md"), folded_path("git/caf\u{e9}.md"));
/// ```
#[must_use]
pub fn folded_path(path: &str) -> String {
    if path.is_ascii() {
        path.to_ascii_lowercase()
    } else {
        path.nfc().collect::<String>().to_lowercase().nfc().collect()
    }
}

/// Two paths with the same [`folded_path`]. The message shows what distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamePath {
    /// The path of the present file or folder.
    pub present: String,
    /// The other path.
    pub new: String,
}

impl fmt::Display for SamePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SamePath { present, new } = self;
        if present.nfc().eq(new.nfc()) {
            let (present, written, new) = (present, present.escape_default(), new.escape_default());
            write!(
                f,
                "`{present}` is there twice, as `{written}` and as `{new}`, which many systems take for the same file"
            )
        } else {
            write!(f, "`{present}` and `{new}` are the same file on systems that ignore case")
        }
    }
}

/// Whether a library reads the file at a path, or ignores it: hidden files, for example. The path is not checked.
///
/// ```
/// use promptshelf_source::is_library_file;
///
/// assert!(is_library_file("git/commit.md") && is_library_file("git/image.png"));
/// assert!(!is_library_file(".github/workflows/ci.yml"));
/// ```
#[must_use]
pub fn is_library_file(path: &str) -> bool {
    let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
    // The formats of a plugin depend on its manifest, which is in a hidden folder.
    let is_of_plugin = |folder: &str| folder.is_empty() || is_library_file(&format!("{folder}x"));
    path == MANIFEST
        || foreign_folders::plugin_of_manifest(path).is_some_and(is_of_plugin)
        || (folders.all(|folder| !file_role::is_ignored(folder, true))
            && (!file_role::is_ignored(path, false) || is_golden(path) || is_skill_record(path)))
}

/// Files outside of hidden folders that programs read as instructions or settings when the folder is opened, in small
/// letters.
const OBEYED_FILES: &[&str] = &[
    "agent.md",
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "copilot-instructions.md",
    "crush.json",
    "crush.md",
    "gemini-extension.json",
    "gemini.md",
    "hooks.json",
    "marketplace.json",
    "mcp.json",
    "opencode.json",
    "opencode.jsonc",
    "plugin.json",
    "qwen-extension.json",
    "qwen.md",
    "replit.md",
    "warp.md",
];

const WORKSPACE: &str = ".code-workspace";

/// Whether other programs obey the file at a path: they read it as instructions, settings or commands when the folder
/// around it is opened. Authors of a library write prompts; such a file would be read by an agent or an editor of whoever
/// has the folder. All hidden files count. The path is not checked.
///
/// ```
/// use promptshelf_source::is_obeyed_by_programs;
///
/// for path in ["CLAUDE.md", "sub/agents.md", ".claude/settings.json", ".vscode/tasks.json", ".mcp.json"] {
///     assert!(is_obeyed_by_programs(path), "{path}");
/// }
/// assert!(!is_obeyed_by_programs("git/commit.md") && !is_obeyed_by_programs("claude/notes.md"));
/// ```
#[must_use]
pub fn is_obeyed_by_programs(path: &str) -> bool {
    // Some file systems compare names without regard to case, `ſ` and `s` included.
    let name = path.rsplit('/').next().unwrap_or(path).nfkc().collect::<String>().to_uppercase().to_lowercase();
    path.split('/').any(|part| part.starts_with('.')) || OBEYED_FILES.contains(&&*name) || name.ends_with(WORKSPACE)
}

/// Whether the file at a path marks the folder around it as a skill that `sync` wrote.
fn is_skill_record(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(_, name)| name == SKILL_RECORD)
}

/// Whether the file at a path is the golden file of a test, in a folder that is not hidden.
pub(crate) fn is_golden(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    !path.starts_with('.') && !name.starts_with('.') && name.ends_with(GOLDEN)
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let is_numbered = |device: &str| {
        stem.strip_prefix(device).is_some_and(|number| {
            matches!(number, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
        })
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || is_numbered("com")
        || is_numbered("lpt")
}

/// Whether Windows can give a name to a file with a longer one: up to eight characters before the dot, with a number at
/// their end, and up to three after it.
fn is_short_name(name: &str) -> bool {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let number = stem.rsplit_once('~').map_or("", |(_, number)| number);
    stem.chars().count() <= 8
        && ending.chars().count() <= 3
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_paths_are_accepted() {
        for path in [
            "a.md",
            "git/commit.md",
            "_shared/honest.md",
            "promptshelf.toml",
            "a.golden.md",
            "git/a.golden.md",
            ".claude/commands/a.md",
            ".claude-plugin/plugin.json",
            "plugins/own/.cursor-plugin/plugin.json",
            "über/größe.md",
            "a file.md",
            "console.md",
            "tool.1",
            "a~b.md",
            "a longer name~1.md",
            "❤️.md",
            "نامه‌ها.md",
        ] {
            assert_eq!(check_tree_path(path), Ok(()), "{path}");
        }
    }

    // req: S-93
    #[test]
    fn hostile_paths_are_refused() {
        let long = "a/".repeat(2048) + "a.md";
        let long_part = "a".repeat(300);
        for path in [
            "",
            "/etc/passwd",
            "../a.md",
            "a/../../b.md",
            "a//b.md",
            "a/./b.md",
            "a/",
            "a\0.md",
            "a\n.md",
            "a\\..\\b.md",
            "C:a.md",
            "aux",
            "com1.md",
            "LPT¹.md",
            "a./b.md",
            "a.md ",
            ".git/config",
            ".git/hooks/pre-commit",
            ".promptshelf-base",
            ".promptshelf-base/a.md",
            ".github/workflows/ci.yml",
            ".claude/settings.json",
            ".claude-plugin/marketplace.json",
            ".claude-plugin/x/plugin.json",
            ".git/.claude-plugin/plugin.json",
            ".x.claude-plugin/plugin.json",
            ".git/x.claude-plugin/plugin.json",
            "x/.env",
            "node_modules/a.md",
            "a.md.orig",
            "git~1/config",
            "GIT~10/hooks/x",
            "a/PROMPT~2.MD",
            "a\u{200b}.md",
            "a\u{202e}dm.md",
            "\u{feff}a.md",
            "é/a\u{200d}.md",
            " a.md",
            "..／..／a.md",
            "a．md",
            "CONIN$",
            long.as_str(),
            long_part.as_str(),
        ] {
            assert!(check_tree_path(path).is_err(), "{path}");
        }
    }
}

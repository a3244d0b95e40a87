//! File names for prompts. Names come from a server, and can be any text.

use std::collections::BTreeSet;

use promptshelf_author::{
    ExportFormat,
    clients::{NativeFiles, built_in},
};
use promptshelf_client::SkillInfo;
use promptshelf_source::{check_tree_path, is_obeyed_by_programs};

/// The longest name of a file without its ending, in bytes; below the limit of every file system.
const MAX_BYTES: usize = 128;

fn check_file_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '@' | '=' | ',');
    if name.len() > MAX_BYTES {
        return Err(format!("the name is longer than {MAX_BYTES} bytes"));
    }
    if let Some(c) = name.chars().find(|c| !is_plain(*c)) {
        return Err(format!("a file name cannot contain {c:?}"));
    }
    if name.starts_with('-') {
        return Err("a name that begins with `-` is an option on a command line".to_owned());
    }
    if name.starts_with('.') || check_tree_path(&format!("{name}.md")).is_err() {
        return Err("the name is not a file name on every system".to_owned());
    }
    Ok(())
}

/// The longest name of an Agent Skill (Agent Skills specification).
const MAX_SKILL_CHARS: usize = 64;

pub(in crate::commands) fn path(name: &str, native: &NativeFiles) -> Result<String, String> {
    Ok(format!("{}/{}", native.folder, file(name, native.format, Some(native))?))
}

/// Returns the path of a prompt's file below the folder of a format, or why the prompt can have none: `sync` and `export`
/// write no file that a program or a command line takes for something else. `native` is the client that reads the folder,
/// if its own commands are in the way.
pub(in crate::commands) fn file(
    name: &str,
    format: ExportFormat,
    native: Option<&NativeFiles>,
) -> Result<String, String> {
    native.map_or(Ok(()), |native| check_built_in(name, native))?;
    if format == ExportFormat::Skill {
        let skill = skill_name(name);
        if !is_skill(&skill) {
            return Err(format!(
                "`{skill}` cannot be the name of a skill: expected a-z, 0-9 and single `-`, at most 64"
            ));
        }
        check_file_name(&skill)?;
        return Ok(format!("{skill}/SKILL.md"));
    }
    plain_file(name, ending(format))
}

/// Returns the file of a name with an ending, unless programs obey a file that is called so.
pub(in crate::commands) fn plain_file(name: &str, ending: &str) -> Result<String, String> {
    check_file_name(name)?;
    let file = format!("{name}{ending}");
    // Such as `CLAUDE.md`, in a folder of commands too.
    if is_obeyed_by_programs(&file) {
        return Err(format!("programs obey the file {file} as instructions or settings: rename the prompt"));
    }
    Ok(file)
}

fn check_built_in(name: &str, native: &NativeFiles) -> Result<(), String> {
    match built_in(native.client, name).or_else(|| built_in(native.client, &skill_name(name))) {
        Some(source) => Err(format!("the client has a command of this name itself ({source}): rename the prompt")),
        None => Ok(()),
    }
}

/// Returns whether a client would show a prompt and a skill under one name.
pub(super) fn is_same(prompt: &str, skill: &str, native: &NativeFiles) -> bool {
    prompt == skill || (native.format == ExportFormat::Skill && skill_name(prompt) == skill)
}

fn skill_name(prompt: &str) -> String {
    prompt.replace('_', "-").to_lowercase()
}

pub(in crate::commands) fn ending(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Gemini => ".toml",
        ExportFormat::Vscode => ".prompt.md",
        _ => ".md",
    }
}

pub(in crate::commands) fn sample(format: ExportFormat) -> String {
    match format {
        ExportFormat::Skill => "x/SKILL.md".to_owned(),
        format => format!("x{}", ending(format)),
    }
}

pub(super) fn check_skill(skill: &SkillInfo, native: &NativeFiles) -> Result<(), String> {
    check_built_in(&skill.name, native)?;
    if !is_skill(&skill.name) {
        return Err("its name is not that of a skill: expected a-z, 0-9 and single `-`, at most 64".to_owned());
    }
    check_file_name(&skill.name)?;
    let mut known = BTreeSet::new();
    if let Some(file) = skill.files.iter().find(|file| !known.insert(file.path.to_lowercase())) {
        return Err(format!("its file `{}` differs from another one in upper and lower case only", file.path));
    }
    skill.files.iter().try_for_each(|file| check_skill_path(&file.path))
}

pub(super) fn check_skill_path(path: &str) -> Result<(), String> {
    check_tree_path(path).map_err(|error| format!("its file `{path}` cannot be written: {error}"))
}

pub(super) fn is_skill(name: &str) -> bool {
    name.len() <= MAX_SKILL_CHARS
        && name
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use promptshelf_author::clients::{Client, find};

    use super::*;

    // req: S-130
    // req: S-244
    #[test]
    fn hostile_names_have_no_path() {
        let native = |client: &str| find(client).and_then(Client::native_files).expect("native files");
        for client in ["claude-code", "codex", "vscode"] {
            for name in [
                "",
                ".",
                "..",
                "../a",
                "a/b",
                "a\\b",
                "/a",
                "C:a",
                "con",
                "NUL",
                "com1.x",
                "a\0",
                "a\n",
                "a ",
                ".git",
                "a:b",
                "a*",
                "\u{202e}a",
                "~",
                "$HOME",
                "-rf",
                "--help",
                "aux",
                &"x".repeat(200),
            ] {
                assert!(path(name, native(client)).is_err(), "{client} {name:?}");
            }
        }
        for (client, name) in [
            ("claude-code", "help"),
            ("claude-code", "Clear"),
            ("opencode", "review"),
            ("vscode", "newnotebook"),
            ("claude-code", "CLAUDE"),
            ("cursor", "agents"),
            ("opencode", "gemini"),
        ] {
            assert!(path(name, native(client)).is_err(), "{client} {name}");
        }
        assert_eq!(path("Code_Review", native("claude-code")).as_deref(), Ok(".claude/commands/Code_Review.md"));
        assert_eq!(path("Code_Review", native("codex")).as_deref(), Ok(".agents/skills/code-review/SKILL.md"));
        assert!(path("a__b", native("codex")).is_err());
        assert_eq!(path("größe", native("cursor")).as_deref(), Ok(".cursor/commands/größe.md"));
        assert_eq!(path("x.y", native("vscode")).as_deref(), Ok(".github/prompts/x.y.prompt.md"));
    }
}

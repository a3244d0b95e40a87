//! Text that a program would run, read or obey when it reads a file: shell commands, files and permissions.
//!
//! A server sends text. Written to a file of another program, the same text can become a command, so writers look here
//! at the text as a whole: a placeholder inside a command is a part of it.
//!
//! Checked with Claude Code 2.1.332, OpenCode 1.18.33, Gemini CLI 0.61.0 and Codex 0.169.0 and a recording stand-in model;
//! for Cursor, VS Code and Windsurf with their documentation, 2026-11. Where programs are known to differ between
//! versions, more is found than the version above would run.

use std::fmt;

use promptshelf_core::SourceText;
use promptshelf_source::{
    is_obeyed_by_programs,
    syntax::{self, Node, Notes, Value},
};

use super::ExportFormat;

const MAX_SHOWN: usize = 80;

/// A part of a text that is more than text to a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActivePart {
    /// The effect.
    pub kind: ActiveKind,
    /// The part as it is written, shortened to some 80 characters.
    pub text: String,
}

/// The effect of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ActiveKind {
    /// A shell command is run.
    Command,
    /// A file is read.
    File,
    /// A word such as `@name`: a file, if the project has one of this name.
    Mention,
    /// Tools or commands are permitted without a question.
    Permission,
}

impl fmt::Display for ActivePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ActiveKind::Command => write!(f, "a shell command: {}", self.text),
            ActiveKind::File | ActiveKind::Mention => write!(f, "a file that is read: {}", self.text),
            ActiveKind::Permission => write!(f, "a permission: {}", self.text),
        }
    }
}

/// Returns the parts of a whole text that the program of a format would run, read or obey.
///
/// ```
/// use promptshelf_author::{ActiveKind, ExportFormat, active_parts};
///
/// let parts = active_parts(ExportFormat::Claude, "Look: !`echo $ARGUMENTS`, a@example.com and @~/.ssh/id_rsa");
/// assert_eq!(parts.iter().map(|part| part.kind).collect::<Vec<_>>(), [ActiveKind::Command, ActiveKind::File]);
/// assert_eq!(active_parts(ExportFormat::Gemini, "!{ls}")[0].kind, ActiveKind::Command);
/// ```
#[must_use]
pub fn active_parts(format: ExportFormat, text: &str) -> Vec<ActivePart> {
    let mut parts = Vec::new();
    match format {
        ExportFormat::Claude | ExportFormat::Opencode | ExportFormat::Skill => {
            words(text, "!`", ActiveKind::Command, &mut parts);
            words(text, "```!", ActiveKind::Command, &mut parts);
            files(format, text, &mut parts);
        }
        ExportFormat::Gemini => {
            words(text, "!{", ActiveKind::Command, &mut parts);
            words(text, "@{", ActiveKind::File, &mut parts);
        }
        ExportFormat::Cursor => files(format, text, &mut parts),
        ExportFormat::Windsurf => {
            for line in text.lines().map(|line| line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '/')) {
                let rest = line.strip_prefix("//").map(|rest| rest.trim_start().to_ascii_lowercase());
                if rest.is_some_and(|rest| rest.starts_with("turbo")) {
                    parts.push(ActivePart { kind: ActiveKind::Permission, text: shown(line) });
                }
            }
            files(format, text, &mut parts);
        }
        ExportFormat::Vscode => {
            for word in ["#file:", "#folder:", "#codebase", "#selection", "#changes", "#terminal"] {
                words(text, word, ActiveKind::File, &mut parts);
            }
            words(text, "#tool:", ActiveKind::Permission, &mut parts);
            words(text, "#fetch", ActiveKind::Permission, &mut parts);
            links(text, &mut parts);
        }
    }
    parts
}

/// Returns the keys of a skill's front matter that permit or start something, the parts of its text that programs run, and
/// files that other programs obey. `path` is that of a file below the folder of the skill.
#[must_use]
pub fn active_parts_of_skill(path: &str, text: &str) -> Vec<ActivePart> {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    if name != "skill.md" {
        // Codex reads servers and settings from `openai.yaml`.
        let is_settings = path.to_lowercase().starts_with("agents/openai.") || is_obeyed_by_programs(path);
        let settings = || ActivePart { kind: ActiveKind::Permission, text: shown(path) };
        return is_settings.then(settings).into_iter().collect();
    }
    let mut parts = permissions(text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}'));
    // Programs differ in where the front matter ends.
    let commands = active_parts(ExportFormat::Skill, text);
    parts.extend(commands.into_iter().filter(|part| part.kind != ActiveKind::Mention));
    parts
}

/// Returns the keys of a front matter that permit something, at any depth. Of one that cannot be read as YAML, the lines
/// that may have such a key.
fn permissions(text: &str) -> Vec<ActivePart> {
    if !text.starts_with("---") {
        return Vec::new();
    }
    let permission = |text: &str| ActivePart { kind: ActiveKind::Permission, text: shown(text) };
    let keys = syntax::front_matter(text).map(|(keys, _)| keys).filter(|keys| !text[keys.clone()].trim().is_empty());
    let source = SourceText::new("SKILL.md", text);
    let tree = keys.clone().and_then(|keys| syntax::parse_yaml(keys, &mut Notes::new(&source)));
    match (keys, tree) {
        (_, Some(tree)) => {
            let mut parts = Vec::new();
            permitting_keys(&tree, &mut |key, node| {
                parts.push(permission(&format!("{key}: {}", text[node.span.clone()].trim_start())));
            });
            parts
        }
        (keys, None) => {
            let range = keys.unwrap_or(0..text.len());
            text[range].lines().filter(|line| may_permit(line)).map(permission).collect()
        }
    }
}

fn permitting_keys(node: &Node, found: &mut impl FnMut(&str, &Node)) {
    match &node.value {
        Value::Mapping(entries) => {
            for entry in entries {
                if permits(&entry.key) {
                    found(&entry.key, &entry.node);
                } else {
                    permitting_keys(&entry.node, found);
                }
            }
        }
        Value::List(nodes) => nodes.iter().for_each(|node| permitting_keys(node, found)),
        Value::Scalar(_) => {}
    }
}

const PERMITTING: &[&str] = &[
    "tools",
    "hook",
    "permission",
    "mcp",
    "shell",
    "env",
    "command",
    "exec",
    "run",
    "script",
    "agent",
    "model",
    "context",
    "sandbox",
    "auto",
    "approv",
    "trust",
    "depend",
    "install",
    "invocable",
];

fn permits(key: &str) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    // These only take something away.
    if matches!(key.as_str(), "disallowedtools" | "disablemodelinvocation") || key.starts_with("description") {
        return false;
    }
    PERMITTING.iter().any(|part| key.contains(part))
}

/// Whether a line that another program may read as YAML can have such a key: escaped, explicit, or one of several.
fn may_permit(line: &str) -> bool {
    let Some((key, _)) = line.split_once(':') else { return line.trim_start().starts_with('?') };
    let is_odd = key.contains(['\\', '{', '}', '?', '&', '*', '!', '<', '[', ',']);
    permits(if is_odd { line } else { key }) || key.contains('\\') || key.trim().is_empty()
}

fn words(text: &str, mark: &str, kind: ActiveKind, parts: &mut Vec<ActivePart>) {
    for (at, _) in text.match_indices(mark) {
        let part = ActivePart { kind, text: shown(&text[at..]) };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
}

/// Finds `@file`. OpenCode's pattern is ``(?<![\w`])@(\.?[^\s`,.]*(?:\.[^\s`,.]+)*)`` with ASCII word characters. Where the
/// pattern is not known, a word character protects, which keeps mail addresses, and nothing else.
fn files(format: ExportFormat, text: &str, parts: &mut Vec<ActivePart>) {
    let protects = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '`' && format == ExportFormat::Opencode);
    for (at, _) in text.match_indices('@') {
        if text[..at].ends_with(protects) {
            continue;
        }
        // A path can have any character but a space, as in `@)/x`; a sentence ends with some of them.
        let ends = |c: char| "`'<>|,;)]}*.:!?".contains(c);
        let whole = text[at + 1..].split(char::is_whitespace).next().unwrap_or_default().trim_end_matches(ends);
        if whole.is_empty() {
            continue;
        }
        let (kind, word) = if whole.contains(['/', '.', '\\', '~', '"', '$', '{', '[']) {
            (ActiveKind::File, whole)
        } else {
            (ActiveKind::Mention, whole.split(ends).next().unwrap_or_default())
        };
        let part = ActivePart { kind, text: shown(&format!("@{word}")) };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
}

/// Finds links to files: VS Code adds these files to the request.
fn links(text: &str, parts: &mut Vec<ActivePart>) {
    for (at, _) in text.match_indices("](") {
        let target = text[at + 2..].split([')', '\n']).next().unwrap_or_default().trim();
        let has_scheme = target.split_once(':').is_some_and(|(scheme, _)| {
            scheme.len() > 1
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && !scheme.eq_ignore_ascii_case("file")
        });
        if !target.is_empty() && !target.starts_with('#') && !has_scheme {
            parts.push(ActivePart { kind: ActiveKind::File, text: shown(target) });
        }
    }
}

fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim_end();
    let mut shown: String = line.chars().take(MAX_SHOWN).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(format: ExportFormat, text: &str) -> Vec<ActiveKind> {
        active_parts(format, text).into_iter().map(|part| part.kind).collect()
    }

    // req: S-241
    #[test]
    fn parts_with_an_effect_are_found_in_the_whole_text() {
        use ActiveKind::{Command, File, Mention, Permission};
        use ExportFormat::{Claude, Cursor, Gemini, Opencode, Skill, Vscode, Windsurf};
        for (format, text, expected) in [
            (Claude, "!`touch /srv/x; echo $ARGUMENTS`", vec![Command]),
            (Claude, "a\n```!\nls\n```\n", vec![Command]),
            (Claude, "@~/.ssh/id_ed25519, (@.env) \"@/etc/hosts\" @\"a b\" @$0", vec![File; 5]),
            (Claude, "@alice, ask @bob.", vec![Mention; 2]),
            (Claude, "a@b.example `!x` ! `ls` user@host:/x", vec![]),
            (Opencode, "\\!`ls` x!`ls` @src/a.rs", vec![Command, Command, File]),
            (Skill, "!`ls` @notes.md", vec![Command, File]),
            (Gemini, "!{ls} @{a} !`ls` @a.md", vec![Command, File]),
            (Cursor, "@src/a.rs !`ls`", vec![File]),
            (Windsurf, "1. x\n// turbo\n2. y\n  //Turbo-all\n- // turbo", vec![Permission; 3]),
            (
                Vscode,
                "#file:.env #tool:run [x](../.env) [y](https://example.com) [z](#a)",
                vec![File, Permission, File],
            ),
        ] {
            assert_eq!(kinds(format, text), expected, "{format:?} {text}");
        }
    }

    // req: S-490
    #[test]
    fn only_characters_that_the_program_takes_for_a_word_protect_from_reading_a_file() {
        use ExportFormat::{Claude, Cursor, Opencode, Skill, Windsurf};
        let files = ["~/.ssh/id_ed25519", "./.env", "/etc/passwd", ")/../x"];
        for format in [Claude, Cursor, Opencode, Skill, Windsurf] {
            for before in ["", " ", "-", ".", "+", "/", "%", "@", "é", "中", "١", "\u{200b}", "(", "https://a/"] {
                for file in files {
                    let text = format!("See {before}@{file}");
                    let found = active_parts(format, &text);
                    assert!(found.iter().any(|part| part.text == format!("@{file}")), "{format:?} {text}: {found:?}");
                }
            }
            for before in ["a", "Z", "0", "_"] {
                assert!(active_parts(format, &format!("See {before}@./.env")).is_empty(), "{format:?} {before}");
            }
            assert_eq!(active_parts(format, "See `@./.env`").is_empty(), format == Opencode, "{format:?}");
        }
        assert_eq!(kinds(ExportFormat::Gemini, "é@{.env}"), [ActiveKind::File]);
        assert_eq!(kinds(ExportFormat::Vscode, "é#file:.env"), [ActiveKind::File]);
    }

    // req: S-242
    #[test]
    fn permissions_of_skills_are_found() {
        let of = |keys: &str| active_parts_of_skill("SKILL.md", &format!("---\nname: x\n{keys}\n---\nText\n")).len();
        for keys in [
            "allowed-tools: Bash(*)",
            "allowedTools: [Bash]",
            "\"allowed-tools\": Bash",
            "hooks:\n  PreToolUse: x",
            "metadata:\n  mcpServers: x",
            "Permission-Mode: acceptEdits",
        ] {
            assert_eq!(of(keys), 1, "{keys}");
        }
        for keys in
            ["description: Use the tools: all", "license: MIT", "metadata:\n  author: x", "disallowed-tools: Bash"]
        {
            assert_eq!(of(keys), 0, "{keys}");
        }
        assert_eq!(active_parts_of_skill("SKILL.md", "---\nname: x\n---\n!`ls`\n").len(), 1);
        assert_eq!(active_parts_of_skill("agents/openai.yaml", "dependencies: {}\n").len(), 1);
        for path in ["CLAUDE.md", "docs/agents.md", "hooks/hooks.json"] {
            assert_eq!(active_parts_of_skill(path, "Obey\n").len(), 1, "{path}");
        }
        assert!(active_parts_of_skill("scripts/run.sh", "ls\n").is_empty());
    }

    // req: S-342
    #[test]
    fn permissions_are_found_however_they_are_written() {
        for header in [
            "{name: x, allowed-tools: \"Bash(*)\"}",
            "name: x\n? allowed-tools\n: Bash(*)",
            "name: x\n\"\\x61llowed-\\x74ools\": Bash(*)",
            "name: x\n\"allowed-\\u0074ools\": Bash(*)",
            "name: &n x\n<<: {allowed-tools: \"Bash(*)\"}\nalias: *n",
            "name: &n x\nalias: *n\n\"allowed-\\u0074ools\": Bash(*)",
            "name: x\nname: y\n{ a: b, allowed-tools: Bash }",
            "name: x\ndescription: Use: it\nallowed-tools: Bash(*)",
            "\nname: x\nmetadata:\n  - hooks:\n      a: b",
        ] {
            for text in [
                format!("---\n{header}\n---\nText\n"),
                format!("\u{feff}\n---  \n{header}\n---\nText\n"),
                format!("---\r\n{}\r\n---\r\nText\r\n", header.replace('\n', "\r\n")),
                format!("---\n---\n{header}\n---\nText\n"),
                format!("---\n{header}\n--- \nText\n"),
                format!("---\n{header}"),
            ] {
                for path in ["SKILL.md", "skill.md", "sub/Skill.MD"] {
                    assert!(!active_parts_of_skill(path, &text).is_empty(), "{path} {text:?}");
                }
            }
        }
        // A program that takes the first `---` for the end runs the command.
        assert_eq!(active_parts_of_skill("SKILL.md", "---\nname: x ---\n!`ls`\n---\nText\n").len(), 1);
        let long = "---\nname: x\ndescription: >\n  Use the tools: these.\n  Run: nothing\n---\nText\n";
        assert!(active_parts_of_skill("SKILL.md", long).is_empty());
    }
}

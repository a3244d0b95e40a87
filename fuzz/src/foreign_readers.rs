//! A path for each reader of files of other programs. The first byte of a seed in `seeds/foreign` selects one: `a` is the
//! first. The tests of `promptshelf-source` read the same seeds.

pub(crate) const READERS: &[&str] = &[
    ".claude/commands/it.md",
    ".claude/skills/it/SKILL.md",
    ".agents/skills/it/SKILL.md",
    "skills/it/SKILL.md",
    ".github/prompts/it.prompt.md",
    "it.prompt.yml",
    ".gemini/commands/it.toml",
    ".opencode/commands/it.md",
    ".cursor/commands/it.md",
    ".codex/prompts/it.md",
    "_part/it.md",
];

/// Splits an input into the path of its reader and the file.
pub(crate) fn split(bytes: &[u8]) -> Option<(&'static str, &[u8])> {
    let (which, file) = bytes.split_first()?;
    Some((READERS[usize::from(which.wrapping_sub(b'a')) % READERS.len()], file))
}

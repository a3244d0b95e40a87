//! Claude Code's commands: `.claude/commands/**/*.md`. Folders group commands; a `SKILL.md` is named after its folder.

use super::{client_rules::CLAUDE_CODE, command, file_format::Format, foreign_folders, skill};

pub(super) const FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".claude/commands").is_some() && path.ends_with(".md"),
    name: |path| {
        let folder = path.strip_suffix(skill::FILE).and_then(|folder| folder.strip_suffix('/'));
        let folder = folder.filter(|folder| !folder.ends_with("/commands"));
        folder
            .map_or_else(|| foreign_folders::name_from_path(path, ".md"), |it| foreign_folders::name_from_path(it, ""))
    },
    read: |source, name| command::read(source, name, &CLAUDE_CODE),
    syntax: command::SYNTAX,
};

//! Claude Code's commands: `.claude/commands/**/*.md`. Folders group commands.

use super::{client_rules::CLAUDE_CODE, command, file_format::Format, foreign_folders};

pub(super) const FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".claude/commands").is_some() && path.ends_with(".md"),
    name: |path| foreign_folders::name_from_path(path, ".md"),
    read: |source, name| command::read(source, name, &CLAUDE_CODE),
    syntax: command::SYNTAX,
};

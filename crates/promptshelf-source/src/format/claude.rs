//! Claude Code's commands: `.claude/commands/**/*.md`.
//!
//! Facts: Claude Code's documentation, *Slash commands* and *Skills*. Commands
//! are the older form of skills and are still read. Folders group commands.

use super::{command, file_format::Format, foreign_folders};

pub(super) const FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".claude/commands").is_some() && path.ends_with(".md"),
    name: |path| foreign_folders::name_from_path(path, ".md"),
    read: command::read,
    syntax: command::SYNTAX,
};

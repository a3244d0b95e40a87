//! Codex's prompts, `.codex/prompts/*.md`, and Cursor's commands, `.cursor/commands/**/*.md`.

use super::{
    client_rules::{CODEX, CURSOR},
    command,
    file_format::{ForeignSyntax, Format},
    foreign_folders,
};

pub(super) const FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".codex/prompts").is_some() && path.ends_with(".md"),
    name: |path| foreign_folders::name_from_path(path, ".md"),
    read: |source, name| command::read(source, name, &CODEX),
    syntax: command::SYNTAX,
};

pub(super) const CURSOR_FORMAT: Format = Format {
    matches: |path| foreign_folders::below(path, ".cursor/commands").is_some() && path.ends_with(".md"),
    name: |path| foreign_folders::name_from_path(path, ".md"),
    read: |source, name| command::read(source, name, &CURSOR),
    syntax: ForeignSyntax { placeholders: &[], ..command::SYNTAX },
};

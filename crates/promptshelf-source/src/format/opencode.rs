//! OpenCode's commands: `.opencode/command/**/*.md` and, under the newer name, `.opencode/commands/**/*.md`.

use super::{client_rules::OPENCODE, command, file_format::Format, foreign_folders};

pub(super) const FORMAT: Format = Format {
    matches: |path| {
        let is_home = |home| foreign_folders::below(path, home).is_some();
        path.ends_with(".md") && (is_home(".opencode/command") || is_home(".opencode/commands"))
    },
    name: |path| foreign_folders::name_from_path(path, ".md"),
    read: |source, name| command::read(source, name, &OPENCODE),
    syntax: command::SYNTAX,
};

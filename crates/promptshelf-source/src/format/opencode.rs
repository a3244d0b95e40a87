//! OpenCode's commands: `.opencode/command/**/*.md` and, the newer name,
//! `.opencode/commands/**/*.md`.
//!
//! Facts: OpenCode's documentation, *Commands*: the same placeholders as Claude
//! Code has, with `agent`, `model` and `subtask` among the keys.

use super::{Format, command, homes};

pub(super) const FORMAT: Format = Format {
    holds: |path| {
        let is_home = |home| homes::below(path, home).is_some();
        path.ends_with(".md") && (is_home(".opencode/command") || is_home(".opencode/commands"))
    },
    name: |path| homes::name_from_path(path, ".md"),
    read: command::read,
    words: command::WORDS,
};

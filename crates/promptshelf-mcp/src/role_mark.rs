//! Roles as text, for results that have no roles: a line `[user]` or `[assistant]` before a message.

use promptshelf_core::Role;

pub(crate) fn mark(role: Role) -> String {
    format!("[{}]", role.as_str())
}

/// Returns a text below its mark. Lines of the text that look like a mark get a backslash, so that no value can begin a
/// message of another role.
pub(crate) fn marked(role: Role, text: &str) -> String {
    let is_mark = |line: &str| ["[user]", "[assistant]"].iter().any(|mark| line.trim().eq_ignore_ascii_case(mark));
    let mut marked = mark(role);
    for line in text.split(['\n', '\r']) {
        marked.push('\n');
        if is_mark(line) {
            marked.push('\\');
        }
        marked.push_str(line);
    }
    marked
}

//! Changes of a text at positions, which leave all other bytes as they are.

use std::ops::Range;

use super::EditError;

/// Replaces ranges that do not overlap. A file without an end of its last line stays without it.
pub(super) fn replaced(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut edited = text.to_owned();
    for (range, new) in edits.iter().rev() {
        edited.replace_range(range.clone(), new);
    }
    if !text.is_empty()
        && !text.ends_with('\n')
        && let Some(line) = edited.strip_suffix('\n')
    {
        edited.truncate(line.strip_suffix('\r').unwrap_or(line).len());
    }
    edited
}

/// Sets or removes one of the entries in a mapping that starts with a brace.
pub(super) fn in_braces(
    text: &str,
    brace: usize,
    entries: &[Range<usize>],
    old: Option<usize>,
    new: Option<String>,
) -> Result<String, EditError> {
    let edit = match (old, new) {
        (None, None) => return Ok(text.to_owned()),
        (Some(old), Some(new)) => (entries[old].clone(), new),
        (None, Some(new)) => match entries.first() {
            Some(first) => (first.start..first.start, format!("{new}, ")),
            None => (brace + 1..brace + 1, new),
        },
        (Some(old), None) => {
            let own = &entries[old];
            let start = old.checked_sub(1).map_or(own.start, |before| entries[before].end);
            let range = entries.get(old + 1).map_or(start..own.end, |next| own.start..next.start);
            if [range.start..own.start, own.end..range.end].into_iter().any(|gap| text[gap].contains(['#', '\n'])) {
                return Err(EditError::new("without the entry, a comment or a line next to it would be lost"));
            }
            (range, String::new())
        }
    };
    Ok(replaced(text, vec![edit]))
}

/// The end of lines of a text: that of its first line.
pub(super) fn newline(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// What ends the last line of a text, if nothing does.
pub(super) fn missing_newline(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with('\n') { "" } else { newline(text) }
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |line| line + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

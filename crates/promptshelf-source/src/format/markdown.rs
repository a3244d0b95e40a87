//! Native prompt files: Markdown with optional YAML front matter between two lines `---`.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Code, SourceText};

use super::{
    draft::Parsed,
    file_format::{ForeignSyntax, Format},
    foreign_folders, front_matter, lenient,
    tree::{Node, Notes},
    yaml,
};

/// The largest front matter, in bytes. Protects a large text that happens to start with a line `---`.
const MAX_FRONT_MATTER: usize = 1 << 20;

pub(super) const FORMAT: Format = Format {
    // Hidden files belong to other programs, which have formats of their own.
    matches: |path| path.ends_with(".md") && path.len() > 3 && !path.starts_with('.'),
    name: |path| foreign_folders::without_ending(path, ".md").replace('/', "-"),
    read,
    syntax: ForeignSyntax::NONE,
};

pub(super) fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    let (keys, body) = parts(&mut notes);
    let draft = front_matter::draft(keys.as_ref(), body, name, &mut notes);
    Parsed::of(draft, notes)
}

pub(crate) fn parts(notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    let source = Arc::clone(notes.source);
    match split(&source.text) {
        Split::Body(body) => (None, body),
        Split::Both { keys, .. } if keys.len() > MAX_FRONT_MATTER => {
            notes.error(Code::TooLarge, &(keys.start..keys.start), "the front matter is larger than 1 MiB");
            (None, 0..0)
        }
        Split::Both { keys, body } => {
            review_start(&keys, notes);
            (yaml::parse(keys, notes), body)
        }
        Split::Unterminated(first) => {
            notes.error(Code::Syntax, &first, "the front matter is not closed").help =
                Some("add a line `---` between the keys and the text".to_owned());
            (None, 0..0)
        }
    }
}

/// Returns the front matter and the range of the body of another program's file. Front matter that is not closed ends at
/// the first line of text.
pub(super) fn lenient_parts(texts: &[&str], notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    let source = Arc::clone(notes.source);
    let text = &source.text;
    let (keys, body) = match split(text) {
        Split::Body(body) => return (None, body),
        Split::Both { keys, .. } if keys.len() > MAX_FRONT_MATTER => return parts(notes),
        Split::Both { keys, body } => {
            review_start(&keys, notes);
            (keys, body)
        }
        Split::Unterminated(first) => {
            let start = first.end + text[first.end..].find('\n').map_or(text.len() - first.end, |end| end + 1);
            let Some((end, body)) = lenient::unclosed(text, start) else { return (None, first.start..text.len()) };
            let message = "the front matter is not closed; it is taken to end at the first line that is no key";
            notes.warning(Code::Syntax, &first, message).help =
                Some("add a line `---` between the keys and the text".to_owned());
            (start..end, body..text.len())
        }
    };
    (lenient::parse(keys, texts, notes), body)
}

/// Reports empty lines above front matter.
fn review_start(keys: &Range<usize>, notes: &mut Notes<'_>) {
    let text = Arc::clone(notes.source);
    let above = text.text[..keys.start].trim_start_matches('\u{feff}');
    let blank = above.len() - above.trim_start().len();
    if blank > 0 {
        let start = keys.start - above.trim_start().len();
        notes.warning(Code::NoEffect, &(start..start + 3), "front matter starts in the first line of a file").help =
            Some("remove the empty lines above this one".to_owned());
    }
}

/// The bytes of a Markdown file's keys and of the text below them.
pub(crate) fn front_matter_range(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    match split(text) {
        Split::Both { keys, body } => Some((keys, body)),
        Split::Body(_) | Split::Unterminated(_) => None,
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum Split {
    /// No front matter.
    Body(Range<usize>),
    Both {
        keys: Range<usize>,
        body: Range<usize>,
    },
    /// Front matter without an end; the range is its first line.
    Unterminated(Range<usize>),
}

/// Finds the front matter. Accepts a byte order mark before it, empty lines above keys, and carriage returns at line
/// ends: what is meant as keys must not become part of a prompt.
pub(super) fn split(text: &str) -> Split {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let late = start + late(&text[start..]).unwrap_or_default();
    match split_at(text, late) {
        Split::Body(_) => Split::Body(start..text.len()),
        found => found,
    }
}

fn split_at(text: &str, start: usize) -> Split {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text[start..].split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Split::Body(start..text.len());
    };
    let keys = start + first.len();
    let mut at = keys;
    for line in lines {
        if is_fence(line) {
            return Split::Both { keys: keys..at, body: at + line.len()..text.len() };
        }
        at += line.len();
    }
    Split::Unterminated(start..start + 3)
}

/// Returns the position of front matter below empty lines.
fn late(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    if start == 0 {
        return None;
    }
    let Split::Both { keys, .. } = split_at(&text[start..], 0) else { return None };
    let is_key = |line: &str| line.split_once(':').is_some_and(|(key, _)| !key.is_empty() && !key.contains(' '));
    let keys = &text[start..][keys];
    keys.lines().any(is_key).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_between_two_lines_of_dashes() {
        assert_eq!(split("hello"), Split::Body(0..5));
        assert_eq!(split("---\na: b\n---\nhello"), Split::Both { keys: 4..9, body: 13..18 });
        assert_eq!(split("\u{feff}---\r\na: b\r\n---  \r\nhello"), Split::Both { keys: 8..14, body: 21..26 });
        assert_eq!(split("---\n---"), Split::Both { keys: 4..4, body: 7..7 });
        assert_eq!(split("---\na: b\n----\n"), Split::Unterminated(0..3));
        assert_eq!(split("----\nhello"), Split::Body(0..10));
        assert_eq!(split("\n---\na: b\n---\n"), Split::Both { keys: 5..10, body: 14..14 });
        assert_eq!(split("\n---\nA line.\n---\n"), Split::Body(0..17));
        assert_eq!(split("\u{feff}hello"), Split::Body(3..8));
        assert_eq!(split(""), Split::Body(0..0));
    }

    #[test]
    fn front_matter_below_empty_lines_is_found() {
        assert_eq!(late("\n \n---\ntitle: x\n---\nhello"), Some(3));
        for text in ["---\ntitle: x\n---\n", "\nhello", "\n---\nA line of text.\n---\n", "\n---\ntitle: x"] {
            assert_eq!(late(text), None, "{text:?}");
        }
    }
}

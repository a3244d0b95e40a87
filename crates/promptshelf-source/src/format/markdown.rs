//! Native prompt files: Markdown with optional YAML front matter between two lines `---`.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Code, SourceText};

use super::{
    draft::Parsed,
    file_format::{ForeignSyntax, Format},
    front_matter,
    tree::{Node, Notes},
    yaml,
};

/// The largest front matter, in bytes. Protects a large text that happens to start with a line `---`.
const MAX_FRONT_MATTER: usize = 1 << 20;

pub(super) const FORMAT: Format = Format {
    // Hidden files belong to other programs, which have formats of their own.
    matches: |path| path.ends_with(".md") && path.len() > 3 && !path.starts_with('.'),
    name: |path| path.strip_suffix(".md").unwrap_or(path).replace('/', "-"),
    read,
    syntax: ForeignSyntax::NONE,
};

pub(super) fn read(source: &Arc<SourceText>, name: &str) -> Parsed {
    let mut notes = Notes::new(source);
    let (keys, body) = parts(&mut notes, |_| None);
    let draft = front_matter::draft(keys.as_ref(), body, name, &mut notes);
    Parsed::of(draft, notes)
}

/// Returns the front matter and the range of the body. `odd` finds a line of the front matter that is ignored because
/// it is invalid YAML.
pub(super) fn parts(
    notes: &mut Notes<'_>,
    odd: impl FnOnce(Range<usize>) -> Option<Range<usize>>,
) -> (Option<Node>, Range<usize>) {
    let source = Arc::clone(notes.source);
    match split(&source.text) {
        Split::Body(body) => {
            if let Some(late) = late(&source.text[body.clone()]) {
                let span = body.start + late..body.start + late + 3;
                let message = "these keys are read as text: front matter starts in the first line";
                notes.warning(Code::NoEffect, &span, message).help =
                    Some("remove the empty lines above this one".to_owned());
            }
            (None, body)
        }
        Split::Both { keys, .. } if keys.len() > MAX_FRONT_MATTER => {
            notes.error(Code::TooLarge, &(keys.start..keys.start), "the front matter is larger than 1 MiB");
            (None, 0..0)
        }
        Split::Both { keys, body } => {
            let line = odd(keys.clone());
            (yaml::parse_without(keys, line, notes), body)
        }
        Split::Unterminated(first) => {
            notes.error(Code::Syntax, &first, "the front matter is not closed").help =
                Some("add a line `---` between the keys and the text".to_owned());
            (None, 0..0)
        }
    }
}

/// Returns the front matter and the range of the body of a Markdown file.
pub(crate) fn front_matter_and_body(notes: &mut Notes<'_>) -> (Option<Node>, Range<usize>) {
    parts(notes, |_| None)
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

/// Finds the front matter. Accepts a byte order mark before it, and carriage returns at line ends.
pub(super) fn split(text: &str) -> Split {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
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

/// Returns the position of front matter that is not recognised because of empty lines above it.
fn late(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let Split::Both { keys, .. } = split(&text[start..]) else { return None };
    let is_key = |line: &str| line.split_once(':').is_some_and(|(key, _)| !key.is_empty() && !key.contains(' '));
    let keys = &text[start..][keys];
    (start > 0 && keys.lines().any(is_key)).then_some(start)
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
        assert_eq!(split("\n---\na: b\n---\n"), Split::Body(0..14));
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

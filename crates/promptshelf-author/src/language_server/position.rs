//! Conversion of URIs and positions of the Language Server Protocol: lines and columns from zero, columns in UTF-16
//! code units.

use std::{
    ops,
    path::{Component, Path, PathBuf},
};

use gen_lsp_types::{Position, Range};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// Characters that are percent-encoded in a path (RFC 3986, section 3.3).
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'\\');

/// Returns the path of a `file:` URI.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = percent_decode_str(&path[path.find('/')?..]).decode_utf8().ok()?;
    // `/c:/x` is a Windows path.
    let is_drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if is_drive { &path[1..] } else { &path }))
}

/// Returns the `file:` URI of a path.
pub(super) fn uri_of(path: &Path) -> String {
    let path = path.display().to_string().replace('\\', "/");
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("file://{slash}{}", utf8_percent_encode(&path, ENCODED))
}

pub(super) fn inside(folder: &Path, file: &Path) -> Option<String> {
    let parts = file.strip_prefix(folder).ok()?.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}

/// Returns the byte offset of a position, or the nearest valid one.
pub(super) fn offset(text: &str, position: Position) -> usize {
    let start: usize = text.split_inclusive('\n').take(position.line as usize).map(str::len).sum();
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut units = 0;
    for (at, c) in line.char_indices() {
        if units >= position.character as usize {
            return start + at;
        }
        units += c.len_utf16();
    }
    start + line.len()
}

/// Returns the bytes of a range.
pub(super) fn span(text: &str, range: Range) -> ops::Range<usize> {
    let start = offset(text, range.start);
    start..offset(text, range.end).max(start)
}

/// Returns the position of a byte offset.
pub(super) fn position(text: &str, offset: usize) -> Position {
    let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    Position { line: u32::try_from(line).unwrap_or(u32::MAX), character: u32::try_from(column).unwrap_or(u32::MAX) }
}

pub(super) fn range(text: &str, span: &ops::Range<usize>) -> Range {
    Range { start: position(text, span.start), end: position(text, span.end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_utf_16() {
        let text = "a\n🙂é x\n";
        let x = text.find('x').expect("it is there");
        assert_eq!(position(text, x), Position { line: 1, character: 4 });
        assert_eq!(offset(text, Position { line: 1, character: 4 }), x);
        assert_eq!(offset(text, Position { line: 1, character: 99 }), text.len() - 1);
        assert_eq!(offset(text, Position { line: 9, character: 0 }), text.len());
    }

    #[cfg(unix)]
    #[test]
    fn path_round_trips_through_uri() {
        let path = Path::new("/a b/ü#%.md");
        assert_eq!(uri_of(path), "file:///a%20b/%C3%BC%23%25.md");
        assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path));
        assert_eq!(inside(Path::new("/a b"), path).as_deref(), Some("ü#%.md"));
        assert_eq!(path_of("untitled:x"), None);
    }
}

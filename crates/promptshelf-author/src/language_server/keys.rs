//! Finds the key at a position of YAML or TOML and the keys above it, by indentation and section headers: while a
//! file is being edited it can rarely be parsed.

use std::ops::Range;

use super::{Cursor, Place};
use crate::fixes::depth_of;

/// Returns the position at an offset of YAML that begins at `start`.
pub(super) fn in_yaml(text: &str, start: usize, offset: usize) -> Cursor<'_> {
    let line = line_start(text, offset).max(start);
    let before = &text[line..offset];
    let depth = depth_of(before);
    let mut path = above(&text[start..line], depth);
    let written = &before[depth.min(before.len())..];
    let Some(colon) = written.find(':') else {
        return key(text, path, line + depth, offset);
    };
    path.push(written[..colon].trim());
    // In `complete: {file: `, the innermost key counts.
    let inner = &written[colon + 1..];
    match inner.rfind('{').filter(|open| !inner[*open..].contains('}')) {
        None => value(text, path, offset),
        Some(open) => {
            let last = inner[open + 1..].rfind(',').map_or(open + 1, |comma| open + 1 + comma + 1);
            match inner[last..].find(':') {
                Some(colon) => {
                    path.push(inner[last..last + colon].trim());
                    value(text, path, offset)
                }
                None => {
                    let blank = inner[last..].len() - inner[last..].trim_start().len();
                    key(text, path, offset - inner.len() + last + blank, offset)
                }
            }
        }
    }
}

pub(super) fn in_toml(text: &str, offset: usize) -> Cursor<'_> {
    let line = line_start(text, offset);
    let before = &text[line..offset];
    let header = text[..line].lines().rev().find(|line| line.trim_start().starts_with('['));
    let name = header.map(|line| line.trim().trim_matches(['[', ']'])).unwrap_or_default();
    let mut path: Vec<&str> = name.split('.').map(str::trim).filter(|part| !part.is_empty()).collect();
    let indentation = before.len() - before.trim_start().len();
    match before.find('=') {
        Some(equals) => {
            path.push(before[..equals].trim());
            value(text, path, offset)
        }
        None if before.trim_start().starts_with('[') => {
            let bracket = before.len() - before.trim_start().trim_start_matches('[').len();
            key(text, Vec::new(), line + bracket, offset)
        }
        None => key(text, path, line + indentation, offset),
    }
}

fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |newline| newline + 1)
}

fn above(text: &str, mut depth: usize) -> Vec<&str> {
    let mut path = Vec::new();
    for line in text.lines().rev().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')) {
        let own = depth_of(line);
        if own < depth
            && let Some((key, _)) = line[own..].split_once(':')
        {
            path.push(key.trim());
            depth = own;
        }
    }
    path.reverse();
    path
}

fn key<'t>(text: &'t str, parents: Vec<&'t str>, start: usize, offset: usize) -> Cursor<'t> {
    let start = start.min(offset);
    let end = text[offset..].find([':', '=', ']', '}', '\n']).map_or(text.len(), |length| offset + length);
    let word = text[start..end.max(start)].trim_end();
    Cursor { place: Place::Key { parents }, span: start..start + word.len(), word, offset }
}

fn value<'t>(text: &'t str, path: Vec<&'t str>, offset: usize) -> Cursor<'t> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let before = text[..offset].trim_end_matches(is_part).len();
    let after = text[offset..].len() - text[offset..].trim_start_matches(is_part).len();
    let span: Range<usize> = before..offset + after;
    Cursor { place: Place::Value { path }, word: &text[span.clone()], span, offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, at: impl Fn(&str, usize) -> Cursor<'_>) -> String {
        let offset = text.find('^').expect("a cursor");
        let whole = text.replacen('^', "", 1);
        let cursor = at(&whole, offset);
        let place = match &cursor.place {
            Place::Key { parents } => format!("key of {}", parents.join(".")),
            Place::Value { path } => format!("value of {}", path.join(".")),
            other => format!("{other:?}"),
        };
        format!("{place}: {}", cursor.word)
    }

    #[test]
    fn yaml_keys_are_nested() {
        let is = |text, expected| assert_eq!(shown(text, |text, offset| in_yaml(text, 0, offset)), expected, "{text}");
        is("de^", "key of : de");
        is("arguments:\n  - name: a\n    ty^pe: x", "key of arguments: type");
        is("arguments:\n- na^", "key of arguments: na");
        is("arguments:\n  - name: a\n    type: in^t", "value of arguments.type: int");
        is("arguments:\n  - name: a\n    complete: {file: lists/^}", "value of arguments.complete.file: lists/");
        is("arguments:\n  - name: a\n    complete: {by: x, f^}", "key of arguments.complete: f");
        is("tests:\n  - complete:\n      # remark\n\n      va^", "key of tests.complete: va");
        is("arguments: []\nicons:\n  - src: a.svg\n    the^me: dark", "key of icons: theme");
    }

    #[test]
    fn toml_keys_belong_to_their_section() {
        let is = |text, expected| assert_eq!(shown(text, in_toml), expected, "{text}");
        is("na^", "key of : na");
        is("[li^mits]", "key of : limits");
        is("[limits]\nfu^ = 1", "key of limits: fu");
        is("[[resources]]\nuri = \"x\"\nfile = \"do^cs\"", "value of resources.file: docs");
    }
}

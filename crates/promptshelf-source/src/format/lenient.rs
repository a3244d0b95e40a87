//! The front matter of other programs' files, which is rarely strict YAML. What is not YAML is taken as text, with a
//! warning at its line: no front matter makes a prompt unavailable.

use std::{ops::Range, sync::Arc};

use promptshelf_core::{Code, Diagnostic};

use super::{
    tree::{Entry, Node, Notes, Scalar, ScalarKind, Value},
    yaml,
};

const MAX_REPORTED: usize = 10;

/// Parses a range of the file as keys; `None` if it has none. The values of keys in `texts` are documented as text, although
/// people write them in brackets.
pub(super) fn parse(range: Range<usize>, texts: &[&str], notes: &mut Notes<'_>) -> Option<Node> {
    let source = Arc::clone(notes.source);
    let mut attempt = Notes::new(&source);
    match yaml::parse(range.clone(), &mut attempt) {
        Some(node) if attempt.diagnostics.is_empty() && matches!(node.value, Value::Mapping(_)) => return Some(node),
        None if attempt.diagnostics.is_empty() => return None,
        _ => {}
    }
    let text = &source.text;
    let mut entries: Vec<Entry> = Vec::new();
    let mut reported = 0;
    for block in blocks(text, &range) {
        let Some(key) = key(text, &block) else {
            if reported < MAX_REPORTED {
                let line = line(text, block.start);
                notes.warning(Code::Syntax, &line, "this line is no key, and is left out").help =
                    Some("write `key: value`, or remove the line".to_owned());
            }
            reported += 1;
            continue;
        };
        let mut attempt = Notes::new(&source);
        let parsed = yaml::parse(block.clone(), &mut attempt).and_then(single);
        let entry = match parsed.filter(|_| attempt.diagnostics.is_empty()) {
            Some(entry) => entry,
            None => {
                if reported < MAX_REPORTED && !texts.contains(&&text[key.clone()]) {
                    let found = attempt.diagnostics.into_iter().find(Diagnostic::is_error);
                    let span = found.as_ref().map_or(key.clone(), |found| found.location.span());
                    let reason = found.map_or_else(|| "this is not YAML".to_owned(), |found| found.message);
                    let message = format!("{reason}; the value of `{}` is taken as text", &text[key.clone()]);
                    notes.warning(Code::Syntax, &span, message).help =
                        Some("put the value in quotation marks".to_owned());
                }
                reported += 1;
                as_text(text, key, &block)
            }
        };
        match entries.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => {
                // Programs use the last one.
                let first = notes.location(&known.key_span);
                let message = format!("duplicate key `{}`; the last one is used", entry.key);
                let found = notes.warning(Code::Syntax, &entry.key_span, message);
                found.related.push((first, "first defined here".to_owned()));
                *known = entry;
            }
            None => entries.push(entry),
        }
    }
    (!entries.is_empty()).then_some(Node { span: range, value: Value::Mapping(entries) })
}

/// Returns the end of front matter that is not closed, and the start of the text: the first line that is neither a key
/// nor belongs to one. `None` if there is no key.
pub(super) fn unclosed(text: &str, start: usize) -> Option<(usize, usize)> {
    let (mut at, mut has_keys) = (start, false);
    for written in text[start..].split_inclusive('\n') {
        let end = at + written.len();
        let line = written.trim_end();
        let is_close = line.len() > 2 && (line.bytes().all(|byte| byte == b'-') || line == "...");
        if is_close {
            return has_keys.then_some((at, end));
        }
        let is_key = key(text, &(at..end)).is_some();
        let continues = has_keys && (line.starts_with([' ', '\t', '#']) || line.starts_with("- "));
        if line.is_empty() || !(is_key || continues) {
            return has_keys.then_some((at, at));
        }
        has_keys |= is_key;
        at = end;
    }
    has_keys.then_some((at, at))
}

/// Returns the lines of each key with those that belong to it, and each other line.
fn blocks(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let (mut at, mut depth) = (range.start, None);
    for written in text[range.clone()].split_inclusive('\n') {
        let line = at..at + written.len();
        at = line.end;
        let own = written.len() - written.trim_start_matches([' ', '\t']).len();
        let is_blank = written.trim().is_empty();
        if blocks.is_empty() && (is_blank || written.trim_start().starts_with('#')) {
            continue;
        }
        let depth = *depth.get_or_insert(own);
        let belongs = is_blank || own > depth || written.starts_with(['-', '#', ']', '}']);
        match blocks.last_mut().filter(|last| belongs && key(text, last).is_some()) {
            Some(last) => last.end = line.end,
            None if is_blank => {}
            None => blocks.push(line),
        }
    }
    blocks
}

fn key(text: &str, block: &Range<usize>) -> Option<Range<usize>> {
    let line = text[block.clone()].lines().next()?;
    let indent = line.len() - line.trim_start().len();
    let (written, value) = line[indent..].split_once(':')?;
    let name = written.trim_end().trim_matches(['"', '\'']);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let is_separate = value.is_empty() || value.starts_with([' ', '\t', '"', '\'', '[']);
    if !is_name || !is_separate {
        return None;
    }
    let start = block.start + indent + written.find(name).unwrap_or_default();
    Some(start..start + name.len())
}

/// Returns the only entry of a mapping.
fn single(node: Node) -> Option<Entry> {
    match node.value {
        Value::Mapping(entries) => <[Entry; 1]>::try_from(entries).ok().map(|[entry]| entry),
        _ => None,
    }
}

/// Returns the value of a block that is not YAML: the rest of its line, or else the lines below it.
fn as_text(text: &str, key: Range<usize>, block: &Range<usize>) -> Entry {
    let line = line(text, block.start);
    let colon = text[key.end..line.end].find(':').map_or(key.end, |colon| key.end + colon + 1);
    let trimmed = |range: Range<usize>| {
        let inside = &text[range.clone()];
        let start = range.start + (inside.len() - inside.trim_start().len());
        start..start + inside.trim().len()
    };
    let own = trimmed(colon..line.end);
    let is_marker = matches!(&text[own.clone()], "" | "|" | ">" | "|-" | ">-" | "|+" | ">+");
    let span = if is_marker { trimmed(line.end..block.end) } else { own };
    let written = &text[span.clone()];
    let inner = ['"', '\''].into_iter().find_map(|mark| written.strip_prefix(mark)?.strip_suffix(mark));
    let value = inner.filter(|inner| !inner.contains(['"', '\''])).unwrap_or(written);
    let kind = if value.is_empty() { ScalarKind::Null } else { ScalarKind::Text };
    let node = Node { span, value: Value::Scalar(Scalar { text: value.to_owned(), kind }) };
    Entry { key: text[key.clone()].to_owned(), key_span: key, node }
}

fn line(text: &str, start: usize) -> Range<usize> {
    let line = text[start..].lines().next().unwrap_or_default();
    start..start + line.len()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::SourceText;

    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<usize>) {
        let source = SourceText::new("a.md", text);
        let mut notes = Notes::new(&source);
        let node = parse(0..text.len(), &[], &mut notes);
        assert!(!notes.has_errors(), "{text}");
        let Some(Node { value: Value::Mapping(entries), .. }) = node else { return (Vec::new(), Vec::new()) };
        let shown = |entry: &Entry| format!("{}={}", entry.key, entry.node.to_json());
        let lines = notes.diagnostics.iter().map(|found| found.location.line_column().0).collect();
        (entries.iter().map(shown).collect(), lines)
    }

    #[test]
    fn lines_that_are_not_yaml_are_text() {
        for (text, expected, lines) in [
            ("a: b: c\nd: e", &["a=\"b: c\"", "d=\"e\""][..], &[1][..]),
            ("a: \"b\" c", &["a=\"\\\"b\\\" c\""], &[1]),
            ("a: [x] [y]\nb: *c*", &["a=\"[x] [y]\"", "b=\"*c*\""], &[1, 2]),
            ("a: x\na: y", &["a=\"y\""], &[2]),
            ("a:\n\t- b\nc: d", &["a=\"- b\"", "c=\"d\""], &[2]),
            ("a: > b\n  c", &["a=\"> b\""], &[1]),
            ("a: |\n  b: c\n  d", &["a=\"b: c\\nd\\n\""], &[]),
            ("no key\na: b: c", &["a=\"b: c\""], &[1, 2]),
            ("  a: b\n  c: d: e", &["a=\"b\"", "c=\"d: e\""], &[2]),
            ("# note\n\na: @b\n- x", &["a=\"@b\""], &[3]),
            ("# only\n", &[], &[]),
        ] {
            let (keys, found) = read(text);
            assert_eq!(
                (&keys[..], &found[..]),
                (&expected.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..], lines),
                "{text}"
            );
        }
    }

    #[test]
    fn unclosed_front_matter_ends_at_the_first_line_of_text() {
        for (text, expected) in [
            ("a: b\n\nText", Some("\nText")),
            ("a: b\nText", Some("Text")),
            ("a: b\n  c\n- d\nText: x y\n", Some("")),
            ("a: b\n----\nText", Some("Text")),
            ("a: b\n...\nText", Some("Text")),
            ("Text\na: b", None),
            ("", None),
        ] {
            assert_eq!(unclosed(text, 0).map(|(_, body)| &text[body..]), expected, "{text}");
        }
    }
}

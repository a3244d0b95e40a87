//! Finds the syntax around a position in a prompt file.
//!
//! Works on the text alone: while a file is being edited it can rarely be parsed.

use std::ops::Range;

use promptshelf_source::{ForeignSyntax, syntax::LIBRARY_FILE};

use super::{
    cursor::{Cursor, Place},
    keys,
};

pub(super) fn cursor_at<'t>(path: &str, text: &'t str, offset: usize) -> Cursor<'t> {
    let offset = text.floor_char_boundary(offset.min(text.len()));
    if path == LIBRARY_FILE || path.ends_with(".toml") {
        return keys::in_toml(text, offset);
    }
    if path.ends_with(".yml") || path.ends_with(".yaml") {
        return keys::in_yaml(text, 0, offset);
    }
    match front_matter(text) {
        Some(keys) if offset < keys.start => Cursor { place: Place::Text, span: 0..0, word: "", offset },
        Some(keys) if keys.contains(&offset) || offset == keys.end => keys::in_yaml(text, keys.start, offset),
        // Formats of other programs have no template language.
        _ if ForeignSyntax::for_path(path).is_some() => {
            let word = word_around(text, offset, is_word);
            Cursor { place: Place::Text, word: &text[word.clone()], span: word, offset }
        }
        keys => in_body(text, keys.map_or(0, |keys| keys.end), offset),
    }
}

/// Returns the bytes between the `---` lines; up to the end while the second one is missing.
fn front_matter(text: &str) -> Option<Range<usize>> {
    let first = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")?;
    let mut at = first.len();
    for line in text[at..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(first.len()..at);
        }
        at += line.len();
    }
    Some(first.len()..text.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_around(text: &str, offset: usize, is_part: impl Fn(char) -> bool) -> Range<usize> {
    let before = text[..offset].trim_end_matches(&is_part).len();
    let after = text[offset..].len() - text[offset..].trim_start_matches(&is_part).len();
    before..offset + after
}

fn in_body<'t>(text: &'t str, body: usize, offset: usize) -> Cursor<'t> {
    let word = word_around(text, offset, is_word);
    let found = |place, span: Range<usize>| Cursor { place, word: &text[span.clone()], span, offset };
    let before = &text[body..offset];
    let open = before.rfind("{{").max(before.rfind("{%"));
    let Some(open) = open.filter(|open| !before[open + 2..].contains("}}") && !before[open + 2..].contains("%}"))
    else {
        return found(Place::Text, word);
    };
    let is_statement = before[open..].starts_with("{%");
    let inside = &before[open + 2..];
    let base = body + open + 2;
    if let Some((quote, start)) = unclosed(inside) {
        let end = text[offset..].find([quote, '\n']).map_or(text.len(), |length| offset + length);
        let callee = inside[..start - 1].trim_end().trim_end_matches(['(', '[']).trim_end();
        let callee = callee.rsplit(|c: char| !is_word(c)).next().unwrap_or_default();
        return found(Place::String { callee }, base + start..end);
    }
    let code = inside[..word.start.saturating_sub(base).min(inside.len())].trim_start_matches('-').trim_end();
    let last = code.rsplit(|c: char| !is_word(c)).next().unwrap_or_default();
    let place = if code.ends_with('|') {
        Place::Filter
    } else if last == "is" || code.ends_with("is not") {
        Place::Test
    } else if let Some(prompt) = call_of_prompt(code) {
        Place::CallArgument { prompt }
    } else if is_statement && code.is_empty() {
        Place::Statement
    } else {
        Place::Expression
    };
    found(place, word)
}

fn unclosed(inside: &str) -> Option<(char, usize)> {
    let mut open = None;
    for (at, c) in inside.char_indices() {
        match open {
            Some((quote, _)) if quote == c => open = None,
            None if c == '"' || c == '\'' => open = Some((c, at + 1)),
            _ => {}
        }
    }
    open
}

/// Returns the prompt of an unclosed call, at a position where an argument's name is allowed.
fn call_of_prompt(code: &str) -> Option<&str> {
    let start = code.rfind("prompt(")?;
    let inside = &code[start + "prompt(".len()..];
    if inside.contains(')') || !inside.trim_end().ends_with(',') {
        return None;
    }
    inside.split(['"', '\'']).nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &'static str) -> (String, String) {
        let offset = text.find('^').expect("a cursor");
        let whole: &'static str = Box::leak(text.replacen('^', "", 1).into_boxed_str());
        let cursor = cursor_at("a.md", whole, offset);
        (format!("{:?}", cursor.place), cursor.word.to_owned())
    }

    #[test]
    fn front_matter_has_keys_and_values() {
        let is = |text, expected: &str, word: &str| assert_eq!(place(text), (expected.to_owned(), word.to_owned()));
        is("---\nde^\n---\n", "Key { parents: [] }", "de");
        is("---\narguments:\n  - name: a\n    type: in^\n---\n", "Value { path: [\"arguments\", \"type\"] }", "in");
    }

    #[test]
    fn body_has_words_and_strings() {
        let is = |text, expected: &str, word: &str| assert_eq!(place(text), (expected.to_owned(), word.to_owned()));
        is("x^y", "Text", "xy");
        is("^---\n---\n", "Text", "");
        is("---\n-^--\n", "Text", "");
        is("{{ na^me }}", "Expression", "name");
        is("{{ a }} b^", "Text", "b");
        is("---\n---\n{{ name | up^", "Filter", "up");
        is("{% if x is not de^f %}", "Test", "def");
        is("{% inc^", "Statement", "inc");
        is("{%- if x^", "Expression", "x");
        is("{% include \"_a/b^.md\" %}", "String { callee: \"include\" }", "_a/b.md");
        is("{{ attach('x^", "String { callee: \"attach\" }", "x");
        is("{{ prompt(\"gr^eet\") }}", "String { callee: \"prompt\" }", "greet");
        is("{{ prompt(\"greet\", wh^", "CallArgument { prompt: \"greet\" }", "wh");
        is("{{ prompt(\"greet\", who=na^", "Expression", "na");
    }
}

//! Escapes control characters and invisible characters before text reaches a terminal.
//!
//! Names, texts and errors come from prompt files, servers and callers. Printed verbatim, an escape sequence could hide a
//! line, and a bidirectional control could show a person another text than the one a model reads.

use std::borrow::Cow;

use promptshelf_core::invisible::{is_invisible, joins};

/// A text of several lines that is safe to show on a terminal: line breaks and
/// tabs stay, every other invisible character becomes `\u{…}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

/// The same for a text that has to stay on one line.
pub(crate) fn visible_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// The same for JSON, whose own escapes are used: the result parses to the same value.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    if json.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n') {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len());
    let mut before = '\0';
    for c in json.chars() {
        if c == '\n' || !is_invisible(c) || joins(before, c) {
            shown.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        }
        before = c;
    }
    Cow::Owned(shown)
}

/// What [`visible`] makes of a text. Moves `places` in the text to where the
/// same characters are shown.
pub(crate) fn visible_at(text: &str, places: &mut [usize]) -> String {
    let mut shown = String::with_capacity(text.len());
    // Where each replaced character ended before and ends now.
    let mut moved: Vec<(usize, usize)> = Vec::new();
    each(
        text,
        |c| matches!(c, '\n' | '\t'),
        |at, c, piece| {
            shown.push_str(piece);
            if piece.len() != c.len_utf8() {
                moved.push((at + c.len_utf8(), shown.len()));
            }
        },
    );
    for place in places {
        let index = moved.partition_point(|(old, _)| old <= place);
        let (old, new) = index.checked_sub(1).map_or((0, 0), |index| moved[index]);
        *place = (new + (*place - old)).min(shown.len());
    }
    shown
}

fn escape(text: &str, stays: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || stays(char::from(byte))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    each(text, stays, |_, _, piece| shown.push_str(piece));
    Cow::Owned(shown)
}

/// Calls `put` for each character of a text, by its place, with what to show for it.
fn each(text: &str, stays: impl Fn(char) -> bool, mut put: impl FnMut(usize, char, &str)) {
    let mut before = '\0';
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let line_end = c == '\r' && stays('\n') && characters.peek().is_some_and(|(_, next)| *next == '\n');
        if line_end {
            put(at, c, "");
        } else if stays(c) || !is_invisible(c) || joins(before, c) {
            put(at, c, c.encode_utf8(&mut [0; 4]));
        } else {
            put(at, c, &c.escape_default().to_string());
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_reordering_are_escaped() {
        assert_eq!(visible("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(visible("x\u{202e}y\u{e0041}z\u{200b}"), "x\\u{202e}y\\u{e0041}z\\u{200b}");
        assert_eq!(visible("a\rb"), "a\\rb");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in ["two\nlines\twith a tab", "größer, 日本語, नमस्ते", "क्\u{200d}ष", "❤\u{fe0f}\u{200d}🔥"]
        {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("one\r\ntwo\r\n"), "one\ntwo\n");
    }

    // req: S-39
    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({ "a\u{202e}": "x\u{9b}2J\u{7f} \u{e0041}\n❤\u{fe0f} größer" });
        let json = serde_json::to_string_pretty(&value).expect("JSON");
        let shown = visible_json(&json);
        assert!(shown.chars().all(|c| c == '\n' || c == '\u{fe0f}' || !is_invisible(c)), "{shown}");
        assert!(shown.contains("\\u202e") && shown.contains("\\udb40\\udc41") && shown.contains("größer"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn line_breaks_are_escaped() {
        assert_eq!(visible_line("a\nb\tc"), "a\\nb\\tc");
    }

    #[test]
    fn offsets_follow_their_characters() {
        let text = "a\u{202e}b\x1bc\r\nd";
        let places = |at| {
            let mut places = [at];
            let shown = visible_at(text, &mut places);
            shown[places[0]..].chars().next()
        };
        for c in ['a', 'b', 'c', 'd'] {
            assert_eq!(places(text.find(c).expect("it is there")), Some(c));
        }
        let mut end = [text.len()];
        let shown = visible_at(text, &mut end);
        assert_eq!(end, [shown.len()]);
    }
}

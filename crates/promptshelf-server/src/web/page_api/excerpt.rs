//! Excerpts of the source: the lines of a diagnostic and a few around them.

use std::ops::Range;

use promptshelf_core::Location;
use serde_json::{Value, json};

const CONTEXT: usize = 2;
const MAX_MARKED: usize = 6;
const MAX_CHARACTERS: usize = 400;

/// Returns lines with their number and the marked range in UTF-16 units, as JavaScript counts. Empty for
/// an empty file.
pub(super) fn around(location: &Location) -> Vec<Value> {
    let text = &*location.source.text;
    let span = location.span();
    if text.is_empty() {
        return Vec::new();
    }
    let lines = spans(text);
    let line_at = |offset: usize| lines.iter().rposition(|line| line.start <= offset).unwrap_or(0);
    let first = line_at(span.start);
    let last = line_at(span.end.saturating_sub(1).max(span.start)).min(first + MAX_MARKED - 1);
    (first.saturating_sub(CONTEXT)..=(last + CONTEXT).min(lines.len() - 1))
        .map(|index| {
            let line = &lines[index];
            let end = text[line.clone()].char_indices().nth(MAX_CHARACTERS).map_or(line.end, |(at, _)| line.start + at);
            let (from, to) = (span.start.clamp(line.start, end), span.end.clamp(line.start, end));
            let is_marked = (first..=last).contains(&index);
            let mark = is_marked.then(|| [utf16(&text[line.start..from]), utf16(&text[line.start..to])]);
            json!({ "number": index + 1, "text": &text[line.start..end], "mark": mark })
        })
        .collect()
}

/// Returns the byte range of each line, without its line end.
fn spans(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let span = start..start + line.strip_suffix('\r').unwrap_or(line).len();
            start += line.len() + 1;
            span
        })
        .collect()
}

fn utf16(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use promptshelf_core::SourceText;

    use super::*;

    type Line = (u64, String, Option<(u64, u64)>);

    fn excerpt(text: &str, span: Range<usize>) -> Vec<Line> {
        let lines = around(&Location::new(&SourceText::new("a.md", text), span));
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        lines
            .iter()
            .map(|line| {
                let mark = line["mark"].as_array().map(|mark| (number(&mark[0]), number(&mark[1])));
                (number(&line["number"]), line["text"].as_str().unwrap_or_default().to_owned(), mark)
            })
            .collect()
    }

    #[test]
    fn excerpt_has_context_and_utf16_marks() {
        let shown = excerpt("a\nb\nc\nd 😀x\r\ne\nf\ng\n", 12..13);
        let numbers: Vec<u64> = shown.iter().map(|line| line.0).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6]);
        assert_eq!(shown[2], (4, "d 😀x".to_owned(), Some((4, 5))));
        assert_eq!(shown[1].2, None);
    }

    #[test]
    fn excerpt_handles_file_ends_and_long_ranges() {
        assert_eq!(excerpt("", 0..0), []);
        assert_eq!(excerpt("a", 1..1), [(1, "a".to_owned(), Some((1, 1)))]);
        assert_eq!(excerpt("a\n", 2..2).last(), Some(&(2, String::new(), Some((0, 0)))));
        let long = "x\n".repeat(100);
        assert_eq!(excerpt(&long, 0..200).len(), MAX_MARKED + CONTEXT);
        assert_eq!(excerpt(&"é".repeat(1_000), 0..2_000)[0].1.chars().count(), MAX_CHARACTERS);
    }
}

//! Conversion of the parser's positions to byte offsets.

use std::ops::Range;

use saphyr_parser::Span;

/// Byte offsets for the parser's positions, which count characters.
pub(super) enum Offsets {
    /// All characters are single bytes.
    Ascii {
        base: usize,
        len: usize,
    },
    Table(Vec<usize>),
}

impl Offsets {
    pub(super) fn of(text: &str, base: usize) -> Offsets {
        if text.is_ascii() {
            return Offsets::Ascii { base, len: text.len() };
        }
        let bytes = text.char_indices().map(|(byte, _)| base + byte);
        Offsets::Table(bytes.chain([base + text.len()]).collect())
    }

    pub(super) fn byte(&self, character: usize) -> usize {
        match self {
            Offsets::Ascii { base, len } => base + character.min(*len),
            Offsets::Table(bytes) => bytes[character.min(bytes.len() - 1)],
        }
    }

    pub(super) fn range(&self, span: Span) -> Range<usize> {
        let start = self.byte(span.start.index());
        start..self.byte(span.end.index()).max(start)
    }
}

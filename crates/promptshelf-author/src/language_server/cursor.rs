//! A position in a file that is being edited, with the syntax around it.
//!
//! Positions are found by [`locate`](super::locate) and [`keys`](super::keys).

use std::ops::Range;

#[derive(Debug, PartialEq)]
pub(super) struct Cursor<'t> {
    pub(super) place: Place<'t>,
    /// Bytes of the word around the position, or of the inside of the string.
    pub(super) span: Range<usize>,
    pub(super) word: &'t str,
    /// The position itself, in bytes.
    pub(super) offset: usize,
}

/// The kind of a position: it decides about completions and explanations.
#[derive(Debug, PartialEq)]
pub(super) enum Place<'t> {
    /// A key; `parents` are the keys above it.
    Key {
        parents: Vec<&'t str>,
    },
    /// The value of the last key of `path`.
    Value {
        path: Vec<&'t str>,
    },
    /// A string that is passed to a function, or to a statement such as `include`.
    String {
        callee: &'t str,
    },
    /// A filter: after `|`.
    Filter,
    /// A test: after `is`.
    Test,
    /// The name of an argument in a call of `prompt("name", …)`.
    CallArgument {
        prompt: &'t str,
    },
    Statement,
    Expression,
    Text,
}

impl Cursor<'_> {
    pub(super) fn is_in_brackets(&self, text: &str) -> bool {
        text[..self.span.start].ends_with('[')
    }

    /// Returns the bytes of the word before the cursor.
    pub(super) fn typed(&self) -> Range<usize> {
        self.span.start..self.offset.max(self.span.start)
    }
}

//! Prompt bodies without a template language: text with placeholders for arguments.

use std::ops::Range;

use promptshelf_core::{ArgumentDefinition, BodyPiece, Code, Role, Select, Words};

use super::tree::Notes;

/// Builds a body, and collects the arguments that it uses.
#[derive(Debug, Default)]
pub struct Pieces {
    pieces: Vec<BodyPiece>,
    arguments: Vec<ArgumentDefinition>,
}

impl Pieces {
    pub(crate) fn of(pieces: Vec<BodyPiece>, arguments: Vec<ArgumentDefinition>) -> Pieces {
        Pieces { pieces, arguments }
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(BodyPiece::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(BodyPiece::Text(text.to_owned())),
        }
    }

    /// The place of an argument, which is declared when it is first used.
    pub fn argument(&mut self, name: &str, declare: impl FnOnce(ArgumentDefinition) -> ArgumentDefinition) {
        if !self.arguments.iter().any(|known| known.name == name) {
            self.arguments.push(declare(ArgumentDefinition::new(name)));
        }
        self.pieces.push(BodyPiece::Argument(name.to_owned()));
    }

    pub(crate) fn words(&mut self, words: Words, declare: impl FnOnce(ArgumentDefinition) -> ArgumentDefinition) {
        if words.select == Select::All && words.before.is_empty() && words.otherwise.is_empty() {
            return self.argument(&words.argument, declare);
        }
        if !self.arguments.iter().any(|known| known.name == words.argument) {
            self.arguments.push(declare(ArgumentDefinition::new(&*words.argument)));
        }
        self.pieces.push(BodyPiece::Words(words));
    }

    /// Starts a message of this role.
    pub fn role(&mut self, role: Role) {
        self.pieces.push(BodyPiece::Role(role));
    }

    pub(crate) fn attach(&mut self, path: &str, otherwise: &str, span: Range<usize>) {
        self.pieces.push(BodyPiece::Attach { path: path.to_owned(), otherwise: otherwise.to_owned(), span });
    }

    /// Returns the body, and its arguments in the order of their first use.
    #[must_use]
    pub fn into_parts(self) -> (Vec<BodyPiece>, Vec<ArgumentDefinition>) {
        (self.pieces, self.arguments)
    }
}

/// Finds the positions of parts of a value in its file. The text of a value can differ from the file: YAML removes
/// indentation, and TOML has escapes.
pub(crate) struct SpanFinder<'s> {
    text: &'s str,
    span: Range<usize>,
    cursor: usize,
}

impl<'s> SpanFinder<'s> {
    /// Creates a finder for the value in these bytes of a file.
    pub(crate) fn new(text: &'s str, span: Range<usize>) -> SpanFinder<'s> {
        SpanFinder { text, cursor: span.start, span }
    }

    /// Returns the next position of a part; that of the whole value if the part is not found.
    pub(crate) fn next(&mut self, part: &str) -> Range<usize> {
        match self.text.get(self.cursor..self.span.end).and_then(|rest| rest.find(part)) {
            Some(offset) => {
                let start = self.cursor + offset;
                self.cursor = start + part.len();
                start..self.cursor
            }
            None => self.span.clone(),
        }
    }
}

/// Adds the warning that a command in a prompt is not run.
pub(super) fn not_run(written: &str, spans: &mut SpanFinder<'_>, notes: &mut Notes<'_>) {
    let span = spans.next(written);
    notes.warning(Code::NotSupported, &span, "commands in prompts are never run; this is plain text").help =
        Some("take the command's output as an argument".to_owned());
}

/// A word as the name of an argument of a template: letters, digits and `_`, and no word of the template language. `None`
/// when nothing is left of it.
#[must_use]
pub fn argument_name(word: &str) -> Option<String> {
    let name: String = word.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let name = name.trim_matches('_');
    let is_reserved = || !promptshelf_core::is_variable_name(name);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    begins.then(|| if is_reserved() { format!("{name}_") } else { name.to_owned() })
}

/// A word as the name of an argument of a body without a template, which may be in any script and begin with a digit.
pub(super) fn input_name(word: &str) -> Option<String> {
    let name: String = word.trim().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let name = name.trim_matches('_');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the end of `{…}` whose content begins at `start`, with balanced braces inside.
pub(super) fn closing_brace(text: &str, start: usize) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, c) in text.get(start..)?.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(start + at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_part_has_the_span_of_the_whole_value() {
        let text = "a: |\n  x !`ls`\n  y !`ls`\n";
        let mut spans = SpanFinder::new(text, 3..text.len());
        assert_eq!(&text[spans.next("!`ls`")], "!`ls`");
        let second = spans.next("!`ls`");
        assert_eq!(second.start, text.rfind("!`").expect("it is there"));
        assert_eq!(spans.next("!`ls`"), 3..text.len());
    }

    #[test]
    fn braces_are_balanced() {
        assert_eq!(closing_brace("!{a {b} c} d", 2), Some(9));
        assert_eq!(closing_brace("!{a", 2), None);
    }

    #[test]
    fn words_become_argument_names() {
        assert_eq!(argument_name("pr-number"), Some("pr_number".to_owned()));
        assert_eq!(argument_name(" ... "), None);
        assert_eq!(argument_name("2nd"), None);
        assert_eq!(argument_name("role"), Some("role_".to_owned()));
        assert_eq!((input_name("role").as_deref(), input_name("名前").as_deref()), (Some("role"), Some("名前")));
        assert_eq!((input_name("2-nd").as_deref(), input_name(" … ")), (Some("2_nd"), None));
    }
}

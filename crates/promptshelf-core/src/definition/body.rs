//! The body of a prompt: a template, text pieces, or code.

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use super::remote::RemotePrompt;
use crate::{
    content::{Message, Role},
    render_error::RenderError,
    value::{Bindings, BoxFuture},
};

/// The body of a prompt.
#[derive(Clone, Debug)]
pub enum Body {
    /// A template: a range of the origin's text.
    Template {
        /// Bytes of the origin's text.
        range: Range<usize>,
    },
    /// Texts and placeholders for arguments, from formats without a template language. The texts are never
    /// interpreted.
    Pieces(Vec<BodyPiece>),
    /// Code.
    Function(PromptFunction),
}

/// A part of a body without a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPiece {
    /// Text that is printed unchanged.
    Text(String),
    /// The value of an argument; empty if it has none.
    Argument(String),
    /// Words of the value of an argument, or another text without them.
    Words(Words),
    /// The role of the following parts.
    Role(Role),
    /// A file of the library.
    Attach {
        /// Its path inside the library.
        path: String,
        /// The text used if the library has no such file.
        otherwise: String,
        /// Bytes of the origin's text.
        span: Range<usize>,
    },
}

/// Words of an argument that holds the text after a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The argument.
    pub argument: String,
    /// The words to print.
    pub select: Select,
    /// The text before the words, printed only with them.
    pub before: String,
    /// The text in place of words that are missing.
    pub otherwise: String,
}

/// A selection of words, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The whole text, as it was written.
    All,
    /// One word.
    Word(usize),
    /// A word and those after it, joined by spaces.
    From(usize),
}

impl BodyPiece {
    /// Returns the argument whose value this piece prints.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        match self {
            BodyPiece::Argument(name) => Some(name),
            BodyPiece::Words(words) => Some(&words.argument),
            BodyPiece::Text(_) | BodyPiece::Role(_) | BodyPiece::Attach { .. } => None,
        }
    }
}

impl Words {
    pub(crate) fn of<'v>(&'v self, value: Cow<'v, str>) -> Cow<'v, str> {
        if value.trim().is_empty() {
            return Cow::Borrowed(&self.otherwise);
        }
        let words = match self.select {
            Select::All => Some(value),
            Select::Word(index) => split(&value).into_iter().nth(index).map(Cow::Owned),
            Select::From(index) => {
                let words = split(&value);
                words.get(index..).filter(|words| !words.is_empty()).map(|words| Cow::Owned(words.join(" ")))
            }
        };
        match words {
            Some(words) if self.before.is_empty() => words,
            Some(words) => Cow::Owned([&self.before, &*words].concat()),
            None => Cow::Borrowed(&self.otherwise),
        }
    }
}

/// Splits a text into words at white space, outside of quotation marks, as command lines do.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut is_open, mut quote) = (false, None);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match quote {
            Some(mark) if c == mark => {
                quote = None;
                continue;
            }
            None if c.is_whitespace() => {
                is_open = false;
                continue;
            }
            _ => {}
        }
        if !is_open {
            words.push(String::new());
            is_open = true;
        }
        let Some(word) = words.last_mut() else { continue };
        match (quote, c) {
            // An apostrophe inside of a word, or a mark without a second one, is no quotation mark.
            (None, '"' | '\'') if word.is_empty() && rest.clone().any(|other| other == c) => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(rest.next()),
            _ => word.push(c),
        }
    }
    words
}

/// A prompt's body in code.
#[derive(Clone)]
#[non_exhaustive]
pub enum PromptFunction {
    /// A function that returns at once.
    Sync(Arc<SyncPromptFunction>),
    /// A function that returns a future.
    Async(Arc<AsyncPromptFunction>),
    /// A prompt of another server.
    Remote(Arc<dyn RemotePrompt>),
}

/// The type of a function in [`PromptFunction::Sync`].
pub type SyncPromptFunction = dyn Fn(&Bindings) -> Result<Vec<Message>, RenderError> + Send + Sync;

/// The type of a function in [`PromptFunction::Async`].
pub type AsyncPromptFunction = dyn Fn(Bindings) -> BoxFuture<'static, Result<Vec<Message>, RenderError>> + Send + Sync;

impl PromptFunction {
    pub(super) fn is_same(&self, other: &PromptFunction) -> bool {
        match (self, other) {
            (PromptFunction::Sync(a), PromptFunction::Sync(b)) => Arc::ptr_eq(a, b),
            (PromptFunction::Async(a), PromptFunction::Async(b)) => Arc::ptr_eq(a, b),
            (PromptFunction::Remote(a), PromptFunction::Remote(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for PromptFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PromptFunction")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_command_line() {
        for (text, expected) in [
            ("a  b\nc", &["a", "b", "c"][..]),
            ("'a b' \"c \\\" d\" e\\ f", &["a b", "c \" d", "e f"]),
            ("don't do 'it", &["don't", "do", "'it"]),
            ("\"\" x", &["", "x"]),
            ("  ", &[]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn missing_words_leave_the_other_text() {
        let words =
            |select| Words { argument: "a".to_owned(), select, before: "+".to_owned(), otherwise: "$1".to_owned() };
        for (select, expected) in [
            (Select::All, "+x 'y z' w"),
            (Select::Word(1), "+y z"),
            (Select::From(1), "+y z w"),
            (Select::Word(3), "$1"),
            (Select::From(3), "$1"),
        ] {
            assert_eq!(words(select).of("x 'y z' w".into()), expected);
            assert_eq!(words(select).of("".into()), "$1");
        }
    }
}

//! Reports every syntax error of a template at its tag, in an author's terms.
//!
//! The engine's parser stops at the first error. The tags that it cannot read are blanked, together with the tags
//! that belong to them, and the rest is parsed again.

mod explain;
mod tags;

use std::ops::Range;

use minijinja::{machinery::parse, syntax::SyntaxConfig};

pub(super) use self::explain::in_expression;
pub(crate) use self::explain::or_literally;
use self::tags::{Kind, Tag};
use super::{compile_error::CompileError, depth};

/// The most errors that are reported: each requires another parse.
const MOST: usize = 20;

pub(super) struct Readable {
    /// The text, as long as the template. Unreadable parts are blank.
    pub(super) text: String,
    pub(super) mistakes: Vec<CompileError>,
    pub(super) words: Vec<String>,
}

/// Returns the readable part of a template that the engine cannot parse; `None` if it can.
pub(super) fn readable(text: &str) -> Option<Readable> {
    if let Err(error) = depth::check(text) {
        return Some(Readable { text: String::new(), mistakes: vec![error], words: Vec::new() });
    }
    first_mistake(text).map(|error| mend(text, error))
}

fn first_mistake(text: &str) -> Option<CompileError> {
    // The template's name is not part of the message.
    parse(text, "", SyntaxConfig::default()).err().map(|error| CompileError::new(&error, text))
}

fn mend(text: &str, first: CompileError) -> Readable {
    let tags = tags::scan(text);
    let mut left = Remaining { text: text.to_owned(), words: Vec::new() };
    let mut mistakes = Vec::new();
    let groups = tags::groups(text, &tags, &mut mistakes);
    let blank_group = |left: &mut Remaining, index: usize| {
        for member in groups.of(index) {
            left.blank(&tags[*member].taken(text));
        }
    };
    for index in groups.broken() {
        blank_group(&mut left, index);
    }
    while mistakes.len() < MOST {
        let error = match depth::check(&left.text) {
            Ok(()) => first_mistake(&left.text),
            Err(error) => Some(error),
        };
        let Some(error) = error else { break };
        let at = |tag: &Tag| tag.span.start <= error.span.start && error.span.start <= tag.span.end;
        // With two adjacent tags, the error is in the first: the second has not been read yet.
        let Some(index) = tags.iter().position(|tag| tag.kind != Kind::Comment && !left.is_blank(&tag.span) && at(tag))
        else {
            // Without a position, nothing more can be read.
            mistakes.push(if mistakes.is_empty() { first } else { error });
            left.text.clear();
            break;
        };
        mistakes.push(explain::in_tag(text, &tags[index], error));
        blank_group(&mut left, index);
    }
    mistakes.sort_by_key(|mistake| mistake.span.start);
    Readable { text: left.text, mistakes, words: left.words }
}

struct Remaining {
    text: String,
    words: Vec<String>,
}

impl Remaining {
    /// Replaces a tag with as many spaces, so that positions do not change.
    fn blank(&mut self, span: &Range<usize>) {
        let Some(tag) = self.text.get(span.clone()) else { return };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.words.extend(tag.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned));
        let blank: String = tag.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        self.text.replace_range(span.clone(), &blank);
    }

    fn is_blank(&self, span: &Range<usize>) -> bool {
        self.text.get(span.clone()).is_none_or(|tag| tag.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        let name = |error: &CompileError| format!("{}: {}", &text[error.span.clone()], error.message);
        readable(text).expect("it has mistakes").mistakes.iter().map(name).collect()
    }

    #[test]
    fn every_mistake_is_located_at_its_tag() {
        let text = "{{ my name }}\n{% if x %}\n{{ }}\n{% for a in b %}{{ a }}{% endfor %}\n{{ y }\n{% fi %}{{ z";
        assert_eq!(
            found(text),
            [
                "name: unexpected `name`",
                "{% if x %}: `{% if … %}` is not closed",
                "{{ }}: nothing between `{{` and `}}`",
                "{{ y }: this `{{` is not closed",
                "fi: unknown statement `fi`",
                "{{ z: this `{{` is not closed",
            ]
        );
    }

    #[test]
    fn readable_parts_keep_their_position() {
        let text = "{{ a b }}\n{% if x %}{{ c }}\n{% set d = %}{{ e }}";
        let readable = readable(text).expect("it has mistakes");
        assert_eq!(readable.mistakes.len(), 3);
        assert_eq!(readable.text.len(), text.len());
        assert_eq!(readable.text.find("{{ c }}"), text.find("{{ c }}"));
        assert_eq!(readable.text.find("{{ e }}"), text.find("{{ e }}"));
        assert!(["a", "b", "x", "d"].iter().all(|word| readable.words.iter().any(|known| known == word)));
    }

    const WORDS: &[&str] = &[
        "{{", "}}", "{%", "%}", "{#", "#}", "{%-", "-%}", " ", "\n", "if", "elif", "else", "endif", "for", "in",
        "endfor", "set", "=", "endset", "raw", "endraw", "macro", "(", ")", "[", "]", "{", "}", "'", "\"", "\\", "|",
        "x", "ü", ".", ",", ":", "1", "endfi", "with", "endwith",
    ];

    proptest! {
        #[test]
        fn any_text_becomes_readable(
            words in prop::collection::vec(prop::sample::select(WORDS), 0..40),
        ) {
            let text = words.concat();
            let readable = readable(&text);
            prop_assert_eq!(readable.is_some(), first_mistake(&text).is_some());
            if let Some(readable) = readable {
                prop_assert!(!readable.mistakes.is_empty());
                let is_cut = readable.mistakes.len() == MOST;
                prop_assert!(is_cut || first_mistake(&readable.text).is_none(), "{:?}", readable.text);
            }
        }
    }
}

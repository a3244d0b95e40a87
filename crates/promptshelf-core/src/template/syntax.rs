//! Reports every syntax error of a template at its tag, in an author's terms.
//!
//! The engine's parser stops at the first error. The tags that it cannot read are blanked, together with the tags
//! that belong to them, and the rest is parsed again.

mod tags;

use std::ops::Range;

use minijinja::{machinery::parse, syntax::SyntaxConfig};

use self::tags::{Kind, Tag};
use super::{CompileError, depth};

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
        mistakes.push(in_tag(text, &tags[index], error));
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

/// Adds the way to write braces that are part of the text, such as those of another template language.
pub(crate) fn or_literally(help: Option<String>) -> String {
    let literally = "if the braces are meant literally, put `{% raw %}` and `{% endraw %}` around them";
    help.map_or_else(|| literally.to_owned(), |help| format!("{help}; {literally}"))
}

const TYPOGRAPHIC: &[char] = &['“', '”', '„', '‟', '‘', '’', '‚', '«', '»'];

fn typographic(text: &str, tag: &Range<usize>) -> Option<CompileError> {
    let mut string = None;
    for (at, c) in text.get(tag.clone())?.char_indices() {
        match (c, string) {
            ('"' | '\'', None) => string = Some(c),
            (c, Some(quote)) if c == quote => string = None,
            (c, None) if TYPOGRAPHIC.contains(&c) => {
                let start = tag.start + at;
                return Some(CompileError {
                    message: format!("`{c}` is a typographic quotation mark, which no program reads as one"),
                    span: start..start + c.len_utf8(),
                    help: Some("write straight quotation marks: `\"`".to_owned()),
                });
            }
            _ => {}
        }
    }
    None
}

fn in_tag(text: &str, tag: &Tag, error: CompileError) -> CompileError {
    let (begin, end) = tag.kind.brackets();
    let inside = tag.inside(text);
    if let Some(mistake) = typographic(text, &tag.span) {
        return mistake;
    }
    if inside.is_empty() {
        let message = format!("nothing between `{begin}` and `{end}`");
        let help = Some(or_literally(Some("write a name between them, or remove it".to_owned())));
        return CompileError { message, span: tag.span.clone(), help };
    }
    let span = error.span.start..error.span.end.min(tag.span.end).max(error.span.start);
    let mut error = explain(text, inside, tag.kind, CompileError { span, ..error });
    if tag.kind == Kind::Value {
        error.help = Some(or_literally(error.help));
    }
    error
}

pub(in crate::template) fn in_expression(text: &str, error: CompileError) -> CompileError {
    typographic(text, &(0..text.len())).unwrap_or_else(|| explain(text, text, Kind::Statement, error))
}

fn explain(text: &str, inside: &str, kind: Kind, error: CompileError) -> CompileError {
    let (_, end) = kind.brackets();
    let word = text.get(error.span.clone()).unwrap_or_default();
    let CompileError { message, span, .. } = error;
    let mistake = |message: String, help: Option<String>| CompileError { message, span: span.clone(), help };
    let (found, expected) = match message.strip_prefix("unexpected ") {
        Some("input after expression") => (word, None),
        Some(rest) => match rest.split_once(", expected ") {
            Some((found, expected)) => (found, Some(expected)),
            None => (rest, None),
        },
        None => return mistake(message, None),
    };
    let is_open = |open, close| inside.matches(open).count() > inside.matches(close).count();
    let bracket = [('(', ')'), ('[', ']'), ('{', '}')].into_iter().find(|(open, close)| is_open(*open, *close));
    if found.starts_with("end of ") || end.starts_with(word) {
        let expected_words =
            bracket.map(|(_, close)| format!("`{close}`")).or_else(|| expected.and_then(expected_words));
        return mistake(
            format!("something is missing before `{end}`"),
            expected_words.map(|expected_words| format!("write {expected_words}")),
        );
    }
    if word.contains('\n') {
        return mistake(message, None);
    }
    let is_statement = ["if", "for", "set", "include", "endif", "endfor", "else"]
        .iter()
        .any(|statement| inside.split_whitespace().next() == Some(statement));
    let help = match word {
        "=" => Some("write `==` to compare".to_owned()),
        "!" => Some("write `not`".to_owned()),
        "&" | "&&" => Some("write `and`".to_owned()),
        _ if kind == Kind::Value && is_statement => Some("write statements between `{%` and `%}`".to_owned()),
        _ if word.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
            Some("write a name as one word, such as `my_name`, and a text in quotation marks".to_owned())
        }
        _ => expected.and_then(expected_words).map(|expected_words| format!("write {expected_words} here")),
    };
    mistake(format!("unexpected `{word}`"), help)
}

fn expected_words(expected: &str) -> Option<String> {
    match expected {
        "identifier" | "identifier or integer" => Some("a name".to_owned()),
        "expression" => Some("a name or a value".to_owned()),
        sign if sign.starts_with('`') => Some(sign.to_owned()),
        word if word.chars().all(|c| c.is_ascii_lowercase()) && word.len() < 8 => Some(format!("`{word}`")),
        _ => None,
    }
}

#[cfg(test)]
mod explain_tests {
    use crate::template::syntax::readable;

    #[test]
    fn mistakes_inside_tags_are_explained_for_authors() {
        for (text, message, help) in [
            ("{{ my name }}", "unexpected `name`", "one word"),
            ("{% if a = 1 %}x{% endif %}", "unexpected `=`", "`==`"),
            ("{% if a && b %}x{% endif %}", "unexpected `&`", "`and`"),
            ("{{ if x }}", "unexpected `x`", "`{%` and `%}`"),
            ("{% if %}x{% endif %}", "something is missing before `%}`", ""),
            ("{{ a | }}", "something is missing before `}}`", "a name"),
            ("{{ f(a }}", "something is missing before `}}`", "write `)`"),
            ("{% for a of b %}x{% endfor %}", "unexpected `of`", ""),
            ("{{ \"a }}", "this quotation mark is not closed", "same mark"),
            ("{% raw %}{{", "`{% raw … %}` is not closed", "{% endraw %}"),
            ("{# a", "this `{#` is not closed", "#}"),
            ("{{ b: 1 }}", "unexpected `:`", "{% raw %}"),
            ("${#array[@]}", "this `{#` is not closed", "{% raw %}"),
            ("{{#if x}}", "unexpected `#`", "{% raw %}"),
            ("{{ }}", "nothing between `{{` and `}}`", "{% raw %}"),
            ("{% liquid %}", "unknown statement `liquid`", "{% raw %}"),
            ("{{ x", "this `{{` is not closed", "{% raw %}"),
            (
                "{% if tone == “friendly” %}x{% endif %}",
                "`“` is a typographic quotation mark, which no program reads as one",
                "straight",
            ),
            ("{{ x | join(‘, ’) }}", "`‘` is a typographic quotation mark, which no program reads as one", "straight"),
        ] {
            let mistakes = readable(text).expect("it has mistakes").mistakes;
            let found = (&*mistakes[0].message, mistakes[0].help.as_deref().unwrap_or_default());
            assert!(mistakes.len() == 1 && found.0 == message && found.1.contains(help), "{text}: {mistakes:?}");
        }
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

//! Rewrites the engine's syntax errors in an author's terms.

use std::ops::Range;

use super::tags::{Kind, Tag};
use crate::template::compile_error::CompileError;

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

pub(super) fn in_tag(text: &str, tag: &Tag, error: CompileError) -> CompileError {
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
mod tests {
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

//! The tags of an unreadable template: their bounds, and the groups that they form.

use std::ops::Range;

use super::or_literally;
use crate::{diagnostic::nearest, template::CompileError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Value,
    Statement,
    Comment,
}

impl Kind {
    pub(super) fn brackets(self) -> (&'static str, &'static str) {
        match self {
            Kind::Value => ("{{", "}}"),
            Kind::Statement => ("{%", "%}"),
            Kind::Comment => ("{#", "#}"),
        }
    }

    fn of(text: &str) -> Option<Kind> {
        [Kind::Value, Kind::Statement, Kind::Comment].into_iter().find(|kind| text.starts_with(kind.brackets().0))
    }
}

#[derive(Debug)]
pub(super) struct Tag {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
    is_closed: bool,
    quote: Option<usize>,
}

impl Tag {
    pub(super) fn inside<'t>(&self, text: &'t str) -> &'t str {
        let inside = text.get(self.span.start + 2..self.span.end).unwrap_or_default();
        let inside = inside.strip_suffix(self.kind.brackets().1).unwrap_or(inside);
        let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
        inside.strip_suffix(['-', '+']).unwrap_or(inside).trim()
    }

    /// Returns the bytes to blank with the tag: an unclosed `raw` block extends to the end.
    pub(super) fn taken(&self, text: &str) -> Range<usize> {
        let is_raw = self.kind == Kind::Statement && self.word(text) == "raw";
        let end = if is_raw { end_of_raw(text, self.span.end) } else { self.span.end };
        self.span.start..end
    }

    fn word<'t>(&self, text: &'t str) -> &'t str {
        let inside = self.inside(text);
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        &inside[..end]
    }

    fn error(&self, message: impl Into<String>, help: impl Into<String>) -> CompileError {
        CompileError { message: message.into(), span: self.span.clone(), help: Some(help.into()) }
    }
}

/// Finds all tags. A text in `{% raw %}` has none.
pub(super) fn scan(text: &str) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('{') {
        let start = at + found;
        let Some(kind) = Kind::of(&text[start..]) else {
            at = start + 1;
            continue;
        };
        let tag = tag(text, start, kind);
        at = tag.span.end;
        let is_raw = kind == Kind::Statement && tag.is_closed && tag.word(text) == "raw";
        tags.push(tag);
        if is_raw {
            at = end_of_raw(text, at);
        }
    }
    tags
}

/// Returns the position after the tag that ends a raw text, or the end of the text without such a tag.
fn end_of_raw(text: &str, mut at: usize) -> usize {
    while let Some(found) = text[at..].find("{%") {
        let start = at + found;
        if tag(text, start, Kind::Statement).word(text) == "endraw" {
            return start;
        }
        at = start + 2;
    }
    text.len()
}

fn tag(text: &str, start: usize, kind: Kind) -> Tag {
    let close = kind.brackets().1;
    let inside = start + 2;
    let end_of = |found: usize| inside + found + close.len();
    if kind == Kind::Comment {
        let end = text[inside..].find(close).map(end_of);
        return Tag { span: start..end.unwrap_or(text.len()), kind, is_closed: end.is_some(), quote: None };
    }
    match closing(&text[inside..], close) {
        Ok(found) => Tag { span: start..end_of(found), kind, is_closed: true, quote: None },
        Err(quote) => {
            // An unclosed tag ends with its line, or at the next tag.
            let line = text[inside..].find('\n').unwrap_or(text.len() - inside);
            let line = &text[inside..inside + line];
            let quote = quote.map(|quote| inside + quote);
            let (end, is_closed) = match line.find(close).filter(|_| quote.is_some()) {
                Some(found) => (end_of(found), true),
                None => {
                    let next = ["{{", "{%", "{#"].iter().filter_map(|open| line.find(open)).min();
                    (inside + next.unwrap_or(line.trim_end().len()), false)
                }
            };
            Tag { span: start..end, kind, is_closed, quote }
        }
    }
}

/// Returns the end of a tag, skipping strings and brackets; otherwise the position of an unclosed quotation mark, if
/// that is the cause.
fn closing(text: &str, close: &str) -> Result<usize, Option<usize>> {
    let mut braces = 0_usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        match c {
            '"' | '\'' => match end_of_string(rest, c, close) {
                Some(length) => at += length,
                None => return Err(Some(at)),
            },
            _ if braces == 0 && rest.starts_with(close) => return Ok(at),
            _ if rest.starts_with("{{") || rest.starts_with("{%") || rest.starts_with("{#") => return Err(None),
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        if !matches!(c, '"' | '\'') {
            at += c.len_utf8();
        }
    }
    Err(None)
}

/// Returns the length of a string. A string that swallows the end of its tag and a line break is a mistake.
fn end_of_string(text: &str, quote: char, close: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if text[..at].contains(close) => return None,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

const BLOCKS: &[(&str, &str)] = &[
    ("if", "endif"),
    ("for", "endfor"),
    ("with", "endwith"),
    ("set", "endset"),
    ("filter", "endfilter"),
    ("macro", "endmacro"),
    ("call", "endcall"),
    ("block", "endblock"),
    ("autoescape", "endautoescape"),
    ("raw", "endraw"),
];

/// Statements without an end tag, or that belong to another one.
const OTHERS: &[&str] = &["elif", "else", "include", "import", "from", "extends", "do", "continue", "break"];

#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    of: Vec<usize>,
}

#[derive(Debug, Default)]
struct Group {
    members: Vec<usize>,
    is_broken: bool,
}

impl Groups {
    pub(super) fn of(&self, tag: usize) -> &[usize] {
        self.of.get(tag).and_then(|group| self.groups.get(*group)).map(|group| &*group.members).unwrap_or_default()
    }

    pub(super) fn broken(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().filter(|group| group.is_broken).filter_map(|group| group.members.first().copied())
    }

    fn add(&mut self, tag: usize, is_broken: bool) -> usize {
        self.groups.push(Group { members: vec![tag], is_broken });
        self.of.push(self.groups.len() - 1);
        self.groups.len() - 1
    }

    fn join(&mut self, tag: usize, group: usize, is_broken: bool) {
        self.of.push(group);
        if let Some(group) = self.groups.get_mut(group) {
            group.members.push(tag);
            group.is_broken |= is_broken;
        }
    }

    fn break_up(&mut self, group: usize) {
        if let Some(group) = self.groups.get_mut(group) {
            group.is_broken = true;
        }
    }
}

/// A statement whose end tag has not been found yet.
struct Open<'t> {
    group: usize,
    tag: usize,
    word: &'t str,
    is_broken: bool,
}

/// Groups tags and reports those that do not match.
pub(super) fn groups(text: &str, tags: &[Tag], mistakes: &mut Vec<CompileError>) -> Groups {
    let mut groups = Groups::default();
    let mut open: Vec<Open<'_>> = Vec::new();
    for (index, tag) in tags.iter().enumerate() {
        let found = mistakes.len();
        mistakes.extend(own_mistake(tag, text));
        let is_broken = mistakes.len() > found;
        if tag.kind != Kind::Statement {
            groups.add(index, is_broken);
            continue;
        }
        let word = known(tag.word(text));
        if let Some((begins, _)) = BLOCKS.iter().find(|(_, ends)| *ends == word) {
            if let Some(position) = open.iter().rposition(|open| open.word == *begins) {
                for unclosed in open.drain(position + 1..) {
                    mistakes.extend(not_closed(tags, &unclosed));
                    groups.break_up(unclosed.group);
                }
                if let Some(ended) = open.pop() {
                    groups.join(index, ended.group, is_broken);
                }
            } else {
                let message = format!("`{{% {word} %}}` is unexpected: no `{{% {begins} … %}}` is open here");
                mistakes.push(tag.error(message, format!("remove it, or begin with `{{% {begins} … %}}`")));
                groups.add(index, true);
            }
        } else if matches!(word, "else" | "elif") {
            match open.last().filter(|open| open.word == "if" || (open.word == "for" && word == "else")) {
                Some(open) => groups.join(index, open.group, is_broken),
                None => {
                    let message = format!("`{{% {word} %}}` is unexpected outside of `{{% if … %}}`");
                    mistakes.push(tag.error(message, "write it between `{% if … %}` and its `{% endif %}`"));
                    groups.add(index, true);
                }
            }
        } else {
            let group = groups.add(index, is_broken);
            if opens(word, tag.inside(text)) {
                open.push(Open { group, tag: index, word, is_broken });
            }
        }
    }
    for unclosed in open {
        mistakes.extend(not_closed(tags, &unclosed));
        groups.break_up(unclosed.group);
    }
    groups
}

/// Returns the error of a tag by itself, as far as its delimiters and first word show it.
fn own_mistake(tag: &Tag, text: &str) -> Option<CompileError> {
    let (begin, end) = tag.kind.brackets();
    if let Some(quote) = tag.quote {
        let message = "this quotation mark is not closed".to_owned();
        let help = Some("write the same mark at the end of the text".to_owned());
        return Some(CompileError { message, span: quote..quote + 1, help });
    }
    if !tag.is_closed {
        let help = or_literally(Some(format!("write `{end}` where it ends")));
        return Some(tag.error(format!("this `{begin}` is not closed"), help));
    }
    let written = tag.word(text);
    let meant = known(written);
    if tag.kind != Kind::Statement || meant == written {
        return None;
    }
    let start = tag.span.start + text[tag.span.clone()].find(written).unwrap_or_default();
    let help = match meant {
        "" => format!("`{{{{ {written} }}}}` inserts a value; statements are `if`, `for`, `set` and `include`"),
        meant => format!("did you mean `{meant}`?"),
    };
    let help = if meant.is_empty() { or_literally(Some(help)) } else { help };
    let message = format!("unknown statement `{written}`");
    Some(CompileError { message, span: start..start + written.len(), help: Some(help) })
}

/// Returns whether a statement needs an end tag; `{% set x = 1 %}` does not.
fn opens(word: &str, inside: &str) -> bool {
    BLOCKS.iter().any(|(begins, _)| *begins == word) && (word != "set" || !inside.contains('='))
}

fn known(word: &str) -> &str {
    let statements = || BLOCKS.iter().flat_map(|(begins, ends)| [*begins, *ends]).chain(OTHERS.iter().copied());
    if word.is_empty() || statements().any(|known| known == word) {
        return word;
    }
    nearest(word, statements()).unwrap_or_default()
}

/// A tag with an error is not reported twice.
fn not_closed(tags: &[Tag], open: &Open<'_>) -> Option<CompileError> {
    let (tag, word) = (tags.get(open.tag)?, open.word);
    let error =
        || tag.error(format!("`{{% {word} … %}}` is not closed"), format!("write `{{% end{word} %}}` where it ends"));
    (!open.is_broken).then(error)
}

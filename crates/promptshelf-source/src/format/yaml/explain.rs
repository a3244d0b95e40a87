//! Syntax errors at the place where an author has to do something, and in an
//! author's words. The parser says where it could not go on, which is often
//! the line below.

use std::ops::Range;

/// What is wrong, in the text that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Mistake {
    fn new(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Mistake {
        Mistake { span, message: message.into(), help: Some(help.into()) }
    }
}

const SAME_INDENTATION: &str = "give keys of one level the same indentation, and begin each entry of a list with `- `";

/// Says what the parser found, and where it comes from.
pub(super) fn explain(text: &str, found: &str, at: usize) -> Mistake {
    let line = Line::at(text, at);
    let before = line.before();
    let around = || before.into_iter().chain([line]);
    if let Some(value) = template_value(line.text()) {
        let start = line.start + value;
        return template(start..start + 2);
    }
    if found.contains("tab")
        && let Some((line, tab)) =
            around().chain(line.next()).find_map(|line| Some((line, line.indentation().find('\t')?)))
    {
        let at = line.start + tab;
        return Mistake::new(at..at + 1, "a tab stands where spaces are needed", "indent with spaces");
    }
    if (found.contains("flow") || found.contains("illegal placement"))
        && let Some(at) = line.above().find_map(Line::open_bracket)
    {
        let bracket = &text[at..=at];
        let close = if bracket == "[" { "]" } else { "}" };
        return Mistake::new(
            at..at + 1,
            format!("this `{bracket}` is not closed"),
            format!("write `{close}` where it ends"),
        );
    }
    let is_quoted = found.contains("quoted scalar") || found.contains("double-quoted");
    if is_quoted && let Some(at) = line.above().find_map(Line::open_quote) {
        return Mistake::new(
            at..at + 1,
            "this quotation mark is not closed",
            "write the same mark at the end of the text",
        );
    }
    if found.contains("escape") || found.contains("hexadecimal") {
        let at = text[at..line.end()].find('\\').map_or(at, |offset| at + offset);
        let help = "in double quotes a backslash is written twice; in single quotes once";
        return Mistake::new(at..at + 1, "a backslash in double quotes begins something that YAML does not know", help);
    }
    if found.starts_with("invalid trailing content") {
        let message = "something stands behind the closing quotation mark";
        let help =
            match text[line.start..at].rfind(['"', '\'']).map(|quote| &text[line.start + quote..=line.start + quote]) {
                Some("'") => "put double quotes around the whole text, or write an apostrophe in it twice: `''`",
                _ => "put single quotes around the whole text, or write a mark in it as `\\\"`",
            };
        return Mistake::new(at..line.end(), message, help);
    }
    if found.starts_with("simple key") {
        return no_colon(before.filter(|before| !before.has_key()).unwrap_or(line));
    }
    if found.starts_with("mapping values are not allowed") {
        return colon(line, before, at);
    }
    if found.starts_with("block sequence entries") {
        let help = "write each entry in a line of its own below, behind `- `; a text that begins so stands in quotes";
        return Mistake::new(at..line.end(), "a list cannot begin in the line of its key", help);
    }
    if found.contains("block mapping")
        || found.contains("block collection")
        || found.contains("indent")
        || found.contains("<document")
    {
        return Mistake::new(
            line.content(),
            "this line is not indented like those that it belongs to",
            SAME_INDENTATION,
        );
    }
    if found.starts_with("misplaced bracket") {
        let message = format!("this `{}` closes nothing", &text[at..(at + 1).min(text.len())]);
        return Mistake::new(at..at + 1, message, "remove it, or put quotes around the text");
    }
    let character = text[at..].chars().next();
    let is_start =
        found.starts_with("unexpected character") || found.contains("anchor") || found.contains("cannot start");
    if let Some(character) = character.filter(|_| is_start) {
        return beginning(at..at + character.len_utf8(), character);
    }
    Mistake { span: at..at + character.map_or(0, char::len_utf8), message: found.to_owned(), help: None }
}

/// A character that means something at the beginning of a text.
pub(super) fn beginning(span: Range<usize>, character: char) -> Mistake {
    let message = format!("a text cannot start with `{character}` unless it stands in quotes");
    Mistake::new(span, message, "put quotes around it")
}

/// Braces of a template where YAML would read something of its own.
pub(super) fn template(span: Range<usize>) -> Mistake {
    let message = "a value that starts with `{{` or `{%` has to stand in quotes";
    Mistake::new(span, message, "write it as `\"{{ … }}\"`")
}

/// A line that should be a key with its value and has no colon.
fn no_colon(line: Line<'_>) -> Mistake {
    let content = line.content();
    let text = line.text().trim();
    if let Some((key, value)) = text.split_once(':').filter(|(key, _)| !key.contains(' ')) {
        let colon = content.start + key.len();
        return Mistake::new(colon..colon + 1, "a space is missing behind this `:`", format!("write `{key}: {value}`"));
    }
    let mut words = text.splitn(2, [' ', '=']).filter(|word| !word.is_empty());
    let key = words.next().unwrap_or("key");
    let help = match words.next().map(|value| value.trim_start_matches(['=', ' '])).filter(|value| value.len() < 60) {
        Some(value) if !key.is_empty() => format!("write `{key}: {value}`, or `# ` before a remark"),
        _ => "write `key: value`, or `# ` before a remark".to_owned(),
    };
    Mistake::new(content, "this line is no `key: value`", help)
}

/// A colon where no key can be.
fn colon(line: Line<'_>, before: Option<Line<'_>>, at: usize) -> Mistake {
    if let Some(before) = before
        && !before.has_key()
        && !before.text().trim_start().starts_with("- ")
        && before.indentation().len() <= line.indentation().len()
    {
        return no_colon(before);
    }
    let content = line.content();
    let written = &line.all[content.start..at.max(content.start)];
    let value = written.find(": ").map(|colon| content.start + colon + 2);
    let Some(value) = value else {
        let message = "this line is indented more deeply than the key above it, which has a value already";
        return Mistake::new(content, message, "give keys of one level the same indentation");
    };
    let text = &line.all[value..content.end];
    let help = if text.len() < 60 && !text.contains(['"', '\\']) {
        format!("put quotes around the value: `\"{text}\"`")
    } else {
        "put quotes around the value".to_owned()
    };
    Mistake::new(at..at + 1, "a second `: ` in one line would begin another key", help)
}

/// Where in a line a value begins that is meant for the template.
fn template_value(line: &str) -> Option<usize> {
    let is_start = |at: &usize| {
        let before = line[..*at].trim_end();
        before.len() < *at && before.ends_with([':', '-'])
    };
    line.match_indices("{{").chain(line.match_indices("{%")).map(|(at, _)| at).find(is_start)
}

/// One line of the text.
#[derive(Clone, Copy)]
pub(super) struct Line<'t> {
    all: &'t str,
    pub(super) start: usize,
}

impl<'t> Line<'t> {
    pub(super) fn at(all: &'t str, at: usize) -> Line<'t> {
        let at = all.floor_char_boundary(at);
        Line { all, start: all[..at].rfind('\n').map_or(0, |newline| newline + 1) }
    }

    pub(super) fn text(self) -> &'t str {
        self.all[self.start..].lines().next().unwrap_or_default()
    }

    fn end(self) -> usize {
        self.start + self.text().trim_end().len()
    }

    pub(super) fn indentation(self) -> &'t str {
        let text = self.text();
        &text[..text.len() - text.trim_start().len()]
    }

    /// The bytes of what stands in it.
    fn content(self) -> Range<usize> {
        let start = self.start + self.indentation().len();
        start..self.end().max(start)
    }

    pub(super) fn is_blank(self) -> bool {
        self.text().trim().is_empty()
    }

    pub(super) fn next(self) -> Option<Line<'t>> {
        let newline = self.all[self.start..].find('\n')?;
        let start = self.start + newline + 1;
        (start < self.all.len()).then_some(Line { start, ..self })
    }

    /// The line before it that holds something.
    fn before(self) -> Option<Line<'t>> {
        self.above().skip(1).find(|line| !line.is_blank() && !line.text().trim_start().starts_with('#'))
    }

    /// The line, and those before it, nearest first.
    fn above(self) -> impl Iterator<Item = Line<'t>> {
        std::iter::successors(Some(self), |line| (line.start > 0).then(|| Line::at(line.all, line.start - 1)))
    }

    fn has_key(self) -> bool {
        let text = self.text().trim();
        text.contains(": ") || text.ends_with(':')
    }

    /// Where a bracket is opened that the line does not close.
    fn open_bracket(self) -> Option<usize> {
        let mut open = Vec::new();
        let mut quote = None;
        for (at, c) in self.text().char_indices() {
            match (quote, c) {
                (Some(mark), c) if c == mark => quote = None,
                (None, '"') => quote = Some(c),
                (None, '[' | '{') => open.push(self.start + at),
                (None, ']' | '}') => drop(open.pop()),
                _ => {}
            }
        }
        open.last().copied()
    }

    /// Where a quotation mark opens a text that the line does not close.
    fn open_quote(self) -> Option<usize> {
        let text = self.text();
        let mut at = 0;
        while let Some(found) = text[at..].find(['"', '\'']) {
            let start = at + found;
            let before = text[..start].trim_end();
            let opens = before.is_empty()
                || (before.len() < start && before.ends_with([':', '-', ',']))
                || before.ends_with(['[', '{']);
            at = start + 1;
            if opens {
                match closing(&text[start..]) {
                    Some(length) => at = start + length,
                    None => return Some(self.start + start),
                }
            }
        }
        None
    }
}

/// How long a text in quotation marks is.
fn closing(text: &str) -> Option<usize> {
    let mark = text.chars().next()?;
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if mark == '"' => drop(characters.next()),
            '\'' if mark == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') => drop(characters.next()),
            c if c == mark => return Some(at + 1),
            _ => {}
        }
    }
    None
}

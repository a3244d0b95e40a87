//! Explanations of YAML syntax errors, at the position where the author has to make a change. The parser reports the
//! position where it could not go on, which is often the line below.

use std::ops::Range;

/// An explained error; the span is relative to the parsed text.
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

const SAME_INDENTATION: &str =
    "use the same indentation for all keys of one level, and start each entry of a list with `- `";

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
        return Mistake::new(at..at + 1, "tabs are not allowed in the indentation", "indent with spaces");
    }
    if found.contains("valid YAML whitespace")
        && let Some(tab) = line.text().find('\t')
    {
        let at = line.start + tab;
        return Mistake::new(at..at + 1, "a tab stands after the colon or the dash", "write a space in its place");
    }
    if ["flow", "illegal placement", "expected node content"].iter().any(|it| found.contains(it))
        && let Some(at) = line.above().find_map(Line::open_bracket)
    {
        let bracket = &text[at..=at];
        let close = if bracket == "[" { "]" } else { "}" };
        return Mistake::new(
            at..at + 1,
            format!("this `{bracket}` is not closed"),
            format!("add the closing `{close}`"),
        );
    }
    let is_quoted = found.contains("quoted scalar") || found.contains("double-quoted");
    if is_quoted && let Some(at) = line.above().find_map(Line::open_quote) {
        return Mistake::new(
            at..at + 1,
            "this quotation mark is not closed",
            "add the same mark at the end of the text",
        );
    }
    if found.contains("escape") || found.contains("hexadecimal") {
        let at = text[at..line.end()].find('\\').map_or(at, |offset| at + offset);
        let help = "in double quotes write `\\\\` for a backslash; in single quotes write `\\`";
        return Mistake::new(at..at + 1, "unknown escape sequence in double quotes", help);
    }
    if found.starts_with("invalid trailing content") {
        let message = "unexpected text after the closing quotation mark";
        let help =
            match text[line.start..at].rfind(['"', '\'']).map(|quote| &text[line.start + quote..=line.start + quote]) {
                Some("'") => "use double quotes around the whole text, or write each apostrophe in it twice: `''`",
                _ => "use single quotes around the whole text, or write each quotation mark in it as `\\\"`",
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
        let help = "write each entry on a line of its own, after `- `; quote a text that starts with `- `";
        return Mistake::new(at..line.end(), "a list cannot start on the line of its key", help);
    }
    if let Some(rest) = line.after_bracket() {
        let message = "unexpected text after the closing bracket";
        return Mistake::new(rest, message, "put the whole value in quotation marks");
    }
    if found.contains("block mapping")
        || found.contains("block collection")
        || found.contains("indent")
        || found.contains("<document")
    {
        return Mistake::new(
            line.content(),
            "the indentation of this line does not match the lines around it",
            SAME_INDENTATION,
        );
    }
    if found.starts_with("misplaced bracket") {
        let message = format!("unexpected `{}` without an opening bracket", &text[at..(at + 1).min(text.len())]);
        return Mistake::new(at..at + 1, message, "remove it, or quote the text");
    }
    let character = text[at..].chars().next();
    let is_start =
        found.starts_with("unexpected character") || found.contains("anchor") || found.contains("cannot start");
    if let Some(character) = character.filter(|_| is_start) {
        return beginning(at..at + character.len_utf8(), character);
    }
    Mistake { span: at..at + character.map_or(0, char::len_utf8), message: found.to_owned(), help: None }
}

pub(super) fn beginning(span: Range<usize>, character: char) -> Mistake {
    let message = format!("an unquoted text cannot start with `{character}`");
    Mistake::new(span, message, "quote it")
}

pub(super) fn template(span: Range<usize>) -> Mistake {
    let message = "a value that starts with `{{` or `{%` must be quoted";
    Mistake::new(span, message, "write it as `\"{{ … }}\"`")
}

/// Explains a line that should be a key with a value and has no colon.
fn no_colon(line: Line<'_>) -> Mistake {
    let content = line.content();
    let text = line.text().trim();
    if let Some((key, value)) = text.split_once(':').filter(|(key, _)| !key.contains(' ')) {
        let colon = content.start + key.len();
        return Mistake::new(colon..colon + 1, "missing space after this `:`", format!("write `{key}: {value}`"));
    }
    let mut words = text.splitn(2, [' ', '=']).filter(|word| !word.is_empty());
    let key = words.next().unwrap_or("key");
    let help = match words.next().map(|value| value.trim_start_matches(['=', ' '])).filter(|value| value.len() < 60) {
        Some(value) if !key.is_empty() => format!("write `{key}: {value}`, or start a comment with `# `"),
        _ => "write `key: value`, or start a comment with `# `".to_owned(),
    };
    Mistake::new(content, "expected `key: value`", help)
}

/// Explains a colon in a place where no key is allowed.
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
        let message = "this line is indented more deeply than the key above it, which already has a value";
        return Mistake::new(content, message, "use the same indentation for all keys of one level");
    };
    // The quotation marks of a word processor are none of YAML's.
    let text = line.all[value..content.end].trim_matches(['“', '”', '„', '«', '»']);
    let help = if text.len() < 60 && !text.contains(['"', '\\']) {
        format!("quote the value: `\"{text}\"`")
    } else {
        "quote the value".to_owned()
    };
    Mistake::new(at..at + 1, "unexpected second `: ` in one line", help)
}

fn template_value(line: &str) -> Option<usize> {
    let is_start = |at: &usize| {
        let before = line[..*at].trim_end();
        before.len() < *at && before.ends_with([':', '-'])
    };
    line.match_indices("{{").chain(line.match_indices("{%")).map(|(at, _)| at).find(is_start)
}

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

    /// Returns the range of the line without indentation and trailing spaces.
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

    fn before(self) -> Option<Line<'t>> {
        self.above().skip(1).find(|line| !line.is_blank() && !line.text().trim_start().starts_with('#'))
    }

    fn above(self) -> impl Iterator<Item = Line<'t>> {
        std::iter::successors(Some(self), |line| (line.start > 0).then(|| Line::at(line.all, line.start - 1)))
    }

    fn has_key(self) -> bool {
        let text = self.text().trim();
        text.contains(": ") || text.ends_with(':')
    }

    /// Returns the text after a list or a mapping in brackets that is the value of the line's key.
    fn after_bracket(self) -> Option<Range<usize>> {
        let text = self.text().trim_end();
        let value = text.find(": ")? + 2;
        let open = value + (text[value..].len() - text[value..].trim_start().len());
        let mut depth = 0_usize;
        for (at, c) in text[open..].char_indices() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                let rest = open + at + c.len_utf8();
                let is_text = at > 0
                    && !text[rest..].trim().is_empty()
                    && !text[rest..].trim_start().starts_with(['#', ']', '}']);
                return is_text.then(|| self.start + rest..self.start + text.len());
            }
        }
        None
    }

    /// Returns the position of an opening bracket that is not closed on the line.
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

    /// Returns the position of a quotation mark that is not closed on the line.
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

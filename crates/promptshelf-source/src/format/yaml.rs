//! YAML 1.2, parsed to a small, bounded tree with spans.
//!
//! The files may come from untrusted authors, so features beyond plain data are rejected: aliases, keys other than
//! text, and custom types. The parser stops at the first syntax error; the affected line is then left out, and the
//! rest is parsed again. The meaning of keys is not handled here.

mod explain;
mod offsets;

use std::ops::Range;

use promptshelf_core::Code;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use self::{
    explain::{Line, Mistake, beginning, explain},
    offsets::Offsets,
};
use super::tree::{Entry, Node, Notes, Scalar, ScalarKind, Value};

const MAX_DEPTH: usize = 16;

const MAX_NODES: usize = 20_000;

/// Parses `range` of the file. `None` if the range is empty, or if it has errors, which are reported.
pub(crate) fn parse(range: Range<usize>, notes: &mut Notes<'_>) -> Option<Node> {
    parse_without(range, None, notes)
}

/// The largest number of lines that are left out: each one costs another pass over the file.
const MAX_LEFT_OUT: usize = 10;

/// Parses `range` as if one line of it were blank.
pub(crate) fn parse_without(range: Range<usize>, line: Option<Range<usize>>, notes: &mut Notes<'_>) -> Option<Node> {
    let source = std::sync::Arc::clone(notes.source);
    let mut text = source.text[range.clone()].to_owned();
    let inside = |span: &Range<usize>| span.start - range.start..span.end - range.start;
    if let Some(line) = line {
        blank(&mut text, inside(&line));
    }
    let mut mistakes: Vec<Mistake> = Vec::new();
    let node = loop {
        let noted = notes.diagnostics.len();
        let mut builder = Builder {
            parser: Parser::new_from_str(&text),
            offsets: Offsets::of(&text, range.start),
            text: &source.text,
            notes,
            nodes: 0,
            end: range.start,
        };
        let error = match builder.document() {
            Ok(node) => break node,
            Err(Stop::Noted) => break None,
            Err(Stop::Syntax(error)) => error,
        };
        let at = builder.offsets.byte(error.marker().index()).min(range.end) - range.start;
        // The next pass reports the same diagnostics again.
        notes.diagnostics.truncate(noted);
        let mistake = explain(&text, error.info(), at);
        let left_out = lines_of(&text, mistake.span.start);
        let is_new = !text[left_out.clone()].trim().is_empty();
        if is_new || mistakes.is_empty() {
            mistakes.push(mistake);
        }
        if !is_new || mistakes.len() == MAX_LEFT_OUT {
            // Even the set of keys is unknown.
            notes.left_out.push(range.clone());
            break None;
        }
        notes.left_out.push(left_out.start + range.start..left_out.end + range.start);
        blank(&mut text, left_out);
    };
    for Mistake { span, message, help } in mistakes {
        notes.error(Code::Syntax, &(span.start + range.start..span.end + range.start), message).help = help;
    }
    node
}

fn lines_of(text: &str, at: usize) -> Range<usize> {
    let first = Line::at(text, at);
    let is_entry = |line: Line<'_>| line.text().trim_start().starts_with("- ");
    let depth = first.indentation().len();
    let belongs = |line: &Line<'_>| {
        let own = line.indentation().len();
        line.is_blank() || own > depth || (own == depth && is_entry(*line) && !is_entry(first))
    };
    let below = std::iter::successors(first.next(), |line| line.next());
    let end = below.take_while(belongs).last().unwrap_or(first);
    first.start..end.start + end.text().len()
}

/// Replaces a span by spaces, so that the rest keeps its offsets.
fn blank(text: &mut String, span: Range<usize>) {
    let blank: String =
        text[span.clone()].bytes().map(|b| if b == b'\n' || b == b'\r' { b as char } else { ' ' }).collect();
    text.replace_range(span, &blank);
}

/// Returns whether typographic quotation marks stand where those of YAML would: around the whole value, or at one end of
/// it, because a comma in a list has cut it.
fn has_typographic_quotes(text: &str) -> bool {
    const QUOTES: &[char] = &['“', '”', '„', '‟', '«', '»', '‘', '’', '‚'];
    let is_double = |c: char| QUOTES[..6].contains(&c);
    let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else { return false };
    let inner = text[first.len_utf8()..].strip_suffix(last).unwrap_or_default();
    if inner.contains(is_double) || text.chars().nth(1).is_none() {
        return false;
    }
    match (QUOTES.contains(&first), QUOTES.contains(&last)) {
        (true, true) => is_double(first) == is_double(last),
        (true, false) => is_double(first),
        (false, true) => is_double(last),
        (false, false) => false,
    }
}

enum Stop {
    Syntax(ScanError),
    Noted,
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Stop {
        Stop::Syntax(error)
    }
}

struct Builder<'t, 'n, 's> {
    parser: Parser<'t, StrInput<'t>>,
    offsets: Offsets,
    text: &'t str,
    notes: &'n mut Notes<'s>,
    nodes: usize,
    /// The end of the last value. The parser ends a block at the next token, which can be lines away.
    end: usize,
}

impl<'t> Builder<'t, '_, '_> {
    fn next(&mut self) -> Result<(Event<'t>, Range<usize>), Stop> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, self.offsets.range(span))),
            Some(Err(error)) => Err(error.into()),
            None => Ok((Event::StreamEnd, self.end..self.end)),
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Stop> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                _ if root.is_some() => return self.refuse(&span, "only one YAML document is allowed", None),
                event => root = Some(self.node(event, span, 0)?),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Range<usize>, depth: usize) -> Result<Node, Stop> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return self.refuse(&span, "this is nested too deeply", None);
        }
        if self.nodes > MAX_NODES {
            return self.refuse(&span, &format!("the file has more than {MAX_NODES} values"), None);
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if anchor != 0 {
                    // An `&` at the start of a text is most often not meant as an anchor.
                    self.mistake(beginning(span.clone(), '&'));
                }
                if style == ScalarStyle::Plain && has_typographic_quotes(&text) {
                    let message = "typographic quotation marks are part of the value";
                    self.notes.warning(Code::Syntax, &span, message).help = Some(
                        "write straight ones: `\"` or `'`; around typographic ones that are meant, too".to_owned(),
                    );
                }
                let kind = self.scalar_kind(&text, style, tag.as_deref(), &span);
                self.end = self.end.max(span.end);
                Ok(Node { span, value: Value::Scalar(Scalar { text: text.into_owned(), kind }) })
            }
            Event::SequenceStart(_, tag) => {
                self.refuse_tag(tag.as_deref(), &span);
                let mut items = Vec::new();
                loop {
                    let (event, at) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        let span = self.close(&span, &at);
                        return Ok(Node { span, value: Value::List(items) });
                    }
                    items.push(self.node(event, at, depth + 1)?);
                }
            }
            Event::MappingStart(_, tag) => {
                self.refuse_tag(tag.as_deref(), &span);
                self.mapping(&span, depth)
            }
            Event::Alias(_) => {
                let help = "write the value out, or quote a text that starts with `*`";
                self.refuse(&span, "aliases are not supported", Some(help))
            }
            _ => self.refuse(&span, "a value is missing here", None),
        }
    }

    fn mapping(&mut self, open: &Range<usize>, depth: usize) -> Result<Node, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut template = false;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::MappingEnd => {
                    let span = self.close(open, &at);
                    if template {
                        let text = self.text[span.clone()].to_owned();
                        return Ok(Node { span, value: Value::Scalar(Scalar { text, kind: ScalarKind::Text }) });
                    }
                    return Ok(Node { span, value: Value::Mapping(entries) });
                }
                Event::Scalar(key, ..) => {
                    self.end = self.end.max(at.end);
                    let (event, value_at) = self.next()?;
                    let node = self.node(event, value_at, depth + 1)?;
                    match entries.iter().find(|entry| entry.key == *key) {
                        Some(first) => {
                            let first = self.notes.location(&first.key_span);
                            let message = format!("duplicate key `{key}`");
                            let diagnostic = self.notes.error(Code::Syntax, &at, message);
                            diagnostic.related.push((first, "first defined here".to_owned()));
                            diagnostic.help = Some("keep one of them".to_owned());
                        }
                        None => entries.push(Entry { key: key.into_owned(), key_span: at, node }),
                    }
                }
                event => {
                    // `title: {{ name }}` is a mapping with a mapping as its key. Authors mean the braces of the
                    // template language.
                    template = self.text[open.start..].starts_with("{{");
                    let key = self.node(event, at.clone(), depth + 1)?;
                    let (event, value_at) = self.next()?;
                    self.node(event, value_at, depth + 1)?;
                    if template {
                        self.mistake(explain::template(open.start..open.start + 2));
                    } else {
                        let message = format!("a key: expected text, found {}", key.kind());
                        self.notes.error(Code::Syntax, &at, message);
                    }
                }
            }
        }
    }

    /// Returns the span of a list or mapping, which ends at its bracket or after its last value.
    fn close(&mut self, open: &Range<usize>, close: &Range<usize>) -> Range<usize> {
        let is_flow = matches!(self.text.as_bytes().get(open.start), Some(b'[' | b'{'));
        // The parser's span includes a comment after the bracket.
        let bracket = close.start + 1;
        if is_flow && matches!(self.text.as_bytes().get(close.start), Some(b']' | b'}')) && bracket > self.end {
            self.end = bracket;
        }
        open.start..self.end.max(open.start)
    }

    fn scalar_kind(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Range<usize>) -> ScalarKind {
        match tag {
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => return ScalarKind::Text,
            other => self.refuse_tag(other, span),
        }
        match style {
            ScalarStyle::Plain => plain_kind(text),
            _ => ScalarKind::Text,
        }
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, span: &Range<usize>) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            let help = "quote a text that starts with `!`".to_owned();
            let message = format!("the type `{tag}` is not supported");
            self.notes.error(Code::Syntax, span, message).help = Some(help);
        }
    }

    fn refuse<T>(&mut self, span: &Range<usize>, message: &str, help: Option<&str>) -> Result<T, Stop> {
        self.notes.error(Code::Syntax, span, message).help = help.map(str::to_owned);
        Err(Stop::Noted)
    }

    fn mistake(&mut self, Mistake { span, message, help }: Mistake) {
        self.notes.error(Code::Syntax, &span, message).help = help;
    }
}

/// Returns the type of an unquoted scalar in the core schema of YAML 1.2: `no`, `on` and `yes` are text.
fn plain_kind(text: &str) -> ScalarKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return ScalarKind::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => return ScalarKind::Boolean,
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return ScalarKind::Integer;
    }
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && number(digits)
        && text.parse::<f64>().is_ok()
    {
        return ScalarKind::Float;
    }
    ScalarKind::Text
}

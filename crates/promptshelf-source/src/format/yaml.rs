//! YAML 1.2 as a small, bounded tree with positions.
//!
//! A library is read by programs of strangers, so what YAML can do beyond
//! plain data is refused: aliases, keys that are no text, types of one's own.
//! The parser stops at the first thing that is no YAML; so that line is left
//! out, and the rest is read again. What a key means is not here.

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

/// How deep lists and mappings may stand in each other.
const MAX_DEPTH: usize = 16;

/// How many values one file may hold.
const MAX_NODES: usize = 20_000;

/// Reads `range` of the notes' file. `None` means that there is nothing to
/// understand: the range is empty, or what is wrong with it has been noted.
pub(crate) fn parse(range: Range<usize>, notes: &mut Notes<'_>) -> Option<Node> {
    parse_without(range, None, notes)
}

/// The most lines that are left out: each means to read the file again.
const MAX_LEFT_OUT: usize = 10;

/// Reads `range` as if a line of it were blank.
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
        // What has been noted on the way here will be noted again.
        notes.diagnostics.truncate(noted);
        let mistake = explain(&text, error.info(), at);
        let left_out = lines_of(&text, mistake.span.start);
        let is_new = !text[left_out.clone()].trim().is_empty();
        if is_new || mistakes.is_empty() {
            mistakes.push(mistake);
        }
        if !is_new || mistakes.len() == MAX_LEFT_OUT {
            // Not even the keys that can be read are known.
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

/// A line, and those below it that belong to it.
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

/// Puts spaces in the place of what stands there, so that the rest keeps its bytes.
fn blank(text: &mut String, span: Range<usize>) {
    let blank: String =
        text[span.clone()].bytes().map(|b| if b == b'\n' || b == b'\r' { b as char } else { ' ' }).collect();
    text.replace_range(span, &blank);
}

/// Why a file is not read to its end.
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
    /// Where the last value ended. The parser ends a block at the next token,
    /// which can be lines away.
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
                _ if root.is_some() => return self.refuse(&span, "only one document can stand here", None),
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
            return self.refuse(&span, &format!("there are more than {MAX_NODES} values"), None);
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if anchor != 0 {
                    // Nobody who writes `&` at the beginning of a text means an anchor.
                    self.mistake(beginning(span.clone(), '&'));
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
                let help = "write the value out, or put quotes around a text that starts with `*`";
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
                            let message = format!("the key `{key}` stands twice");
                            let diagnostic = self.notes.error(Code::Syntax, &at, message);
                            diagnostic.related.push((first, "it first stands here".to_owned()));
                        }
                        None => entries.push(Entry { key: key.into_owned(), key_span: at, node }),
                    }
                }
                event => {
                    // `title: {{ name }}` is a mapping with a mapping for a key.
                    // Nobody means that; they mean the template's braces.
                    template = self.text[open.start..].starts_with("{{");
                    let key = self.node(event, at.clone(), depth + 1)?;
                    let (event, value_at) = self.next()?;
                    self.node(event, value_at, depth + 1)?;
                    if template {
                        self.mistake(explain::template(open.start..open.start + 2));
                    } else {
                        let message = format!("a key has to be text, and {} stands here", key.kind());
                        self.notes.error(Code::Syntax, &at, message);
                    }
                }
            }
        }
    }

    /// Where a list or mapping ends: at its bracket, or after its last value.
    fn close(&mut self, open: &Range<usize>, close: &Range<usize>) -> Range<usize> {
        let is_flow = matches!(self.text.as_bytes().get(open.start), Some(b'[' | b'{'));
        // The parser counts a comment behind the bracket to it.
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
            let help = "put quotes around a text that starts with `!`".to_owned();
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

/// What a scalar without quotes is in YAML 1.2's core schema: `no`, `on` and
/// `yes` are text.
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

//! The formatter of front matter.
//!
//! It works on lines, never on values: it reorders blocks of lines, changes their indentation, and normalises scalars
//! on a single line. Lines that it does not understand stay unchanged. At the end, the result must parse to the same
//! values with the same comments; otherwise the file stays unchanged.

use std::sync::Arc;

use promptshelf_core::{Diagnostic, SourceText};
use promptshelf_source::syntax::{Entry, Holds, Keys, Node, Notes, PROMPT_KEYS, Value, front_matter, parse_yaml};

/// The comment by which editors find a schema; it stays at the top.
const SCHEMA: &str = "# yaml-language-server:";

/// Formats a prompt file: keys in the usual order, lists indented by two, one kind of quotation mark.
///
/// The text below the front matter stays as it is, byte by byte, and so does everything that cannot be
/// moved without changing its meaning or its comments.
///
/// ```
/// use promptshelf_author::format;
/// use promptshelf_core::SourceText;
///
/// let file = SourceText::new("hello.md", "---\ndescription:   'Greets'\nname: hello\n---\nHello!\n");
/// let formatted = format(&file).unwrap();
/// assert_eq!(formatted, "---\nname: hello\ndescription: \"Greets\"\n---\nHello!\n");
/// ```
///
/// # Errors
///
/// The diagnostics of front matter that cannot be parsed.
pub fn format(source: &Arc<SourceText>) -> Result<String, Vec<Diagnostic>> {
    let text = &source.text;
    let Some((keys, _)) = front_matter(text) else { return Ok(text.to_string()) };
    let mut notes = Notes::new(source);
    parse_yaml(keys.clone(), &mut notes);
    if notes.has_errors() {
        return Err(notes.diagnostics);
    }
    let before = &text[keys.clone()];
    let is_crlf = before.contains('\r');
    let lines = before.replace("\r\n", "\n");
    // Mixed line endings are an accident whose intention is unknown; they stay as they are.
    let is_mixed = is_crlf && before.matches("\r\n").count() != lines.matches('\n').count();
    if is_mixed || lines.contains('\r') || lines.contains('\t') {
        return Ok(text.to_string());
    }
    let Some(laid_out) = mapping(&lines, &PROMPT_KEYS).filter(|after| is_same(&lines, after)) else {
        return Ok(text.to_string());
    };
    let laid_out = if is_crlf { laid_out.replace('\n', "\r\n") } else { laid_out };
    Ok(format!("{}{laid_out}{}", &text[..keys.start], &text[keys.end..]))
}

/// Parses a text by itself. Its mistakes have been reported before.
fn parse(text: &str) -> Option<Node> {
    let source = SourceText::new("", text);
    let mut notes = Notes::new(&source);
    let node = parse_yaml(0..text.len(), &mut notes)?;
    (!notes.has_errors()).then_some(node)
}

/// Formats a mapping whose keys are at the start of lines; `None` for other layouts.
fn mapping(text: &str, keys: &Keys) -> Option<String> {
    let Node { value: Value::Mapping(entries), .. } = parse(text)? else { return None };
    let (header, mut blocks, footer) = blocks(text, &entries)?;
    for (block, entry) in blocks.iter_mut().zip(&entries) {
        let holds = keys.find(&entry.key).map(|key| key.holds);
        block.body = match (&entry.node.value, holds) {
            (Value::List(_), Some(Holds::Tables(inner) | Holds::ListOfTextsOrTables(inner))) => {
                list(&block.body, inner).unwrap_or_else(|| block.body.clone())
            }
            _ => written(&block.body, text, entry).unwrap_or_else(|| block.body.clone()),
        };
        block.rank = keys.rank(&entry.key);
    }
    blocks.sort_by_key(|block| block.rank);
    let mut laid_out = header;
    for Block { lead, body, .. } in blocks {
        laid_out.push_str(&lead);
        laid_out.push_str(&body);
    }
    laid_out.push_str(&footer);
    Some(laid_out)
}

/// Formats a key with a list of mappings: items are indented by two spaces, their keys sorted.
fn list(body: &str, keys: &Keys) -> Option<String> {
    let (first, rest) = body.split_once('\n')?;
    let (_, behind) = first.split_once(':')?;
    if !(behind.trim().is_empty() || is_comment(behind)) {
        return None;
    }
    let mut laid_out = format!("{}\n", first.trim_end());
    let dash = rest.lines().find(|line| !line.trim().is_empty() && !is_comment(line))?;
    let column = dash.len() - dash.trim_start().len();
    let mut items: Vec<(String, String)> = vec![(String::new(), String::new())];
    for line in rest.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches(' ').len();
        let (lead, item) = items.last_mut()?;
        if indentation == column && line[column..].starts_with("- ") {
            // Blank lines and comments before an item belong to that item, not to the previous one.
            let own = content_lines(item);
            let lead_of_next = item.split_off(own);
            if item.is_empty() {
                lead.push_str(&lead_of_next);
                item.push_str(line);
            } else {
                items.push((lead_of_next, line.to_owned()));
            }
        } else if indentation > column || line.trim().is_empty() || is_comment(line) {
            item.push_str(line);
        } else {
            return None;
        }
    }
    for (lead, item) in items {
        for line in lead.split_inclusive('\n') {
            laid_out.push_str(&if line.trim().is_empty() {
                "\n".to_owned()
            } else {
                format!("  {}", line.trim_start())
            });
        }
        laid_out.push_str(&self::item(&item, column, keys)?);
    }
    Some(laid_out)
}

/// Formats one item: its dash is indented by two spaces, its keys are sorted.
fn item(item: &str, column: usize, keys: &Keys) -> Option<String> {
    let behind = &item[column + 1..];
    let inside = column + 1 + (behind.len() - behind.trim_start_matches(' ').len());
    let without_dash = format!("{}{}", " ".repeat(inside), &item[inside..]);
    let text = dedented(&without_dash, inside)?;
    let laid_out = mapping(&text, keys).unwrap_or_else(|| text.clone());
    // A dash before a comment would change the meaning of the following lines.
    let lines = if is_comment(&laid_out) || laid_out.starts_with('\n') { text } else { laid_out };
    let indented = lines.split_inclusive('\n').enumerate().map(|(index, line)| match (index, line.trim().is_empty()) {
        (0, _) => format!("  - {line}"),
        (_, true) => line.trim_start_matches(' ').to_owned(),
        (_, false) => format!("    {line}"),
    });
    Some(indented.collect())
}

fn is_same(before: &str, after: &str) -> bool {
    let same = match (parse(before), parse(after)) {
        (Some(before), Some(after)) => means(&before, &after),
        _ => false,
    };
    let comments = |text: &str| {
        let mut comments: Vec<String> =
            text.lines().filter(|line| is_comment(line)).map(|line| line.trim().to_owned()).collect();
        comments.sort();
        comments
    };
    let marks = |text: &str| text.matches('#').count();
    same && comments(before) == comments(after) && marks(before) == marks(after)
}

fn means(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::Scalar(one), Value::Scalar(other)) => one.kind == other.kind && one.text == other.text,
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| means(one, other))
        }
        (Value::Mapping(one), Value::Mapping(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|entry| other.iter().any(|twin| twin.key == entry.key && means(&entry.node, &twin.node)))
        }
        _ => false,
    }
}

struct Block {
    lead: String,
    body: String,
    rank: usize,
}

/// Returns whether a line holds only a comment.
fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Splits a mapping into the lines before it, its entries, and the lines after it. `None` if an entry does not start
/// a line.
fn blocks(text: &str, entries: &[Entry]) -> Option<(String, Vec<Block>, String)> {
    let starts: Vec<usize> = entries.iter().map(|entry| entry.key_span.start).collect();
    let first = *starts.first()?;
    if starts.iter().any(|start| *start > 0 && !text[..*start].ends_with('\n')) || !text.ends_with('\n') {
        return None;
    }
    let (header, mut lead) = header(&text[..first]);
    let mut blocks = Vec::with_capacity(entries.len());
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(text.len());
        let whole = text.get(*start..end)?;
        let own = own(whole);
        blocks.push(Block { lead: std::mem::take(&mut lead), body: whole[..own].to_owned(), rank: 0 });
        lead = whole[own..].to_owned();
    }
    Some((header, blocks, lead))
}

/// Splits the lines above the first entry into those of the whole file and those of the entry.
fn header(above: &str) -> (String, String) {
    let after_blank = above.rfind("\n\n").map_or(0, |blank| blank + 2);
    let after_schema =
        above.rfind(SCHEMA).map_or(0, |at| above[at..].find('\n').map_or(above.len(), |end| at + end + 1));
    let end = after_blank.max(after_schema);
    (above[..end].to_owned(), above[end..].to_owned())
}

/// Returns the length of an entry without trailing blank lines and unindented comments, which belong to the next
/// entry.
fn own(whole: &str) -> usize {
    let foreign = |line: &str| line.trim().is_empty() || line.starts_with('#');
    let after: usize = whole.split_inclusive('\n').rev().take_while(|line| foreign(line)).map(str::len).sum();
    whole.len() - after
}

/// Returns the length of a list item without trailing blank lines and comments that are indented no deeper than its
/// dash.
fn content_lines(item: &str) -> usize {
    let dash = item.len() - item.trim_start_matches(' ').len();
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let foreign = |line: &str| line.trim().is_empty() || (is_comment(line) && indentation(line) <= dash);
    let after: usize = item.split_inclusive('\n').rev().take_while(|line| foreign(line)).map(str::len).sum();
    item.len() - after
}

/// Removes `by` columns of indentation from every line; `None` if a line has less.
fn dedented(text: &str, by: usize) -> Option<String> {
    let line = |line: &str| {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        match line.trim().is_empty() {
            true => Some("\n".to_owned()),
            false if spaces >= by => Some(line[by..].to_owned()),
            false => None,
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Returns a single-line key and value in normal form: one space after the colon and after each comma of a list,
/// double quotation marks. `None` for values on several lines.
fn written(body: &str, text: &str, entry: &Entry) -> Option<String> {
    let line = body.strip_suffix('\n')?;
    if line.contains('\n') || entry.node.is_null() {
        return None;
    }
    let between = text.get(entry.key_span.end..entry.node.span.start)?;
    if between.trim_end() != ":" || entry.node.span.end > entry.key_span.start + line.len() {
        return None;
    }
    // The parser includes a comment after quotation marks in the value's span.
    let value = text.get(entry.node.span.clone())?;
    let value = if matches!(entry.node.value, Value::Scalar(_)) { &value[..closing(value)] } else { value };
    let rest = line.get(entry.node.span.start + value.len() - entry.key_span.start..)?.trim_end();
    let value = match &entry.node.value {
        Value::Scalar(_) => quoted(value),
        Value::List(items) => in_brackets(value, items, text).unwrap_or_else(|| value.to_owned()),
        Value::Mapping(_) => value.to_owned(),
    };
    let key = text.get(entry.key_span.clone())?;
    Some(format!("{key}: {value}{rest}\n"))
}

fn in_brackets(written: &str, items: &[Node], text: &str) -> Option<String> {
    if !(written.starts_with('[') && written.ends_with(']')) {
        return None;
    }
    let scalar = |item: &Node| {
        let is_scalar = matches!(item.value, Value::Scalar(_)) && !item.is_null();
        text.get(item.span.clone()).filter(|_| is_scalar).map(|written| quoted(written.trim_end()))
    };
    let items: Option<Vec<String>> = items.iter().map(scalar).collect();
    Some(format!("[{}]", items?.join(", ")))
}

/// Returns a scalar in double quotation marks if single ones have the same meaning.
fn quoted(value: &str) -> String {
    let single = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    match single.filter(|inner| !inner.contains(['\'', '"', '\\']) && value.len() > 1) {
        Some(inner) => format!("\"{inner}\""),
        None => value.to_owned(),
    }
}

/// Returns the end of a value in single quotation marks; for other values, their length.
fn closing(value: &str) -> usize {
    let Some(inside) = value.strip_prefix('\'') else { return value.len() };
    let mut characters = inside.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\'' && characters.next_if(|(_, next)| *next == '\'').is_none() {
            return at + 2;
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn laid_out(text: &str) -> String {
        format(&SourceText::new("a.md", text)).expect("it can be read")
    }

    const MESSY: &str = "\
---
# yaml-language-server: $schema=a.json
# what people read
description:   'Greets'   # in one line

arguments:
- description: Whom
  # the person
  name: who
  enum:
  - Ada   # the first
  - Grace

# the tone
- type: string
  name:  tone
  description: |
    How,
      in short.
name: hello
---
  Hello   {{ who }}, 'now'
";

    const NEAT: &str = "\
---
# yaml-language-server: $schema=a.json
name: hello
# what people read
description: \"Greets\"   # in one line

arguments:
  - description: Whom
    # the person
    name: who
    enum:
    - Ada   # the first
    - Grace

  # the tone
  - name: tone
    description: |
      How,
        in short.
    type: string
---
  Hello   {{ who }}, 'now'
";

    #[test]
    fn keys_are_sorted_with_comments() {
        assert_eq!(laid_out(MESSY), NEAT);
        assert_eq!(laid_out(NEAT), NEAT);
        assert_eq!(laid_out(&MESSY.replace('\n', "\r\n")), NEAT.replace('\n', "\r\n"));
    }

    #[test]
    fn doubtful_files_are_unchanged() {
        for text in [
            "no front matter\n",
            "---\n{ description: Greets, name: a }\n---\nHello\n",
            "---\n  description: Greets\n  name: a\n---\nHello\n",
            "---\ndescription: |+\n  Greets\n\n\nname: a\n---\nHello\n",
            "---\n---\nHello\n",
            "---\ntitle:  x\r\nname: y\n---\nHello\n",
        ] {
            assert_eq!(laid_out(text), text);
        }
        assert!(format(&SourceText::new("a.md", "---\na: b: c\n---\n")).is_err());
    }

    #[test]
    fn quotes_change_only_without_effect() {
        let quoted = |value: &str| laid_out(&format!("---\ntitle: {value}\n---\nx")).lines().nth(1).map(str::to_owned);
        assert_eq!(quoted("'it''s'").as_deref(), Some("title: 'it''s'"));
        assert_eq!(quoted("'a\\b'").as_deref(), Some("title: 'a\\b'"));
        assert_eq!(quoted("'say \"x\"'").as_deref(), Some("title: 'say \"x\"'"));
        assert_eq!(quoted("'true'").as_deref(), Some("title: \"true\""));
        assert_eq!(quoted("plain # comment").as_deref(), Some("title: plain # comment"));
        assert_eq!(quoted("  [ a,'b' , \"c\" ]  # d").as_deref(), Some("title: [a, \"b\", \"c\"]  # d"));
        assert_eq!(quoted("  {a:  b}").as_deref(), Some("title: {a:  b}"));
    }

    fn line() -> impl Strategy<Value = String> {
        let key = prop_oneof![Just("name"), Just("title"), Just("description"), Just("tags"), Just("x")];
        let value = prop_oneof![
            Just("a".to_owned()),
            Just("'a # b'".to_owned()),
            Just("\"a\\\\n\"".to_owned()),
            Just("1.10".to_owned()),
            Just("|\n  # no comment\n  a\n".to_owned()),
            Just(">-\n    a\n\n    b".to_owned()),
            Just("\n- a\n- 'b'".to_owned()),
            Just("[a, 'b'] # c".to_owned()),
            Just("   [ a b,'b' , \"c, d\",[x], ]".to_owned()),
            Just("[ a,1.10 , '#' ]   # c".to_owned()),
            Just("  {a: b,  c: [d]}".to_owned()),
            Just("".to_owned()),
            Just("a\n  b".to_owned()),
            Just("\"a\n  b\"".to_owned()),
        ];
        prop_oneof![
            4 => (key, value).prop_map(|(key, value)| format!("{key}: {value}")),
            1 => Just("# a comment".to_owned()),
            1 => Just(String::new()),
            1 => Just("arguments:\n  - title: 'b'\n    name: a\n    # c\n  # d\n  - plain\n\n  - name: c\n    enum: [x]\n    type: string".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn formatting_is_idempotent_and_keeps_meaning(lines in prop::collection::vec(line(), 0..8), body in ".{0,40}") {
            let text = format!("---\n{}\n---\n{body}", lines.join("\n"));
            if let Ok(once) = format(&SourceText::new("a.md", &*text)) {
                let twice = format(&SourceText::new("a.md", &*once)).expect("it can be read still");
                prop_assert_eq!(&once, &twice);
                let end = format!("---\n{body}");
                prop_assert!(once.ends_with(&end));
                if once != text {
                    let keys = |text: &str| front_matter(text).map(|(keys, _)| text[keys].to_owned()).unwrap_or_default();
                    prop_assert!(is_same(&keys(&text), &keys(&once)));
                }
            }
        }
    }
}

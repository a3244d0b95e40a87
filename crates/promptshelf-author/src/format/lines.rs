//! Blocks of YAML lines that belong together, and the normal form of a single line.

use promptshelf_source::syntax::{Entry, Node, Value};

use super::SCHEMA;

pub(super) struct Block {
    pub(super) lead: String,
    pub(super) body: String,
    pub(super) rank: usize,
}

/// Returns whether a line holds only a comment.
pub(super) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// Splits a mapping into the lines before it, its entries, and the lines after it. `None` if an entry does not start
/// a line.
pub(super) fn blocks(text: &str, entries: &[Entry]) -> Option<(String, Vec<Block>, String)> {
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
pub(super) fn content(item: &str) -> usize {
    let dash = item.len() - item.trim_start_matches(' ').len();
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let foreign = |line: &str| line.trim().is_empty() || (is_comment(line) && indentation(line) <= dash);
    let after: usize = item.split_inclusive('\n').rev().take_while(|line| foreign(line)).map(str::len).sum();
    item.len() - after
}

/// Removes `by` columns of indentation from every line; `None` if a line has less.
pub(super) fn dedented(text: &str, by: usize) -> Option<String> {
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
pub(super) fn written(body: &str, text: &str, entry: &Entry) -> Option<String> {
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

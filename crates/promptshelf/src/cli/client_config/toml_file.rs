//! One entry in a TOML file. The text is edited at positions that a parse gives; the caller verifies the result by
//! another parse.

use std::ops::Range;

use promptshelf_core::SourceText;
use promptshelf_source::syntax::{Entry, Node, Notes, Value as TomlNode, parse_toml};
use serde_json::Value;
use toml_edit::{Array, InlineTable, Value as TomlValue};

use super::{
    EditError, not_a_mapping,
    text_edit::{in_braces, line_end, line_start, missing_newline, newline, replaced},
};

pub(super) fn parse(text: &str) -> Result<Value, EditError> {
    toml::from_str(text).map_err(|error: toml::de::Error| EditError::new(error.to_string()))
}

pub(super) fn edit(text: &str, place: &[&str], name: &str, entry: Option<&Value>) -> Result<String, EditError> {
    let [container] = place else { return Err(not_a_mapping(place)) };
    let present = parse(text)?;
    let root = parse_toml(&mut Notes::new(&SourceText::new("config.toml", text)));
    let found = child(&root, container);
    let entries = match found.map(|found| entries(&found.node)) {
        Some(None) => return Err(not_a_mapping(place)),
        Some(Some(entries)) => entries,
        None => &[],
    };
    let old = entries.iter().position(|entry| entry.key == name);
    if let Some(found) = found.filter(|found| starts_with(text, &found.node, '{')) {
        let ranges: Vec<Range<usize>> = entries.iter().map(|entry| entry.key_span.start..entry.node.span.end).collect();
        let new = entry.map(|entry| format!("{name} = {}", inline(entry)));
        return in_braces(text, found.node.span.start, &ranges, old, new);
    }
    let edits = match (old.map(|old| &entries[old]), entry) {
        (None, None) => vec![],
        (Some(old), None) => cuts(text, old),
        (Some(old), Some(entry)) if starts_with(text, &old.node, '{') => {
            vec![(old.node.span.clone(), inline(entry).to_string())]
        }
        (Some(old), Some(entry)) => update(text, old, &present[*container][name], entry),
        // At the end: above another table, it would take the comments there for its own.
        (None, Some(entry)) => {
            let (end, newline) = (missing_newline(text), newline(text));
            let empty = if text.is_empty() { "" } else { newline };
            let lines = members(entry).map(|(key, member)| line(text, key, member)).collect::<String>();
            vec![(text.len()..text.len(), format!("{end}{empty}[{container}.{name}]{newline}{lines}"))]
        }
    };
    Ok(replaced(text, edits))
}

fn entries(node: &Node) -> Option<&[Entry]> {
    match &node.value {
        TomlNode::Mapping(entries) => Some(entries),
        _ => None,
    }
}

fn child<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    entries(node)?.iter().find(|entry| entry.key == key)
}

fn starts_with(text: &str, node: &Node, sign: char) -> bool {
    text[node.span.clone()].starts_with(sign)
}

fn members(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry.as_object().into_iter().flatten()
}

/// Changes what differs from the present members.
fn update(text: &str, old: &Entry, present: &Value, new: &Value) -> Vec<(Range<usize>, String)> {
    let below = line_end(text, old.node.span.end);
    let mut edits = Vec::new();
    for entry in entries(&old.node).unwrap_or_default() {
        match new.get(&entry.key) {
            None => edits.extend(cuts(text, entry)),
            Some(member) if present.get(&entry.key) == Some(member) => {}
            Some(member) => edits.push((entry.node.span.clone(), inline(member).to_string())),
        }
    }
    let added = members(new).filter(|(key, _)| present.get(key.as_str()).is_none());
    edits.extend(added.map(|(key, member)| (below..below, line(text, key, member))));
    edits
}

/// The lines of an entry with its tables, and the empty line above each table. Comments on lines between them stay.
fn cuts(text: &str, entry: &Entry) -> Vec<(Range<usize>, String)> {
    let mut lines = Vec::new();
    add_lines(text, entry, &mut lines);
    lines.sort_by_key(|lines| lines.start);
    // Keys on one line, in braces or with a common beginning.
    lines.dedup();
    lines.into_iter().map(|lines| (lines, String::new())).collect()
}

fn add_lines(text: &str, entry: &Entry, lines: &mut Vec<Range<usize>>) {
    let mut add_table = |node: &Node| {
        if starts_with(text, node, '[') {
            lines.push(line_start_above(text, node.span.start)..line_end(text, node.span.end));
        }
        entries(node).unwrap_or_default().iter().for_each(|entry| add_lines(text, entry, lines));
    };
    match &entry.node.value {
        TomlNode::Mapping(_) if !starts_with(text, &entry.node, '{') => add_table(&entry.node),
        TomlNode::List(items) if items.iter().any(|item| is_table(text, item)) => items.iter().for_each(add_table),
        _ => lines.push(line_start(text, entry.key_span.start)..line_end(text, entry.node.span.end)),
    }
}

/// Whether a node is a table with a header, such as `[a]` or `[[a]]`.
fn is_table(text: &str, node: &Node) -> bool {
    entries(node).is_some() && starts_with(text, node, '[')
}

/// The start of the line, or that of an empty line above it.
fn line_start_above(text: &str, at: usize) -> usize {
    let start = line_start(text, at);
    let above = start.checked_sub(1).map_or(start, |end| line_start(text, end));
    if text[above..start].trim().is_empty() { above } else { start }
}

fn line(text: &str, key: &str, member: &Value) -> String {
    format!("{key} = {}{}", inline(member), newline(text))
}

fn inline(value: &Value) -> TomlValue {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().map(inline).collect::<Array>().into(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.as_str(), inline(value))).collect::<InlineTable>().into()
        }
        // TOML has no null; no entry has one.
        Value::Null => "".into(),
    }
}

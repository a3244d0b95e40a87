//! One entry in a YAML file. The text is edited by lines, at positions that a parse gives; the caller verifies the
//! result by another parse.

use std::ops::Range;

use promptshelf_core::{Diagnostic, SourceText};
use promptshelf_source::syntax::{Entry, Node, Notes, ScalarKind, Value as YamlValue, parse_yaml};
use serde_json::{Map, Number, Value};

use super::{
    EditError, not_a_mapping,
    text_edit::{in_braces, line_end, line_start, missing_newline, newline, replaced},
};

const INDENT: usize = 2;

pub(super) fn parse(text: &str) -> Result<Value, EditError> {
    Ok(tree(text)?.as_ref().map_or(Value::Null, value))
}

fn tree(text: &str) -> Result<Option<Node>, EditError> {
    let source = SourceText::new("config.yaml", text);
    let mut notes = Notes::new(&source);
    let node = parse_yaml(0..text.len(), &mut notes);
    match notes.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        Some(error) => Err(EditError::new(described(error, text))),
        None => Ok(node),
    }
}

fn described(error: &Diagnostic, text: &str) -> String {
    let line = text[..error.location.span().start.min(text.len())].matches('\n').count() + 1;
    format!("line {line}: {}", error.message)
}

fn value(node: &Node) -> Value {
    match &node.value {
        YamlValue::List(nodes) => nodes.iter().map(value).collect(),
        YamlValue::Mapping(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.key.clone(), value(&entry.node))).collect::<Map<_, _>>())
        }
        YamlValue::Scalar(scalar) => match scalar.kind {
            ScalarKind::Null => Value::Null,
            ScalarKind::Boolean => Value::Bool(scalar.text.eq_ignore_ascii_case("true")),
            ScalarKind::Integer | ScalarKind::Float => {
                let integer = scalar.text.parse::<i64>().ok().map(Number::from);
                let number = integer.or_else(|| scalar.text.parse().ok().and_then(Number::from_f64));
                number.map_or_else(|| scalar.text.as_str().into(), Value::Number)
            }
            _ => scalar.text.as_str().into(),
        },
    }
}

pub(super) fn edit(text: &str, place: &[&str], name: &str, entry: Option<&Value>) -> Result<String, EditError> {
    let [container] = place else { return Err(not_a_mapping(place)) };
    let root = tree(text)?;
    let top: &[Entry] = match root.as_ref().map(|node| &node.value) {
        None => &[],
        Some(YamlValue::Mapping(entries)) => entries,
        Some(_) => return Err(not_a_mapping(&[])),
    };
    let found = top.iter().find(|entry| entry.key == *container);
    match (found, entry) {
        (None, None) => Ok(text.to_owned()),
        (None, Some(entry)) => append(text, container, name, entry),
        (Some(found), entry) => in_container(text, found, name, entry),
    }
}

/// Returns the text without the line of a container that has nothing more.
pub(super) fn without_empty_container(text: &str, container: &str) -> Option<String> {
    let root = tree(text).ok()??;
    let YamlValue::Mapping(entries) = &root.value else { return None };
    let found = entries.iter().find(|entry| entry.key == container && is_null(&entry.node))?;
    let lines = lines_of(text, found);
    let is_alone = text[lines.clone()].trim() == format!("{container}:");
    is_alone.then(|| replaced(text, vec![(lines, String::new())]))
}

fn is_null(node: &Node) -> bool {
    matches!(&node.value, YamlValue::Scalar(scalar) if scalar.kind == ScalarKind::Null)
}

fn append(text: &str, container: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    if text.trim_start().starts_with('{') || text.lines().any(|line| line.trim_end() == "...") {
        return Err(EditError::new(format!("`{container}:` cannot be added at the end; add it by hand")));
    }
    let (end, newline) = (missing_newline(text), newline(text));
    let lines = format!("{end}{container}:{newline}{}", block(text, INDENT, name, entry));
    Ok(replaced(text, vec![(text.len()..text.len(), lines)]))
}

fn in_container(text: &str, container: &Entry, name: &str, entry: Option<&Value>) -> Result<String, EditError> {
    let entries: &[Entry] = match &container.node.value {
        YamlValue::Mapping(entries) => entries,
        _ if is_null(&container.node) => &[],
        _ => return Err(not_a_mapping(&[&container.key])),
    };
    let old = entries.iter().position(|entry| entry.key == name);
    if text[container.node.span.clone()].starts_with('{') {
        let ranges: Vec<Range<usize>> = entries.iter().map(|entry| entry.key_span.start..entry.node.span.end).collect();
        // JSON is a flow mapping of YAML.
        let new = entry.map(|entry| format!("{name}: {entry}"));
        return in_braces(text, container.node.span.start, &ranges, old, new);
    }
    let edit = match (old.map(|old| &entries[old]), entry) {
        (None, None) => return Ok(text.to_owned()),
        (Some(old), entry) => {
            let indent = column(text, old.key_span.start);
            (lines_of(text, old), entry.map_or_else(String::new, |entry| block(text, indent, name, entry)))
        }
        (None, Some(entry)) => {
            let indent = entries.first().map_or(INDENT, |first| column(text, first.key_span.start));
            // Below the line of the container, so that comments stay with the entries below them.
            let start = line_end(text, container.key_span.end);
            let end = missing_newline(&text[..start]);
            (start..start, format!("{end}{}", block(text, indent, name, entry)))
        }
    };
    Ok(replaced(text, vec![edit]))
}

/// Writes an entry as a block mapping with values in the syntax of JSON, which is YAML too.
fn block(text: &str, indent: usize, name: &str, entry: &Value) -> String {
    let (pad, newline) = (" ".repeat(indent), newline(text));
    let mut lines = format!("{pad}{name}:{newline}");
    for (key, value) in entry.as_object().into_iter().flatten() {
        lines.push_str(&format!("{pad}{}{key}: {value}{newline}", " ".repeat(INDENT)));
    }
    lines
}

/// Returns the lines of an entry: that of its key, and the following ones that are indented further.
fn lines_of(text: &str, entry: &Entry) -> Range<usize> {
    let start = line_start(text, entry.key_span.start);
    let indent = column(text, entry.key_span.start);
    let mut end = line_end(text, entry.key_span.end);
    for line in text[end..].split_inclusive('\n') {
        let depth = line.len() - line.trim_start_matches(' ').len();
        if line.trim().is_empty() || depth <= indent {
            break;
        }
        end += line.len();
    }
    start..end
}

fn column(text: &str, at: usize) -> usize {
    at - line_start(text, at)
}

//! TOML, parsed to the same tree as YAML.

use std::ops::Range;

use promptshelf_core::Code;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::tree::{Entry, Node, Notes, Scalar, ScalarKind, Value};

/// Parses the file. Reports every syntax error, and returns the valid parts.
pub(crate) fn parse(notes: &mut Notes<'_>) -> Node {
    let source = std::sync::Arc::clone(notes.source);
    let bom = if source.text.starts_with('\u{feff}') { 3 } else { 0 };
    let text = &source.text[bom..];
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let mut lines = error.message().lines();
        let message = lines.next().unwrap_or("invalid TOML").to_owned();
        notes.error(Code::Syntax, &(bom + span.start..bom + span.end), message);
    }
    Tree { text, bom }.mapping(table.get_ref(), 0..source.text.len())
}

struct Tree<'t> {
    text: &'t str,
    bom: usize,
}

impl Tree<'_> {
    fn span<T>(&self, spanned: &Spanned<T>) -> Range<usize> {
        let span = spanned.span();
        self.bom + span.start..self.bom + span.end
    }

    fn mapping(&self, table: &DeTable<'_>, span: Range<usize>) -> Node {
        let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| Entry {
            key: key.get_ref().to_string(),
            key_span: self.span(key),
            node: self.node(value),
        };
        let mut entries: Vec<Entry> = table.iter().map(entry).collect();
        // The parser sorts keys; diagnostics follow the order of the file.
        entries.sort_by_key(|entry| entry.key_span.start);
        Node { span, value: Value::Mapping(entries) }
    }

    fn node(&self, spanned: &Spanned<DeValue<'_>>) -> Node {
        let span = self.span(spanned);
        let written = || self.text.get(spanned.span()).unwrap_or_default().to_owned();
        let (text, kind) = match spanned.get_ref() {
            DeValue::Table(table) => return self.mapping(table, span),
            DeValue::Array(items) => {
                return Node { span, value: Value::List(items.iter().map(|item| self.node(item)).collect()) };
            }
            DeValue::String(text) => (text.to_string(), ScalarKind::Text),
            DeValue::Integer(number) => {
                let number = i64::from_str_radix(number.as_str(), number.radix());
                (number.map_or_else(|_| written(), |number| number.to_string()), ScalarKind::Integer)
            }
            DeValue::Float(number) => (number.as_str().to_owned(), ScalarKind::Float),
            DeValue::Boolean(flag) => (flag.to_string(), ScalarKind::Boolean),
            DeValue::Datetime(_) => (written(), ScalarKind::Text),
        };
        Node { span, value: Value::Scalar(Scalar { text, kind }) }
    }
}

//! Taking keys out of a mapping: what is missing, unknown or of another kind
//! is noted, and the rest goes on.

use std::{collections::BTreeMap, fmt::Display};

use promptshelf_core::{Code, Severity, nearest};

use super::{
    keys::Keys,
    tree::{Entry, Node, Notes, ScalarKind, Value},
};

/// A mapping whose keys are known.
#[derive(Clone, Copy)]
pub(crate) struct Table<'n, 'p> {
    pub(crate) node: &'n Node,
    entries: &'n [Entry],
    /// Where its parts are filed: `arguments.0.`, or nothing for the file itself.
    prefix: &'p str,
}

impl<'n, 'p> Table<'n, 'p> {
    /// Takes a node as a mapping; anything else is noted and gives `None`.
    pub(crate) fn of(
        node: &'n Node,
        prefix: &'p str,
        what: impl Display,
        notes: &mut Notes<'_>,
    ) -> Option<Table<'n, 'p>> {
        match &node.value {
            Value::Mapping(entries) => Some(Table { node, entries, prefix }),
            _ => {
                let message = format!("{what} has to be a mapping of keys, and {} stands here", node.kind());
                notes.error(Code::WrongType, &node.span, message);
                None
            }
        }
    }

    pub(crate) fn entries(&self) -> &'n [Entry] {
        self.entries
    }

    /// Notes every key that is not in a table.
    pub(crate) fn expect(&self, known: &Keys, severity: Severity, place: &str, notes: &mut Notes<'_>) {
        self.refuse_others(&known.names(), severity, place, notes);
    }

    /// Notes every key that is not among `known`.
    pub(crate) fn refuse_others(&self, known: &[&str], severity: Severity, place: &str, notes: &mut Notes<'_>) {
        for entry in self.entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let message = format!("the key `{}` means nothing {place}", entry.key);
            let diagnostic = notes.error(Code::UnknownKey, &entry.key_span, message);
            diagnostic.severity = severity;
            let known = known.iter().copied();
            diagnostic.help = Some(match nearest(&entry.key, known.clone()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("known keys are {}", list(known)),
            });
        }
    }

    /// The path of a part.
    pub(crate) fn path(&self, key: &str) -> String {
        [self.prefix, key].concat()
    }

    /// A key's node, filed under its path. A key without a value is a key that is not there.
    pub(crate) fn node(&self, key: &str, notes: &mut Notes<'_>) -> Option<&'n Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        if entry.node.is_null() {
            return None;
        }
        notes.spans.insert(self.path(key), entry.node.span.clone());
        Some(&entry.node)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && !entry.node.is_null())
    }

    /// A key's text. Numbers and booleans are taken as they are written.
    pub(crate) fn text(&self, key: &str, notes: &mut Notes<'_>) -> Option<String> {
        let node = self.node(key, notes)?;
        text(node, format_args!("`{key}`"), notes)
    }

    /// A key's list of texts; one text stands for a list of one.
    pub(crate) fn texts(&self, key: &str, notes: &mut Notes<'_>) -> Vec<String> {
        let Some(node) = self.node(key, notes) else { return Vec::new() };
        let path = self.path(key);
        let mut texts = Vec::new();
        for (index, item) in items(node).iter().enumerate() {
            if let Some(text) = text(item, format_args!("an entry of `{key}`"), notes) {
                notes.spans.insert(format!("{path}.{index}"), item.span.clone());
                texts.push(text);
            }
        }
        texts
    }

    /// A key's mapping of names to scalars.
    pub(crate) fn pairs(&self, key: &str, notes: &mut Notes<'_>) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        let Some(node) = self.node(key, notes) else { return pairs };
        let Some(table) = Table::of(node, "", format_args!("`{key}`"), notes) else { return pairs };
        for entry in table.entries() {
            let value = match &entry.node.value {
                Value::Scalar(_) => text(&entry.node, format_args!("the value of `{}`", entry.key), notes),
                Value::List(_) | Value::Mapping(_) => Some(entry.node.to_json().to_string()),
            };
            pairs.extend(value.map(|value| (entry.key.clone(), value)));
        }
        pairs
    }

    /// A key that is `true` or `false`.
    pub(crate) fn flag(&self, key: &str, notes: &mut Notes<'_>) -> Option<bool> {
        let node = self.node(key, notes)?;
        match &node.value {
            Value::Scalar(scalar) if scalar.kind == ScalarKind::Boolean => {
                Some(scalar.text.eq_ignore_ascii_case("true"))
            }
            _ => {
                let message = format!("`{key}` has to be `true` or `false`, and {} stands here", node.kind());
                let yes_or_no = node.text().filter(|text| {
                    ["yes", "no", "on", "off", "y", "n", "true", "false"].contains(&&*text.to_ascii_lowercase())
                });
                let help =
                    yes_or_no.map(|text| match text.to_ascii_lowercase().starts_with(['y', 't']) || text == "on" {
                        true => "write `true`, without quotes".to_owned(),
                        false => "write `false`, without quotes".to_owned(),
                    });
                notes.error(Code::WrongType, &node.span, message).help = help;
                None
            }
        }
    }

    /// A key that is a whole number of at least `least`.
    pub(crate) fn count(&self, key: &str, least: u64, notes: &mut Notes<'_>) -> Option<u64> {
        let node = self.node(key, notes)?;
        let is_number = matches!(&node.value, Value::Scalar(scalar) if scalar.kind == ScalarKind::Integer);
        let parsed = node.text().filter(|_| is_number).and_then(|text| text.parse::<u64>().ok());
        match parsed {
            Some(number) if number >= least => Some(number),
            _ if is_number => {
                notes.error(Code::InvalidValue, &node.span, format!("`{key}` has to be at least {least}"));
                None
            }
            _ => {
                let message = format!("`{key}` has to be a whole number, and {} stands here", node.kind());
                notes.error(Code::WrongType, &node.span, message);
                None
            }
        }
    }

    /// A key that is a number.
    pub(crate) fn number(&self, key: &str, notes: &mut Notes<'_>) -> Option<f64> {
        let node = self.node(key, notes)?;
        let is_number = matches!(&node.value, Value::Scalar(scalar) if matches!(scalar.kind, ScalarKind::Integer | ScalarKind::Float));
        let parsed = node.text().filter(|_| is_number).and_then(|text| text.parse::<f64>().ok());
        match parsed.filter(|number| number.is_finite()) {
            Some(number) => Some(number),
            None => {
                let message = format!("`{key}` has to be a number, and {} stands here", node.kind());
                notes.error(Code::WrongType, &node.span, message);
                None
            }
        }
    }

    /// A key's text, which has to be there.
    pub(crate) fn required_text(&self, key: &str, what: &str, notes: &mut Notes<'_>) -> Option<String> {
        if !self.has(key) {
            let entry = self.entries.iter().find(|entry| entry.key == key);
            let span = entry.map_or_else(|| start_of(self.node), |entry| entry.key_span.clone());
            notes.error(Code::MissingKey, &span, format!("{what} needs a `{key}`"));
            return None;
        }
        self.text(key, notes)
    }
}

/// The text of a scalar; anything else is noted.
pub(crate) fn text(node: &Node, what: impl Display, notes: &mut Notes<'_>) -> Option<String> {
    if let Some(text) = node.text() {
        return Some(text.to_owned());
    }
    notes.error(Code::WrongType, &node.span, format!("{what} has to be text, and {} stands here", node.kind()));
    None
}

/// A list's items; anything else is a list of itself.
pub(crate) fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// The first word of a node, where a whole mapping would be too much to underline.
fn start_of(node: &Node) -> std::ops::Range<usize> {
    match &node.value {
        Value::Mapping(entries) => entries.first().map_or(node.span.clone(), |entry| entry.key_span.clone()),
        _ => node.span.clone(),
    }
}

/// Words as `a`, `b` and `c`.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

//! Typed access to the keys of a mapping. Missing and unknown keys and wrong types are reported, and reading goes on
//! with the rest.

use std::{collections::BTreeMap, fmt::Display};

use promptshelf_core::{Code, Severity, nearest};

use super::{
    keys::Keys,
    tree::{Entry, Node, Notes, ScalarKind, Value},
};

#[derive(Clone, Copy)]
pub(crate) struct Table<'n, 'p> {
    pub(crate) node: &'n Node,
    entries: &'n [Entry],
    /// The path prefix of its parts in the spans: `arguments.0.`, or empty at the top of the file.
    prefix: &'p str,
}

impl<'n, 'p> Table<'n, 'p> {
    /// Takes a node as a mapping; reports any other node and returns `None`.
    pub(crate) fn of(
        node: &'n Node,
        prefix: &'p str,
        what: impl Display,
        notes: &mut Notes<'_>,
    ) -> Option<Table<'n, 'p>> {
        match &node.value {
            Value::Mapping(entries) => Some(Table { node, entries, prefix }),
            _ => {
                let message = format!("{what}: expected a mapping, found {}", node.kind());
                notes.error(Code::WrongType, &node.span, message);
                None
            }
        }
    }

    pub(crate) fn entries(&self) -> &'n [Entry] {
        self.entries
    }

    /// Reports every key that is not in a table of keys.
    pub(crate) fn expect(&self, known: &Keys, severity: Severity, place: &str, notes: &mut Notes<'_>) {
        self.refuse_others(&known.names(), severity, place, notes);
    }

    /// Reports every key that is not in `known`.
    pub(crate) fn refuse_others(&self, known: &[&str], severity: Severity, place: &str, notes: &mut Notes<'_>) {
        for entry in self.entries.iter().filter(|entry| !known.contains(&&*entry.key)) {
            let message = format!("unknown key `{}` {place}", entry.key);
            let diagnostic = notes.error(Code::UnknownKey, &entry.key_span, message);
            diagnostic.severity = severity;
            // Such a rule must not leave a prompt open to everyone.
            if self.prefix.is_empty() && !known.contains(&"access") && nearest(&entry.key, ["access"]).is_some() {
                diagnostic.severity = Severity::Error;
                diagnostic.message = format!("`{}` restricts nothing {place}", entry.key);
                diagnostic.help = Some("write the rule in promptshelf.toml, under [[access]]".to_owned());
                continue;
            }
            let known = known.iter().copied();
            diagnostic.help = Some(match nearest(&entry.key, known.clone()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("known keys are {}", list(known)),
            });
        }
    }

    pub(crate) fn path(&self, key: &str) -> String {
        [self.prefix, key].concat()
    }

    /// Returns the node of a key, and stores its span. A key without a value counts as missing.
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

    /// Returns the text of a key. Numbers and booleans are taken literally.
    pub(crate) fn text(&self, key: &str, notes: &mut Notes<'_>) -> Option<String> {
        let node = self.node(key, notes)?;
        text(node, format_args!("`{key}`"), notes)
    }

    /// Returns the text of a key in another program's file: a list or a mapping as it is written.
    pub(crate) fn written(&self, key: &str, notes: &mut Notes<'_>) -> Option<String> {
        let node = self.node(key, notes)?;
        node.text()
            .map_or_else(|| notes.source.text.get(node.span.clone()).map(str::to_owned), |text| Some(text.to_owned()))
    }

    /// Returns a list of texts; a single text is a list of one.
    pub(crate) fn texts(&self, key: &str, notes: &mut Notes<'_>) -> Vec<String> {
        let Some(node) = self.node(key, notes) else { return Vec::new() };
        let path = self.path(key);
        let mut texts = Vec::new();
        for (index, item) in node.items().iter().enumerate() {
            if let Some(text) = text(item, format_args!("an entry of `{key}`"), notes) {
                notes.spans.insert(format!("{path}.{index}"), item.span.clone());
                texts.push(text);
            }
        }
        texts
    }

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

    pub(crate) fn flag(&self, key: &str, notes: &mut Notes<'_>) -> Option<bool> {
        let node = self.node(key, notes)?;
        match &node.value {
            Value::Scalar(scalar) if scalar.kind == ScalarKind::Boolean => {
                Some(scalar.text.eq_ignore_ascii_case("true"))
            }
            _ => {
                let message = format!("`{key}`: expected `true` or `false`, found {}", node.kind());
                let yes_or_no = node.text().filter(|text| {
                    ["yes", "no", "on", "off", "y", "n", "true", "false"].contains(&&*text.to_ascii_lowercase())
                });
                let help = yes_or_no.map(|text| {
                    if text.to_ascii_lowercase().starts_with(['y', 't']) || text == "on" {
                        "write `true`, without quotes".to_owned()
                    } else {
                        "write `false`, without quotes".to_owned()
                    }
                });
                notes.error(Code::WrongType, &node.span, message).help = help;
                None
            }
        }
    }

    /// Returns a whole number of at least `least`.
    pub(crate) fn count(&self, key: &str, least: u64, notes: &mut Notes<'_>) -> Option<u64> {
        let node = self.node(key, notes)?;
        let is_number = matches!(&node.value, Value::Scalar(scalar) if scalar.kind == ScalarKind::Integer);
        let parsed = node.text().filter(|_| is_number).and_then(|text| text.parse::<u64>().ok());
        match parsed {
            Some(number) if number >= least => Some(number),
            _ if is_number => {
                notes.error(Code::InvalidValue, &node.span, format!("`{key}`: expected at least {least}"));
                None
            }
            _ => {
                let message = format!("`{key}`: expected a whole number, found {}", node.kind());
                notes.error(Code::WrongType, &node.span, message);
                None
            }
        }
    }

    pub(crate) fn number(&self, key: &str, notes: &mut Notes<'_>) -> Option<f64> {
        let node = self.node(key, notes)?;
        let is_number = matches!(&node.value, Value::Scalar(scalar) if matches!(scalar.kind, ScalarKind::Integer | ScalarKind::Float));
        let parsed = node.text().filter(|_| is_number).and_then(|text| text.parse::<f64>().ok());
        match parsed.filter(|number| number.is_finite()) {
            Some(number) => Some(number),
            None => {
                let message = format!("`{key}`: expected a number, found {}", node.kind());
                notes.error(Code::WrongType, &node.span, message);
                None
            }
        }
    }

    pub(crate) fn required_text(&self, key: &str, what: &str, notes: &mut Notes<'_>) -> Option<String> {
        if !self.has(key) {
            let entry = self.entries.iter().find(|entry| entry.key == key);
            let span = entry.map_or_else(|| self.node.start(), |entry| entry.key_span.clone());
            notes.error(Code::MissingKey, &span, format!("missing key `{key}` in {what}"));
            return None;
        }
        self.text(key, notes)
    }
}

/// Returns the text of a scalar; reports any other node.
pub(crate) fn text(node: &Node, what: impl Display, notes: &mut Notes<'_>) -> Option<String> {
    if let Some(text) = node.text() {
        return Some(text.to_owned());
    }
    notes.error(Code::WrongType, &node.span, format!("{what}: expected text, found {}", node.kind()));
    None
}

/// Formats words as `a`, `b` and `c`.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

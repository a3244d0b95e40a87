//! What a file format's parser gives, before it means anything: scalars, lists
//! and mappings, each with its place in the file.
//!
//! YAML and TOML become the same tree, so that an argument is understood by
//! the same code wherever it is written.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use promptshelf_core::{Code, Diagnostic, Location, SourceText};

/// A value and its bytes in the file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// One key of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) node: Node,
}

/// A scalar as its author wrote it. Its text is kept beside its kind, because
/// `version: 1.10` is meant as it stands and not as a number.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) kind: ScalarKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Null,
    Boolean,
    Integer,
    Float,
    Text,
}

impl Node {
    /// What stands there, in words for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind {
                ScalarKind::Null => "nothing",
                ScalarKind::Boolean => "true or false",
                ScalarKind::Integer | ScalarKind::Float => "a number",
                ScalarKind::Text => "text",
            },
            Value::List(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.kind == ScalarKind::Null)
    }

    /// The source text of a scalar that holds something.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) if scalar.kind != ScalarKind::Null => Some(&scalar.text),
            _ => None,
        }
    }

    /// The node as JSON, for values that are passed on as they are. Numbers
    /// that JSON has no room for become text.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Scalar(scalar) => match scalar.kind {
                ScalarKind::Null => serde_json::Value::Null,
                ScalarKind::Boolean => (scalar.text.eq_ignore_ascii_case("true")).into(),
                ScalarKind::Integer => match scalar.text.parse::<i64>() {
                    Ok(number) => number.into(),
                    Err(_) => scalar.text.clone().into(),
                },
                ScalarKind::Float => match scalar.text.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
                    Some(number) => number.into(),
                    None => scalar.text.clone().into(),
                },
                ScalarKind::Text => scalar.text.clone().into(),
            },
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Mapping(entries) => serde_json::Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect(),
            ),
        }
    }
}

/// Collects everything that is wrong with one file, and where its parts stand.
pub(crate) struct Notes<'s> {
    pub(crate) source: &'s Arc<SourceText>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Spans by path, such as `arguments.0.default`.
    pub(crate) spans: BTreeMap<String, Range<usize>>,
    /// Lines that could not be read, and so may have said anything.
    pub(crate) left_out: Vec<Range<usize>>,
}

impl<'s> Notes<'s> {
    pub(crate) fn new(source: &'s Arc<SourceText>) -> Notes<'s> {
        Notes { source, diagnostics: Vec::new(), spans: BTreeMap::new(), left_out: Vec::new() }
    }

    pub(crate) fn location(&self, span: &Range<usize>) -> Location {
        Location::new(self.source, span.clone())
    }

    /// Notes an error. The diagnostic can be given more to say.
    pub(crate) fn error(&mut self, code: Code, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.note(Diagnostic::error(code, self.location(span), message))
    }

    pub(crate) fn warning(&mut self, code: Code, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.note(Diagnostic::warning(code, self.location(span), message))
    }

    /// Says what to do about what was noted last.
    pub(crate) fn help(&mut self, help: &str) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.help = Some(help.to_owned());
        }
    }

    fn note(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        let index = self.diagnostics.len();
        self.diagnostics.push(diagnostic);
        &mut self.diagnostics[index]
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

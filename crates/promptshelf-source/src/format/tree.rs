//! The syntax tree of a file: scalars, lists and mappings, each with its span.
//!
//! YAML and TOML are parsed to the same tree, so that an argument is read by the same code in every format.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use promptshelf_core::{Code, Diagnostic, Location, SourceText};

/// A value and its position in the file.
#[derive(Clone, Debug)]
pub struct Node {
    /// Bytes of the file.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value of YAML or TOML.
#[derive(Clone, Debug)]
pub enum Value {
    /// A single value.
    Scalar(Scalar),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the file's order.
    Mapping(Vec<Entry>),
}

/// One key of a mapping.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Bytes of the key in the file.
    pub key_span: Range<usize>,
    /// Its value.
    pub node: Node,
}

/// A scalar in its author's spelling. The text is stored besides the kind, because `version: 1.10` is not the number
/// 1.1.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The source text, without quotation marks and with escapes resolved.
    pub text: String,
    /// The type by which YAML 1.2 or TOML reads it.
    pub kind: ScalarKind,
}

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number with a fraction or an exponent.
    Float,
    /// Everything else.
    Text,
}

impl Node {
    /// Returns the kind of value in words for a message, such as `a list`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
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

    pub(crate) fn child(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            Value::List(items) => items.get(key.parse::<usize>().ok()?),
            Value::Scalar(_) => None,
        }
    }

    pub(crate) fn take(&mut self, path: &[&str]) -> Option<Range<usize>> {
        let (last, parents) = path.split_last()?;
        let mut node = self;
        for key in parents {
            let Value::Mapping(entries) = &mut node.value else { return None };
            node = &mut entries.iter_mut().find(|entry| entry.key == **key)?.node;
        }
        let Value::Mapping(entries) = &mut node.value else { return None };
        let index = entries.iter().position(|entry| entry.key == **last)?;
        Some(entries.remove(index).key_span)
    }

    /// Returns the span of a mapping's first key, or of any other value: underlining a whole mapping would be too much.
    pub(crate) fn start(&self) -> Range<usize> {
        match &self.value {
            Value::Mapping(entries) => entries.first().map_or(self.span.clone(), |entry| entry.key_span.clone()),
            _ => self.span.clone(),
        }
    }

    /// Returns whether the value is missing or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.kind == ScalarKind::Null)
    }

    /// Returns the text of a scalar; `None` for null, lists and mappings.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) if scalar.kind != ScalarKind::Null => Some(&scalar.text),
            _ => None,
        }
    }

    /// Returns the items of a list; any other value counts as a list of one.
    #[must_use]
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// Converts the value to JSON. Numbers that JSON cannot represent become text.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
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

/// Collects the diagnostics of one file, and the positions of its parts.
#[derive(Debug)]
pub struct Notes<'s> {
    /// The file.
    pub source: &'s Arc<SourceText>,
    /// Everything found so far.
    pub diagnostics: Vec<Diagnostic>,
    /// Spans by path, such as `arguments.0.default`.
    pub(crate) spans: BTreeMap<String, Range<usize>>,
    /// Lines that could not be parsed, so that their content is unknown.
    pub(crate) left_out: Vec<Range<usize>>,
}

impl<'s> Notes<'s> {
    /// Starts with nothing found.
    #[must_use]
    pub fn new(source: &'s Arc<SourceText>) -> Notes<'s> {
        Notes { source, diagnostics: Vec::new(), spans: BTreeMap::new(), left_out: Vec::new() }
    }

    /// Returns a location in the file.
    #[must_use]
    pub fn location(&self, span: &Range<usize>) -> Location {
        Location::new(self.source, span.clone())
    }

    /// Adds an error and returns it for further details.
    pub fn error(&mut self, code: Code, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.note(Diagnostic::error(code, self.location(span), message))
    }

    /// Adds a warning and returns it for further details.
    pub fn warning(&mut self, code: Code, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.note(Diagnostic::warning(code, self.location(span), message))
    }

    /// Sets the help of the diagnostic that was added last.
    pub fn help(&mut self, help: &str) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.help = Some(help.to_owned());
        }
    }

    fn note(&mut self, diagnostic: Diagnostic) -> &mut Diagnostic {
        let index = self.diagnostics.len();
        self.diagnostics.push(diagnostic);
        &mut self.diagnostics[index]
    }

    /// Returns whether any diagnostic is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

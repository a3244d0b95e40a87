//! Values of arguments: [`Value`], [`Bindings`] and [`Variables`].

use std::{borrow::Cow, collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

/// A boxed future that can be sent to another thread; the result of closures in definitions.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Values of a URI template's variables, or of arguments filled in so far.
pub type Variables = BTreeMap<String, String>;

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, a day, or a value of a client that fills in placeholders itself.
    Text(Arc<str>),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Several strings.
    List(Vec<String>),
    /// Any JSON value.
    Json(serde_json::Value),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Boolean(boolean) => write!(f, "{boolean}"),
            Value::List(items) => f.write_str(&items.join(", ")),
            Value::Json(value) => write!(f, "{value}"),
        }
    }
}

impl Value {
    /// Returns the approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        fn json(value: &serde_json::Value) -> usize {
            use serde_json::Value;
            size_of::<Value>()
                + match value {
                    Value::String(text) => text.len(),
                    Value::Array(items) => items.iter().map(json).sum(),
                    Value::Object(members) => members.iter().map(|(key, value)| key.len() + json(value)).sum(),
                    Value::Null | Value::Bool(_) | Value::Number(_) => 0,
                }
        }
        match self {
            Value::Text(text) => text.len(),
            Value::List(items) => items.iter().map(|item| size_of::<String>() + item.len()).sum(),
            Value::Json(value) => json(value),
            Value::Integer(_) | Value::Number(_) | Value::Boolean(_) => size_of::<Value>(),
        }
    }
}

/// Checked values, by argument. Arguments without a value and without a default are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings(pub(crate) Vec<(String, Value)>);

impl Bindings {
    /// Returns an argument's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Returns an argument's value as text; empty without a value.
    #[must_use]
    pub fn text(&self, name: &str) -> Cow<'_, str> {
        match self.get(name) {
            Some(Value::Text(text)) => Cow::Borrowed(text),
            Some(other) => Cow::Owned(other.to_string()),
            None => Cow::Borrowed(""),
        }
    }

    /// Iterates over all arguments with a value, in the order of the prompt's arguments.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    pub(crate) fn size(&self) -> usize {
        self.iter().map(|(_, value)| value.size()).sum()
    }

    /// Returns the values as a caller would send them.
    #[must_use]
    pub fn to_variables(&self) -> Variables {
        let text = |value: &Value| match value {
            // Items can contain commas and line breaks, so joining them would not be reversible.
            Value::List(items) => serde_json::Value::from(items.as_slice()).to_string(),
            other => other.to_string(),
        };
        self.iter().map(|(name, value)| (name.to_owned(), text(value))).collect()
    }
}

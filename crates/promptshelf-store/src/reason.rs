//! Reasons against an operation, for programs and for people who read another language.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

/// A reason against an operation, or a missing condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reason {
    /// The stable name of the kind, such as `approvals`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Cow<'static, str>,
    /// The values of its sentence, by name. Numbers are in decimal digits, lists are separated by `, `.
    #[cfg_attr(feature = "openapi", schema(value_type = HashMap<String, String>))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Cow<'static, str>, String>,
    /// The sentence in English, with the values in it.
    pub text: String,
}

impl Reason {
    /// Creates a reason without values.
    pub fn new(code: &'static str, text: impl Into<String>) -> Reason {
        Reason { code: code.into(), values: BTreeMap::new(), text: text.into() }
    }

    /// Adds a value of the sentence.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Reason {
        self.values.insert(name.into(), value.to_string());
        self
    }

    pub(crate) fn texts(reasons: &[Reason]) -> Vec<String> {
        reasons.iter().map(|reason| reason.text.clone()).collect()
    }
}

//! Errors of editing a configuration file.

use std::fmt;

/// The reason why a file cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditError(pub(super) String);

impl EditError {
    pub(super) fn new(message: impl Into<String>) -> EditError {
        EditError(message.into())
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn not_a_mapping(place: &[&str]) -> EditError {
    EditError::new(format!("`{}` is not a mapping of servers", place.join(".")))
}

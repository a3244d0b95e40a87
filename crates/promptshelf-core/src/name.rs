//! Validated names of prompts.
//!
//! The specification only requires a unique string. Clients and the protocol's HTTP headers accept less: names that
//! would break headers are rejected here; `check` warns about names that some clients change.

use std::{borrow::Borrow, fmt};

/// The largest number of bytes of a name.
pub const MAX_NAME_BYTES: usize = 128;

/// A prompt's name: 1 to [`MAX_NAME_BYTES`] bytes, no control character, no
/// white space.
///
/// ```
/// use promptshelf_core::PromptName;
///
/// assert_eq!(PromptName::new("git-commit").unwrap().as_str(), "git-commit");
/// assert!(PromptName::new("git commit").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PromptName(Box<str>);

/// The reason why a string is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The string is empty.
    #[error("a prompt's name cannot be empty")]
    Empty,
    /// The string is longer than [`MAX_NAME_BYTES`].
    #[error("a prompt's name cannot be longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    /// The string contains a character that no client accepts.
    #[error("a prompt's name cannot contain {0:?}")]
    Character(char),
}

impl PromptName {
    /// Validates a string.
    ///
    /// # Errors
    ///
    /// [`NameError`] with the violated rule.
    pub fn new(name: impl Into<String>) -> Result<PromptName, NameError> {
        let name = name.into();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong);
        }
        match name.chars().find(|c| c.is_control() || c.is_whitespace()) {
            Some(found) => Err(NameError::Character(found)),
            None => Ok(PromptName(name.into_boxed_str())),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether all clients use the name unchanged: it consists of ASCII lower-case letters, digits, `_` and
    /// `-`, without `__`, which some clients use as a separator, and does not begin with `-` as the options of command lines do.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        self.0.len() <= 64
            && !self.0.contains("__")
            && !self.0.starts_with('-')
            && self.0.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
    }
}

impl fmt::Display for PromptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for PromptName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for PromptName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

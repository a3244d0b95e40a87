//! The only way in which a string becomes a prompt's name.
//!
//! The specification asks only that a name is a unique string. What clients
//! really do with it is narrower, so what would break the protocol's own
//! headers is refused here, and what some client would mangle is left to
//! `check` to warn about.

use std::{borrow::Borrow, fmt};

/// The most bytes that a name can have.
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

/// Why a string is no prompt name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is there.
    #[error("a prompt's name cannot be empty")]
    Empty,
    /// It is longer than [`MAX_NAME_BYTES`].
    #[error("a prompt's name cannot be longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    /// It holds a character that no client could take.
    #[error("a prompt's name cannot hold {0:?}")]
    Character(char),
}

impl PromptName {
    /// Checks a string.
    ///
    /// # Errors
    ///
    /// [`NameError`] says what is wrong with it.
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

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether every client keeps the name as it is: ASCII lower-case letters,
    /// digits, `_` and `-`, without `__`, which some use to join names.
    #[must_use]
    pub fn is_portable(&self) -> bool {
        self.0.len() <= 64
            && !self.0.contains("__")
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

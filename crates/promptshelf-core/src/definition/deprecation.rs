//! The deprecation of a prompt.

/// Marks a prompt that should no longer be used. It is served as before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// The reason, or the date of its removal, for people who use the prompt.
    pub message: Option<String>,
    /// The name of the prompt to use instead, in the same library.
    pub replacement: Option<String>,
}

impl Deprecation {
    /// Creates a deprecation with a message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Deprecation {
        Deprecation { message: Some(message.into()), replacement: None }
    }

    /// Sets the name of the prompt to use instead.
    #[must_use]
    pub fn replaced_by(mut self, name: impl Into<String>) -> Deprecation {
        self.replacement = Some(name.into());
        self
    }
}

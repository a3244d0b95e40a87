//! Errors of the language server.

/// The connection with the editor failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageServerError {
    /// The editor closed the connection early, or sent a malformed message.
    #[error("the connection with the editor failed: {0}")]
    Protocol(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Reading or writing failed.
    #[error("cannot exchange messages with the editor: {0}")]
    Io(#[from] std::io::Error),
}

impl LanguageServerError {
    pub(super) fn protocol(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> LanguageServerError {
        LanguageServerError::Protocol(error.into())
    }
}

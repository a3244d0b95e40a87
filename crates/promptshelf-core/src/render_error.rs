//! The error of a rendering, by who can correct it: the caller, the author or the operator.

/// The reason why a prompt could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// Invalid arguments. The message is for the caller.
    #[error("{0}")]
    Rejected(String),
    /// With these arguments the prompt exceeds a limit of the library. The message is for the caller.
    #[error("with these arguments the prompt exceeds a limit of the library: {0}")]
    OverBudget(String),
    /// The template failed with these or with all values, so its author has to correct it. The text is for the log.
    #[error("{0}")]
    TemplateFailed(String),
    /// The rendering was stopped; see [`Interrupt`](crate::Interrupt).
    #[error("the rendering was interrupted")]
    Interrupted,
    /// The prompt cannot be rendered now: another server has it and does not answer, or it took too long. The message is
    /// for the caller.
    #[error("{0}")]
    Unavailable(String),
    /// An internal failure, which callers must not see. The text is for the log.
    #[error("{0}")]
    Failed(String),
}

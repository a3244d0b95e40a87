//! The error of a rendering.

/// Why a prompt could not be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// These arguments cannot be used. The sentence is for the caller.
    #[error("{0}")]
    Rejected(String),
    /// With these arguments the prompt would be larger than the library
    /// allows. The sentence is for the caller.
    #[error("with these arguments the prompt would take more than the library allows: {0}")]
    OverBudget(String),
    /// The template cannot work with these values, or with any: only its
    /// author can tell. The text is for the log.
    #[error("{0}")]
    Stumbled(String),
    /// Something failed that is no caller's business; the text is for the log.
    #[error("{0}")]
    Failed(String),
}

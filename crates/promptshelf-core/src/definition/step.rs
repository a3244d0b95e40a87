//! Declarations of the steps of a guided prompt.

/// One step of a guided prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepDefinition {
    /// The number that arguments refer to as `step`. Steps are taken in this order.
    pub number: u32,
    /// The key of the form in requests and responses.
    pub key: Option<String>,
    /// The message above the form.
    pub message: Option<String>,
    /// A page to open instead of a form (`https:`).
    pub url: Option<String>,
    /// The effect on the prompt if the person declines or cancels.
    pub decline: Decline,
}

/// The effect on a prompt if the person does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decline {
    /// The prompt is cancelled.
    #[default]
    Stop,
    /// The prompt continues with defaults, and without values that have none.
    Continue,
}

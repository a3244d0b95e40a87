//! Declarations of the steps of a guided prompt.

/// What an author says about one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepDefinition {
    /// Which step: what arguments name as their `step`. Steps are taken in this order.
    pub number: u32,
    /// The key under which the form travels.
    pub key: Option<String>,
    /// What the person reads above the form.
    pub message: Option<String>,
    /// A page to open instead of a form (`https:`).
    pub url: Option<String>,
    /// What becomes of the prompt when the person declines or cancels.
    pub decline: Decline,
}

/// What becomes of a prompt when the person does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decline {
    /// There is no prompt then.
    #[default]
    Stop,
    /// It goes on with defaults, and without what has none.
    Continue,
}

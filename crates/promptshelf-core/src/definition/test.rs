//! Tests of a prompt, written next to it. The test runner is elsewhere; it acts as a caller with access to the
//! embedded resources.

use crate::{content::Role, value::Variables};

/// One test of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestDefinition {
    /// The name of the test.
    pub name: Option<String>,
    /// The values to fill in, as a caller would send them.
    pub arguments: Variables,
    /// Texts that the messages must contain.
    pub contains: Vec<String>,
    /// Texts that the messages must not contain.
    pub not_contains: Vec<String>,
    /// The complete text of the messages.
    pub equals: Option<String>,
    /// The roles of the messages; empty for any.
    pub roles: Vec<Role>,
    /// The kinds of the blocks, message by message, as the protocol's `type` member spells them; empty for any.
    pub kinds: Vec<String>,
    /// A text that the error for these values must contain.
    pub error: Option<String>,
    /// A file next to the prompt with the expected messages.
    pub golden: Option<String>,
    /// Suggestions to request instead of messages.
    pub complete: Option<CompletionTest>,
}

/// The expected completion of an argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletionTest {
    /// The argument.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The other arguments that are filled in.
    pub context: Variables,
    /// Values that must be suggested.
    pub contains: Vec<String>,
    /// Values that must not be suggested.
    pub not_contains: Vec<String>,
}

//! What an author expects of a prompt, written beside it. Running tests is not
//! here: it needs somebody who may read what a prompt embeds.

use crate::{content::Role, value::Variables};

/// One test of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestDefinition {
    /// What the test is called.
    pub name: Option<String>,
    /// The values to fill in, as a caller would send them.
    pub arguments: Variables,
    /// Texts that have to stand in the messages.
    pub contains: Vec<String>,
    /// Texts that must not.
    pub not_contains: Vec<String>,
    /// All that the messages say.
    pub equals: Option<String>,
    /// Who speaks, message by message; empty expects nothing.
    pub roles: Vec<Role>,
    /// The kinds of the blocks, message by message, as the protocol's `type`
    /// member spells them; empty expects nothing.
    pub kinds: Vec<String>,
    /// A text that has to stand in the refusal of these values.
    pub error: Option<String>,
    /// A file beside the prompt that holds what the messages were like.
    pub golden: Option<String>,
    /// Suggestions to ask for instead of messages.
    pub complete: Option<CompletionTest>,
}

/// What an author expects of an argument's completion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletionTest {
    /// The argument.
    pub argument: String,
    /// What has been typed of it.
    pub value: String,
    /// The other arguments that are filled in.
    pub context: Variables,
    /// Values that have to be suggested.
    pub contains: Vec<String>,
    /// Values that must not.
    pub not_contains: Vec<String>,
}

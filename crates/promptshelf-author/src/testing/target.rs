//! The system under test.

use promptshelf_core::{CompletionTest, Message, Prompt, RawArguments};

/// An error of the system under test, as its caller sees it.
pub type TargetError = Box<dyn std::error::Error + Send + Sync>;

/// The system under test: renders prompts and completes arguments, as a server does for its callers.
pub trait TestTarget {
    /// Renders a prompt with the arguments of a test.
    fn render(
        &self,
        prompt: &Prompt,
        arguments: &RawArguments<'_>,
    ) -> impl Future<Output = Result<Vec<Message>, TargetError>>;

    /// Returns the completions of an argument, best first.
    fn complete(
        &self,
        prompt: &Prompt,
        test: &CompletionTest,
    ) -> impl Future<Output = Result<Vec<String>, TargetError>>;
}

//! The service as the target of prompt tests.

use promptshelf_author::testing::{TargetError, TestTarget};
use promptshelf_core::{CompletionTest, Message, Prompt, RawArguments};
use promptshelf_service::{Caller, Reference, Rejection, Service};

/// Runs prompt tests against a service, as its local caller.
#[derive(Clone, Copy, Debug)]
pub struct ServiceTarget<'s>(&'s Service);

impl<'s> ServiceTarget<'s> {
    /// Creates a target for the prompts of a service.
    #[must_use]
    pub fn new(service: &'s Service) -> ServiceTarget<'s> {
        ServiceTarget(service)
    }
}

impl TestTarget for ServiceTarget<'_> {
    async fn render(&self, prompt: &Prompt, arguments: &RawArguments<'_>) -> Result<Vec<Message>, TargetError> {
        let answer = self.0.get(&Caller::local(), prompt.name().as_str(), arguments).await;
        answer.map(|answer| answer.into_value().messages).map_err(|rejection| rejection.lines().into())
    }

    async fn complete(&self, prompt: &Prompt, test: &CompletionTest) -> Result<Vec<String>, TargetError> {
        let reference = Reference::Prompt(prompt.name().as_str());
        let completions =
            self.0.complete(&Caller::local(), reference, &test.argument, &test.value, &test.context).await;
        completions
            .map(|completions| completions.into_value().values)
            .map_err(|rejection: Rejection| rejection.to_string().into())
    }
}

//! Rendering of a prompt into messages.

use super::{
    assemble::assemble,
    checked::{CheckedBody, Prompt, within},
    context::RenderContext,
    part::Part,
};
use crate::{
    content::{BlockFault, Message},
    definition::{PromptFunction, RemoteAnswer, RemoteInput, RemotePrompt, RemoteQuestion},
    render_error::RenderError,
    value::Bindings,
};

impl Prompt {
    /// Returns whether the prompt is an asynchronous function, so that only
    /// [`render_async`](Prompt::render_async) can render it.
    #[must_use]
    pub fn is_async(&self) -> bool {
        match &self.body {
            CheckedBody::Function(function) => !matches!(function, PromptFunction::Sync(_)),
            CheckedBody::Served { prompt, .. } => prompt.is_async(),
            CheckedBody::Template(_) | CheckedBody::Pieces(_) => false,
        }
    }

    /// Returns the prompt of another server that this one mirrors.
    #[must_use]
    pub fn remote(&self) -> Option<&dyn RemotePrompt> {
        match &self.body {
            CheckedBody::Function(PromptFunction::Remote(remote)) => Some(&**remote),
            CheckedBody::Served { prompt, .. } => prompt.remote(),
            _ => None,
        }
    }

    /// Returns whether the prompt is a function, which may have side effects, unlike a template.
    #[must_use]
    pub fn is_function(&self) -> bool {
        match &self.body {
            CheckedBody::Function(_) => true,
            CheckedBody::Served { prompt, .. } => prompt.is_function(),
            CheckedBody::Template(_) | CheckedBody::Pieces(_) => false,
        }
    }

    /// Returns whether a rendering takes a few milliseconds at most, judged by the template and the size of the values.
    #[must_use]
    pub fn is_quick(&self, bindings: &Bindings) -> bool {
        self.is_quick_with(bindings.size())
    }

    fn is_quick_with(&self, value_bytes: usize) -> bool {
        match &self.body {
            CheckedBody::Template(template) => {
                template.is_quick(value_bytes)
                    && self.uses().prompts.values().all(|called| called.is_quick_with(value_bytes))
            }
            CheckedBody::Pieces(_) | CheckedBody::Function(_) => true,
            CheckedBody::Served { prompt, .. } => prompt.is_quick_with(value_bytes),
        }
    }

    /// Renders the messages. Resources of the server are left as
    /// [`Part::Resource`]: the caller decides which of them may be read.
    ///
    /// # Errors
    ///
    /// [`RenderError`], whose variants say who can correct the mistake. An
    /// asynchronous function is [`RenderError::Failed`].
    pub fn render(&self, context: RenderContext<'_>, bindings: &Bindings) -> Result<Vec<Part>, RenderError> {
        match &self.body {
            CheckedBody::Template(_) | CheckedBody::Pieces(_) => assemble(self, bindings, context),
            CheckedBody::Function(PromptFunction::Sync(function)) => checked_messages(function(bindings)?, context),
            CheckedBody::Function(PromptFunction::Async(_) | PromptFunction::Remote(_)) => {
                let message = "an asynchronous prompt was rendered synchronously; use `render_async`";
                Err(RenderError::Failed(message.to_owned()))
            }
            // Its files are those of its part.
            CheckedBody::Served { .. } => {
                Err(RenderError::Failed("a prompt of a joined catalog was rendered without its part".to_owned()))
            }
        }
    }

    /// Renders the messages like [`render`](Prompt::render), and waits for an asynchronous function.
    ///
    /// # Errors
    ///
    /// [`RenderError`], whose variants say who can correct the mistake.
    pub async fn render_async(
        &self,
        context: RenderContext<'_>,
        bindings: &Bindings,
    ) -> Result<Vec<Part>, RenderError> {
        match &self.body {
            CheckedBody::Function(PromptFunction::Async(function)) => {
                checked_messages(function(bindings.clone()).await?, context)
            }
            CheckedBody::Function(PromptFunction::Remote(remote)) => {
                match remote.get(bindings.to_variables(), RemoteInput::default()).await? {
                    RemoteAnswer::Messages(messages) => checked_messages(messages, context),
                    RemoteAnswer::InputRequired(_) => Err(RenderError::Failed("nothing can be asked for here".into())),
                }
            }
            _ => self.render(context, bindings),
        }
    }

    /// Renders a prompt of another server, which can ask for input. Other prompts are rendered like
    /// [`render_async`](Prompt::render_async).
    ///
    /// # Errors
    ///
    /// [`RenderError`], whose variants say who can correct the mistake.
    pub async fn render_remote(
        &self,
        context: RenderContext<'_>,
        bindings: &Bindings,
        input: RemoteInput,
    ) -> Result<Result<Vec<Part>, RemoteQuestion>, RenderError> {
        match &self.body {
            CheckedBody::Function(PromptFunction::Remote(remote)) => {
                match remote.get(bindings.to_variables(), input).await? {
                    RemoteAnswer::Messages(messages) => checked_messages(messages, context).map(Ok),
                    RemoteAnswer::InputRequired(question) => Ok(Err(question)),
                }
            }
            _ => self.render_async(context, bindings).await.map(Ok),
        }
    }
}

/// Checks the messages of a function: number, size, URIs and types.
fn checked_messages(messages: Vec<Message>, context: RenderContext<'_>) -> Result<Vec<Part>, RenderError> {
    let budget = &context.policy.budget;
    within(messages.len(), budget.messages, "messages")?;
    let size = messages.iter().map(|message| message.content.size()).sum();
    within(size, budget.output_bytes.saturating_add(budget.attachment_bytes), "bytes")?;
    for (number, message) in (1..).zip(&messages) {
        match message.content.fault() {
            None => {}
            Some(BlockFault::Value(fault)) => return Err(RenderError::Rejected(fault)),
            Some(BlockFault::Prompt(fault)) => {
                return Err(RenderError::Failed(format!("its message {number} has {fault}")));
            }
        }
    }
    Ok(messages.into_iter().map(Part::Message).collect())
}

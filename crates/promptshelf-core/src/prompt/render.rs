//! Rendering of a prompt into messages.

use std::{fmt, sync::Arc};

use super::{
    assemble::assemble,
    checked::{CheckedBody, Prompt, within},
};
use crate::{
    content::{Annotations, BlockFault, Message, MimeType, Role},
    definition::{Policy, PromptFunction, RemoteAnswer, RemoteInput, RemotePrompt, RemoteQuestion},
    interrupt::Interrupt,
    library_files::{LibraryFiles, References},
    render_error::RenderError,
    resource::Resources,
    template::Remaining,
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

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A complete message.
    Message(Message),
    /// A resource of this server to be read and embedded here.
    Resource {
        /// The role of the message.
        role: Role,
        /// The URI of the resource.
        uri: String,
        /// The URI to show instead, if the author sets one.
        shown_as: Option<Arc<str>>,
        /// The MIME type, if the author sets one.
        mime_type: Option<MimeType>,
        /// Audience and priority (MCP `annotations`).
        annotations: Annotations,
    },
}

/// The limits, files and resources of the catalog that a prompt is rendered with; see
/// [`Catalog::render_context`](crate::Catalog::render_context).
#[derive(Clone, Copy, Debug)]
pub struct RenderContext<'c> {
    pub(crate) policy: &'c Policy,
    pub(crate) files: &'c LibraryFiles,
    pub(crate) references: &'c References,
    pub(crate) resources: &'c Resources,
    pub(crate) interrupt: Option<&'c Interrupt>,
    pub(crate) permission: Option<&'c dyn ReadPermission>,
}

/// Decides which contents a rendering may use. A content that may not be read is treated as one that does not exist.
pub trait ReadPermission: fmt::Debug + Sync {
    /// Returns whether the content may be read.
    fn may_read(&self, name: ContentName<'_>) -> bool;
}

/// The name of a content that a template uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentName<'a> {
    /// A path inside the library.
    Path(&'a str),
    /// A URI.
    Uri(&'a str),
}

impl<'c> RenderContext<'c> {
    /// Restricts the rendering to contents that may be read. Without a permission everything can be used.
    #[must_use]
    pub fn with_permission(self, permission: &'c dyn ReadPermission) -> RenderContext<'c> {
        RenderContext { permission: Some(permission), ..self }
    }

    pub(crate) fn may_read(&self, name: ContentName<'_>) -> bool {
        self.permission.is_none_or(|permission| permission.may_read(name))
    }

    /// Lets `interrupt` stop the rendering, with [`RenderError::Interrupted`](crate::RenderError::Interrupted).
    #[must_use]
    pub fn interruptible(self, interrupt: &'c Interrupt) -> RenderContext<'c> {
        RenderContext { interrupt: Some(interrupt), ..self }
    }

    pub(crate) fn remaining(&self) -> Remaining {
        Remaining { interrupt: self.interrupt.cloned(), ..Remaining::of(&self.policy.budget) }
    }
}

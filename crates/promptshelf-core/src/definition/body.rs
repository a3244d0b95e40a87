//! The body of a prompt: a template, text pieces, or code.

use std::{fmt, ops::Range, sync::Arc};

use super::remote::RemotePrompt;
use crate::{
    content::{Message, Role},
    render_error::RenderError,
    value::{Bindings, BoxFuture},
};

/// The body of a prompt.
#[derive(Clone, Debug)]
pub enum Body {
    /// A template: a range of the origin's text.
    Template {
        /// Bytes of the origin's text.
        range: Range<usize>,
    },
    /// Texts and placeholders for arguments, from formats without a template language. The texts are never
    /// interpreted.
    Pieces(Vec<BodyPiece>),
    /// Code.
    Function(PromptFunction),
}

/// A part of a body without a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPiece {
    /// Text that is printed unchanged.
    Text(String),
    /// The value of an argument; empty if it has none.
    Argument(String),
    /// The role of the following parts.
    Role(Role),
    /// A file of the library.
    Attach {
        /// Its path inside the library.
        path: String,
        /// The text used if the library has no such file.
        otherwise: String,
        /// Bytes of the origin's text.
        span: Range<usize>,
    },
}

/// A prompt's body in code.
#[derive(Clone)]
#[non_exhaustive]
pub enum PromptFunction {
    /// A function that returns at once.
    Sync(Arc<SyncPromptFunction>),
    /// A function that returns a future.
    Async(Arc<AsyncPromptFunction>),
    /// A prompt of another server.
    Remote(Arc<dyn RemotePrompt>),
}

/// The type of a function in [`PromptFunction::Sync`].
pub type SyncPromptFunction = dyn Fn(&Bindings) -> Result<Vec<Message>, RenderError> + Send + Sync;

/// The type of a function in [`PromptFunction::Async`].
pub type AsyncPromptFunction = dyn Fn(Bindings) -> BoxFuture<'static, Result<Vec<Message>, RenderError>> + Send + Sync;

impl PromptFunction {
    /// Returns whether both are the same function object.
    pub(super) fn is_same(&self, other: &PromptFunction) -> bool {
        match (self, other) {
            (PromptFunction::Sync(a), PromptFunction::Sync(b)) => Arc::ptr_eq(a, b),
            (PromptFunction::Async(a), PromptFunction::Async(b)) => Arc::ptr_eq(a, b),
            (PromptFunction::Remote(a), PromptFunction::Remote(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for PromptFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PromptFunction")
    }
}

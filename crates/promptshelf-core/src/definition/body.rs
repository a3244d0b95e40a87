//! What a prompt says, in the three ways in which it can be written.

use std::{fmt, ops::Range, sync::Arc};

use super::BoxFuture;
use crate::{
    argument::Bindings,
    content::{Message, Role},
    template::RenderError,
};

/// What a prompt says.
#[derive(Clone, Debug)]
pub enum Body {
    /// A template: these bytes of the origin's text.
    Template {
        /// Bytes of the origin's text.
        range: Range<usize>,
    },
    /// Texts with places for arguments between them, as formats without a
    /// template language have them. Nothing in the texts is ever interpreted.
    Pieces(Vec<BodyPiece>),
    /// Code.
    Function(PromptFunction),
}

/// A part of a body that is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyPiece {
    /// Text that comes out as it is.
    Text(String),
    /// The value of an argument; nothing where none was given.
    Argument(String),
    /// From here on somebody else speaks.
    Role(Role),
    /// A file of the library.
    Attach {
        /// Its path inside the library.
        path: String,
        /// What stands in its place when the library has no such file.
        otherwise: String,
        /// Bytes of the origin's text.
        span: Range<usize>,
    },
}

/// A prompt's body in code.
#[derive(Clone)]
pub struct PromptFunction(pub(crate) Arc<PromptFunctionType>);

type PromptFunctionType = dyn Fn(Bindings) -> BoxFuture<'static, Result<Vec<Message>, RenderError>> + Send + Sync;

impl fmt::Debug for PromptFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PromptFunction")
    }
}

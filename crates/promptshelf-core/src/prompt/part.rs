//! The result of a rendering.

use std::sync::Arc;

use crate::content::{Annotations, Message, MimeType, Role};

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

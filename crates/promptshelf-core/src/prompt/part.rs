//! The result of a rendering.

use std::sync::Arc;

use crate::content::{Annotations, Message, MimeType, Role};

/// A message as rendering leaves it.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A message that is complete.
    Message(Message),
    /// A resource of this server to be read and embedded here.
    Resource {
        /// Who speaks.
        role: Role,
        /// Which resource.
        uri: String,
        /// The URI to show in its place, where the author gives one.
        shown_as: Option<Arc<str>>,
        /// The MIME type, where the author gives one.
        mime_type: Option<MimeType>,
        /// Whom it concerns and how much.
        annotations: Annotations,
    },
}

//! Messages and content blocks as a server sent them (specification 2026-07-28, *Server features / Prompts*).
//!
//! A server can send any string as a media type and bytes that are not valid base64. Such a block is kept as far as
//! possible, so that the rest of the answer stays usable.

use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::model as wire;

/// The longest media type that is kept, in bytes.
const MAX_MEDIA_TYPE_BYTES: usize = 256;
const OCTET_STREAM: &str = "application/octet-stream";
const PLAIN_TEXT: &str = "text/plain";

/// The author of a message. MCP has no `system` role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Returns the role as the protocol spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// One message: a role and exactly one block.
///
/// Several blocks of one role are several messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content.
    pub content: ContentBlock,
}

impl Message {
    /// Creates a text message of the user.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Message {
        Message { role: Role::User, content: ContentBlock::text(text) }
    }

    /// Creates a text message of the assistant.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Message {
        Message { role: Role::Assistant, content: ContentBlock::text(text) }
    }

    pub(crate) fn from_wire(message: wire::PromptMessage) -> Message {
        Message { role: Role::from_wire(&message.role), content: ContentBlock::from_wire(message.content) }
    }
}

/// One block of content.
///
/// A block of an unknown kind, or of a message with an unknown role, arrives as a [`Text`](ContentBlock::Text) that names
/// the kind or role.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(Text),
    /// An image.
    Image(Media),
    /// Audio.
    Audio(Media),
    /// A resource whose contents are part of the message.
    Resource(EmbeddedResource),
    /// A reference to a resource of the same server, to be read with [`Client::read`](crate::Client::read).
    Link(ResourceLink),
}

impl ContentBlock {
    /// Creates a text block without annotations.
    #[must_use]
    pub fn text(text: impl Into<String>) -> ContentBlock {
        ContentBlock::Text(Text { text: text.into(), annotations: Annotations::default() })
    }

    /// Returns the block's `type` as the protocol spells it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            ContentBlock::Text(_) => "text",
            ContentBlock::Image(_) => "image",
            ContentBlock::Audio(_) => "audio",
            ContentBlock::Resource(_) => "resource",
            ContentBlock::Link(_) => "resource_link",
        }
    }
}

/// A text block.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The text, unescaped.
    pub text: String,
    /// Audience, priority and age.
    pub annotations: Annotations,
}

/// An image or audio.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The decoded bytes.
    pub data: Vec<u8>,
    /// The media type; `application/octet-stream` if the server sent a malformed one.
    pub mime_type: String,
    /// Audience, priority and age.
    pub annotations: Annotations,
}

/// A resource inside a message.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedResource {
    /// The resource.
    pub contents: ResourceContents,
    /// Audience, priority and age.
    pub annotations: Annotations,
}

/// The contents of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceContents {
    /// The resource's URI.
    pub uri: String,
    /// The media type. Without one from the server: `text/plain` for text, `application/octet-stream` for bytes.
    pub mime_type: String,
    /// The text or the bytes.
    pub body: ResourceBody,
}

/// The payload of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Decoded bytes.
    Blob(Vec<u8>),
}

impl ResourceBody {
    /// Returns the size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            ResourceBody::Text(text) => text.len(),
            ResourceBody::Blob(bytes) => bytes.len(),
        }
    }

    /// Returns whether the payload has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A reference to a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceLink {
    /// The resource's URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its title, for people.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its media type, if the server sent a well-formed one.
    pub mime_type: Option<String>,
    /// Its size in bytes, as the server declared it.
    pub size: Option<u64>,
    /// Audience, priority and age.
    pub annotations: Annotations,
}

/// Hints of a server on how to use a block (MCP `annotations`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    /// The intended readers; empty for all.
    pub audience: Vec<Role>,
    /// Importance from 0.0 (optional) to 1.0 (required); values outside of it are dropped.
    pub priority: Option<f64>,
    /// The time of the last change, as the server wrote it (ISO 8601).
    pub last_modified: Option<String>,
}

impl Role {
    fn from_wire(role: &wire::Role) -> Role {
        match role {
            wire::Role::Assistant => Role::Assistant,
            _ => Role::User,
        }
    }
}

impl ContentBlock {
    fn from_wire(block: wire::ContentBlock) -> ContentBlock {
        match block {
            wire::ContentBlock::Text(text) => {
                ContentBlock::Text(Text { text: text.text, annotations: Annotations::from_wire(text.annotations) })
            }
            wire::ContentBlock::Image(image) => match STANDARD.decode(&image.data) {
                Ok(data) => ContentBlock::Image(Media {
                    data,
                    mime_type: media_type(&image.mime_type).unwrap_or_else(|| OCTET_STREAM.to_owned()),
                    annotations: Annotations::from_wire(image.annotations),
                }),
                Err(_) => invalid_base64("an image", &image.mime_type),
            },
            wire::ContentBlock::Audio(audio) => match STANDARD.decode(&audio.data) {
                Ok(data) => ContentBlock::Audio(Media {
                    data,
                    mime_type: media_type(&audio.mime_type).unwrap_or_else(|| OCTET_STREAM.to_owned()),
                    annotations: Annotations::from_wire(audio.annotations),
                }),
                Err(_) => invalid_base64("audio", &audio.mime_type),
            },
            wire::ContentBlock::Resource(resource) => ContentBlock::Resource(EmbeddedResource {
                contents: ResourceContents::from_wire(resource.resource),
                annotations: Annotations::from_wire(resource.annotations),
            }),
            wire::ContentBlock::ResourceLink(link) => ContentBlock::Link(ResourceLink {
                uri: link.uri,
                name: link.name,
                title: link.title,
                description: link.description,
                mime_type: link.mime_type.as_deref().and_then(media_type),
                size: link.size,
                annotations: Annotations::from_wire(link.annotations),
            }),
            _ => ContentBlock::text("[content of an unknown type]"),
        }
    }
}

impl ResourceContents {
    pub(crate) fn from_wire(contents: wire::ResourceContents) -> ResourceContents {
        let with_default = |mime_type: Option<String>, default: &str| match mime_type {
            Some(mime_type) => media_type(&mime_type).unwrap_or_else(|| OCTET_STREAM.to_owned()),
            None => default.to_owned(),
        };
        match contents {
            wire::ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                ResourceContents { uri, mime_type: with_default(mime_type, PLAIN_TEXT), body: ResourceBody::Text(text) }
            }
            wire::ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => ResourceContents {
                uri,
                mime_type: with_default(mime_type, OCTET_STREAM),
                body: match STANDARD.decode(&blob) {
                    Ok(bytes) => ResourceBody::Blob(bytes),
                    Err(_) => ResourceBody::Text("[contents that are not valid base64]".to_owned()),
                },
            },
            _ => ResourceContents {
                uri: String::new(),
                mime_type: PLAIN_TEXT.to_owned(),
                body: ResourceBody::Text("[contents of an unknown type]".to_owned()),
            },
        }
    }
}

impl Annotations {
    fn from_wire(annotations: Option<wire::Annotations>) -> Annotations {
        let Some(annotations) = annotations else { return Annotations::default() };
        Annotations {
            audience: annotations.audience.unwrap_or_default().iter().map(Role::from_wire).collect(),
            priority: annotations.priority.map(f64::from).filter(|priority| (0.0..=1.0).contains(priority)),
            last_modified: annotations.last_modified.map(|time| time.to_string()),
        }
    }
}

fn invalid_base64(what: &str, mime_type: &str) -> ContentBlock {
    ContentBlock::text(format!("[{what}, {mime_type}, that is not valid base64]"))
}

/// Returns the media type if it has the shape `type/subtype` with optional parameters.
fn media_type(text: &str) -> Option<String> {
    let (kind, subtype) = text.split_once('/')?;
    let is_printable = text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    let is_token = |part: &str| !part.is_empty() && !part.contains([' ', '"', '/', ',', ';', '<', '>', '(', ')']);
    let subtype = subtype.split(';').next().unwrap_or_default().trim_end();
    let fits = text.len() <= MAX_MEDIA_TYPE_BYTES && is_printable && is_token(kind) && is_token(subtype);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_media_types_are_kept() {
        for text in ["image/png", "text/plain; charset=utf-8", "application/vnd.api+json"] {
            assert_eq!(media_type(text).as_deref(), Some(text));
        }
        for text in ["", "png", "/png", "image/", "image/ ;x", "text/\u{1b}[2J", "a b/c", "image/<script>"] {
            assert_eq!(media_type(text), None, "{text}");
        }
    }
}

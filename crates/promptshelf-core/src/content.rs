//! Content of prompt messages: roles, messages and content blocks.
//!
//! These are the five kinds of block that a prompt message can contain in any protocol revision (specification
//! 2026-07-28, *Server features / Prompts*). The wire format, and the replacement of kinds that an older revision
//! does not define, are deliberately elsewhere.

use std::sync::{Arc, OnceLock};

use crate::{timestamp::Timestamp, uri_template::label_fault};
use base64::Engine as _;

/// A `_meta` object: keys as `[prefix/]name`, values any JSON.
pub type Meta = serde_json::Map<String, serde_json::Value>;

/// The role of a message. MCP defines no `system` role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Returns the protocol's spelling of the role.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }

    /// Parses the protocol's spelling; `None` for anything but `user` and `assistant`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Role> {
        match text {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            _ => None,
        }
    }
}

/// One message: a role and exactly one block. Several blocks of one role are several messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// The content.
    pub content: ContentBlock,
}

impl Message {
    /// Creates a text message of the role `user`.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Message {
        Message { role: Role::User, content: ContentBlock::text(text) }
    }

    /// Creates a text message of the role `assistant`.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Message {
        Message { role: Role::Assistant, content: ContentBlock::text(text) }
    }
}

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentBlock {
    /// Text.
    Text(Text),
    /// An image.
    Image(Media),
    /// Audio. Not defined in revision 2024-11-05.
    Audio(Media),
    /// A resource whose contents are part of the message.
    Resource(EmbeddedResource),
    /// A resource that the client may read. Defined since revision 2025-06-18.
    Link(Box<ResourceLink>),
}

impl ContentBlock {
    /// Creates a text block without annotations.
    #[must_use]
    pub fn text(text: impl Into<String>) -> ContentBlock {
        ContentBlock::Text(Text { text: text.into(), annotations: Annotations::default() })
    }

    /// Returns the block's kind, as the protocol's `type` member spells it.
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

    /// Returns the reason why the block must not be sent: an invalid URI, a URI that clients might run, or a type of
    /// another kind. This validates the mistakes that a prompt in code can make; the types of the parts exclude the
    /// others.
    pub(crate) fn fault(&self) -> Option<BlockFault> {
        let kind = |fits: bool, media: &Media, what: &str| {
            (!fits).then(|| BlockFault::Prompt(format!("{what} of the type {}", media.mime_type.as_str())))
        };
        let (annotations, fault) = match self {
            ContentBlock::Text(text) => (&text.annotations, None),
            ContentBlock::Image(image) => {
                (&image.annotations, kind(image.mime_type.0.starts_with("image/"), image, "an image"))
            }
            ContentBlock::Audio(audio) => (&audio.annotations, kind(audio.mime_type.is_audio(), audio, "audio")),
            ContentBlock::Resource(resource) => {
                (&resource.annotations, label_fault(&resource.contents.uri).map(BlockFault::Value))
            }
            ContentBlock::Link(link) => {
                let target = link.target.as_ref().map(|target| &target.uri);
                let uri = std::iter::once(&link.uri).chain(target).find_map(|uri| label_fault(uri));
                let icon = || link.icons.iter().find_map(Icon::fault).map(BlockFault::Prompt);
                (&link.annotations, uri.map(BlockFault::Value).or_else(icon))
            }
        };
        let priority = annotations.priority.filter(|priority| !(0.0..=1.0).contains(priority));
        fault.or_else(|| priority.map(|priority| BlockFault::Prompt(format!("a priority of {priority}"))))
    }

    /// Returns the number of bytes of the block's payload, before encoding.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            ContentBlock::Text(text) => text.text.len(),
            ContentBlock::Image(media) | ContentBlock::Audio(media) => media.data.len(),
            ContentBlock::Resource(resource) => resource.contents.body.len(),
            ContentBlock::Link(link) => link.uri.len(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlockFault {
    Value(String),
    /// The prompt's author has to correct it.
    Prompt(String),
}

/// A text block.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The text, exactly as it is sent.
    pub text: String,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
}

/// An image or audio block.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The bytes.
    pub data: Blob,
    /// Their MIME type.
    pub mime_type: MimeType,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
}

/// A resource whose contents are part of the message.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedResource {
    /// The contents of the resource.
    pub contents: ResourceContents,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
}

/// The contents of a resource: its URI, its MIME type and its body.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContents {
    /// The resource's URI (RFC 3986).
    pub uri: Arc<str>,
    /// The body's MIME type. Always set, although it is optional in the schema: the specification's page on prompts
    /// requires it for embedded resources.
    pub mime_type: MimeType,
    /// Text or bytes.
    pub body: ResourceBody,
}

/// A resource's body: either text or bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceBody {
    /// Text.
    Text(Arc<str>),
    /// Bytes.
    Blob(Blob),
}

impl ResourceBody {
    /// Returns the number of bytes, before encoding.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            ResourceBody::Text(text) => text.len(),
            ResourceBody::Blob(blob) => blob.len(),
        }
    }

    /// Returns whether the body is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A link to a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceLink {
    /// The resource's URI (RFC 3986).
    pub uri: Arc<str>,
    /// The programmatic name.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The MIME type, if known.
    pub mime_type: Option<MimeType>,
    /// The size in bytes before encoding, if known.
    pub size: Option<u64>,
    /// The icons.
    pub icons: Vec<Icon>,
    /// Audience and priority (MCP `annotations`).
    pub annotations: Annotations,
    /// The linked contents, if available: revisions without links receive them embedded.
    pub target: Option<Arc<ResourceContents>>,
}

/// Hints for the client about a block or a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    /// The intended audience; empty for any.
    pub audience: Vec<Role>,
    /// The importance, from 0 (least) to 1 (required).
    pub priority: Option<f64>,
    /// The time of the last change. Defined since revision 2025-06-18.
    pub last_modified: Option<Timestamp>,
}

impl Annotations {
    /// Returns whether no annotation is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.audience.is_empty() && self.priority.is_none() && self.last_modified.is_none()
    }
}

/// An icon of a prompt, a resource or the server. Defined since revision 2025-11-25.
#[derive(Clone, Debug, PartialEq)]
pub struct Icon {
    /// An `https:` URL or a `data:` URI.
    pub src: Arc<str>,
    /// Its MIME type.
    pub mime_type: Option<MimeType>,
    /// Sizes as `WxH`, or `any`.
    pub sizes: Vec<String>,
    /// The background that the icon is drawn for.
    pub theme: Option<Theme>,
    /// The path of the library file that `src` was made from. Access rules for the file apply to the icon.
    pub file: Option<Arc<str>>,
}

impl Icon {
    /// Creates an icon from an `https:` URL or a `data:` URI.
    #[must_use]
    pub fn new(src: impl Into<Arc<str>>) -> Icon {
        Icon { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None, file: None }
    }

    /// Returns the reason why clients cannot load it: a scheme other than `https:` and `data:`, an invalid URI, or
    /// data that is not an image or does not decode (RFC 2397).
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        match crate::uri_template::scheme(&self.src).as_deref() {
            Some("https") => None,
            Some("data") => data_fault(&self.src["data:".len()..]).map(str::to_owned),
            Some(other) => Some(format!("an icon's `src` cannot use the scheme `{other}:`")),
            None => Some("an icon's `src` is not a URI".to_owned()),
        }
    }
}

fn data_fault(data: &str) -> Option<&'static str> {
    let Some((head, data)) = data.split_once(',') else {
        return Some("an icon's data URI has no comma before its data");
    };
    let (mime_type, is_base64) = match head.rsplit_once(';') {
        Some((mime_type, encoding)) if encoding.eq_ignore_ascii_case("base64") => (mime_type, true),
        _ => (head, false),
    };
    if !MimeType::parse(mime_type).is_some_and(|mime_type| mime_type.0.starts_with("image/")) {
        return Some("an icon's data must be an image");
    }
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    let decodes = !is_base64 || base64::engine::general_purpose::STANDARD.decode(bytes).is_ok();
    (!decodes).then_some("an icon's data is not valid base64")
}

/// The background that an icon is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Theme {
    /// Returns the protocol's spelling of the theme.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// A valid MIME type (RFC 6838), such as `text/markdown`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MimeType(Arc<str>);

impl MimeType {
    /// Parses a `type/subtype` with optional parameters; `None` if malformed. Stored in lower case, because letter
    /// case has no meaning in a type (RFC 6838, section 4.2).
    #[must_use]
    pub fn parse(text: &str) -> Option<MimeType> {
        let parsed: mime::Mime = text.parse().ok()?;
        let (essence, parameters) = text.split_at(text.find(';').unwrap_or(text.len()));
        (parsed.type_() != mime::STAR && parsed.subtype() != mime::STAR)
            .then(|| MimeType(Arc::from(format!("{}{parameters}", essence.to_ascii_lowercase()))))
    }

    /// Returns `text/plain`.
    #[must_use]
    pub fn plain_text() -> MimeType {
        MimeType(Arc::from("text/plain"))
    }

    /// Returns `application/octet-stream`.
    #[must_use]
    pub fn octet_stream() -> MimeType {
        MimeType(Arc::from("application/octet-stream"))
    }

    /// Returns the type as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is an image type that clients show as an image. SVG is excluded, because it can contain
    /// scripts; it is sent as text.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.0.starts_with("image/") && !self.0.starts_with("image/svg")
    }

    /// Returns whether it is an audio type.
    #[must_use]
    pub fn is_audio(&self) -> bool {
        self.0.starts_with("audio/")
    }
}

/// Shared bytes, encoded at most once.
///
/// A blob is stored in a catalog and sent with every answer that contains it, so its Base64 form (RFC 4648, section
/// 4) is cached on first use.
#[derive(Clone)]
pub struct Blob(Arc<BlobInner>);

struct BlobInner {
    bytes: Vec<u8>,
    base64: OnceLock<String>,
}

impl Blob {
    /// Creates a blob from bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Blob {
        Blob(Arc::new(BlobInner { bytes: bytes.into(), base64: OnceLock::new() }))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// Returns whether the blob is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.bytes.is_empty()
    }

    /// Returns the bytes in Base64, with padding, without line breaks.
    #[must_use]
    pub fn base64(&self) -> &str {
        self.0.base64.get_or_init(|| base64::engine::general_purpose::STANDARD.encode(&self.0.bytes))
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Blob) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.bytes == other.0.bytes
    }
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({} bytes)", self.len())
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

impl ResourceBody {
    /// Returns a number that changes with the body, comparable within one run of a program.
    #[must_use]
    pub fn digest(&self) -> u64 {
        match self {
            ResourceBody::Text(text) => hash(text.as_bytes()),
            ResourceBody::Blob(blob) => hash(blob.bytes()),
        }
    }
}

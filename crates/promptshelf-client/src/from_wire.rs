//! Messages as a server sends them become ours.
//!
//! A foreign server can call its MIME types what it likes and send what is no
//! base64; a block like that is kept as far as it can be, and not a reason to
//! lose the others.

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_core::{
    Annotations, Blob, ContentBlock, EmbeddedResource, Media, Message, MimeType, ResourceBody, ResourceContents,
    ResourceLink, Role, Text,
};
use rmcp::model as wire;

pub(super) fn message(message: wire::PromptMessage) -> Message {
    Message { role: role(&message.role), content: block(message.content) }
}

fn role(role: &wire::Role) -> Role {
    match role {
        wire::Role::Assistant => Role::Assistant,
        _ => Role::User,
    }
}

fn block(block: wire::ContentBlock) -> ContentBlock {
    match block {
        wire::ContentBlock::Text(text) => {
            ContentBlock::Text(Text { text: text.text, annotations: annotations(text.annotations) })
        }
        wire::ContentBlock::Image(image) => match STANDARD.decode(&image.data) {
            Ok(bytes) => ContentBlock::Image(media(bytes, &image.mime_type, image.annotations)),
            Err(_) => unreadable("an image", &image.mime_type),
        },
        wire::ContentBlock::Audio(audio) => match STANDARD.decode(&audio.data) {
            Ok(bytes) => ContentBlock::Audio(media(bytes, &audio.mime_type, audio.annotations)),
            Err(_) => unreadable("audio", &audio.mime_type),
        },
        wire::ContentBlock::Resource(resource) => ContentBlock::Resource(EmbeddedResource {
            contents: contents(resource.resource),
            annotations: annotations(resource.annotations),
        }),
        wire::ContentBlock::ResourceLink(link) => ContentBlock::Link(Box::new(ResourceLink {
            uri: link.uri.into(),
            name: link.name,
            title: link.title,
            description: link.description,
            mime_type: link.mime_type.as_deref().and_then(MimeType::parse),
            size: link.size,
            icons: Vec::new(),
            annotations: annotations(link.annotations),
            target: None,
        })),
        _ => ContentBlock::text("[a kind of content that this program does not know]"),
    }
}

fn unreadable(what: &str, mime_type: &str) -> ContentBlock {
    ContentBlock::text(format!("[{what}, {mime_type}, that is not valid base64]"))
}

fn media(bytes: Vec<u8>, mime_type: &str, given: Option<wire::Annotations>) -> Media {
    Media { data: Blob::new(bytes), mime_type: mime(mime_type), annotations: annotations(given) }
}

fn mime(text: &str) -> MimeType {
    MimeType::parse(text).unwrap_or_else(MimeType::octet_stream)
}

pub(super) fn contents(contents: wire::ResourceContents) -> ResourceContents {
    match contents {
        wire::ResourceContents::TextResourceContents { uri, mime_type, text, .. } => ResourceContents {
            uri: uri.into(),
            mime_type: mime_type.as_deref().map_or_else(MimeType::plain_text, mime),
            body: ResourceBody::Text(text.into()),
        },
        wire::ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime_type = mime_type.as_deref().map_or_else(MimeType::octet_stream, mime);
            let body = match STANDARD.decode(&blob) {
                Ok(bytes) => ResourceBody::Blob(Blob::new(bytes)),
                Err(_) => ResourceBody::Text("[contents that are not valid base64]".into()),
            };
            ResourceContents { uri: uri.into(), mime_type, body }
        }
        _ => ResourceContents {
            uri: "".into(),
            mime_type: MimeType::plain_text(),
            body: ResourceBody::Text("[a kind of contents that this program does not know]".into()),
        },
    }
}

fn annotations(given: Option<wire::Annotations>) -> Annotations {
    let Some(given) = given else { return Annotations::default() };
    Annotations {
        audience: given.audience.unwrap_or_default().iter().map(role).collect(),
        priority: given.priority.map(f64::from).filter(|priority| (0.0..=1.0).contains(priority)),
        last_modified: given.last_modified.and_then(|time| time.parse().ok()),
    }
}

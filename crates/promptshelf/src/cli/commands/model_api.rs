//! Converts messages to the formats of model APIs: OpenAI's Chat Completions and Anthropic's Messages.
//!
//! Content that an API does not accept is described in a text and noted, so that nothing is dropped silently.

use base64::{Engine, engine::general_purpose::STANDARD};
use promptshelf_client::{ContentBlock, Media, Message, ResourceBody, ResourceContents, Role};
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Converted {
    /// The value of `messages`.
    pub(crate) messages: Value,
    pub(crate) notes: Vec<String>,
}

/// `messages` for OpenAI's Chat Completions API.
pub(crate) fn openai(messages: &[Message]) -> Converted {
    convert(messages, "OpenAI's API", openai_media)
}

/// `messages` for Anthropic's Messages API.
pub(crate) fn anthropic(messages: &[Message]) -> Converted {
    let mut converted = convert(messages, "Anthropic's API", anthropic_media);
    if messages.first().is_some_and(|message| message.role == Role::Assistant) {
        converted.notes.push("Anthropic's API requires that the first message has the role user".to_owned());
    }
    if messages.last().is_some_and(|message| message.role == Role::Assistant) {
        converted.notes.push("Anthropic's newer models reject a conversation that ends with the assistant".to_owned());
    }
    converted
}

/// Formats binary content for an API; `None` if the API does not accept the media type.
type MediaFormat = fn(kind: Kind, mime_type: &str, base64: &str, name: &str) -> Option<Value>;

#[derive(Clone, Copy)]
enum Kind {
    Image,
    Audio,
    Document,
}

fn openai_media(kind: Kind, mime_type: &str, base64: &str, name: &str) -> Option<Value> {
    let data_uri = || format!("data:{mime_type};base64,{base64}");
    match (kind, mime_type) {
        (Kind::Image, "image/png" | "image/jpeg" | "image/webp" | "image/gif") => {
            Some(json!({ "type": "image_url", "image_url": { "url": data_uri() } }))
        }
        (Kind::Audio, "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave") => {
            Some(json!({ "type": "input_audio", "input_audio": { "data": base64, "format": "wav" } }))
        }
        (Kind::Audio, "audio/mpeg" | "audio/mp3") => {
            Some(json!({ "type": "input_audio", "input_audio": { "data": base64, "format": "mp3" } }))
        }
        (Kind::Document, "application/pdf") => {
            Some(json!({ "type": "file", "file": { "filename": name, "file_data": data_uri() } }))
        }
        _ => None,
    }
}

fn anthropic_media(kind: Kind, mime_type: &str, base64: &str, name: &str) -> Option<Value> {
    let source = || json!({ "type": "base64", "media_type": mime_type, "data": base64 });
    match (kind, mime_type) {
        (Kind::Image, "image/png" | "image/jpeg" | "image/webp" | "image/gif") => {
            Some(json!({ "type": "image", "source": source() }))
        }
        (Kind::Document, "application/pdf") => Some(json!({ "type": "document", "source": source(), "title": name })),
        _ => None,
    }
}

/// Joins consecutive messages of one role: MCP has one block per message, both APIs accept several.
fn convert(messages: &[Message], api: &str, media: MediaFormat) -> Converted {
    let mut turns: Vec<(Role, Vec<Value>)> = Vec::new();
    let mut notes = Vec::new();
    for message in messages {
        // Both APIs accept only text from the assistant.
        let part = match (&message.content, message.role) {
            (ContentBlock::Text(block), _) => text(&block.text),
            (ContentBlock::Image(block), Role::User) => media_part(Kind::Image, block, api, media, &mut notes),
            (ContentBlock::Audio(block), Role::User) => media_part(Kind::Audio, block, api, media, &mut notes),
            (ContentBlock::Image(block) | ContentBlock::Audio(block), Role::Assistant) => {
                let what = message.content.kind();
                notes.push(format!("{api} accepts no {what} from the assistant: the message only names it"));
                text(&format!("[{what}, {}]", block.mime_type))
            }
            (ContentBlock::Resource(block), role) => resource(&block.contents, role, api, media, &mut notes),
            (ContentBlock::Link(link), _) => {
                notes.push(format!("{api} cannot read {}: the message only names it", link.uri));
                text(&format!("{}: {}", link.title.as_deref().unwrap_or(&link.name), link.uri))
            }
            (other, _) => {
                let kind = other.kind();
                notes.push(format!("{api} accepts no {kind}: the message only names it"));
                text(&format!("[{kind}]"))
            }
        };
        match turns.last_mut() {
            Some((role, parts)) if *role == message.role => parts.push(part),
            _ => turns.push((message.role, vec![part])),
        }
    }
    let messages = turns.into_iter().map(|(role, mut parts)| {
        let content = match parts.as_mut_slice() {
            // Both APIs accept a single text as a string.
            [only] if only["type"] == "text" => only["text"].take(),
            _ => Value::Array(parts),
        };
        json!({ "role": role.as_str(), "content": content })
    });
    Converted { messages: messages.collect(), notes }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn media_part(kind: Kind, block: &Media, api: &str, media: MediaFormat, notes: &mut Vec<String>) -> Value {
    let mime_type = &block.mime_type;
    media(kind, essence(mime_type), &STANDARD.encode(&block.data), "").unwrap_or_else(|| {
        notes.push(format!("{api} accepts no {mime_type}: the message only names it"));
        text(&format!("[{mime_type}, {} bytes]", block.data.len()))
    })
}

fn resource(contents: &ResourceContents, role: Role, api: &str, media: MediaFormat, notes: &mut Vec<String>) -> Value {
    let mime_type = &contents.mime_type;
    match &contents.body {
        ResourceBody::Text(body) => {
            // Longer than any fence in the text, so that the text cannot end it.
            let fence = "`".repeat(longest_run(body, '`').max(2) + 1);
            let line_end = if body.ends_with('\n') { "" } else { "\n" };
            text(&format!("{} ({mime_type}):\n\n{fence}\n{body}{line_end}{fence}", contents.uri))
        }
        ResourceBody::Blob(blob) => {
            let essence = essence(mime_type);
            let kind = match () {
                () if contents.mime_type.starts_with("image/") => Kind::Image,
                () if contents.mime_type.starts_with("audio/") => Kind::Audio,
                () => Kind::Document,
            };
            let name = contents.uri.rsplit('/').next().unwrap_or_default();
            let part = if role == Role::User { media(kind, essence, &STANDARD.encode(blob), name) } else { None };
            part.unwrap_or_else(|| {
                notes.push(format!("{api} accepts no {mime_type} here: the message only names {}", contents.uri));
                text(&format!("[{}, {mime_type}, {} bytes]", contents.uri, blob.len()))
            })
        }
    }
}

/// Returns a media type without its parameters.
fn essence(mime_type: &str) -> &str {
    mime_type.split(';').next().unwrap_or_default().trim()
}

pub(super) fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use promptshelf_client::{Annotations, EmbeddedResource, ResourceLink};

    use super::*;

    fn media(mime_type: &str) -> Media {
        Media { data: vec![1, 2, 3], mime_type: mime_type.to_owned(), annotations: Annotations::default() }
    }

    fn user(content: ContentBlock) -> Message {
        Message { role: Role::User, content }
    }

    fn embedded(uri: &str, mime_type: &str, body: ResourceBody) -> ContentBlock {
        let contents = ResourceContents { uri: uri.to_owned(), mime_type: mime_type.to_owned(), body };
        ContentBlock::Resource(EmbeddedResource { contents, annotations: Annotations::default() })
    }

    fn everything() -> Vec<Message> {
        let link = ResourceLink {
            uri: "https://example.com/guide".to_owned(),
            name: "guide".to_owned(),
            title: Some("The guide".to_owned()),
            description: None,
            mime_type: None,
            size: None,
            annotations: Annotations::default(),
        };
        vec![
            Message::user("Look:"),
            user(ContentBlock::Image(media("image/png"))),
            user(ContentBlock::Audio(media("audio/x-wav"))),
            user(embedded("docs://style", "text/markdown", ResourceBody::Text("Say ```why```.".to_owned()))),
            user(embedded("library:///a/paper.pdf", "application/pdf", ResourceBody::Blob(vec![4]))),
            user(ContentBlock::Link(link)),
            Message::assistant("I see."),
        ]
    }

    #[test]
    fn openai_parts() {
        let converted = openai(&everything());
        insta::assert_snapshot!(crate::output::pretty_json(&converted.messages));
        assert_eq!(converted.notes, ["OpenAI's API cannot read https://example.com/guide: the message only names it"]);
    }

    #[test]
    fn anthropic_parts() {
        let converted = anthropic(&everything());
        insta::assert_snapshot!(crate::output::pretty_json(&converted.messages));
        assert_eq!(converted.notes.len(), 3, "{:?}", converted.notes);
        assert!(converted.notes[0].contains("no audio/x-wav"));
        assert!(converted.notes[2].contains("ends with the assistant"));
    }

    #[test]
    fn single_text_is_a_string() {
        let messages = json!([{ "role": "user", "content": "Hi" }]);
        assert_eq!(openai(&[Message::user("Hi")]).messages, messages);
        assert_eq!(anthropic(&[Message::user("Hi")]).messages, messages);
    }
}

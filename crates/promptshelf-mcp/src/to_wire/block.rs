//! Encoding of messages and content blocks for each revision.

use std::borrow::Cow;

use promptshelf_core::{Annotations, ContentBlock, Media, Message, ResourceBody, ResourceContents, ResourceLink, Role};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{WireResource, text};
use crate::{json::write, revision::Revision};

/// Maximum size of a link's target that is embedded for a revision without links, in bytes.
pub(crate) const MAX_EMBEDDED_BYTES: usize = 64 << 10;

/// Encodes the messages of a prompt as in the result of `prompts/get` of the newest revision.
///
/// ```
/// use promptshelf_core::{ContentBlock, Message, Role};
///
/// let hello = Message { role: Role::User, content: ContentBlock::text("Hello") };
/// let json = promptshelf_mcp::messages_json(&[hello]);
/// assert_eq!(json.get(), r#"[{"role":"user","content":{"type":"text","text":"Hello"}}]"#);
/// ```
#[must_use]
pub fn messages_json(messages: &[Message]) -> Box<RawValue> {
    let mut out = Vec::from(b"[");
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_message(message, Revision::V2026_07_28, &mut out);
    }
    out.push(b']');
    // Only text in UTF-8 is written, and all of it is JSON.
    let json = String::from_utf8(out).ok().and_then(|json| RawValue::from_string(json).ok());
    json.unwrap_or_else(|| RawValue::NULL.to_owned())
}

pub(super) fn write_message(message: &Message, revision: Revision, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"role":"#);
    text::write_plain(out, message.role.as_str());
    out.extend_from_slice(br#","content":"#);
    WireBlock::new(&message.content, revision).write(out);
    out.push(b'}');
}

pub(super) fn write_block(block: &ContentBlock, revision: Revision, out: &mut Vec<u8>) {
    WireBlock::new(block, revision).write(out);
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireBlock<'a> {
    Text(WireText<'a>),
    Image(WireMedia<'a>),
    Audio(WireMedia<'a>),
    Resource(WireEmbedded<'a>),
    ResourceLink(WireResource<'a>),
}

#[derive(Serialize)]
struct WireText<'a> {
    text: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<WireAnnotations>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireMedia<'a> {
    data: &'a str,
    mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<WireAnnotations>,
}

#[derive(Serialize)]
struct WireEmbedded<'a> {
    resource: WireContents<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<WireAnnotations>,
}

impl<'a> WireBlock<'a> {
    fn new(block: &'a ContentBlock, revision: Revision) -> WireBlock<'a> {
        match block {
            ContentBlock::Text(text) => WireBlock::Text(WireText {
                text: Cow::Borrowed(&text.text),
                annotations: WireAnnotations::new(&text.annotations, revision),
            }),
            ContentBlock::Image(media) => WireBlock::Image(WireMedia::new(media, revision)),
            ContentBlock::Audio(media) if revision.has_audio() => WireBlock::Audio(WireMedia::new(media, revision)),
            ContentBlock::Audio(media) => WireBlock::Text(audio_as_text(media, revision)),
            ContentBlock::Resource(resource) => {
                let annotations = WireAnnotations::new(&resource.annotations, revision);
                WireBlock::Resource(WireEmbedded { resource: WireContents::new(&resource.contents), annotations })
            }
            ContentBlock::Link(link) if revision.has_links() => {
                WireBlock::ResourceLink(WireResource::linked(link, revision))
            }
            ContentBlock::Link(link) => replaced_link(link, revision),
        }
    }
}

impl WireBlock<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            WireBlock::Text(block) => {
                out.extend_from_slice(br#"{"type":"text","text":"#);
                text::write(out, &block.text);
                close(block.annotations.as_ref(), out);
            }
            WireBlock::Image(media) => media.write("image", out),
            WireBlock::Audio(media) => media.write("audio", out),
            WireBlock::Resource(_) | WireBlock::ResourceLink(_) => write(out, self),
        }
    }
}

fn close(annotations: Option<&WireAnnotations>, out: &mut Vec<u8>) {
    if let Some(annotations) = annotations {
        out.extend_from_slice(br#","annotations":"#);
        write(out, annotations);
    }
    out.push(b'}');
}

/// Replaces audio for a revision without it by a description.
fn audio_as_text(media: &Media, revision: Revision) -> WireText<'static> {
    let text = format!(
        "[Audio of type {} and {} bytes, which this protocol revision does not support]",
        media.mime_type.as_str(),
        media.data.len()
    );
    WireText { text: Cow::Owned(text), annotations: WireAnnotations::new(&media.annotations, revision) }
}

/// Replaces a link for a revision without them: by its target if that is available and small, otherwise by its name.
fn replaced_link(link: &ResourceLink, revision: Revision) -> WireBlock<'_> {
    let annotations = WireAnnotations::new(&link.annotations, revision);
    match link.target.as_deref().filter(|target| target.body.len() <= MAX_EMBEDDED_BYTES) {
        Some(target) => WireBlock::Resource(WireEmbedded { resource: WireContents::new(target), annotations }),
        None => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            WireBlock::Text(WireText { text: Cow::Owned(format!("[{name}]({})", link.uri)), annotations })
        }
    }
}

impl<'a> WireMedia<'a> {
    fn new(media: &'a Media, revision: Revision) -> WireMedia<'a> {
        WireMedia {
            data: media.data.base64(),
            mime_type: media.mime_type.as_str(),
            annotations: WireAnnotations::new(&media.annotations, revision),
        }
    }

    fn write(&self, kind: &'static str, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"type":"#);
        text::write_plain(out, kind);
        out.extend_from_slice(br#","data":"#);
        text::write_plain(out, self.data);
        out.extend_from_slice(br#","mimeType":"#);
        text::write(out, self.mime_type);
        close(self.annotations.as_ref(), out);
    }
}

/// The contents of a resource: either text or Base64.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireContents<'a> {
    uri: &'a str,
    mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ForeignMeta<'a>>,
}

#[derive(Serialize)]
struct ForeignMeta<'a> {
    #[serde(rename = "dev.promptshelf/source")]
    source: &'a str,
    #[serde(rename = "dev.promptshelf/foreign")]
    is_foreign: bool,
}

impl<'a> WireContents<'a> {
    pub(super) fn of_source(self, source: Option<&'a str>) -> WireContents<'a> {
        WireContents { meta: source.map(|source| ForeignMeta { source, is_foreign: true }), ..self }
    }

    pub(super) fn new(contents: &'a ResourceContents) -> WireContents<'a> {
        let (text, blob) = match &contents.body {
            ResourceBody::Text(text) => (Some(&**text), None),
            ResourceBody::Blob(blob) => (None, Some(blob.base64())),
        };
        WireContents { uri: &contents.uri, mime_type: contents.mime_type.as_str(), text, blob, meta: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireAnnotations {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    audience: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "short")]
    priority: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
}

impl WireAnnotations {
    /// Returns the annotations that the revision has, unless none is left.
    pub(super) fn new(annotations: &Annotations, revision: Revision) -> Option<WireAnnotations> {
        let last_modified = annotations.last_modified.filter(|_| revision.has_titles());
        let empty = annotations.audience.is_empty() && annotations.priority.is_none() && last_modified.is_none();
        (!empty).then(|| WireAnnotations {
            audience: annotations.audience.iter().map(|role| Role::as_str(*role)).collect(),
            priority: annotations.priority,
            last_modified: last_modified.map(|time| time.to_string()),
        })
    }
}

/// Writes `1` and not `1.0`, as authors do.
#[expect(clippy::ref_option, reason = "serde hands the field over like this")]
fn short<S: Serializer>(priority: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match priority {
        Some(priority) if *priority == 0.0 || *priority == 1.0 => serializer.serialize_u8(u8::from(*priority == 1.0)),
        other => other.serialize(serializer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_matches_serde() {
        let annotations =
            || Some(WireAnnotations { audience: vec!["user", "assistant"], priority: Some(0.5), last_modified: None });
        let media = |annotations| WireMedia { data: "QUJD", mime_type: "image/png", annotations };
        let text = |annotations| WireText { text: "a \"line\"\n".into(), annotations };
        for block in [
            WireBlock::Text(text(None)),
            WireBlock::Text(text(annotations())),
            WireBlock::Image(media(None)),
            WireBlock::Image(media(annotations())),
            WireBlock::Audio(media(annotations())),
        ] {
            let mut out = Vec::new();
            block.write(&mut out);
            assert_eq!(String::from_utf8(out).expect("UTF-8"), serde_json::to_string(&block).expect("JSON"));
        }
    }
}

//! The possible structure of a prompt's messages, derived without rendering.

use promptshelf_core::{Body, Location, MimeType, Prompt, SourceText, TemplateAnalysis, TemplateUse};
/// The structure of a prompt's messages, with locations in its file. Both branches of a condition count: a client
/// that cannot handle one of them is incompatible with the prompt.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// The call that starts a second message.
    pub(super) second: Option<Location>,
    pub(super) assistant: Option<Location>,
    /// The call that starts the last message, if that is one of the assistant.
    pub(super) ends_with_assistant: Option<Location>,
    /// Blocks that are not text.
    pub(super) blocks: Vec<(Kind, Location)>,
}

/// The kind of a block that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Image,
    Audio,
    Resource,
    Link,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::Image => "an image",
            Kind::Audio => "audio",
            Kind::Resource => "a resource",
            Kind::Link => "a link",
        }
    }
}

impl Shape {
    pub(super) fn of(prompt: &Prompt) -> Shape {
        let mut shape = Shape::default();
        if let Body::Template { range } = &prompt.definition().body {
            let source = prompt.source();
            shape.take(prompt, source, range.clone(), true);
            for partial in prompt.includes() {
                shape.take(prompt, partial, 0..partial.text.len(), false);
            }
        }
        shape
    }

    fn take(
        &mut self,
        prompt: &Prompt,
        source: &std::sync::Arc<SourceText>,
        range: std::ops::Range<usize>,
        is_body: bool,
    ) {
        let text = source.text.get(range.clone()).unwrap_or_default();
        let template = TemplateAnalysis::of(text);
        let mut is_first = is_body;
        for call in &template.calls {
            let place = Location::new(source, range.start + call.span.start..range.start + call.span.end);
            let written = text.get(call.span.clone()).unwrap_or_default();
            let inside = |used: &&TemplateUse| call.span.contains(&used.span.start);
            match &*call.name {
                "role" => {
                    let opens = is_first && is_blank(&text[..call.span.start]);
                    let is_assistant = written.contains("assistant");
                    if is_assistant {
                        self.assistant.get_or_insert_with(|| place.clone());
                    }
                    if is_body {
                        self.ends_with_assistant = is_assistant.then(|| place.clone());
                    }
                    if !opens {
                        self.second.get_or_insert(place);
                    }
                }
                "link" => {
                    self.second.get_or_insert_with(|| place.clone());
                    self.blocks.push((Kind::Link, place));
                }
                _ => {
                    let target = template.attached.iter().find(inside);
                    let file = target.and_then(|target| prompt.attachment(&target.name));
                    let kind = file.map_or(Kind::Resource, |file| kind_of(&file.mime_type));
                    self.second.get_or_insert_with(|| place.clone());
                    self.blocks.push((kind, place));
                }
            }
            is_first = false;
        }
    }
}

fn kind_of(mime_type: &MimeType) -> Kind {
    if mime_type.is_image() {
        Kind::Image
    } else if mime_type.is_audio() {
        Kind::Audio
    } else {
        Kind::Resource
    }
}

/// Returns whether the text before a call produces no output: it is empty, or the braces of the call.
fn is_blank(before: &str) -> bool {
    before.trim().trim_end_matches("{{-").trim_end_matches("{{").trim().is_empty()
}

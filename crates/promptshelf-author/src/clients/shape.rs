//! What a prompt can come out as, told without rendering it.

use promptshelf_core::{Body, Location, MimeType, Prompt, SourceText, TemplateAnalysis, TemplateUse};
/// The structure of a prompt's messages, with where in the file it comes from.
/// Everything that may come is taken to come: a client that stumbles over one
/// branch of a condition stumbles.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// What makes a second message.
    pub(super) second: Option<Location>,
    /// Where the assistant speaks.
    pub(super) assistant: Option<Location>,
    /// Where the assistant begins to speak last.
    pub(super) ends_with_assistant: Option<Location>,
    /// Blocks that are no text.
    pub(super) blocks: Vec<(Kind, Location)>,
}

/// What a block that is no text is.
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
            Kind::Image => "a picture",
            Kind::Audio => "a sound",
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

/// Whether a template's beginning makes no text: the braces of a call, or nothing.
fn is_blank(before: &str) -> bool {
    before.trim().trim_end_matches("{{-").trim_end_matches("{{").trim().is_empty()
}

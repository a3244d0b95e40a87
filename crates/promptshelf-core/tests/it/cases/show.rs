//! Readable forms of messages, contents and diagnostics.

use promptshelf_core::{
    Annotations, ContentBlock, Diagnostic, Media, Part, RenderError, ResourceBody, ResourceContents, ResourceLink,
};

/// A longer text is shown by its length.
const MAX_SHOWN_BYTES: usize = 2_000;

pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) -> String {
    let mut lines = String::new();
    for diagnostic in diagnostics {
        let severity = if diagnostic.is_error() { "error" } else { "warning" };
        let Diagnostic { location, code, message, .. } = diagnostic;
        lines.push_str(&format!("{location}: {severity}[{code}]: {}\n", text(message)));
        for (place, label) in &diagnostic.related {
            lines.push_str(&format!("  {place}: {label}\n"));
        }
        if let Some(help) = &diagnostic.help {
            lines.push_str(&format!("  help: {}\n", text(help)));
        }
    }
    lines
}

pub(crate) fn render_error(error: &RenderError) -> String {
    let kind = match error {
        RenderError::Rejected(_) => "rejected",
        RenderError::OverBudget(_) => "over budget",
        RenderError::TemplateFailed(_) => "template failed",
        _ => "failed",
    };
    format!("{kind}: {error}\n")
}

pub(crate) fn part(part: &Part) -> String {
    match part {
        Part::Message(message) => format!("{}: {}", message.role.as_str(), block(&message.content)),
        Part::Resource { role, uri, shown_as, mime_type, annotations } => {
            let label = shown_as.as_ref().map(|label| format!(" as {label}")).unwrap_or_default();
            let mime = mime_type.as_ref().map(|mime| format!(" {}", mime.as_str())).unwrap_or_default();
            format!("{}: what {uri} holds{label}{mime}{}\n", role.as_str(), hints(annotations))
        }
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(content) => format!("text{}\n{}", hints(&content.annotations), lines(&content.text)),
        ContentBlock::Image(content) => format!("image {}", media(content)),
        ContentBlock::Audio(content) => format!("audio {}", media(content)),
        ContentBlock::Resource(content) => {
            format!("resource{} {}", hints(&content.annotations), contents(&content.contents))
        }
        ContentBlock::Link(content) => format!("link {}", link(content)),
    }
}

fn media(media: &Media) -> String {
    format!("{}, {} bytes{}\n", media.mime_type.as_str(), media.data.len(), hints(&media.annotations))
}

fn link(link: &ResourceLink) -> String {
    let ResourceLink { uri, name, title, description, mime_type, size, annotations, target, .. } = link;
    let mut shown = format!("{} named {}{}\n", text(uri), text(name), hints(annotations));
    let optional = [
        ("title", title.clone()),
        ("description", description.clone()),
        ("type", mime_type.as_ref().map(|mime| mime.as_str().to_owned())),
        ("size", size.map(|size| size.to_string())),
        ("target", target.as_ref().map(|target| target.uri.to_string())),
    ];
    for (key, value) in optional {
        shown.push_str(&value.map(|value| format!("  {key}: {}\n", text(&value))).unwrap_or_default());
    }
    shown
}

pub(crate) fn contents(contents: &ResourceContents) -> String {
    let head = format!("{} {}", text(&contents.uri), contents.mime_type.as_str());
    match &contents.body {
        ResourceBody::Text(body) => format!("{head}\n{}", lines(body)),
        ResourceBody::Blob(blob) => format!("{head}, {} bytes\n", blob.len()),
    }
}

fn hints(annotations: &Annotations) -> String {
    let Annotations { audience, priority, last_modified } = annotations;
    let mut hints = Vec::new();
    if !audience.is_empty() {
        hints.push(format!("for {}", audience.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(" and ")));
    }
    hints.extend(priority.map(|priority| format!("priority {priority}")));
    hints.extend(last_modified.map(|time| format!("of {time}")));
    if hints.is_empty() { String::new() } else { format!(" ({})", hints.join(", ")) }
}

fn lines(body: &str) -> String {
    if body.len() > MAX_SHOWN_BYTES {
        return format!("| {}\n", text(body));
    }
    body.split('\n').map(|line| format!("| {}\n", text(line)).replace("| \n", "|\n")).collect()
}

/// Returns a text with invisible characters spelt out.
pub(crate) fn text(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{fdd0}'..='\u{fdef}')
    };
    if text.len() > MAX_SHOWN_BYTES {
        return format!("… {} bytes …", text.len());
    }
    text.chars().map(|c| if hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

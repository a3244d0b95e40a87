//! Attachments that exceed the limit, or have no known type.

use super::body_of;
use promptshelf_core::{Catalog, Code, Diagnostic, Location, Prompt, ResourceBody, TemplateAnalysis};

pub(super) fn check(prompt: &Prompt, catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    if prompt.attachments().next().is_none() {
        return;
    }
    let body = body_of(prompt).map(|range| (prompt.source(), range));
    let partials = prompt.includes().map(|partial| (partial, 0..partial.text.len()));
    let limit = catalog.policy().budget.attachment_bytes;
    for (source, range) in body.into_iter().chain(partials) {
        let text = source.text.get(range.clone()).unwrap_or_default();
        let template = TemplateAnalysis::of(text);
        for attached in &template.attached {
            let Some(file) = prompt.attachment(&attached.name) else { continue };
            let place = || Location::new(source, range.start + attached.span.start..range.start + attached.span.end);
            if file.body.len() > limit {
                let message =
                    format!("`{}` has {} bytes; a prompt can attach at most {limit}", attached.name, file.body.len());
                let help = "link to it instead, make it smaller, or raise `attachment-bytes` under [limits]";
                found.push(Diagnostic::error(Code::TooLarge, place(), message).help(help));
            }
            let call = template.calls.iter().find(|call| call.span.contains(&attached.span.start));
            let call = call.and_then(|call| text.get(call.span.clone())).unwrap_or_default();
            if let Some(mime_type) = media_type(call).filter(|_| matches!(file.body, ResourceBody::Text(_))) {
                let message = format!("`{}` is text, and cannot be attached as {mime_type}", attached.name);
                let help = "attach an image or a sound, or remove `mime`";
                found.push(Diagnostic::error(Code::InvalidMedia, place(), message).help(help));
            }
            let is_typed = call.contains("mime");
            if !is_typed && file.mime_type.as_str() == "application/octet-stream" {
                let message = format!("the file type of `{}` is unknown", attached.name);
                let help = "give the file name an extension, or pass the type: attach(…, mime=\"…\")";
                found.push(Diagnostic::warning(Code::UnknownType, place(), message).help(help));
            }
        }
    }
}

/// Returns the type that a call of `attach` sets, if it is one of images or sounds that are not text.
fn media_type(call: &str) -> Option<&str> {
    let (_, after) = call.split_once("mime")?;
    let value = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let mime_type = value[1..].split(quote).next()?;
    let is_media = mime_type.starts_with("image/") && mime_type != "image/svg+xml" || mime_type.starts_with("audio/");
    is_media.then_some(mime_type)
}

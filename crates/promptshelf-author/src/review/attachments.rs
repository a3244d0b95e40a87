//! Attachments that exceed the limit, or have no known type.

use promptshelf_core::{
    Catalog, Code, Diagnostic, Location, Prompt, RawArguments, RenderError, ResourceBody, TemplateAnalysis,
    TemplateUse, Variables,
};

use super::body_of;
use crate::sample::add_samples;

/// The most values of an argument that are tried.
const MAX_CHOICES: usize = 100;

pub(super) fn check(prompt: &Prompt, catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    check_choices(prompt, catalog, found);
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

/// Reports the values of an argument with choices for which the prompt attaches a file that the library leaves out.
fn check_choices(prompt: &Prompt, catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    let Some(range) = body_of(prompt).filter(|_| catalog.left_out_files().next().is_some()) else { return };
    let template = TemplateAnalysis::of(prompt.source().text.get(range.clone()).unwrap_or_default());
    let is_computed = |call: &&TemplateUse| {
        call.name == "attach" && !template.attached.iter().any(|literal| call.span.contains(&literal.span.start))
    };
    let Some(call) = template.calls.iter().find(is_computed) else { return };
    let location = Location::new(prompt.source(), range.start + call.span.start..range.start + call.span.end);
    for argument in prompt.arguments() {
        for choice in argument.choices().iter().take(MAX_CHOICES) {
            let mut values = Variables::from([(argument.name().to_owned(), choice.value.clone())]);
            add_samples(prompt, &mut values);
            let Ok(bindings) = prompt.bind(&RawArguments::from(&values), catalog.policy().value_bytes) else {
                continue;
            };
            let Err(RenderError::Rejected(reason)) = prompt.render(catalog.render_context(), &bindings) else {
                continue;
            };
            if catalog.left_out_files().any(|(path, _)| reason.contains(&format!("`{path}`"))) {
                let message = format!("with {} = `{}`, {reason}", argument.name(), choice.value);
                let help = "make the file smaller, raise `file-bytes` under [limits] in promptshelf.toml, or remove the choice";
                found.push(Diagnostic::error(Code::TooLarge, location.clone(), message).help(help));
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

//! Attachments that no call could send, or that no client could show.

use crate::{
    catalog::Catalog,
    diagnostic::{Code, Diagnostic, Location},
    prompt::Prompt,
    template::Lint,
};

use super::body_of;

pub(super) fn check(prompt: &Prompt, catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    if prompt.uses.attachments.is_empty() {
        return;
    }
    let body = body_of(prompt).map(|range| (prompt.source(), range));
    let partials = prompt.uses.partials.iter().map(|partial| (partial, 0..partial.text.len()));
    let limit = catalog.policy().budget.attachment_bytes;
    for (source, range) in body.into_iter().chain(partials) {
        let text = source.text.get(range.clone()).unwrap_or_default();
        let lint = Lint::of(text);
        for attached in &lint.attached {
            let Some(file) = prompt.uses.attachments.get(&attached.name) else { continue };
            let place = || Location::new(source, range.start + attached.span.start..range.start + attached.span.end);
            if file.body.len() > limit {
                let message =
                    format!("`{}` has {} bytes, and a prompt can attach {limit}", attached.name, file.body.len());
                let help = "link to it instead, make it smaller, or raise `attachment-bytes` under [limits]";
                found.push(Diagnostic::error(Code::TooLarge, place(), message).help(help));
            }
            let call = lint.structure.iter().find(|call| call.span.contains(&attached.span.start));
            let is_typed = call.and_then(|call| text.get(call.span.clone())).is_some_and(|call| call.contains("mime"));
            if !is_typed && file.mime_type.as_str() == "application/octet-stream" {
                let message = format!("nobody can tell what kind of file `{}` is", attached.name);
                let help = "give the file a name with an ending, or say it: attach(…, mime=\"…\")";
                found.push(Diagnostic::warning(Code::UnknownType, place(), message).help(help));
            }
        }
    }
}

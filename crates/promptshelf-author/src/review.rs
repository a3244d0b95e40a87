//! Lints for prompts that can be served and deserve a second look.
//!
//! [`check`](promptshelf_core::check) runs at every load and decides which prompts are served. A review costs more, never
//! prevents serving, and is meant for authors: it looks for secrets, invisible characters, names that are easily
//! confused, unused files, deprecated prompts in use and missing descriptions.

use promptshelf_core::{Body, Catalog, Diagnostic, Prompt, ResourceBody, SourceText};
use std::{collections::HashSet, sync::Arc};

mod arguments;
mod attachments;
mod bare;
mod deprecated;
mod names;
mod partials;
mod secrets;
mod texts;

/// Reviews a checked library. `found` are the diagnostics of the check; files of prompts that are missing from the
/// catalog because of an error are reviewed through these diagnostics.
///
/// ```
/// use promptshelf_author::review;
/// use promptshelf_core::{Code, Definitions, PromptDefinition, check};
///
/// let hidden = PromptDefinition::template("hidden", "Be kind.\u{202e}").description("Asks for kindness");
/// let checked = check(Definitions::from_iter([hidden]), None);
/// assert_eq!(review(&checked.catalog, &checked.diagnostics)[0].code, Code::InvisibleCharacter);
/// ```
#[must_use]
pub fn review(catalog: &Catalog, found: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut review = Vec::new();
    let mut seen = HashSet::new();
    let mut is_new = |source: &Arc<SourceText>| !source.text.is_empty() && seen.insert(source.path.clone());
    for prompt in catalog.prompts().iter() {
        for source in std::iter::once(prompt.source()).chain(prompt.includes()).filter(|source| is_new(source)) {
            texts::check(source, &mut review);
            secrets::check(source, &mut review);
        }
        arguments::check(prompt, &mut review);
        attachments::check(prompt, catalog, &mut review);
        bare::check(prompt, &mut review);
        deprecated::check(prompt, catalog, &mut review);
    }
    for diagnostic in found.iter().filter(|diagnostic| is_new(&diagnostic.location.source)) {
        texts::check(&diagnostic.location.source, &mut review);
        secrets::check(&diagnostic.location.source, &mut review);
    }
    for prompt in catalog.prompts().iter() {
        for file in prompt.attachments().map(|(_, file)| file) {
            // Attachments go to models verbatim. Invisible characters are accepted there, because the files may
            // belong to other projects; secrets are not.
            if let ResourceBody::Text(text) = &file.body {
                let source = SourceText::new(&file.path, &**text);
                if is_new(&source) {
                    secrets::check(&source, &mut review);
                }
            }
        }
    }
    names::check(catalog.prompts(), &mut review);
    if !found.iter().any(Diagnostic::is_error) {
        partials::check(catalog, &mut review);
    }
    // Do not repeat a diagnostic of the check in other words.
    review.retain(|new| !found.iter().any(|old| old.code == new.code && old.location == new.location));
    review.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    review
}

/// Returns the bytes of the prompt's template in its file.
pub(crate) fn body_of(prompt: &Prompt) -> Option<std::ops::Range<usize>> {
    match &prompt.definition().body {
        Body::Template { range } => Some(range.clone()),
        Body::Pieces(_) | Body::Function(_) => None,
    }
}

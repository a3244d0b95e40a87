//! Lints for prompts that can be served and deserve a second look.
//!
//! [`check`](promptshelf_core::check) runs at every load and decides which prompts are served. A review costs more, never
//! prevents serving, and is meant for authors: it looks for secrets, invisible characters, names that are easily
//! confused, unused files, deprecated prompts in use and missing descriptions.

use crate::fixes;
use promptshelf_core::{Body, Catalog, Code, Diagnostic, Interrupt, Prompt, ResourceBody, SourceText};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

mod arguments;
mod attachments;
mod bare;
mod deprecated;
mod names;
mod partials;
pub(crate) mod secrets;
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
    Reviewer::default().review(catalog, found)
}

/// Returns everything that is wrong with a checked library: the diagnostics of the check and those of the review, by file
/// and position. Every program that shows or counts the mistakes of a library uses this list.
#[must_use]
pub fn findings(catalog: &Catalog, found: &[Diagnostic]) -> Vec<Diagnostic> {
    Reviewer::default().findings(catalog, found)
}

/// Reviews a library again and again. Diagnostics of unchanged texts and prompts are kept from one review to the next, so
/// that one edit in a large library costs one prompt.
#[derive(Default)]
pub struct Reviewer {
    texts: Known<SourceText>,
    prompts: Known<Prompt>,
}

/// Diagnostics by the address of the item that they are about. The item stays, so that no other one gets its address.
type Known<T> = HashMap<usize, (Arc<T>, Box<[Diagnostic]>)>;

/// Moves the diagnostics of an item to `now`; those of an unknown item are found by `check`.
fn known<'n, T>(
    before: &mut Known<T>,
    now: &'n mut Known<T>,
    item: &Arc<T>,
    check: impl FnOnce(&mut Vec<Diagnostic>),
) -> &'n [Diagnostic] {
    let address = Arc::as_ptr(item).addr();
    let (_, found) = now.entry(address).or_insert_with(|| {
        before.remove(&address).unwrap_or_else(|| {
            let mut found = Vec::new();
            check(&mut found);
            (Arc::clone(item), found.into())
        })
    });
    found
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reviewer({} prompts)", self.prompts.len())
    }
}

impl Reviewer {
    /// Returns the same as [`findings`](fn@findings).
    pub fn findings(&mut self, catalog: &Catalog, found: &[Diagnostic]) -> Vec<Diagnostic> {
        let mut all = found.to_vec();
        all.extend(self.review(catalog, found));
        // The keys that a reader has not found can have the description.
        let is_unread = |finding: &&Diagnostic| {
            !finding.is_error() && (finding.code == Code::Syntax || finding.message.starts_with(fixes::LATE))
        };
        let unread: HashSet<String> =
            all.iter().filter(is_unread).map(|finding| finding.location.source.path.clone()).collect();
        all.retain(|finding| {
            finding.code != Code::MissingDescription || !unread.contains(&finding.location.source.path)
        });
        // Nothing else is known of a text that cannot be read.
        let encoded: HashSet<String> = all
            .iter()
            .filter(|finding| finding.code == Code::NotUtf8)
            .map(|finding| finding.location.source.path.clone())
            .collect();
        all.retain(|finding| finding.is_error() || !encoded.contains(&finding.location.source.path));
        all.iter_mut().for_each(fixes::advise);
        all.sort_by(|a, b| position(a).cmp(&position(b)));
        all
    }

    /// Reviews like [`review`]. A file with an error is reviewed as the text that it is now, and not as the prompt that it
    /// was before.
    pub(crate) fn review(&mut self, catalog: &Catalog, found: &[Diagnostic]) -> Vec<Diagnostic> {
        Interrupt::bounded(|| self.review_bounded(catalog, found))
    }

    fn review_bounded(&mut self, catalog: &Catalog, found: &[Diagnostic]) -> Vec<Diagnostic> {
        let mut review = Vec::new();
        // Growing them would take longer than filling them.
        let mut seen: HashSet<&str> = HashSet::with_capacity(self.texts.len());
        let (mut texts, mut prompts) =
            (Known::with_capacity(self.texts.len()), Known::with_capacity(self.prompts.len()));
        let of_text = |source: &Arc<SourceText>, found: &mut Vec<Diagnostic>| {
            texts::check(source, found);
            secrets::check(source, found);
        };
        let errors = found.iter().filter(|found| found.is_error());
        let broken: HashSet<&str> = errors.map(|found| &*found.location.source.path).collect();
        let current = || catalog.prompts().iter().filter(|prompt| !broken.contains(&*prompt.source().path));
        for prompt in current() {
            for source in std::iter::once(prompt.source()).chain(prompt.includes()) {
                if broken.contains(&*source.path) || source.text.is_empty() || !seen.insert(&source.path) {
                    continue;
                }
                let found = known(&mut self.texts, &mut texts, source, |found| of_text(source, found));
                review.extend_from_slice(found);
            }
            review.extend_from_slice(known(&mut self.prompts, &mut prompts, prompt, |found| {
                arguments::check(prompt, found);
                bare::check(prompt, found);
                texts::check_values(prompt, found);
            }));
            // These depend on other parts of the library.
            attachments::check(prompt, catalog, &mut review);
            deprecated::check(prompt, catalog, &mut review);
        }
        (self.texts, self.prompts) = (texts, prompts);
        for source in found.iter().map(|diagnostic| &diagnostic.location.source) {
            if !source.text.is_empty() && seen.insert(&source.path) {
                of_text(source, &mut review);
            }
        }
        for prompt in current() {
            for file in prompt.attachments().map(|(_, file)| file) {
                // Attachments go to models verbatim. Invisible characters are accepted there, because the files may
                // belong to other projects; secrets are not.
                if let ResourceBody::Text(text) = &file.body
                    && !text.is_empty()
                    && seen.insert(&file.path)
                {
                    secrets::check(&SourceText::new(&file.path, &**text), &mut review);
                }
            }
        }
        let mut similar = Vec::new();
        names::check(catalog.prompts(), &mut similar);
        review.extend(similar.into_iter().filter(|found| !broken.contains(&*found.location.source.path)));
        if broken.is_empty() {
            partials::check(catalog, &mut review);
        }
        // Do not repeat a diagnostic of the check in other words.
        let checked: HashSet<_> = found.iter().map(|old| (old.code, &*old.location.source.path)).collect();
        review.retain(|new| {
            !checked.contains(&(new.code, &*new.location.source.path))
                || !found.iter().any(|old| old.code == new.code && old.location == new.location)
        });
        review.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        review
    }
}

fn position(found: &Diagnostic) -> (&str, usize) {
    (&found.location.source.path, found.location.span().start)
}

/// Returns the bytes of the prompt's template in its file.
pub(crate) fn body_of(prompt: &Prompt) -> Option<std::ops::Range<usize>> {
    match &prompt.definition().body {
        Body::Template { range } => Some(range.clone()),
        Body::Pieces(_) | Body::Function(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use promptshelf_core::{ArgumentDefinition, Definitions, PromptDefinition, check};

    use super::*;

    #[test]
    fn broken_file_has_the_same_findings_with_and_without_its_last_version() {
        let prompt = |text: &str| PromptDefinition::template("p", text).description("Is kind");
        let before = check(Definitions::from_iter([prompt("Be kind.\u{202e}")]), None).catalog;
        let broken = || Definitions::from_iter([prompt("Be kind.\u{200b} {{ nobody }}")]);
        let (alone, after) = (check(broken(), None), check(broken(), Some(&before)));
        let alone = findings(&alone.catalog, &alone.diagnostics);
        assert_eq!(alone, findings(&after.catalog, &after.diagnostics));
        assert!(!alone.is_empty());
    }

    #[test]
    fn escaped_characters_of_values_are_found_once() {
        let prompt = |description: &str| PromptDefinition::template("p", "Hi").description(description);
        let found = |text| {
            let checked = check(Definitions::from_iter([prompt(text)]), None);
            let found = review(&checked.catalog, &checked.diagnostics).into_iter();
            found.filter(|it| it.code == Code::InvisibleCharacter).map(|it| it.message).collect::<Vec<_>>()
        };
        let shown = found("Red \u{1b}[31m and \u{202e}");
        assert!(shown.len() == 1 && shown[0].contains("U+001B") && shown[0].contains("escape"), "{shown:?}");
        assert!(found("Größe – ok").is_empty());
    }

    #[test]
    fn repeated_review_equals_a_new_one() {
        let prompt = |name: &str, text: &str| {
            Arc::new(PromptDefinition::template(name, text).argument(ArgumentDefinition::new("x")))
        };
        let (one, two, edited) =
            (prompt("one", "{{ x }}\u{202e}"), prompt("two", "{{ x }}"), prompt("two", "\u{200b}{{ x }}"));
        let mut reviewer = Reviewer::default();
        let (mut last, mut count) = (Catalog::default(), 0);
        for prompts in [vec![&one, &two], vec![&one, &edited], vec![&two], vec![&one, &two]] {
            let definitions = Definitions { prompts: prompts.into_iter().cloned().collect(), ..Definitions::default() };
            let checked = check(definitions, Some(&last));
            let again = reviewer.review(&checked.catalog, &checked.diagnostics);
            count += again.len();
            assert_eq!(again, review(&checked.catalog, &checked.diagnostics));
            assert_eq!(reviewer.prompts.len(), checked.catalog.prompts().len());
            last = checked.catalog;
        }
        assert!(count > 0);
    }
}

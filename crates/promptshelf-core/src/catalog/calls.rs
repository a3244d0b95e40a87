//! The prompts that a prompt calls, with the places of the calls.

use std::sync::Arc;

use super::Catalog;
use crate::{diagnostic::Location, prompt::Prompt, template::Lint};

impl Catalog {
    /// Returns the prompts that the template of a prompt, or a file that it includes, calls by `prompt("…")`, by name.
    /// The location is that of the first call in the prompt's own file, otherwise the file.
    #[must_use]
    pub fn calls(&self, prompt: &Prompt) -> Vec<(Arc<Prompt>, Location)> {
        let called = &prompt.uses().prompts;
        if called.is_empty() {
            return Vec::new();
        }
        let source = prompt.source();
        let lint = Lint::of(&source.text);
        let located = called.values().map(|called| {
            let call = lint.calls.iter().find(|call| call.target.name == called.name().as_str());
            let span = call.map(|call| call.target.span.clone()).unwrap_or_default();
            (Arc::clone(called), Location::new(source, span))
        });
        located.collect()
    }
}

//! The condition of a library: what it serves, and its errors. A commit is refused for what it makes worse.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use promptshelf_core::{Code, Diagnostic, check};
use promptshelf_source::{Files, MemoryTree, Source as _, SourceError};

const MANIFEST: &str = "promptshelf.toml";

const MAX_REASONS: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    errors: Vec<Diagnostic>,
    served: BTreeMap<String, String>,
}

impl Condition {
    pub(crate) fn of(library: &Files) -> Result<Condition, SourceError> {
        let checked = check(library.read()?.into_definitions(), None);
        let served = checked.catalog.prompts().iter();
        Ok(Condition {
            served: served.map(|prompt| (prompt.name().to_string(), prompt.source().path.to_string())).collect(),
            errors: checked.diagnostics.into_iter().filter(Diagnostic::is_error).collect(),
        })
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Describes what is worse than in an earlier condition; `None` if nothing is.
    ///
    /// A file that had errors before may have others now, as long as no prompt gets lost whose file is still in `tree`.
    /// A file that cannot be read at all, such as a link that leads out of the library, is worse only if something was
    /// served from it. Errors in the manifest concern everything, so that each new one counts.
    pub(crate) fn worse_than(&self, before: &Condition, tree: &MemoryTree) -> Option<String> {
        let broken: HashSet<&str> = before.errors.iter().map(path).filter(|path| *path != MANIFEST).collect();
        let known: HashSet<(&str, Code, &str)> = before.errors.iter().map(key).collect();
        let served: HashSet<&str> = before.served.values().map(String::as_str).collect();
        let is_lost =
            |(name, path): (&String, &String)| tree.get(path).is_some() && !self.served.contains_key(name.as_str());
        let lost: BTreeSet<&str> =
            before.served.iter().filter(|entry| is_lost(*entry)).map(|(_, path)| path.as_str()).collect();
        let is_new = |error: &&Diagnostic| {
            let path = path(error);
            let is_unusable = matches!(error.code, Code::Outside | Code::Unreadable) && path != MANIFEST;
            let is_known = known.contains(&key(error)) || broken.contains(path);
            lost.contains(path) || !(is_known || is_unusable && !served.contains(path))
        };
        let mut worse: Vec<&Diagnostic> = self.errors.iter().filter(is_new).collect();
        if worse.is_empty() && !lost.is_empty() {
            // The prompts are lost by errors elsewhere, in a shared part for example.
            worse = self.errors.iter().collect();
        }
        if worse.is_empty() {
            return None;
        }
        let first: BTreeSet<String> = worse.iter().take(MAX_REASONS).map(ToString::to_string).collect();
        let first = first.into_iter().collect::<Vec<_>>().join("; ");
        let more = match worse.len().saturating_sub(MAX_REASONS) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!("it brings new errors into the library: {first}{more}"))
    }
}

fn path(error: &Diagnostic) -> &str {
    &error.location.source.path
}

fn key(error: &Diagnostic) -> (&str, Code, &str) {
    (path(error), error.code, &error.message)
}

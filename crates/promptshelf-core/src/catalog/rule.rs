//! One access rule, compiled.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use globset::{GlobBuilder, GlobMatcher};

use super::{
    Content, NameSet, Names,
    pattern::{ANY, Pattern},
};
use crate::{
    definition::{Access, AccessRule, Links},
    diagnostic::{Code, Diagnostic},
};

#[derive(Debug)]
pub(super) struct CheckedRule {
    pub(super) prompts: Vec<Pattern>,
    pub(super) prefix: String,
    pub(super) folders: Vec<Folder>,
    pub(super) tags: Vec<String>,
    pub(super) resources: Vec<Pattern>,
    pub(super) diagnostics: bool,
    pub(super) access: Arc<Access>,
    /// The texts of `resources`, in lower case. The template of a URI is not a valid glob for itself: `{+path}` is an
    /// alternative in a glob.
    literals: HashSet<String>,
    places: HashSet<String>,
    /// All URIs, in lower case, of other contents that a literal URI of the rule leads to.
    uris: HashSet<String>,
}

/// A folder of a rule, with letter case folded, because some file systems ignore it.
#[derive(Debug)]
pub(super) struct Folder {
    /// All paths of the folder; the empty one is the library, which contains everything.
    pub(super) paths: Vec<String>,
    glob: Option<GlobMatcher>,
}

impl Folder {
    fn new(written: &str, links: &Links, root: impl Fn(&str) -> Option<String>) -> Folder {
        let trimmed = written.trim_end_matches('/');
        let inside = trimmed.trim_start_matches('/');
        let mut paths = vec![inside.to_owned(), trimmed.to_owned(), links.place(inside).into_owned()];
        let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
        if let Some(place) = root(first) {
            let path = if rest.is_empty() { place } else { format!("{place}/{rest}") };
            paths.extend([links.place(&path).into_owned(), path]);
        }
        let is_whole = inside.is_empty();
        let mut paths: Vec<String> = paths.iter().map(|path| path.to_lowercase()).collect();
        paths.retain(|path| is_whole || !path.is_empty());
        paths.dedup();
        let glob = GlobBuilder::new(inside).literal_separator(true).case_insensitive(true).build();
        let glob = glob.ok().filter(|_| inside.contains(['*', '?', '[', '{']));
        Folder { paths, glob: glob.map(|glob| glob.compile_matcher()) }
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let is_below = |folder: &String| {
            folder.is_empty() || path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        self.paths.iter().any(is_below)
            || self.glob.as_ref().is_some_and(|glob| folders.any(|folder| glob.is_match(folder)))
    }
}

impl CheckedRule {
    pub(super) fn new(
        rule: &AccessRule,
        links: &Links,
        root: impl Fn(&str) -> Option<String>,
        found: &mut Vec<Diagnostic>,
    ) -> CheckedRule {
        let mut compile = |part: &str, globs: &[String], is_any_case| {
            let mut patterns = Vec::with_capacity(globs.len());
            for (index, glob) in globs.iter().enumerate() {
                let (pattern, error) = Pattern::new(glob, is_any_case);
                if let Some(error) = error {
                    let message =
                        format!("invalid pattern `{glob}`, so the rule applies to everything: {}", error.kind());
                    let location = rule.origin.locate(&format!("{part}.{index}"));
                    found.push(Diagnostic::error(Code::InvalidValue, location, message));
                }
                patterns.push(pattern);
            }
            patterns
        };
        CheckedRule {
            prompts: compile("prompts", &rule.prompts, false),
            prefix: rule.prefix.clone(),
            resources: compile("resources", &rule.resources, true),
            folders: rule.folders.iter().map(|folder| Folder::new(folder, links, &root)).collect(),
            tags: rule.tags.clone(),
            diagnostics: rule.diagnostics,
            access: Arc::new(rule.access.clone()),
            literals: rule.resources.iter().map(|text| text.to_lowercase()).collect(),
            places: HashSet::new(),
            uris: HashSet::new(),
        }
    }

    /// Looks up the contents that literal URIs of the rule lead to: a URI can be spelled in other ways than its content
    /// lists as its names.
    pub(super) fn resolve(&mut self, names: Names<'_>) {
        for pattern in self.resources.iter().filter(|pattern| pattern.is_literal()) {
            let Some(content) = names.find(&pattern.text) else { continue };
            let known = names.of(&content);
            match (known.paths.first(), content) {
                (Some(place), _) => _ = self.places.insert(place.clone()),
                (None, Content::File(_)) => {}
                (None, Content::Resource { .. }) => {
                    let uris = known.declared.iter().flat_map(|names| &names.uris);
                    self.uris.extend(uris.map(|uri| uri.to_lowercase()));
                }
            }
        }
    }

    pub(super) fn fits_prompt(&self, name: &str, tags: &[String], paths: &[String]) -> bool {
        self.fits_name(name)
            || self.tags.iter().any(|tag| tags.contains(tag))
            || paths.iter().any(|path| self.fits_path(path))
    }

    pub(super) fn fits_name(&self, name: &str) -> bool {
        let name = match self.prefix.as_str() {
            "" => Cow::Borrowed(name),
            prefix => Cow::Owned(format!("{prefix}{name}")),
        };
        self.prompts.iter().any(|glob| glob.fits(&name))
    }

    pub(super) fn fits_uri(&self, uri: &str) -> bool {
        if self.resources.is_empty() {
            return false;
        }
        let is_open = uri.contains(ANY);
        let fits = |uri: &str| {
            let folded = uri.to_lowercase();
            // A library can have one literal for each of many files.
            let mut globs = self.resources.iter().filter(|glob| is_open || !glob.is_literal());
            self.literals.contains(&folded) || self.uris.contains(&folded) || globs.any(|glob| glob.fits(uri))
        };
        let decoded = || percent_encoding::percent_decode_str(uri).decode_utf8().is_ok_and(|decoded| fits(&decoded));
        fits(uri) || (uri.contains('%') && !is_open && decoded())
    }

    pub(super) fn fits_path(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| folder.contains(path))
    }

    pub(super) fn concerns_resources(&self) -> bool {
        !self.resources.is_empty() || !self.folders.is_empty()
    }

    pub(super) fn fits(&self, names: &NameSet) -> bool {
        names.all_uris().any(|uri| self.fits_uri(uri))
            || names.paths.iter().any(|path| self.fits_path(path))
            || names.paths.first().is_some_and(|place| self.places.contains(place))
    }
}

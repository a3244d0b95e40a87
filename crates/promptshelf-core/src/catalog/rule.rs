//! One access rule, compiled.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use super::{
    Content, NameSet, Names,
    pattern::{ANY, Pattern},
};
use crate::{
    definition::{Access, AccessRule, Links},
    diagnostic::{Code, Diagnostic},
    glob::Glob,
    prompt::Prompt,
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
    has_wildcards: bool,
    /// Whether the rule applies to everything, because there is too much to compare.
    pub(super) is_closed: bool,
}

/// A pattern of an access rule. It closes what fits it, now and later.
#[derive(Clone, Copy, Debug)]
pub struct RulePart<'c> {
    rule: &'c CheckedRule,
    written: &'c AccessRule,
    key: &'static str,
    index: usize,
}

impl<'c> RulePart<'c> {
    pub(super) fn all(rule: &'c CheckedRule, written: &'c AccessRule) -> impl Iterator<Item = RulePart<'c>> {
        let parts = [
            ("prompts", rule.prompts.len()),
            ("folders", rule.folders.len()),
            ("tags", rule.tags.len()),
            ("resources", rule.resources.len()),
        ];
        let part = move |(key, count)| (0..count).map(move |index| RulePart { rule, written, key, index });
        parts.into_iter().flat_map(part)
    }

    /// The key of the rule that has the pattern, such as `folders`.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// The pattern.
    #[must_use]
    pub fn text(&self) -> &'c str {
        let texts = match self.key {
            "prompts" => &self.written.prompts,
            "folders" => &self.written.folders,
            "tags" => &self.written.tags,
            _ => &self.written.resources,
        };
        &texts[self.index]
    }

    /// The requirements of the rule.
    #[must_use]
    pub fn access(&self) -> &'c Arc<Access> {
        &self.rule.access
    }

    /// Whether a part of another rule has the same pattern.
    #[must_use]
    pub fn is_same(&self, other: &RulePart<'_>) -> bool {
        let text = |part: &RulePart<'_>| match part.key {
            "folders" => part.text().trim_matches('/').to_lowercase(),
            "resources" => part.text().to_lowercase(),
            _ => part.text().to_owned(),
        };
        self.key == other.key && self.rule.prefix == other.rule.prefix && text(self) == text(other)
    }

    /// Whether a prompt fits.
    #[must_use]
    pub fn fits_prompt(&self, prompt: &Prompt) -> bool {
        match self.key {
            "prompts" => {
                let fits = |name: &str| self.rule.prompts[self.index].fits(&format!("{}{name}", self.rule.prefix));
                fits(prompt.name().as_str()) || prompt.aliases().any(|alias| fits(alias.as_ref()))
            }
            "tags" => prompt.tags().contains(&self.rule.tags[self.index]),
            _ => self.fits_path(&prompt.source().path),
        }
    }

    /// Whether a file fits.
    #[must_use]
    pub fn fits_path(&self, path: &str) -> bool {
        self.key == "folders" && self.rule.folders[self.index].contains(path)
    }

    /// Whether a resource fits.
    #[must_use]
    pub fn fits_uri(&self, uri: &str) -> bool {
        self.key == "resources" && self.rule.resources[self.index].fits(uri)
    }
}

/// A URI as rules compare it.
pub(super) struct Uri {
    is_open: bool,
    /// As it is written, and decoded, each also in lower case.
    spellings: Vec<(String, String)>,
}

impl Uri {
    pub(super) fn new(uri: &str) -> Uri {
        let is_open = uri.contains(ANY);
        let spelling = |uri: &str| (uri.to_owned(), uri.to_lowercase());
        let mut spellings = vec![spelling(uri)];
        if uri.contains('%')
            && !is_open
            && let Ok(decoded) = percent_encoding::percent_decode_str(uri).decode_utf8()
        {
            spellings.push(spelling(&decoded));
        }
        Uri { is_open, spellings }
    }
}

/// A folder of a rule, with letter case folded, because some file systems ignore it.
#[derive(Debug)]
pub(super) struct Folder {
    /// All paths of the folder; the empty one is the library, which contains everything.
    pub(super) paths: Vec<String>,
    glob: Option<Glob>,
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
        let glob = inside.contains(['*', '?', '[', '{']).then(|| Glob::made(inside, true, true));
        if let Some(Err(error)) = &glob
            && error.is_too_large
        {
            // Everything, so that a mistake never opens access.
            paths.push(String::new());
        }
        Folder { paths, glob: glob.and_then(Result::ok) }
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
                    let message = format!(
                        "invalid pattern `{}`, so the rule applies to everything: {}",
                        error.glob, error.reason
                    );
                    let location = rule.origin.locate(&format!("{part}.{index}"));
                    found.push(Diagnostic::error(Code::InvalidValue, location, message));
                }
                patterns.push(pattern);
            }
            patterns
        };
        let prompts = compile("prompts", &rule.prompts, false);
        let resources = compile("resources", &rule.resources, true);
        CheckedRule {
            prompts,
            prefix: rule.prefix.clone(),
            has_wildcards: resources.iter().any(|pattern| !pattern.is_literal()),
            is_closed: false,
            resources,
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
            if let Some(place) = names.place_of(&content) {
                self.places.insert(place);
            } else if matches!(content, Content::Resource { .. }) {
                let known = names.of(&content);
                let uris = known.declared.iter().flat_map(|names| &names.uris);
                self.uris.extend(uris.map(|uri| uri.to_lowercase()));
            }
        }
    }

    pub(super) fn fits_prompt(&self, name: &str, tags: &[String], paths: &[String]) -> bool {
        self.is_closed
            || self.fits_name(name)
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

    pub(super) fn fits_uri(&self, uri: &Uri) -> bool {
        if self.resources.is_empty() || self.is_closed {
            return self.is_closed;
        }
        uri.spellings.iter().any(|(uri_text, folded)| {
            self.literals.contains(folded) || self.uris.contains(folded) || {
                // A library can have one literal for each of many files.
                let mut globs = self.resources.iter().filter(|glob| uri.is_open || !glob.is_literal());
                (uri.is_open || self.has_wildcards) && globs.any(|glob| glob.fits(uri_text))
            }
        })
    }

    pub(super) fn fits_path(&self, path: &str) -> bool {
        self.is_closed || self.folders.iter().any(|folder| folder.contains(path))
    }

    pub(super) fn concerns_resources(&self) -> bool {
        !self.resources.is_empty() || !self.folders.is_empty()
    }

    pub(super) fn fits(&self, names: &NameSet, uris: &[Uri]) -> bool {
        self.is_closed
            || uris.iter().any(|uri| self.fits_uri(uri))
            || names.paths.iter().any(|path| self.fits_path(path))
            || names.paths.first().is_some_and(|place| self.places.contains(place))
    }
}

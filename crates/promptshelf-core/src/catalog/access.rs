//! The access rules of a catalog, and the items that each applies to.
//!
//! A rule is data: scopes, roles and users. Callers, and whether a caller satisfies a rule, are deliberately
//! elsewhere.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use super::list::PromptList;
use crate::{
    cursor::ListKind,
    definition::{Access, AccessRule, AccessSet, library_uri},
    diagnostic::{Code, Diagnostic},
    library_files::LibraryFiles,
    prompt::Prompt,
    resource::{CheckedContent, Resource, Resources},
    uri_template::expand_uri_template,
};

/// The checked rules of a catalog, with the rules for each item.
#[derive(Debug, Default)]
pub(crate) struct AccessTable {
    rules: Vec<CheckedRule>,
    /// Each combination of rules; the first one is empty.
    sets: Vec<AccessSet>,
    /// For each index of the list, the index in `sets`. Empty without rules.
    prompts: Vec<usize>,
    resources: Vec<usize>,
    templates: Vec<usize>,
}

#[derive(Debug)]
struct CheckedRule {
    prompts: Vec<Pattern>,
    folders: Vec<String>,
    tags: Vec<String>,
    resources: Vec<Pattern>,
    diagnostics: bool,
    access: Arc<Access>,
}

/// A compiled glob. An invalid glob matches everything, so that a typo never opens access.
#[derive(Debug)]
struct Pattern(Option<GlobMatcher>);

impl Pattern {
    fn fits(&self, text: &str) -> bool {
        self.0.as_ref().is_none_or(|glob| glob.is_match(text))
    }
}

impl CheckedRule {
    fn new(rule: &AccessRule, found: &mut Vec<Diagnostic>) -> CheckedRule {
        let mut compile = |part: &str, globs: &[String], any_case| {
            let mut patterns = Vec::with_capacity(globs.len());
            for (index, glob) in globs.iter().enumerate() {
                let built = GlobBuilder::new(glob).literal_separator(false).case_insensitive(any_case).build();
                if let Err(error) = &built {
                    let message =
                        format!("invalid pattern `{glob}`, so the rule applies to everything: {}", error.kind());
                    let location = rule.origin.locate(&format!("{part}.{index}"));
                    found.push(Diagnostic::error(Code::InvalidValue, location, message));
                }
                patterns.push(Pattern(built.ok().map(|glob| glob.compile_matcher())));
            }
            patterns
        };
        CheckedRule {
            prompts: compile("prompts", &rule.prompts, false),
            resources: compile("resources", &rule.resources, true),
            folders: rule.folders.iter().map(|folder| folder.trim_matches('/').to_lowercase()).collect(),
            tags: rule.tags.clone(),
            diagnostics: rule.diagnostics,
            access: Arc::new(rule.access.clone()),
        }
    }

    fn fits_prompt(&self, prompt: &Prompt) -> bool {
        let path = &prompt.source().path;
        self.prompts.iter().any(|glob| glob.fits(prompt.name().as_str()))
            || self.tags.iter().any(|tag| prompt.tags().contains(tag))
            || self.fits_path(path)
    }

    fn fits_uri(&self, uri: &str) -> bool {
        self.resources.iter().any(|glob| glob.fits(uri))
    }

    /// Whether a path is below one of the folders. Letter case is ignored, because some file systems ignore it.
    fn fits_path(&self, path: &str) -> bool {
        if self.folders.is_empty() {
            return false;
        }
        let path = path.to_lowercase();
        self.folders
            .iter()
            .any(|folder| folder.is_empty() || path.strip_prefix(&**folder).is_some_and(|rest| rest.starts_with('/')))
    }

    fn concerns_resources(&self) -> bool {
        !self.resources.is_empty() || !self.folders.is_empty()
    }
}

impl AccessTable {
    /// Determines the rules for each item of a catalog's lists.
    pub(crate) fn check(
        rules: &[AccessRule],
        prompts: &PromptList,
        resources: &Resources,
        found: &mut Vec<Diagnostic>,
    ) -> AccessTable {
        let rules: Vec<CheckedRule> = rules.iter().map(|rule| CheckedRule::new(rule, found)).collect();
        if rules.is_empty() && prompts.iter().all(|prompt| prompt.definition.access.is_none()) {
            return AccessTable::default();
        }
        let mut table = AccessTable { sets: vec![AccessSet::new()], ..AccessTable::default() };
        for prompt in prompts.iter() {
            let fitting = rules.iter().filter(|rule| rule.fits_prompt(prompt)).map(|rule| Arc::clone(&rule.access));
            let place = table.add(fitting.chain(prompt.definition.access.clone().map(Arc::new)).collect());
            table.prompts.push(place);
        }
        for resource in &*resources.fixed {
            let place = table.add(resource_access(&rules, resource.uri(), resource));
            table.resources.push(place);
        }
        for template in &*resources.templates {
            let place = table.add(resource_access(&rules, template.uri(), template));
            table.templates.push(place);
        }
        AccessTable { rules, ..table }
    }

    fn add(&mut self, set: AccessSet) -> usize {
        self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }

    /// Returns whether any rule exists.
    pub(super) fn is_restricted(&self) -> bool {
        self.sets.len() > 1 || self.has_resource_rules()
    }

    /// Returns whether any rule applies to resources.
    pub(super) fn has_resource_rules(&self) -> bool {
        self.rules.iter().any(CheckedRule::concerns_resources)
    }

    pub(super) fn sets(&self) -> &[AccessSet] {
        &self.sets
    }

    /// Returns the index of the rules for an item of a list.
    pub(super) fn place(&self, list: ListKind, index: usize) -> Option<usize> {
        let places = match list {
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::ResourceTemplates => &self.templates,
        };
        places.get(index).copied()
    }

    /// Returns the rules for the content of a URI, under each of its names.
    pub(super) fn uri(&self, uri: &str, resources: &Resources, files: &LibraryFiles) -> AccessSet {
        if !self.has_resource_rules() {
            return AccessSet::new();
        }
        let (mut names, mut path) = (vec![uri.to_owned()], None);
        if let Some((resource, variables)) = resources.find(uri) {
            names.push(resource.uri().to_owned());
            if resource.is_template() {
                names.extend(expand_uri_template(resource.uri(), &variables));
            }
            path = resource.library_path(&variables);
        } else if let Some(file) = files.find(uri) {
            path = Some(file.path.clone());
            names.push(library_uri(&file.path));
            // A rule for the declared URI of a file also applies to its `library:` URI.
            let declared = resources
                .fixed
                .iter()
                .filter(|resource| matches!(&resource.content, CheckedContent::File(known) if known.path == file.path));
            names.extend(declared.map(|resource| resource.uri().to_owned()));
        }
        let fits = |rule: &&CheckedRule| {
            names.iter().any(|name| rule.fits_uri(name)) || path.as_deref().is_some_and(|path| rule.fits_path(path))
        };
        self.rules.iter().filter(fits).map(|rule| Arc::clone(&rule.access)).collect()
    }

    /// Returns the rules for the library's diagnostics.
    pub(super) fn diagnostics(&self) -> AccessSet {
        self.rules.iter().filter(|rule| rule.diagnostics).map(|rule| Arc::clone(&rule.access)).collect()
    }

    /// Returns the rules for the declaration of a resource.
    pub(super) fn declared(&self, resource: &Resource) -> AccessSet {
        resource_access(&self.rules, resource.uri(), resource)
    }

    /// Whether both tables have the same rules for the same items.
    pub(crate) fn is_like(&self, other: &AccessTable) -> bool {
        self.sets == other.sets
            && self.prompts == other.prompts
            && self.resources == other.resources
            && self.templates == other.templates
    }
}

/// Returns the rules for a resource by its declaration.
fn resource_access(rules: &[CheckedRule], uri: &str, resource: &Resource) -> AccessSet {
    let path = match &resource.content {
        CheckedContent::File(file) => Some(&*file.path),
        _ => None,
    };
    let fits = |rule: &&CheckedRule| rule.fits_uri(uri) || path.is_some_and(|path| rule.fits_path(path));
    rules.iter().filter(fits).map(|rule| Arc::clone(&rule.access)).collect()
}

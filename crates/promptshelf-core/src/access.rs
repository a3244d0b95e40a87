//! What is asked of whoever wants a prompt or a resource.
//!
//! A rule is data: which scopes, roles and users. Who a caller is and whether
//! a caller meets a rule is not here; this crate knows no callers.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use crate::{
    catalog::Catalog,
    cursor::ListKind,
    definition::Origin,
    diagnostic::{Code, Diagnostic},
    prompt::Prompt,
    resource::{CheckedContent, Resource, library_uri},
    uri_template::expand_uri_template,
};

/// What is asked of a caller. Everything that is named has to be met: one of
/// the roles or users, and all of the scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Scopes, all of which a caller's token has to have.
    pub scopes: Vec<String>,
    /// Roles, one of which a caller has to have, unless it is one of the users.
    pub roles: Vec<String>,
    /// Callers by name, one of which it has to be, unless it has one of the roles.
    pub users: Vec<String>,
    /// Whether the thing is shown to callers who lack only a scope. They are
    /// then told which scope it takes; otherwise it does not exist for them.
    pub visible: bool,
}

/// What is asked for everything that fits a pattern. All rules that fit hold
/// together, and together with what a prompt asks for itself.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Globs over the names of prompts.
    pub prompts: Vec<String>,
    /// Folders of the library: prompts and files below them.
    pub folders: Vec<String>,
    /// Tags of prompts.
    pub tags: Vec<String>,
    /// Globs over URIs of resources; `*` also matches `/`, and letter case does not count.
    pub resources: Vec<String>,
    /// What is wrong with the library, with the lines of any file that it points at.
    pub diagnostics: bool,
    /// What is asked.
    pub access: Access,
    /// Where the rule stands.
    pub origin: Origin,
}

impl AccessRule {
    /// A rule that fits nothing yet.
    #[must_use]
    pub fn new(access: Access, origin: Origin) -> AccessRule {
        let none = Vec::new;
        AccessRule {
            prompts: none(),
            folders: none(),
            tags: none(),
            resources: none(),
            diagnostics: false,
            access,
            origin,
        }
    }
}

/// The checked rules of a catalog, and which of them hold for what.
#[derive(Debug, Default)]
pub(crate) struct AccessTable {
    rules: Vec<CheckedRule>,
    /// Each combination of demands there is; the first one demands nothing.
    sets: Vec<AccessSet>,
    /// By place in the list, the place in `sets`. Empty where nothing is asked.
    prompts: Vec<usize>,
    resources: Vec<usize>,
    templates: Vec<usize>,
}

/// Requirements that hold together.
pub type AccessSet = Vec<Arc<Access>>;

#[derive(Debug)]
struct CheckedRule {
    prompts: Vec<Pattern>,
    folders: Vec<String>,
    tags: Vec<String>,
    resources: Vec<Pattern>,
    diagnostics: bool,
    access: Arc<Access>,
}

/// A glob. One that is none fits everything: a rule that cannot be understood
/// must not leave open what it was meant to close.
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
                    let message = format!("`{glob}` is no pattern, so the rule holds for everything: {}", error.kind());
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

    /// Whether a path is below one of the folders. Letter case does not count,
    /// because to some file systems it does not.
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
    /// Decides which rules hold for what a catalog lists.
    pub(crate) fn check(rules: &[AccessRule], catalog: &Catalog, found: &mut Vec<Diagnostic>) -> AccessTable {
        let rules: Vec<CheckedRule> = rules.iter().map(|rule| CheckedRule::new(rule, found)).collect();
        if rules.is_empty() && catalog.prompts.iter().all(|prompt| prompt.definition.access.is_none()) {
            return AccessTable::default();
        }
        let mut table = AccessTable { sets: vec![AccessSet::new()], ..AccessTable::default() };
        for prompt in catalog.prompts().iter() {
            let fitting = rules.iter().filter(|rule| rule.fits_prompt(prompt)).map(|rule| Arc::clone(&rule.access));
            let place = table.place(fitting.chain(prompt.definition.access.clone().map(Arc::new)).collect());
            table.prompts.push(place);
        }
        for resource in &*catalog.resources {
            let place = table.place(resource_access(&rules, resource.uri(), resource));
            table.resources.push(place);
        }
        for template in &*catalog.templates {
            let place = table.place(resource_access(&rules, template.uri(), template));
            table.templates.push(place);
        }
        AccessTable { rules, ..table }
    }

    fn place(&mut self, set: AccessSet) -> usize {
        self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }

    /// Whether nothing is asked for differently than by another table.
    pub(crate) fn is_like(&self, other: &AccessTable) -> bool {
        self.sets == other.sets
            && self.prompts == other.prompts
            && self.resources == other.resources
            && self.templates == other.templates
    }
}

/// What is asked for a resource by its declaration.
fn resource_access(rules: &[CheckedRule], uri: &str, resource: &Resource) -> AccessSet {
    let path = match &resource.content {
        CheckedContent::File(file) => Some(&*file.path),
        _ => None,
    };
    let fits = |rule: &&CheckedRule| rule.fits_uri(uri) || path.is_some_and(|path| rule.fits_path(path));
    rules.iter().filter(fits).map(|rule| Arc::clone(&rule.access)).collect()
}

impl Catalog {
    /// Whether anything is asked of anybody. Where not, everybody sees the same.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.access.sets.len() > 1 || self.has_resource_rules()
    }

    /// Whether anything is asked for resources.
    #[must_use]
    pub fn has_resource_rules(&self) -> bool {
        self.access.rules.iter().any(CheckedRule::concerns_resources)
    }

    /// Each combination of demands that holds for something of the lists.
    #[must_use]
    pub fn access_sets(&self) -> &[AccessSet] {
        &self.access.sets
    }

    /// Which combination of demands holds for an item of a list; `None` where
    /// nothing is asked for anything.
    #[must_use]
    pub fn access_place(&self, list: ListKind, index: usize) -> Option<usize> {
        let places = match list {
            ListKind::Prompts => &self.access.prompts,
            ListKind::Resources => &self.access.resources,
            ListKind::ResourceTemplates => &self.access.templates,
        };
        places.get(index).copied()
    }

    /// What is asked for the prompt at a place of the list.
    #[must_use]
    pub fn prompt_access(&self, index: usize) -> &[Arc<Access>] {
        let set = self.access_place(ListKind::Prompts, index).and_then(|place| self.access.sets.get(place));
        set.map_or(&[], Vec::as_slice)
    }

    /// What is asked for what stands behind a URI, under whichever of its
    /// names: as it was written, as its declaration says it, and as the two
    /// together say it, so that another spelling opens nothing.
    #[must_use]
    pub fn uri_access(&self, uri: &str) -> AccessSet {
        if !self.has_resource_rules() {
            return AccessSet::new();
        }
        let (mut names, mut path) = (vec![uri.to_owned()], None);
        if let Some((resource, variables)) = self.find_resource(uri) {
            names.push(resource.uri().to_owned());
            if resource.is_template() {
                names.extend(expand_uri_template(resource.uri(), &variables));
            }
            path = resource.library_path(&variables);
        } else if let Some(file) = self.files.find(uri) {
            path = Some(file.path.clone());
            names.push(library_uri(&file.path));
            // Whoever declares another URI for a file means that one to be asked for.
            let declared = self
                .resources
                .iter()
                .filter(|resource| matches!(&resource.content, CheckedContent::File(known) if known.path == file.path));
            names.extend(declared.map(|resource| resource.uri().to_owned()));
        }
        let fits = |rule: &&CheckedRule| {
            names.iter().any(|name| rule.fits_uri(name)) || path.as_deref().is_some_and(|path| rule.fits_path(path))
        };
        self.access.rules.iter().filter(fits).map(|rule| Arc::clone(&rule.access)).collect()
    }

    /// What is asked of whoever wants to see what is wrong with the library.
    /// Empty where no rule says it.
    #[must_use]
    pub fn diagnostics_access(&self) -> AccessSet {
        self.access.rules.iter().filter(|rule| rule.diagnostics).map(|rule| Arc::clone(&rule.access)).collect()
    }

    /// What is asked for the resource or resource template that is declared like this.
    #[must_use]
    pub fn declared_access(&self, resource: &Resource) -> AccessSet {
        resource_access(&self.access.rules, resource.uri(), resource)
    }
}

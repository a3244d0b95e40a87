//! The access rules of a catalog, and the items that each applies to.
//!
//! Access belongs to a content: a file, or a resource without a file. A rule that fits one name of it (a path, a URI, a
//! URI template, a folder, the prompt that the file defines) applies under all of them.
//!
//! A rule is data: scopes, roles and users. Callers, and whether a caller satisfies a rule, are deliberately
//! elsewhere.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    Content, Names,
    rule::{CheckedRule, RulePart, Uri},
};
use crate::{
    cursor::ListKind,
    definition::{Access, AccessRule, AccessSet, BrokenFile, PromptDefinition, Requirements},
    diagnostic::{Code, Diagnostic},
    interrupt::is_interrupted,
    library_files::LibraryFiles,
    prompt::Prompt,
    resource::{Resource, Resources},
};

/// The largest number of comparisons of a pattern with a name: 500 patterns with 10,000 files that have two names each.
const MAX_PAIRS: usize = 10_000_000;

#[derive(Debug, Default)]
pub(crate) struct AccessTable {
    pub(super) rules: Vec<CheckedRule>,
    declared: Vec<AccessRule>,
    /// Each combination of rules; the first one is empty.
    sets: Vec<AccessSet>,
    /// For each index of the list, the index in `sets`. Empty without rules.
    prompts: Vec<usize>,
    resources: Vec<usize>,
    templates: Vec<usize>,
    prompt_files: HashMap<String, AccessSet>,
    fixed: HashMap<String, Vec<usize>>,
}

pub(crate) struct AccessInput<'a> {
    pub(crate) rules: &'a [AccessRule],
    /// All prompts, also those that cannot be served.
    pub(crate) definitions: &'a [Arc<PromptDefinition>],
    pub(crate) broken: &'a [BrokenFile],
    pub(crate) roots: &'a BTreeMap<String, String>,
}

/// A file that defines a prompt: its source and its place.
type PromptFile = (usize, String);

impl AccessTable {
    pub(crate) fn check(
        input: &AccessInput<'_>,
        prompts: &[Arc<Prompt>],
        resources: &Resources,
        files: &LibraryFiles,
        found: &mut Vec<Diagnostic>,
    ) -> AccessTable {
        if !has_requirements(input, prompts) {
            return AccessTable::default();
        }
        let root = |name: &str| input.roots.get(name).cloned();
        let mut rules: Vec<CheckedRule> =
            input.rules.iter().map(|rule| CheckedRule::new(rule, &files.links, root, found)).collect();
        let pairs = pairs(&rules, input, resources, files);
        if pairs > MAX_PAIRS {
            rules.iter_mut().for_each(|rule| rule.is_closed = true);
            let message = format!(
                "the patterns of all access rules have to be compared with {pairs} names, more than {MAX_PAIRS}, so every rule applies to everything"
            );
            let help = "replace patterns with `folders`, or declare fewer resources";
            let location = input.rules[0].origin.locate("resources.0");
            found.push(Diagnostic::error(Code::TooMany, location, message).help(help));
        }
        let mut declared = input.rules.to_vec();
        for (rule, checked) in declared.iter_mut().zip(&rules) {
            rule.folders.extend(checked.folders.iter().flat_map(|folder| folder.paths.iter().cloned()));
        }
        let mut table = AccessTable { rules, declared, sets: vec![AccessSet::new()], ..AccessTable::default() };
        let names = Names { resources, files, fixed: &table.fixed };
        let mut fixed: HashMap<String, Vec<usize>> = HashMap::new();
        let places: Vec<Option<String>> =
            resources.fixed.iter().map(|resource| names.place(resource, &BTreeMap::new())).collect();
        for (index, place) in places.iter().enumerate() {
            if let Some(place) = place {
                fixed.entry(place.clone()).or_default().push(index);
            }
        }
        table.fixed = fixed;
        let mut rules = std::mem::take(&mut table.rules);
        rules.iter_mut().for_each(|rule| rule.resolve(table.names(resources, files)));
        table.rules = rules;

        let by_file = table.prompt_requirements(input, prompts, files);
        let by_name = rivals(input, prompts, files);
        for prompt in prompts.iter() {
            let mut set = match file_of(&prompt.definition, files) {
                Some(file) => by_file.get(&file).cloned().unwrap_or_default(),
                None => table.requirements(&prompt.definition, &[]),
            };
            // A rule that closes one definition of a name closes the prompt: which one is served may change.
            for rival in by_name.get(prompt.definition.name.as_str()).into_iter().flatten() {
                extend(&mut set, by_file.get(rival).cloned().unwrap_or_default());
            }
            let place = table.add(set);
            table.prompts.push(place);
        }
        for ((_, place), set) in by_file {
            extend(table.prompt_files.entry(place).or_default(), set);
        }
        table.prompt_files.retain(|_, set| !set.is_empty());
        // All names of a file have the same rules.
        let mut by_place: HashMap<&str, usize> = HashMap::new();
        for (resource, place) in resources.fixed.iter().zip(&places) {
            let known = place.as_deref().and_then(|place| by_place.get(place).copied());
            let index = known.unwrap_or_else(|| {
                let set = table.declared(resource, resources, files);
                table.add(set)
            });
            by_place.extend(place.as_deref().map(|place| (place, index)));
            table.resources.push(index);
        }
        for template in &*resources.templates {
            let set = table.declared(template, resources, files);
            let place = table.add(set);
            table.templates.push(place);
        }
        table
    }

    pub(super) fn names<'c>(&'c self, resources: &'c Resources, files: &'c LibraryFiles) -> Names<'c> {
        Names { resources, files, fixed: &self.fixed }
    }

    /// Returns the requirements for the prompt of each file. A broken file and its last valid version have the same.
    fn prompt_requirements(
        &self,
        input: &AccessInput<'_>,
        prompts: &[Arc<Prompt>],
        files: &LibraryFiles,
    ) -> HashMap<PromptFile, AccessSet> {
        let mut by_file: HashMap<PromptFile, AccessSet> = HashMap::new();
        let broken = input.broken.iter();
        let drafts = broken.clone().filter_map(|file| file.draft.as_ref());
        let served = prompts.iter().map(|prompt| &prompt.definition);
        for definition in input.definitions.iter().chain(drafts).chain(served) {
            let Some(file) = file_of(definition, files) else { continue };
            let paths = files.links.names(&file.1);
            extend(by_file.entry(file).or_default(), self.requirements(definition, &paths));
        }
        for file in broken {
            let requirement = match &file.requirements {
                Requirements::Known(None) => continue,
                Requirements::Known(Some(access)) => access.clone(),
                Requirements::Unknown => Access::unsatisfiable(),
            };
            let place = files.links.place(&file.path).into_owned();
            extend(by_file.entry((file.from, place)).or_default(), vec![Arc::new(requirement)]);
        }
        by_file
    }

    fn requirements(&self, prompt: &PromptDefinition, paths: &[String]) -> AccessSet {
        if is_interrupted() {
            return vec![Arc::new(Access::unsatisfiable())];
        }
        let linked = &prompt.origin.linked_names;
        let fitting = self.rules.iter().filter(|rule| {
            rule.fits_prompt(&prompt.name, &prompt.tags, paths)
                || linked.iter().chain(&prompt.aliases).any(|name| rule.fits_name(name))
        });
        fitting.map(|rule| Arc::clone(&rule.access)).chain(prompt.access.clone()).collect()
    }

    pub(super) fn with_first_set() -> AccessTable {
        AccessTable { sets: vec![AccessSet::new()], ..AccessTable::default() }
    }

    /// Sets the index in `sets` of each item of the lists.
    pub(super) fn with_places(self, prompts: Vec<usize>, resources: Vec<usize>, templates: Vec<usize>) -> AccessTable {
        AccessTable { prompts, resources, templates, ..self }
    }

    pub(super) fn add(&mut self, set: AccessSet) -> usize {
        self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }

    pub(crate) fn restrict_resource(&mut self, index: usize, more: &AccessSet) {
        let Some(place) = self.resources.get(index) else { return };
        let mut set = self.sets[*place].clone();
        extend(&mut set, more.clone());
        let place = self.add(set);
        self.resources[index] = place;
    }

    pub(super) fn is_restricted(&self) -> bool {
        self.sets.len() > 1 || self.rules.iter().any(CheckedRule::concerns_resources)
    }

    pub(super) fn restricts_contents(&self) -> bool {
        !self.sets.is_empty()
    }

    pub(super) fn declared_rules(&self) -> &[AccessRule] {
        &self.declared
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = RulePart<'_>> {
        self.rules.iter().zip(&self.declared).flat_map(|(rule, written)| RulePart::all(rule, written))
    }

    pub(super) fn sets(&self) -> &[AccessSet] {
        &self.sets
    }

    pub(super) fn place(&self, list: ListKind, index: usize) -> Option<usize> {
        let places = match list {
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::ResourceTemplates => &self.templates,
        };
        places.get(index).copied()
    }

    pub(super) fn is_prompt_file(&self, place: &str) -> bool {
        self.prompt_files.contains_key(place)
    }

    /// Returns the rules for a URI without content.
    pub(super) fn uri(&self, uri: &str) -> AccessSet {
        let uri = Uri::new(uri);
        self.rules.iter().filter(|rule| rule.fits_uri(&uri)).map(|rule| Arc::clone(&rule.access)).collect()
    }

    pub(super) fn content(
        &self,
        content: &Content<'_>,
        uri: Option<&str>,
        resources: &Resources,
        files: &LibraryFiles,
    ) -> AccessSet {
        if !self.restricts_contents() {
            return AccessSet::new();
        }
        let mut names = self.names(resources, files).of(content);
        names.uris.extend(uri.map(str::to_owned));
        self.of_names(&names)
    }

    pub(super) fn path(&self, path: &str, resources: &Resources, files: &LibraryFiles) -> AccessSet {
        if self.restricts_contents() {
            self.of_names(&self.names(resources, files).of_file(&files.links.place(path)))
        } else {
            AccessSet::new()
        }
    }

    fn of_names(&self, names: &super::NameSet) -> AccessSet {
        if is_interrupted() {
            return vec![Arc::new(Access::unsatisfiable())];
        }
        let uris: Vec<Uri> = names.all_uris().map(Uri::new).collect();
        let fitting = self.rules.iter().filter(|rule| rule.fits(names, &uris)).map(|rule| Arc::clone(&rule.access));
        let prompts = names.paths.first().and_then(|place| self.prompt_files.get(place));
        let mut set: AccessSet = fitting.collect();
        extend(&mut set, prompts.cloned().unwrap_or_default());
        set
    }

    pub(super) fn diagnostics(&self) -> AccessSet {
        self.rules.iter().filter(|rule| rule.diagnostics).map(|rule| Arc::clone(&rule.access)).collect()
    }

    /// Returns the rules for the declaration of a resource: for those of its content, and for a template those of its
    /// text and of the folder that it reads from.
    pub(super) fn declared(&self, resource: &Arc<Resource>, resources: &Resources, files: &LibraryFiles) -> AccessSet {
        if !resource.is_template() {
            let content = Content::Resource { resource, variables: BTreeMap::new() };
            return self.content(&content, None, resources, files);
        }
        // Any file in the folder: rules for folders depend on nothing else.
        let file = |folder: &str| if folder.is_empty() { "_".to_owned() } else { format!("{folder}/_") };
        let folders = resource.folder().map(|folder| files.links.names(&files.links.place(&folder)));
        let paths: Vec<String> = folders.unwrap_or_default().iter().map(|folder| file(folder)).collect();
        let uri = Uri::new(resource.uri());
        let fits = |rule: &&CheckedRule| rule.fits_uri(&uri) || paths.iter().any(|path| rule.fits_path(path));
        self.rules.iter().filter(fits).map(|rule| Arc::clone(&rule.access)).collect()
    }

    /// Whether the same callers see each of `prompts` entries of the list of prompts, by their indexes.
    pub(crate) fn shows_prompts_like(&self, other: &AccessTable) -> bool {
        self.are_places_like(other, &self.prompts, &other.prompts)
    }

    pub(crate) fn shows_resources_like(&self, other: &AccessTable) -> bool {
        self.are_places_like(other, &self.resources, &other.resources)
            && self.are_places_like(other, &self.templates, &other.templates)
    }

    fn are_places_like(&self, other: &AccessTable, own: &[usize], others: &[usize]) -> bool {
        own.len() == others.len()
            && own.iter().zip(others).all(|(own, place)| self.sets.get(*own) == other.sets.get(*place))
    }
}

/// Returns how many comparisons of a pattern with a name the rules need.
fn pairs(rules: &[CheckedRule], input: &AccessInput<'_>, resources: &Resources, files: &LibraryFiles) -> usize {
    let names: usize = input.definitions.iter().map(|prompt| 1 + prompt.aliases.len()).sum();
    let paths = input.definitions.len() + files.by_path.len() + resources.fixed.len();
    let uris = files.by_path.len() + resources.fixed.len() + resources.templates.len();
    let of_rule = |rule: &CheckedRule| {
        let globs = rule.resources.iter().filter(|pattern| !pattern.is_literal()).count();
        let patterns = if rule.resources.is_empty() { 0 } else { globs.max(1) };
        [(patterns, uris), (rule.prompts.len(), names), (rule.folders.len(), paths)]
            .into_iter()
            .fold(0, |sum: usize, (patterns, names)| sum.saturating_add(patterns.saturating_mul(names)))
    };
    rules.iter().map(of_rule).fold(0, usize::saturating_add)
}

fn has_requirements(input: &AccessInput<'_>, prompts: &[Arc<Prompt>]) -> bool {
    let is_broken_closed = |file: &BrokenFile| file.requirements != Requirements::Known(None);
    !input.rules.is_empty()
        || prompts.iter().any(|prompt: &Arc<Prompt>| prompt.definition.access.is_some())
        || input.definitions.iter().any(|definition| definition.access.is_some())
        || input.broken.iter().any(is_broken_closed)
}

/// Returns the file of a prompt; `None` for a prompt that is defined in code.
fn file_of(definition: &PromptDefinition, files: &LibraryFiles) -> Option<PromptFile> {
    let path = &definition.origin.source.path;
    (!path.starts_with('<')).then(|| (definition.origin.from, files.links.place(path).into_owned()))
}

/// Returns the files that define a prompt of each name, if some of them are not served.
fn rivals<'a>(
    input: &'a AccessInput<'_>,
    prompts: &[Arc<Prompt>],
    files: &LibraryFiles,
) -> HashMap<&'a str, Vec<PromptFile>> {
    let mut by_name: HashMap<&str, Vec<PromptFile>> = HashMap::new();
    if input.broken.is_empty() && input.definitions.len() <= prompts.len() {
        return by_name;
    }
    let definitions = input.definitions.iter().filter_map(|it| Some((it.name.as_str(), file_of(it, files)?)));
    let place = |file: &BrokenFile| (file.from, files.links.place(&file.path).into_owned());
    let broken = input.broken.iter().filter(|file| !file.name.is_empty()).map(|file| (&*file.name, place(file)));
    for (name, file) in definitions.chain(broken) {
        by_name.entry(name).or_default().push(file);
    }
    by_name.retain(|_, files| files.len() > 1);
    by_name
}

fn extend(set: &mut AccessSet, more: AccessSet) {
    for access in more {
        if !set.contains(&access) {
            set.push(access);
        }
    }
}

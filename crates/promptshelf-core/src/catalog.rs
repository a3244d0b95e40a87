//! Catalogs: immutable, sorted sets of prompts and resources.

mod access;
mod pattern;
mod references;
mod review;
mod rule;

use std::{collections::HashMap, ops::Range, sync::Arc};

use pattern::ANY_VALUE;

use crate::{
    content::{Icon, ResourceContents},
    cursor::{self, ListKind},
    definition::{About, Access, AccessRule, AccessSet, LIBRARY_SCHEME, LibraryFile, Policy, RemoteResources},
    diagnostic::{Code, Diagnostic, Location},
    glob::Glob,
    library_files::{LibraryFiles, References},
    prompt::{Prompt, RenderContext},
    provenance::{PromptProvenance, Provenance},
    resource::{Resource, Resources},
    skill::{Skill, Skills},
    template::Lint,
    uri_template::expand_uri_template,
    value::Variables,
};

pub(crate) use access::{AccessInput, AccessTable};
pub(crate) use references::{glob_of, references};
pub(crate) use review::review;
pub use rule::RulePart;

/// The prompts and resources that a server serves at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub(crate) serial: u64,
    pub(crate) generation: Option<u64>,
    pub(crate) provenance: Option<CatalogProvenance>,
    pub(crate) about: About,
    pub(crate) policy: Policy,
    pub(crate) prompts: Arc<[Arc<Prompt>]>,
    /// The indexes of prompts by their former names.
    pub(crate) aliases: Arc<HashMap<String, usize>>,
    pub(crate) resources: Resources,
    pub(crate) files: Arc<LibraryFiles>,
    pub(crate) references: Arc<References>,
    pub(crate) access: Arc<AccessTable>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) remote: Option<Arc<dyn RemoteResources>>,
    /// The catalogs that this one is joined from; empty for one library.
    pub(crate) parts: Arc<[CatalogPart]>,
}

/// The provenance of the prompts from one source of a catalog.
#[derive(Clone, Debug)]
pub struct CatalogProvenance {
    /// The number of the source.
    pub source: usize,
    /// The channel, the revision and the versions.
    pub provenance: Arc<Provenance>,
    /// Whether clients see it.
    pub is_shown: bool,
}

impl CatalogProvenance {
    /// Returns the version of a prompt; `None` for prompts of other sources.
    #[must_use]
    pub fn prompt(&self, prompt: &Prompt) -> Option<&PromptProvenance> {
        self.provenance.prompt(prompt.name().as_str()).filter(|_| self.covers(prompt))
    }

    /// Whether a prompt comes from the source.
    #[must_use]
    pub fn covers(&self, prompt: &Prompt) -> bool {
        prompt.definition.origin.from == self.source
    }

    /// Whether lists show the same for both, but for the number of the revision.
    fn is_listed_like(&self, other: &CatalogProvenance) -> bool {
        let is_hidden = !self.is_shown && !other.is_shown;
        let is_same =
            || Arc::ptr_eq(&self.provenance, &other.provenance) || self.provenance.is_listed_like(&other.provenance);
        is_hidden || (self.is_shown == other.is_shown && self.source == other.source && is_same())
    }
}

impl Catalog {
    /// The number of this state: the revision of the channel that it was made from, so that servers of one channel agree
    /// on it; otherwise the [`serial`](Catalog::serial) number.
    ///
    /// Catalogs with the same generation can differ, because a server may add access rules of its own.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.unwrap_or(self.serial)
    }

    /// The number of catalogs before this one in the same [handle](crate::CatalogHandle): no two of them have the same.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the files of the library that are left out, by path, each with the reason: a prompt cannot attach them.
    pub fn left_out_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.left_out.iter().map(|(path, reason)| (path.as_str(), reason.as_str()))
    }

    /// Sets the generation; `None` for the serial number.
    #[must_use]
    pub fn with_generation(self, generation: Option<u64>) -> Catalog {
        Catalog { generation, ..self }
    }

    /// Sets the provenance of the prompts from one source; see
    /// [`Definitions::of_source`](crate::Definitions::of_source).
    #[must_use]
    pub fn with_provenance(self, provenance: Option<CatalogProvenance>) -> Catalog {
        Catalog { provenance, ..self }
    }

    /// The provenance of the prompts.
    #[must_use]
    pub fn provenance(&self) -> Option<&CatalogProvenance> {
        self.provenance.as_ref()
    }

    pub(crate) fn with_serial(self, serial: u64) -> Catalog {
        Catalog { serial, ..self }
    }

    /// The description of the server.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Limits and list options.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Every prompt, by name.
    #[must_use]
    pub fn prompts(&self) -> &[Arc<Prompt>] {
        &self.prompts
    }

    /// Every resource with a fixed URI, by URI.
    #[must_use]
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources.fixed
    }

    /// Every resource with a URI template, by template.
    #[must_use]
    pub fn templates(&self) -> &[Arc<Resource>] {
        &self.resources.templates
    }

    /// Every skill.
    #[must_use]
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Returns the prompt with exactly this name; neither letter case nor Unicode forms are normalized.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Prompt>> {
        find(&self.prompts, name)
    }

    /// Returns the index of the prompt with exactly this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        position(&self.prompts, name)
    }

    /// Returns the index of the prompt with this former name.
    #[must_use]
    pub fn position_of_alias(&self, name: &str) -> Option<usize> {
        self.aliases.get(name).copied()
    }

    /// Returns the resource of a URI, with the values of its template's variables. Fixed URIs come before templates,
    /// and templates in order.
    #[must_use]
    pub fn find_resource(&self, uri: &str) -> Option<(&Arc<Resource>, Variables)> {
        self.resources.find(uri)
    }

    /// Returns the resource with exactly this declared URI or URI template.
    #[must_use]
    pub fn find_declared(&self, uri: &str) -> Option<&Arc<Resource>> {
        self.resources.find_declared(uri)
    }

    /// Returns a library file by its `library:` URI, if it is read without a declared resource of this URI. Only files
    /// that a resource declares or a prompt refers to are served.
    #[must_use]
    pub fn find_library_file(&self, uri: &str) -> Option<ResourceContents> {
        if let Some(Content::File(file)) = self.parts.first().and_then(|_| self.content_of_part(uri)) {
            return Some(file.contents(uri));
        }
        self.served_file(uri).map(|file| file.contents(uri))
    }

    /// Returns the content of a URI.
    #[must_use]
    pub fn content(&self, uri: &str) -> Option<Content<'_>> {
        if !self.parts.is_empty() {
            return self.content_of_part(uri);
        }
        if let Some(file) = self.skills.file(uri) {
            return Some(Content::File(file.file()));
        }
        match self.resources.find(uri) {
            Some((resource, variables)) => Some(Content::Resource { resource, variables }),
            None => self.served_file(uri).map(Content::File),
        }
    }

    fn served_file(&self, uri: &str) -> Option<&Arc<LibraryFile>> {
        self.files.find(uri).filter(|file| self.files.is_referred_to(file, &self.references))
    }

    /// Returns a file of the library by its path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Arc<LibraryFile>> {
        self.files.by_path.get(path)
    }

    pub(crate) fn values(&self, path: &str) -> Vec<&str> {
        self.files.values(path)
    }

    /// Whether a text is the path of a library file: of a file to attach, or of a restricted prompt.
    pub(crate) fn is_file_name(&self, path: &str) -> bool {
        self.files.by_path.contains_key(path) || self.access.is_prompt_file(&self.files.links.place(path))
    }

    /// Paths of all files of the library.
    pub fn file_paths(&self) -> impl Iterator<Item = &str> {
        self.files.by_path.keys().map(String::as_str)
    }

    /// Paths of the files that a declared resource serves.
    pub fn declared_file_paths(&self) -> impl Iterator<Item = &str> {
        self.files.declared.keys().map(String::as_str)
    }

    pub(crate) fn uris_matching(&self, glob: &str) -> impl Iterator<Item = &str> {
        let glob = Glob::name(glob).ok();
        self.resources
            .fixed
            .iter()
            .map(|r| r.uri())
            .filter(move |uri| glob.as_ref().is_some_and(|glob| glob.is_match(uri)))
    }

    /// Returns the limits, files and resources that prompts are rendered with.
    #[must_use]
    pub fn render_context(&self) -> RenderContext<'_> {
        RenderContext {
            policy: &self.policy,
            files: &self.files,
            references: &self.references,
            resources: &self.resources,
            permission: None,
            interrupt: None,
        }
    }

    /// Returns whether any access rule exists. Without rules every caller has the same view.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.access.is_restricted() || self.parts.iter().any(|part| part.catalog.is_restricted())
    }

    /// Returns whether a caller may have to meet requirements to read a content.
    #[must_use]
    pub fn restricts_contents(&self) -> bool {
        self.access.restricts_contents() || self.parts.iter().any(|part| part.catalog.restricts_contents())
    }

    /// Returns the rules of all sources, with the places of their folders: they can be applied to the catalog of an earlier
    /// revision. Requirements of prompts for themselves are not among them.
    #[must_use]
    pub fn access_rules(&self) -> &[AccessRule] {
        self.access.declared_rules()
    }

    /// Returns the patterns of these rules.
    pub fn rule_parts(&self) -> impl Iterator<Item = RulePart<'_>> {
        self.access.parts()
    }

    /// Returns each combination of rules that applies to an item of a list.
    #[must_use]
    pub fn access_sets(&self) -> &[AccessSet] {
        self.access.sets()
    }

    /// Returns the index in [`access_sets`](Catalog::access_sets) of the rules for an item of a list; `None` if the
    /// catalog has no rules.
    #[must_use]
    pub fn access_place(&self, list: ListKind, index: usize) -> Option<usize> {
        self.access.place(list, index)
    }

    /// Returns the rules for the prompt at an index of the list.
    #[must_use]
    pub fn prompt_access(&self, index: usize) -> &[Arc<Access>] {
        let set = self.access_place(ListKind::Prompts, index).and_then(|place| self.access_sets().get(place));
        set.map_or(&[], Vec::as_slice)
    }

    /// Returns what the prompt at an index of the list calls and includes, by name or path, with its own access rules: all
    /// callers of the prompt receive these texts.
    #[must_use]
    pub fn contained_texts(&self, index: usize) -> Vec<(String, AccessSet)> {
        let Some(prompt) = self.prompts.get(index) else { return Vec::new() };
        let contained = review::contained(&self.access, prompt, (&self.prompts, &self.resources, &self.files));
        contained.into_iter().map(|(_, name, rules)| (name.to_owned(), rules)).collect()
    }

    /// Returns the requirements for the content of a URI. They are those of all its names: another spelling, or another
    /// name of the same file, never opens access.
    #[must_use]
    pub fn uri_access(&self, uri: &str) -> ContentAccess {
        if !self.parts.is_empty() {
            return self.access_of_part(uri);
        }
        if let Some(skill) = self.skills.containing(uri) {
            return ContentAccess { rules: skill.access.clone(), prompts: None };
        }
        match self.content(uri) {
            None => ContentAccess { rules: self.access.uri(uri), prompts: None },
            Some(content) => ContentAccess {
                rules: self.access.content(&content, Some(uri), &self.resources, &self.files),
                prompts: match content {
                    Content::File(file) => self.referring_prompts(&file.path),
                    Content::Resource { .. } => None,
                },
            },
        }
    }

    /// Returns the requirements for a skill: those of its prompt, at this index of the list, and of all its files.
    pub(crate) fn access_of_skill(&self, prompt: usize, skill: &Skill) -> AccessSet {
        if !self.restricts_contents() {
            return AccessSet::new();
        }
        let mut set = self.prompt_access(prompt).to_vec();
        for file in skill.files() {
            let by_path = self.access.path(&file.file().path, &self.resources, &self.files);
            let by_uri = skill.uris_of(file).flat_map(|uri| self.access.uri(&uri));
            for access in by_path.into_iter().chain(by_uri) {
                if !set.contains(&access) {
                    set.push(access);
                }
            }
        }
        set
    }

    /// Returns the requirements for a file of the library or of a root by its path; see [`Links`](crate::Links).
    #[must_use]
    pub fn path_access(&self, path: &str) -> ContentAccess {
        let rules = self.access.path(path, &self.resources, &self.files);
        ContentAccess { rules, prompts: self.referring_prompts(path) }
    }

    /// Returns the prompts that refer to a file; `None` if other things determine whether it is served.
    fn referring_prompts(&self, path: &str) -> Option<Vec<usize>> {
        let is_undeclared = self.files.by_path.contains_key(path) && !self.files.declared.contains_key(path);
        let prompts = self.references.prompts(path);
        (is_undeclared && !prompts.is_empty()).then(|| prompts.iter().map(|index| *index as usize).collect())
    }

    /// Returns the rules for the diagnostics of the library; empty without such rules.
    #[must_use]
    pub fn diagnostics_access(&self) -> AccessSet {
        if !self.parts.is_empty() {
            return self.diagnostics_of_parts();
        }
        self.access.diagnostics()
    }

    /// Returns the rules for the declaration of a resource or resource template.
    #[must_use]
    pub fn declared_access(&self, resource: &Resource) -> AccessSet {
        if let Some(part) = self.part_declaring(resource.uri()) {
            return part.catalog.declared_access(resource);
        }
        match self.find_declared(resource.uri()) {
            Some(resource) => self.access.declared(resource, &self.resources, &self.files),
            None => AccessSet::new(),
        }
    }

    /// Returns the page of a list that begins at a cursor; the first page without one. `None` if the cursor does not
    /// belong to this list.
    #[must_use]
    pub fn page(&self, list: ListKind, cursor: Option<&str>) -> Option<Page> {
        let length = self.length(list);
        let start = self.start(list, cursor)?;
        let end = start.saturating_add(self.policy.page_size.max(1)).min(length);
        let next_cursor = (end < length).then(|| cursor::encode(list, self.key(list, end - 1)));
        Some(Page { range: start..end, next_cursor })
    }

    /// Returns a page like [`page`](Catalog::page), counting shown items only. The range may also contain hidden
    /// items. A cursor never names a hidden item.
    #[must_use]
    pub fn page_of(&self, list: ListKind, cursor: Option<&str>, is_shown: impl Fn(usize) -> bool) -> Option<Page> {
        let length = self.length(list);
        let start = self.start(list, cursor)?;
        let mut shown = (start..length).filter(|index| is_shown(*index));
        let last = shown.by_ref().take(self.policy.page_size.max(1)).last();
        let Some(last) = last.filter(|_| shown.next().is_some()) else {
            return Some(Page { range: start..length, next_cursor: None });
        };
        Some(Page { range: start..last + 1, next_cursor: Some(cursor::encode(list, self.key(list, last))) })
    }

    fn start(&self, list: ListKind, cursor: Option<&str>) -> Option<usize> {
        match cursor {
            None => Some(0),
            Some(cursor) => Some(self.after(list, &cursor::decode(list, cursor)?)),
        }
    }

    fn length(&self, list: ListKind) -> usize {
        match list {
            ListKind::Prompts => self.prompts.len(),
            ListKind::Resources => self.resources.fixed.len(),
            ListKind::ResourceTemplates => self.resources.templates.len(),
        }
    }

    fn after(&self, list: ListKind, last: &str) -> usize {
        match list {
            ListKind::Prompts => self.prompts.partition_point(|prompt| prompt.name().as_str() <= last),
            ListKind::Resources => self.resources.fixed.partition_point(|resource| resource.uri() <= last),
            ListKind::ResourceTemplates => self.resources.templates.partition_point(|resource| resource.uri() <= last),
        }
    }

    fn key(&self, list: ListKind, index: usize) -> &str {
        match list {
            ListKind::Prompts => self.prompts[index].name().as_str(),
            ListKind::Resources => self.resources.fixed[index].uri(),
            ListKind::ResourceTemplates => self.resources.templates[index].uri(),
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Indexes in the list.
    pub range: Range<usize>,
    /// The cursor of the next page, unless this is the last one.
    pub next_cursor: Option<String>,
}

/// The difference between two catalogs, as clients are notified of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The generation of the newer catalog.
    pub generation: u64,
    /// Whether the result of `prompts/list` has changed.
    pub prompts: bool,
    /// Whether the result of `resources/list` or `resources/templates/list` has changed.
    pub resources: bool,
    /// Whether the content of a URI may have changed.
    pub contents: bool,
    /// Whether the result of `tools/list` may have changed, if prompts are served as tools.
    pub tools: bool,
}

impl Change {
    pub(crate) fn between(old: &Catalog, new: &Catalog) -> Change {
        let listed = |old: &[Arc<Resource>], new: &[Arc<Resource>]| {
            !std::ptr::eq(old, new)
                && (old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !old.is_listed_like(new)))
        };
        // Views are not compared caller by caller: a list that may have changed for one caller is announced to all,
        // without names.
        let is_changed = |is_like: fn(&AccessTable, &AccessTable) -> bool| {
            !Arc::ptr_eq(&old.access, &new.access) && !is_like(&old.access, &new.access)
        };
        let access = is_changed(AccessTable::shows_prompts_like);
        // The number of the revision is in every entry, which alone does not require to read a list again.
        let provenance = match (&old.provenance, &new.provenance) {
            (Some(old), Some(new)) => !old.is_listed_like(new),
            (old, new) => old.is_some() != new.is_some(),
        };
        let prompts = access || provenance || !old.has_parts_like(new) || !are_listed_alike(&old.prompts, &new.prompts);
        Change {
            generation: new.generation(),
            prompts,
            resources: is_changed(AccessTable::shows_resources_like)
                || listed(&old.resources.fixed, &new.resources.fixed)
                || listed(&old.resources.templates, &new.resources.templates)
                // The extension has no notification of its own: skills are resources.
                || old.skills != new.skills,
            contents: true,
            tools: access || !are_tools_alike(&old.prompts, &new.prompts),
        }
    }
}

/// Returns the indexes of prompts by former names that no other prompt has: of two prompts with the same one, the first.
pub(crate) fn aliases(prompts: &[Arc<Prompt>], found: &mut Vec<Diagnostic>) -> Arc<HashMap<String, usize>> {
    let mut aliases = HashMap::new();
    for (index, prompt) in prompts.iter().enumerate() {
        for (at, alias) in prompt.aliases().enumerate() {
            let taken = position(prompts, &alias).or_else(|| aliases.get(&alias).copied());
            let Some(other) = taken.and_then(|other| prompts.get(other)) else {
                aliases.insert(alias, index);
                continue;
            };
            let origin = &prompt.definition.origin;
            let message = if other.name() == prompt.name() {
                format!("`{alias}` is the name of the prompt, or stands here twice")
            } else {
                format!("the former name `{alias}` leads to the prompt `{}` instead", other.name())
            };
            let found_here = Diagnostic::warning(Code::DuplicateName, origin.locate(&format!("aliases.{at}")), message);
            found.push(found_here.also(other.definition.origin.locate("name"), "this one").help("remove it"));
        }
    }
    Arc::new(aliases)
}

/// Returns the index of a prompt in a list that is sorted by name.
fn position(prompts: &[Arc<Prompt>], name: &str) -> Option<usize> {
    prompts.binary_search_by(|prompt| prompt.name().as_str().cmp(name)).ok()
}

/// Returns a prompt of a list that is sorted by name.
pub(crate) fn find<'p>(prompts: &'p [Arc<Prompt>], name: &str) -> Option<&'p Arc<Prompt>> {
    prompts.get(position(prompts, name)?)
}

fn are_listed_alike(old: &[Arc<Prompt>], new: &[Arc<Prompt>]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new) || old.is_listed_like(new))
}

fn are_tools_alike(old: &[Arc<Prompt>], new: &[Arc<Prompt>]) -> bool {
    let tools = |prompts: &'_ [Arc<Prompt>]| {
        prompts.iter().filter(|prompt| prompt.definition.tool).cloned().collect::<Vec<_>>()
    };
    let is_same = |(old, new): (&Arc<Prompt>, &Arc<Prompt>)| {
        Arc::ptr_eq(old, new) || old.is_listed_like(new) && old.definition.arguments == new.definition.arguments
    };
    let (old, new) = (tools(old), tools(new));
    old.len() == new.len() && old.iter().zip(&new).all(is_same)
}

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

// Icons of library files in lists, and the access rules for these files.
// A list is the same for all callers with the same view, so an icon is either part of an entry or not: it is left out
// if reading its file takes more than seeing the entry.

impl Catalog {
    /// Returns the icons of a prompt of this catalog, without those of files whose access rules require more than the
    /// prompt does.
    pub fn prompt_icons<'c>(&'c self, prompt: &'c Prompt) -> impl Iterator<Item = &'c Icon> {
        let served = prompt.served().and_then(|(part, own)| Some((&*self.parts.get(part)?.catalog, &**own)));
        let (catalog, prompt) = served.unwrap_or((self, prompt));
        catalog.shown(prompt.icons(), || {
            let index = catalog.position(prompt.name().as_str());
            index.map(|index| catalog.prompt_access(index).to_vec()).unwrap_or_default()
        })
    }

    /// Returns the icons of a resource of this catalog, without those of files whose access rules require more than the
    /// resource does.
    pub fn resource_icons<'c>(&'c self, resource: &'c Resource) -> impl Iterator<Item = &'c Icon> {
        let part = resource.icons().first().and_then(|_| self.part_declaring(resource.uri()));
        let catalog = part.map_or(self, |part| &part.catalog);
        catalog.shown(resource.icons(), || catalog.declared_access(resource))
    }

    fn shown<'c>(
        &'c self,
        icons: &'c [Icon],
        requirements: impl FnOnce() -> AccessSet,
    ) -> impl Iterator<Item = &'c Icon> {
        let is_checked = self.restricts_contents() && icons.iter().any(|icon| icon.file.is_some());
        let own = is_checked.then(requirements);
        icons.iter().filter(move |icon| own.as_ref().is_none_or(|own| !self.is_closed(icon, own)))
    }

    /// Whether reading the file of an icon requires more than these requirements.
    fn is_closed(&self, icon: &Icon, own: &[Arc<Access>]) -> bool {
        let Some(path) = icon.file.as_deref() else { return false };
        let ContentAccess { rules, prompts } = self.path_access(path);
        // Entries are shown to callers that lack the scopes of a visible rule.
        let is_met = |set: &[Arc<Access>]| set.iter().all(|access| !access.visible && own.contains(access));
        !is_met(&rules)
            || prompts.is_some_and(|prompts| !prompts.iter().any(|index| is_met(self.prompt_access(*index))))
    }
}

/// Removes the icons of the server that are restricted files, because every caller receives them.
pub(crate) fn close_server_icons(catalog: &mut Catalog, rules: &[AccessRule], found: &mut Vec<Diagnostic>) {
    let mut icons = std::mem::take(&mut catalog.about.icons);
    icons.retain(|icon| {
        let is_closed = catalog.is_closed(icon, &[]);
        if let (true, Some(path), Some(rule)) = (is_closed, &icon.file, rules.first()) {
            found.push(closed("the server", path, rule.origin.locate("access")));
        }
        !is_closed
    });
    catalog.about.icons = icons;
}

/// Reports the icons of the prompts at these indexes that lists do not show.
pub(crate) fn review_prompt_icons(
    catalog: &Catalog,
    indexes: impl Iterator<Item = usize>,
    found: &mut Vec<Diagnostic>,
) {
    if !catalog.restricts_contents() {
        return;
    }
    for (index, prompt) in indexes.filter_map(|index| Some((index, catalog.prompts.get(index)?))) {
        let own = catalog.prompt_access(index);
        let paths =
            prompt.icons().iter().filter(|icon| catalog.is_closed(icon, own)).filter_map(|icon| icon.file.as_ref());
        let location = || prompt.definition.origin.locate("icons");
        found.extend(paths.map(|path| closed(&format!("the prompt `{}`", prompt.name()), path, location())));
    }
}

/// Reports the icons of resources that lists do not show.
pub(crate) fn review_resource_icons(catalog: &Catalog, found: &mut Vec<Diagnostic>) {
    for resource in catalog.resources().iter().chain(catalog.templates()).filter(|it| !it.icons().is_empty()) {
        let shown: Vec<_> = catalog.resource_icons(resource).collect();
        let closed_icons = resource.icons().iter().filter(|icon| !shown.contains(icon));
        let location = || resource.definition.origin.locate("icons");
        let owner = format!("the resource `{}`", resource.uri());
        found.extend(closed_icons.filter_map(|icon| icon.file.as_ref()).map(|path| closed(&owner, path, location())));
    }
}

fn closed(owner: &str, path: &str, location: Location) -> Diagnostic {
    let message = format!("the icon `{path}` of {owner} has an access rule that requires more: lists leave it out");
    Diagnostic::warning(Code::RestrictedContent, location, message)
        .help("give both the same access rule, or use a file without one as the icon")
}

// Catalogs that are joined from the catalogs of several sources.
// Each part keeps its files, partials, resources and access rules to itself: names inside of it never lead into another
// part. The joined catalog has the lists, and finds the part that a served name belongs to.

/// The catalog of one source among several.
#[derive(Clone, Debug)]
pub struct CatalogPart {
    /// The configured name of the source; empty for definitions of the server itself.
    pub source: Arc<str>,
    /// The text before each prompt's own name.
    pub prefix: Arc<str>,
    /// Whether the content comes from another server, and not from a library that is checked here.
    pub is_foreign: bool,
    /// The id of this server, by which other servers recognize prompts that come back to it. `None` if no prompts of
    /// other servers are served.
    pub server_id: Option<Arc<str>>,
    /// The prompts and resources under their own names, with all access rules that bind them.
    pub catalog: Arc<Catalog>,
    /// The diagnostics of the source.
    pub diagnostics: Arc<[Diagnostic]>,
}

impl CatalogPart {
    fn is_listed_like(&self, other: &CatalogPart) -> bool {
        let provenance = match (&self.catalog.provenance, &other.catalog.provenance) {
            (Some(ours), Some(theirs)) => ours.is_listed_like(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        };
        provenance
            && self.source == other.source
            && self.is_foreign == other.is_foreign
            && self.server_id == other.server_id
    }
}

impl Catalog {
    /// Returns the parts of a joined catalog, in the order of their sources; empty for the catalog of one library.
    #[must_use]
    pub fn parts(&self) -> &[CatalogPart] {
        &self.parts
    }

    /// Returns the part that a prompt of this catalog belongs to, and the prompt under its own name there. `None` if the
    /// catalog is not joined.
    ///
    /// A prompt of a joined catalog is rendered and completed with the catalog of its part.
    #[must_use]
    pub fn part_of(&self, prompt: &Prompt) -> Option<(&CatalogPart, Arc<Prompt>)> {
        let (part, own) = prompt.served()?;
        Some((self.parts.get(part)?, Arc::clone(own)))
    }

    /// Returns the name of a prompt in its channel, which has no prefix of a source. For a prompt of something else it is the
    /// served name.
    #[must_use]
    pub fn name_in_channel<'p>(&self, prompt: &'p Prompt) -> &'p str {
        let own = prompt.served().filter(|(part, _)| {
            let found = self.parts.get(*part).and_then(|part| part.catalog.provenance());
            found.is_some_and(|found| found.provenance.channel().is_some())
        });
        own.map_or(prompt.name(), |(_, own)| own.name()).as_str()
    }

    /// Returns the name of the source of a prompt by its served name, also of one that is no longer served: names are the
    /// prefix of their source and their own name. `None` if the catalog is not joined, and without a fitting prefix.
    #[must_use]
    pub fn source_of_name(&self, name: &str) -> Option<&Arc<str>> {
        let served = self.find(name).and_then(|prompt| prompt.served()).map(|(part, _)| part);
        let fits = |part: &&CatalogPart| !part.prefix.is_empty() && name.starts_with(&*part.prefix);
        let part = match served {
            Some(part) => self.parts.get(part),
            None => self.parts.iter().filter(fits).max_by_key(|part| part.prefix.len()),
        };
        part.map(|part| &part.source).filter(|source| !source.is_empty())
    }

    /// Returns the part that serves the content of a URI. `None` if no part does, or several do: then none of them
    /// is read, so that no source can replace the content of another one.
    #[must_use]
    pub fn part_of_uri(&self, uri: &str) -> Option<&CatalogPart> {
        if let Some(rest) = uri.strip_prefix(LIBRARY_SCHEME).and_then(|rest| rest.strip_prefix("://")) {
            // The URI of a file names its source. Inside of a library the name may be missing.
            let (source, _) = rest.split_once('/')?;
            let part = self.parts.iter().find(|part| *part.source == *source)?;
            return part.catalog.content(uri).is_some().then_some(part);
        }
        let mut found = self.parts.iter().filter(|part| part.catalog.content(uri).is_some());
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns the resources of another server, for the catalog of its prompts.
    #[must_use]
    pub fn remote_resources(&self) -> Option<&Arc<dyn RemoteResources>> {
        self.remote.as_ref()
    }

    /// Returns the part that declares a resource or a resource template.
    #[must_use]
    pub fn part_declaring(&self, uri: &str) -> Option<&CatalogPart> {
        let mut found = self.parts.iter().filter(|part| part.catalog.find_declared(uri).is_some());
        found.next().filter(|_| found.next().is_none())
    }

    fn content_of_part(&self, uri: &str) -> Option<Content<'_>> {
        self.part_of_uri(uri)?.catalog.content(uri)
    }

    /// Returns the rules of the part for a URI. Prompts that refer to a file have other indexes in this catalog: the
    /// access is closed then, and decided with the part.
    fn access_of_part(&self, uri: &str) -> ContentAccess {
        let Some(part) = self.part_of_uri(uri) else { return ContentAccess::default() };
        let ContentAccess { rules, prompts } = part.catalog.uri_access(uri);
        ContentAccess { rules, prompts: prompts.map(|_| Vec::new()) }
    }

    fn has_parts_like(&self, other: &Catalog) -> bool {
        self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&*other.parts).all(|(ours, theirs)| ours.is_listed_like(theirs))
    }

    fn diagnostics_of_parts(&self) -> AccessSet {
        let mut all = AccessSet::new();
        for access in self.parts.iter().flat_map(|part| part.catalog.diagnostics_access()) {
            if !all.contains(&access) {
                all.push(access);
            }
        }
        all
    }
}

impl AccessTable {
    /// Creates the table of a joined catalog from the requirements of each item of its lists.
    pub(crate) fn joined(
        prompts: impl Iterator<Item = AccessSet>,
        resources: impl Iterator<Item = AccessSet>,
        templates: impl Iterator<Item = AccessSet>,
    ) -> AccessTable {
        let mut table = AccessTable::with_first_set();
        let prompts = prompts.map(|set| table.add(set)).collect();
        let resources = resources.map(|set| table.add(set)).collect();
        let templates = templates.map(|set| table.add(set)).collect();
        table.with_places(prompts, resources, templates)
    }
}

/// The largest number of query variables that a URI can lack, each of which doubles the number of its spellings. With
/// more of them, the URI counts as one that could be any URI of its template.
const MAX_OPTIONAL: usize = 4;

/// The content behind a URI or a path of the library.
#[derive(Debug)]
pub enum Content<'c> {
    /// A declared resource, with the values of its template's variables as the URI spells them.
    Resource {
        /// The resource.
        resource: &'c Arc<Resource>,
        /// The values.
        variables: Variables,
    },
    /// A file of the library, without a declared resource of this URI.
    File(&'c Arc<LibraryFile>),
}

/// The requirements for reading a content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentAccess {
    /// Requirements that apply together.
    pub rules: AccessSet,
    /// The prompts that refer to a file, by their index in the list: a caller must be able to use one of them. `None`
    /// if a resource declares the file, so that prompts do not matter.
    pub prompts: Option<Vec<usize>>,
}

/// The names of contents: paths and URIs.
#[derive(Clone, Copy)]
struct Names<'c> {
    resources: &'c Resources,
    files: &'c LibraryFiles,
    fixed: &'c HashMap<String, Vec<usize>>,
}

#[derive(Debug, Default)]
struct NameSet {
    paths: Vec<String>,
    /// The names by which the library declares it: the URIs of each declaration, and the text of a template.
    declared: Vec<DeclaredNames>,
    uris: Vec<String>,
}

#[derive(Debug)]
struct DeclaredNames {
    declaration: String,
    /// URIs, with [`ANY`](pattern::ANY) for a part that can be any text.
    uris: Vec<String>,
}

impl NameSet {
    fn all_uris(&self) -> impl Iterator<Item = &str> {
        let declared = self.declared.iter();
        let declared = declared.flat_map(|names| [&names.declaration].into_iter().chain(&names.uris));
        declared.chain(&self.uris).map(String::as_str)
    }
}

impl<'c> Names<'c> {
    /// Returns the content of a URI, whether or not the library serves it.
    fn find(&self, uri: &str) -> Option<Content<'c>> {
        match self.resources.find(uri) {
            Some((resource, variables)) => Some(Content::Resource { resource, variables }),
            None => self.files.find(uri).map(Content::File),
        }
    }

    fn place(&self, resource: &Resource, variables: &Variables) -> Option<String> {
        let path = resource.path(&resource.bind(variables).ok()?)?;
        Some(self.files.links.place(&path).into_owned())
    }

    fn place_of(&self, content: &Content<'_>) -> Option<String> {
        match content {
            Content::File(file) => Some(self.files.links.place(&file.path).into_owned()),
            Content::Resource { resource, variables } => self.place(resource, variables),
        }
    }

    fn of(&self, content: &Content<'c>) -> NameSet {
        match content {
            Content::File(file) => self.of_file(&self.files.links.place(&file.path)),
            Content::Resource { resource, variables } => match self.place(resource, variables) {
                Some(place) => self.of_file(&place),
                None => {
                    // Values that violate the constraints belong to no content.
                    let uris = resource.bind(variables).map(|bound| spellings(resource, &bound, &[]));
                    let (declaration, uris) = (resource.uri().to_owned(), uris.unwrap_or_default());
                    NameSet { declared: vec![DeclaredNames { declaration, uris }], ..NameSet::default() }
                }
            },
        }
    }

    fn of_file(&self, place: &str) -> NameSet {
        let paths = self.files.links.names(place);
        let declared = self.declared(place, &paths);
        let uris = paths.iter().flat_map(|path| self.files.library_uris(path)).collect();
        NameSet { paths, declared, uris }
    }

    /// Returns the names that the library declares for the file at a place, which has these paths.
    fn declared(&self, place: &str, paths: &[String]) -> Vec<DeclaredNames> {
        let fixed = self.fixed.get(place).into_iter().flatten();
        let fixed = fixed.map(|index| self.resources.fixed[*index].uri().to_owned());
        let mut names: Vec<DeclaredNames> =
            fixed.map(|declaration| DeclaredNames { declaration, uris: Vec::new() }).collect();
        for template in &*self.resources.templates {
            let readings = paths.iter().flat_map(|path| template.variables_of(path));
            let uris: Vec<String> = readings.flat_map(|variables| uris_of(template, &variables)).collect();
            if !uris.is_empty() {
                names.push(DeclaredNames { declaration: template.uri().to_owned(), uris });
            }
        }
        names
    }
}

/// Returns the URIs of a template for these values. A variable without a value can have any.
fn uris_of(template: &Resource, variables: &Variables) -> Vec<String> {
    let all = template.variables().iter().map(crate::Argument::name);
    let free: Vec<&str> = all.filter(|name| !variables.contains_key(*name)).collect();
    // Values that violate the constraints belong to no URI.
    let bound = if free.is_empty() { template.bind(variables) } else { Ok(variables.clone()) };
    bound.map(|bound| spellings(template, &bound, &free)).unwrap_or_default()
}

/// Returns the URIs that a resource has for bound values of its variables. A free variable can have any value.
fn spellings(resource: &Resource, bound: &Variables, free: &[&str]) -> Vec<String> {
    let Some(query) = resource.query_variables() else { return vec![resource.uri().to_owned()] };
    let is_free = |name: &str| free.contains(&name);
    let has_default = |name: &str| {
        let default = resource.variables().iter().find(|variable| variable.name() == name)?.default_value()?;
        Some(bound.get(name)? == default)
    };
    let mut optional: Vec<&str> = query.iter().map(String::as_str).collect();
    optional.retain(|name| is_free(name) || has_default(name) == Some(true));
    let mut values = bound.clone();
    values.extend(free.iter().map(|name| ((*name).to_owned(), ANY_VALUE.to_owned())));
    if optional.len() > MAX_OPTIONAL {
        values.extend(optional.drain(..).map(|name| (name.to_owned(), ANY_VALUE.to_owned())));
    }
    let spelled = (0..1_usize << optional.len()).filter_map(|subset| {
        let mut values = values.clone();
        for (bit, name) in optional.iter().enumerate() {
            if subset >> bit & 1 == 1 {
                values.remove(*name);
            }
        }
        expand_uri_template(resource.uri(), &values)
    });
    spelled.collect()
}

//! Catalogs: immutable, sorted sets of prompts and resources.

use std::{collections::HashMap, ops::Range, sync::Arc};

use globset::GlobBuilder;

use crate::{
    content::ResourceContents,
    cursor::{self, ListKind},
    definition::{About, Access, AccessRule, AccessSet, LibraryFile, Policy, RemoteResources},
    diagnostic::{Code, Diagnostic},
    library_files::{LibraryFiles, References},
    prompt::{Prompt, RenderContext},
    provenance::{PromptProvenance, Provenance},
    resource::{Resource, Resources},
    skill::{Skill, Skills},
    value::Variables,
};

mod access;
mod calls;
mod content;
mod icons;
mod part;
mod pattern;
mod references;
mod review;
mod rule;

pub(crate) use access::{AccessInput, AccessTable};
pub use content::{Content, ContentAccess};
pub(crate) use icons::{close_server_icons, review_prompt_icons, review_resource_icons};
pub use part::CatalogPart;
pub(crate) use references::{glob_of, references};
pub(crate) use review::review;

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
        let glob = GlobBuilder::new(glob).literal_separator(false).build().ok().map(|glob| glob.compile_matcher());
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

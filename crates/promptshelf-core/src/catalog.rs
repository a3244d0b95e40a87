//! Catalogs: an immutable, sorted set of prompts and resources.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::Arc,
};

use globset::GlobBuilder;

use crate::{
    access::AccessTable,
    content::ResourceContents,
    cursor::{self, ListKind},
    definition::{About, LibraryFile, Policy},
    diagnostic::SourceText,
    prompt::Prompt,
    resource::{LIBRARY_SCHEME, Resource, Variables},
};

mod list;

pub use list::PromptList;

/// Everything that a server serves at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub(crate) generation: u64,
    pub(crate) about: About,
    pub(crate) policy: Policy,
    /// By name.
    pub(crate) prompts: PromptList,
    /// Names of those that others bring in, and maybe of some that were.
    pub(crate) brought_in: Arc<HashSet<String>>,
    /// Those with a fixed URI, by URI.
    pub(crate) resources: Arc<[Arc<Resource>]>,
    /// Those with a URI template, by template.
    pub(crate) templates: Arc<[Arc<Resource>]>,
    pub(crate) files: Arc<Files>,
    pub(crate) access: Arc<AccessTable>,
}

/// A library's files, and the URI of each.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) by_path: BTreeMap<String, Arc<LibraryFile>>,
    /// URIs that the library declares for a file.
    pub(crate) declared: BTreeMap<String, Arc<str>>,
    /// Texts that templates can include, by path.
    pub(crate) partials: BTreeMap<String, Arc<SourceText>>,
}

impl Files {
    pub(crate) fn uri(&self, file: &LibraryFile) -> Arc<str> {
        self.declared.get(&file.path).cloned().unwrap_or_else(|| Arc::from(file.uri()))
    }

    /// The file behind a `library:` URI. Files below a `_` part are never
    /// served by themselves.
    pub(crate) fn find(&self, uri: &str) -> Option<&Arc<LibraryFile>> {
        let path = uri.strip_prefix(LIBRARY_SCHEME)?.strip_prefix(":///")?;
        let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
        self.by_path.get(&*path).filter(|file| file.is_served())
    }
}

impl Catalog {
    /// How many catalogs came before it in its place.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn with_generation(self, generation: u64) -> Catalog {
        Catalog { generation, ..self }
    }

    /// What the server says of itself.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Bounds and quirks.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Every prompt, by name.
    #[must_use]
    pub fn prompts(&self) -> &PromptList {
        &self.prompts
    }

    /// Every resource with a fixed URI, by URI.
    #[must_use]
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// Every resource with a URI template, by template.
    #[must_use]
    pub fn templates(&self) -> &[Arc<Resource>] {
        &self.templates
    }

    /// The prompt with exactly this name: no letter case and no Unicode form is
    /// made equal to another.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.prompts.get(self.position(name)?)
    }

    /// The place of the prompt with exactly this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.prompts.position(name)
    }

    /// The resource that a URI is of, with the values of its template's
    /// variables. Fixed URIs come before templates, and templates in order.
    #[must_use]
    pub fn find_resource(&self, uri: &str) -> Option<(&Arc<Resource>, Variables)> {
        if let Ok(index) = self.resources.binary_search_by(|resource| resource.uri().cmp(uri)) {
            return self.resources.get(index).map(|resource| (resource, Variables::new()));
        }
        self.templates.iter().find_map(|resource| Some((resource, resource.matches(uri)?)))
    }

    /// A resource or resource template by exactly what its declaration says.
    #[must_use]
    pub fn find_declared(&self, uri: &str) -> Option<&Arc<Resource>> {
        let fixed = self.resources.binary_search_by(|resource| resource.uri().cmp(uri)).ok();
        fixed.and_then(|index| self.resources.get(index)).or_else(|| self.templates.iter().find(|t| t.uri() == uri))
    }

    /// A file of the library that is read as a resource though none is declared for it.
    #[must_use]
    pub fn find_library_file(&self, uri: &str) -> Option<ResourceContents> {
        self.files.find(uri).map(|file| file.contents(uri))
    }

    /// A file of the library, by its path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Arc<LibraryFile>> {
        self.files.by_path.get(path)
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
        self.resources.iter().map(|r| r.uri()).filter(move |uri| glob.as_ref().is_some_and(|glob| glob.is_match(uri)))
    }

    /// The items of a list that a cursor begins, as many as a page holds;
    /// `None` for a cursor that is none of this list's. No cursor is the first page.
    #[must_use]
    pub fn page(&self, list: ListKind, cursor: Option<&str>) -> Option<Page> {
        let length = self.length(list);
        let start = self.start(list, cursor)?;
        let end = start.saturating_add(self.policy.page_size.max(1)).min(length);
        let next_cursor = (end < length).then(|| cursor::encode(list, self.key(list, end - 1)));
        Some(Page { range: start..end, next_cursor })
    }

    /// Like [`page`](Catalog::page), of those items only that are shown. The
    /// range holds a page of them, and in between those that are not. No cursor
    /// ever names an item that is not shown.
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

    /// Where a page begins.
    fn start(&self, list: ListKind, cursor: Option<&str>) -> Option<usize> {
        match cursor {
            None => Some(0),
            Some(cursor) => Some(self.after(list, &cursor::decode(list, cursor)?)),
        }
    }

    fn length(&self, list: ListKind) -> usize {
        match list {
            ListKind::Prompts => self.prompts.len(),
            ListKind::Resources => self.resources.len(),
            ListKind::ResourceTemplates => self.templates.len(),
        }
    }

    /// How many items come before or are this one.
    fn after(&self, list: ListKind, last: &str) -> usize {
        match list {
            ListKind::Prompts => self.prompts.partition_point(|name| name <= last),
            ListKind::Resources => self.resources.partition_point(|resource| resource.uri() <= last),
            ListKind::ResourceTemplates => self.templates.partition_point(|resource| resource.uri() <= last),
        }
    }

    fn key(&self, list: ListKind, index: usize) -> &str {
        match list {
            ListKind::Prompts => self.prompts[index].name().as_str(),
            ListKind::Resources => self.resources[index].uri(),
            ListKind::ResourceTemplates => self.templates[index].uri(),
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Places in the list.
    pub range: Range<usize>,
    /// The cursor of the next page, unless this is the last one.
    pub next_cursor: Option<String>,
}

/// What differs between two catalogs, as far as clients are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The generation of the newer catalog.
    pub generation: u64,
    /// What `prompts/list` shows has changed.
    pub prompts: bool,
    /// What `resources/list` or `resources/templates/list` shows has changed.
    pub resources: bool,
    /// What some URI holds may have changed.
    pub contents: bool,
}

impl Change {
    pub(crate) fn between(old: &Catalog, new: &Catalog) -> Change {
        let listed = |old: &[Arc<Resource>], new: &[Arc<Resource>]| {
            !std::ptr::eq(old, new)
                && (old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !old.is_listed_like(new)))
        };
        // Who sees what is not compared caller by caller: a list that may have
        // changed for somebody is announced to everybody, and names nothing.
        let access = !Arc::ptr_eq(&old.access, &new.access) && !old.access.is_like(&new.access);
        let prompts = access || !old.prompts.is_listed_like(&new.prompts);
        Change {
            generation: new.generation,
            prompts,
            resources: access || listed(&old.resources, &new.resources) || listed(&old.templates, &new.templates),
            contents: true,
        }
    }
}

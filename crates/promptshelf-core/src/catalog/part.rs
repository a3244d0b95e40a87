//! Catalogs that are joined from the catalogs of several sources.
//!
//! Each part keeps its files, partials, resources and access rules to itself: names inside of it never lead into another
//! part. The joined catalog has the lists, and finds the part that a served name belongs to.

use std::sync::Arc;

use super::{Catalog, ContentAccess, access::AccessTable, content::Content};
use crate::{
    definition::{AccessSet, LIBRARY_SCHEME, RemoteResources},
    diagnostic::Diagnostic,
    prompt::Prompt,
};

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

    pub(super) fn content_of_part(&self, uri: &str) -> Option<Content<'_>> {
        self.part_of_uri(uri)?.catalog.content(uri)
    }

    /// Returns the rules of the part for a URI. Prompts that refer to a file have other indexes in this catalog: the
    /// access is closed then, and decided with the part.
    pub(super) fn access_of_part(&self, uri: &str) -> ContentAccess {
        let Some(part) = self.part_of_uri(uri) else { return ContentAccess::default() };
        let ContentAccess { rules, prompts } = part.catalog.uri_access(uri);
        ContentAccess { rules, prompts: prompts.map(|_| Vec::new()) }
    }

    pub(super) fn has_parts_like(&self, other: &Catalog) -> bool {
        self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&*other.parts).all(|(ours, theirs)| ours.is_listed_like(theirs))
    }

    pub(super) fn diagnostics_of_parts(&self) -> AccessSet {
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

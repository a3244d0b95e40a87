//! One catalog as one caller sees it: visibility, cache scope, time to live, server information.
//!
//! Elsewhere: the access rules themselves (`access`), and results that carry their view (`answer`).

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use promptshelf_core::{About, Catalog, Content, ContentName, Page, Prompt, cursor::ListKind};

use crate::{
    access, caller::Caller, rejection::Rejection, rejection::echo, rollout::RolloutGroup, service::ServedRollout,
};

/// The list items that a caller sees. Equal for callers that see the same, so it can be part of a cache key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// All items, for every caller that reaches this server.
    Public,
    /// All items, for an authenticated caller or the local user. A shared cache must not pass them on to others.
    All,
    /// For each combination of access requirements ([`Catalog::access_sets`]), whether its items are listed.
    Some(Arc<[bool]>),
}

/// The callers that may share a cached answer (`cacheScope` of MCP revision 2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// Every caller.
    Public,
    /// The caller that sent the request.
    Private,
}

/// What is served at present, for an earlier revision.
#[derive(Debug)]
pub struct Present {
    /// The catalog, whose rules hold for the earlier revision too.
    pub catalog: Arc<Catalog>,
    /// The paths at which contents of the earlier revision stand now, by the earlier path. A content that stands at closed
    /// paths only is closed wherever it was; one that is gone follows the rules for its earlier path.
    pub places: HashMap<String, Vec<String>>,
}

impl Present {
    /// Returns whether a caller may read the content of an earlier file at one of the paths that it has now.
    fn opens(&self, caller: &Caller, path: &str, is_open: impl Fn(&str) -> bool) -> bool {
        let may_read = |place: &String| {
            let of_prompt = self.catalog.prompts().iter().position(|prompt| *prompt.source().path == **place);
            is_open(place)
                || (of_prompt.is_none_or(|index| access::may_use(&self.catalog, caller, index))
                    && access::permit(&self.catalog, caller, ContentName::Path(place)).is_ok())
        };
        self.places.get(path).is_none_or(|places| places.iter().any(may_read))
    }
}

/// A catalog as one caller sees it: the single source of everything that an answer holds.
///
/// ```
/// use promptshelf_core::{CatalogHandle, Definitions, check};
/// use promptshelf_service::{CacheScope, Caller, Service};
///
/// let handle = CatalogHandle::new(check(Definitions::default(), None).catalog);
/// let service = Service::new(handle.clone());
/// let view = service.view(&Caller::anonymous());
/// handle.replace(check(Definitions::default(), None).catalog);
/// assert_eq!((view.catalog().generation(), service.catalog().generation()), (0, 1));
/// assert_eq!(view.cache_scope(), CacheScope::Public);
/// ```
#[derive(Clone, Debug)]
pub struct View {
    catalog: Arc<Catalog>,
    caller: Caller,
    /// What is served at present, if this is an earlier revision: its rules hold too.
    present: Option<Arc<Present>>,
    /// The rollout of the channel, and the group of the caller in it.
    rollout: Option<(Arc<ServedRollout>, RolloutGroup)>,
    /// Computed on first use: most requests for a single prompt do not need it.
    visibility: OnceLock<Visibility>,
}

impl View {
    pub(crate) fn new(catalog: Arc<Catalog>, caller: &Caller) -> View {
        View { catalog, caller: caller.clone(), present: None, rollout: None, visibility: OnceLock::new() }
    }

    pub(crate) fn with_present(self, present: Option<Arc<Present>>) -> View {
        View { present, ..self }
    }

    pub(crate) fn with_rollout(self, served: Arc<ServedRollout>, group: RolloutGroup) -> View {
        View { rollout: Some((served, group)), ..self }
    }

    pub(crate) fn rollout(&self) -> Option<(&ServedRollout, RolloutGroup)> {
        self.rollout.as_ref().map(|(served, group)| (&**served, *group))
    }

    /// Returns the group of the caller in the rollout of the channel; `None` without one, and for callers without
    /// identity.
    #[must_use]
    pub fn rollout_group(&self) -> Option<RolloutGroup> {
        self.rollout.as_ref().map(|(_, group)| *group)
    }

    /// Returns the catalog.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the view of the source that a prompt of a joined catalog comes from, and the prompt under its own name
    /// there; `None` if the catalog is that of one library.
    pub(crate) fn of_source(&self, prompt: &Prompt) -> Option<(View, Arc<Prompt>)> {
        let (part, own) = self.catalog.part_of(prompt)?;
        Some((View::new(Arc::clone(&part.catalog), &self.caller), own))
    }

    pub(crate) fn of_declaration(&self, uri: &str) -> Option<View> {
        let part = self.catalog.part_declaring(uri)?;
        Some(View::new(Arc::clone(&part.catalog), &self.caller))
    }

    /// Returns the caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the name and description of the server, as the library declares them.
    #[must_use]
    pub fn about(&self) -> &About {
        self.catalog.about()
    }

    /// Returns how long a client may reuse an answer.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.catalog.policy().ttl
    }

    /// Returns the callers that may share an answer.
    #[must_use]
    pub fn cache_scope(&self) -> CacheScope {
        match self.visibility() {
            Visibility::Public => CacheScope::Public,
            Visibility::All | Visibility::Some(_) => CacheScope::Private,
        }
    }

    /// Returns the list items that the caller sees.
    pub fn visibility(&self) -> &Visibility {
        self.visibility.get_or_init(|| {
            if !self.catalog.is_restricted()
                && !self.present.as_ref().is_some_and(|present| present.catalog.is_restricted())
            {
                // An authenticated caller may get answers that others do not get: a shared cache must not pass them
                // on to callers that are not authenticated.
                return if self.caller.identity().is_some() { Visibility::All } else { Visibility::Public };
            }
            if self.caller.is_local() {
                return Visibility::All;
            }
            let sets = self.catalog.access_sets().iter();
            Visibility::Some(sets.map(|set| access::is_listed(&self.caller, set)).collect())
        })
    }

    /// Returns whether the item at an index of a list is shown to the caller.
    #[must_use]
    pub fn shows(&self, list: ListKind, index: usize) -> bool {
        match self.visibility() {
            Visibility::Public | Visibility::All => true,
            Visibility::Some(sets) => {
                self.catalog.access_place(list, index).is_none_or(|place| sets.get(place).copied().unwrap_or_default())
            }
        }
    }

    /// Finds a prompt that the caller may use, without a record.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownPrompt`] and [`Rejection::InsufficientScope`].
    pub fn find(&self, name: &str) -> Result<Arc<Prompt>, Rejection> {
        access::find(&self.catalog, &self.caller, name)
    }

    /// Returns the number of items of a list that the caller sees.
    #[must_use]
    pub fn count(&self, list: ListKind) -> usize {
        let length = match list {
            ListKind::Prompts => self.catalog.prompts().len(),
            ListKind::Resources => self.catalog.resources().len(),
            ListKind::ResourceTemplates => self.catalog.templates().len(),
        };
        (0..length).filter(|index| self.shows(list, *index)).count()
    }

    /// Checks that the caller may read a URI, whether or not a resource has it.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownResource`] and [`Rejection::InsufficientScope`].
    pub fn permit(&self, uri: &str) -> Result<(), Rejection> {
        self.permit_content(ContentName::Uri(uri))
    }

    /// Checks that the caller may read the content of a URI or of a library path.
    pub(crate) fn permit_content(&self, name: ContentName<'_>) -> Result<(), Rejection> {
        access::permit(&self.catalog, &self.caller, name)?;
        let Some(present) = &self.present else { return Ok(()) };
        access::permit(&present.catalog, &self.caller, name)?;
        if self.caller.is_local() {
            return Ok(());
        }
        let opens = |path: &str| present.opens(&self.caller, path, |_| false);
        // The file may have another URI now, and the content another path.
        let (is_open, shown) = match name {
            ContentName::Uri(uri) => match self.catalog.path_of_uri(uri) {
                Some(path) => {
                    access::permit(&present.catalog, &self.caller, ContentName::Path(&path))?;
                    (opens(&path), uri)
                }
                None => (true, uri),
            },
            ContentName::Path(path) => (opens(path), path),
        };
        if is_open { Ok(()) } else { Err(Rejection::UnknownResource { uri: echo(shown) }) }
    }

    /// Finds a prompt of an earlier revision for a caller who may use the present one, and may still receive all that the
    /// earlier one was made from. What the present prompt is made from is open: the text of a prompt contains it.
    ///
    /// # Errors
    ///
    /// [`Rejection::UnknownPrompt`] if one of its files is closed by now, and those of [`find`](View::find).
    pub fn find_earlier(&self, name: &str) -> Result<Arc<Prompt>, Rejection> {
        let prompt = self.find(name)?;
        let Some(present) = self.present.as_ref().filter(|_| !self.caller.is_local()) else { return Ok(prompt) };
        let catalog = &present.catalog;
        let now = catalog.find(name).map(|prompt| catalog.parts_of(prompt)).unwrap_or_default();
        let (paths, called) = self.catalog.parts_of(&prompt);
        let is_open = paths.iter().all(|path| present.opens(&self.caller, path, |place| now.0.contains(place)))
            && paths.difference(&now.0).all(|path| self.permit_content(ContentName::Path(path)).is_ok())
            && called.difference(&now.1).all(|called| {
                let is_gone = catalog.position(called).is_none();
                self.find(called).is_ok() && (is_gone || access::find(catalog, &self.caller, called).is_ok())
            });
        if is_open { Ok(prompt) } else { Err(Rejection::UnknownPrompt { name: echo(name) }) }
    }

    pub(crate) fn hides_contents(&self) -> bool {
        let restricts = |catalog: &Arc<Catalog>| catalog.restricts_contents();
        !self.caller.is_local()
            && (restricts(&self.catalog)
                || self.present.as_ref().is_some_and(|present| present.catalog.is_restricted()))
    }

    /// Returns whether a URI belongs to this server and the caller may read it. Its content may be missing at present.
    #[must_use]
    pub fn serves(&self, uri: &str) -> bool {
        self.permit(uri).is_ok() && self.catalog.content(uri).is_some()
    }

    /// Returns a number that changes with the content of a resource. `None` if the resource does not exist or the
    /// caller may not read it.
    pub async fn version(&self, uri: &str) -> Option<u64> {
        self.permit(uri).ok()?;
        match self.catalog.content(uri)? {
            Content::Resource { resource, variables } => resource.version(&variables).await,
            Content::File(file) => Some(file.body.digest()),
        }
    }

    pub(crate) fn page(&self, list: ListKind, cursor: Option<&str>) -> Result<Page, Rejection> {
        let page = match self.visibility() {
            Visibility::Public | Visibility::All => self.catalog.page(list, cursor),
            Visibility::Some(_) => self.catalog.page_of(list, cursor, |index| self.shows(list, index)),
        };
        page.ok_or(Rejection::InvalidCursor)
    }

    pub(crate) fn follow(&self, uri: &str) -> Result<(), Rejection> {
        self.permit(uri)?;
        if self.serves(uri) { Ok(()) } else { Err(Rejection::UnknownResource { uri: echo(uri) }) }
    }
}

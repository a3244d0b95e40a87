//! Who may see and use what: the only place where that is decided.
//!
//! Something that is hidden from a caller is answered exactly as if it did not
//! exist. Something that a caller may see but lacks a scope for is listed, and
//! asking for it says which scopes it takes, so that a client can acquire them.

use std::sync::Arc;

use promptshelf_core::{Access, Catalog, Page, Prompt, Resource, cursor::ListKind};

use crate::{Caller, Rejection, rejection};

/// How a caller stands to something.
#[derive(Debug, PartialEq, Eq)]
enum AccessDecision {
    Welcome,
    /// It exists for this caller, and takes these scopes, all of them.
    Wanting(Vec<String>),
    Hidden,
}

/// Decides about demands that hold together.
fn access_decision(caller: &Caller, demands: &[Arc<Access>]) -> AccessDecision {
    if demands.is_empty() || caller.is_local() {
        return AccessDecision::Welcome;
    }
    let identity = caller.identity();
    let has = |held: fn(&crate::Identity) -> &Vec<String>, wanted: &String| {
        identity.is_some_and(|identity| held(identity).contains(wanted))
    };
    let mut is_wanting = false;
    for demand in demands {
        let is_named = identity.is_some_and(|identity| demand.users.contains(&identity.name));
        let is_personal = !demand.users.is_empty() || !demand.roles.is_empty();
        if is_personal && !is_named && !demand.roles.iter().any(|role| has(|identity| &identity.roles, role)) {
            return AccessDecision::Hidden;
        }
        if !demand.scopes.iter().all(|scope| has(|identity| &identity.scopes, scope)) {
            if !demand.visible {
                return AccessDecision::Hidden;
            }
            is_wanting = true;
        }
    }
    if !is_wanting {
        return AccessDecision::Welcome;
    }
    // All that it takes, and not only what is missing: a client that asks for
    // a new token asks for exactly these.
    let mut scopes: Vec<String> = demands.iter().flat_map(|demand| demand.scopes.iter().cloned()).collect();
    scopes.sort_unstable();
    scopes.dedup();
    AccessDecision::Wanting(scopes)
}

/// What a caller sees of a catalog's lists: the same for everybody who sees the
/// same, so that it can stand in the key of a cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// Everything, and so does everybody else who reaches this server.
    Public,
    /// Everything that this caller's kind sees: by combination of demands,
    /// whether it is shown. Nothing for "all of it".
    Private(Option<Arc<[bool]>>),
}

impl View {
    pub(crate) fn of(caller: &Caller, catalog: &Catalog) -> View {
        if !catalog.is_restricted() {
            // Who had to sign in gets what others do not: a shared cache must
            // not hand it to those who did not.
            return if caller.identity().is_some() { View::Private(None) } else { View::Public };
        }
        if caller.is_local() {
            return View::Private(None);
        }
        let sets = catalog.access_sets().iter();
        View::Private(Some(sets.map(|demands| access_decision(caller, demands) != AccessDecision::Hidden).collect()))
    }

    /// Whether an item of a list is shown.
    #[must_use]
    pub fn shows(&self, catalog: &Catalog, list: ListKind, index: usize) -> bool {
        match self {
            View::Public | View::Private(None) => true,
            View::Private(Some(sets)) => {
                catalog.access_place(list, index).is_none_or(|place| sets.get(place).copied().unwrap_or_default())
            }
        }
    }

    pub(crate) fn page(&self, catalog: &Catalog, list: ListKind, cursor: Option<&str>) -> Option<Page> {
        match self {
            View::Public | View::Private(None) => catalog.page(list, cursor),
            View::Private(Some(_)) => catalog.page_of(list, cursor, |index| self.shows(catalog, list, index)),
        }
    }
}

/// Finds a prompt that a caller may use.
///
/// Unknown and hidden give the same rejection, word for word. Otherwise guessing
/// names becomes a way to list what is hidden.
pub(crate) fn find(catalog: &Catalog, caller: &Caller, name: &str) -> Result<Arc<Prompt>, Rejection> {
    let unknown = || Rejection::UnknownPrompt { name: rejection::echo(name) };
    let index = catalog.position(name).ok_or_else(unknown)?;
    match access_decision(caller, catalog.prompt_access(index)) {
        AccessDecision::Welcome => catalog.prompts().get(index).cloned().ok_or_else(unknown),
        AccessDecision::Wanting(scopes) => Err(Rejection::InsufficientScope { scopes }),
        AccessDecision::Hidden => Err(unknown()),
    }
}

/// Whether a caller may use what stands behind a URI, if anything does.
pub(crate) fn permit(catalog: &Catalog, caller: &Caller, uri: &str) -> Result<(), Rejection> {
    if caller.is_local() || !catalog.has_resource_rules() {
        return Ok(());
    }
    admit(access_decision(caller, &catalog.uri_access(uri)), uri)
}

/// Finds a resource or template by its declaration, for a caller who may use it.
pub(crate) fn find_declared<'c>(
    catalog: &'c Catalog,
    caller: &Caller,
    uri: &str,
) -> Result<&'c Arc<Resource>, Rejection> {
    let unknown = || Rejection::UnknownResource { uri: rejection::echo(uri) };
    let resource = catalog.find_declared(uri).ok_or_else(unknown)?;
    admit(access_decision(caller, &catalog.declared_access(resource)), uri)?;
    Ok(resource)
}

/// Whether a caller may use the prompt at a place of the list.
pub(crate) fn may_use(catalog: &Catalog, caller: &Caller, index: usize) -> bool {
    access_decision(caller, catalog.prompt_access(index)) == AccessDecision::Welcome
}

/// Whether a caller sees what is wrong with the library.
///
/// A diagnostic names and shows anything: hidden prompts as a suggestion or in
/// a circle, files that no rule fits yet because they cannot be read. So it is
/// all or nothing. Where no rule says who, it is everybody as long as callers
/// are not told apart, and nobody as soon as they are.
pub(crate) fn may_see_diagnostics(catalog: &Catalog, caller: &Caller) -> Result<bool, Rejection> {
    let demands = catalog.diagnostics_access();
    if demands.is_empty() {
        return Ok(caller.is_local() || (caller.identity().is_none() && !catalog.is_restricted()));
    }
    match access_decision(caller, &demands) {
        AccessDecision::Welcome => Ok(true),
        AccessDecision::Wanting(scopes) => Err(Rejection::InsufficientScope { scopes }),
        AccessDecision::Hidden => Ok(false),
    }
}

fn admit(standing: AccessDecision, uri: &str) -> Result<(), Rejection> {
    match standing {
        AccessDecision::Welcome => Ok(()),
        AccessDecision::Wanting(scopes) => Err(Rejection::InsufficientScope { scopes }),
        AccessDecision::Hidden => Err(Rejection::UnknownResource { uri: rejection::echo(uri) }),
    }
}

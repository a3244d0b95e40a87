//! Access decisions: which prompts and resources a caller may see and use.
//!
//! An item that is hidden from a caller is answered exactly as if it did not exist. An item that a caller may see but
//! lacks a scope for is listed, and the rejection of its use names the required scopes, so that a client can acquire
//! them.
//!
//! Elsewhere: the rules that a library declares (`promptshelf_core::Access`).

use std::sync::Arc;

use promptshelf_core::{Access, Catalog, ContentName, Prompt, Resource, Skill};

use crate::{
    caller::{Caller, Identity},
    rejection::{Rejection, echo},
};

#[derive(Debug, PartialEq, Eq)]
enum AccessDecision {
    Granted,
    MissingScopes(Vec<String>),
    Hidden,
}

fn decide(caller: &Caller, requirements: &[Arc<Access>]) -> AccessDecision {
    if requirements.is_empty() || caller.is_local() {
        return AccessDecision::Granted;
    }
    let identity = caller.identity();
    let has = |list: fn(&Identity) -> &Vec<String>, required: &String| {
        identity.is_some_and(|identity| list(identity).contains(required))
    };
    let mut lacks_scope = false;
    for required in requirements {
        let is_named = identity.is_some_and(|identity| required.users.contains(&identity.name));
        let is_personal = !required.users.is_empty() || !required.roles.is_empty();
        if is_personal && !is_named && !required.roles.iter().any(|role| has(|identity| &identity.roles, role)) {
            return AccessDecision::Hidden;
        }
        if !required.scopes.iter().all(|scope| has(|identity| &identity.scopes, scope)) {
            if !required.visible {
                return AccessDecision::Hidden;
            }
            lacks_scope = true;
        }
    }
    if !lacks_scope {
        return AccessDecision::Granted;
    }
    // All required scopes, including those that the caller has: a client requests its next token with exactly these.
    let mut scopes: Vec<String> = requirements.iter().flat_map(|required| required.scopes.iter().cloned()).collect();
    scopes.sort_unstable();
    scopes.dedup();
    AccessDecision::MissingScopes(scopes)
}

impl Caller {
    /// Returns whether the caller meets requirements. The local user meets all of them.
    #[must_use]
    pub fn meets(&self, requirements: &Arc<Access>) -> bool {
        decide(self, std::slice::from_ref(requirements)) == AccessDecision::Granted
    }

    /// Returns what the caller lacks of requirements, in words for operators; `None` if it meets them.
    #[must_use]
    pub fn lacks(&self, requirements: &Arc<Access>) -> Option<String> {
        if self.meets(requirements) {
            return None;
        }
        let Access { roles, users, scopes, .. } = &**requirements;
        let identity = self.identity();
        let is_named = identity.is_some_and(|identity| users.contains(&identity.name));
        let has_role = identity.is_some_and(|identity| identity.roles.iter().any(|role| roles.contains(role)));
        let lacks_scope = |scope: &&String| !identity.is_some_and(|identity| identity.scopes.contains(scope));
        let mut lacks = Vec::new();
        if !is_named && !has_role {
            match roles.as_slice() {
                [] if users.is_empty() => {}
                [] => lacks.push("it is none of the users".to_owned()),
                [role] => lacks.push(format!("it lacks the role {role}")),
                roles => lacks.push(format!("it has none of the roles {}", roles.join(", "))),
            }
        }
        lacks.extend(scopes.iter().filter(lacks_scope).map(|scope| format!("it lacks the scope {scope}")));
        Some(lacks.join(" and "))
    }
}

pub(crate) fn is_listed(caller: &Caller, requirements: &[Arc<Access>]) -> bool {
    decide(caller, requirements) != AccessDecision::Hidden
}

/// Finds a prompt that a caller may use.
///
/// The rejections of an unknown and of a hidden prompt are equal. Otherwise hidden prompts could be listed by guessing
/// names.
pub(crate) fn find(catalog: &Catalog, caller: &Caller, name: &str) -> Result<Arc<Prompt>, Rejection> {
    let unknown = || Rejection::UnknownPrompt { name: echo(name) };
    let index = catalog.position(name).or_else(|| catalog.position_of_alias(name)).ok_or_else(unknown)?;
    match decide(caller, catalog.prompt_access(index)) {
        AccessDecision::Granted => catalog.prompts().get(index).cloned().ok_or_else(unknown),
        AccessDecision::MissingScopes(scopes) => Err(Rejection::InsufficientScope { scopes }),
        AccessDecision::Hidden => Err(unknown()),
    }
}

/// Checks that a caller may read a content. Every way to a content leads here: reading, attaching, linking, following,
/// completing.
///
/// The rejections of an unknown and of a hidden content are equal.
pub(crate) fn permit(catalog: &Catalog, caller: &Caller, name: ContentName<'_>) -> Result<(), Rejection> {
    if caller.is_local() || !catalog.restricts_contents() {
        return Ok(());
    }
    if !catalog.parts().is_empty() {
        // A path belongs to one library, and says nothing in a catalog of several.
        let (part, shown) = match name {
            ContentName::Uri(uri) => (catalog.part_of_uri(uri), uri),
            ContentName::Path(path) => (None, path),
        };
        return match part {
            Some(part) => permit(&part.catalog, caller, name),
            None => granted(AccessDecision::Hidden, shown),
        };
    }
    let (access, uri) = match name {
        ContentName::Path(path) => (catalog.path_access(path), path),
        ContentName::Uri(uri) => (catalog.uri_access(uri), uri),
    };
    let decision = decide(caller, &access.rules);
    match access.prompts {
        // A file without a declaration of its own belongs to the prompts that refer to it.
        Some(prompts) if decision == AccessDecision::Granted => granted(of_any(catalog, caller, &prompts), uri),
        _ => granted(decision, uri),
    }
}

fn of_any(catalog: &Catalog, caller: &Caller, prompts: &[usize]) -> AccessDecision {
    let mut best = AccessDecision::Hidden;
    for index in prompts {
        match decide(caller, catalog.prompt_access(*index)) {
            AccessDecision::Granted => return AccessDecision::Granted,
            visible @ AccessDecision::MissingScopes(_) => best = visible,
            AccessDecision::Hidden => {}
        }
    }
    best
}

pub(crate) fn find_declared<'c>(
    catalog: &'c Catalog,
    caller: &Caller,
    uri: &str,
) -> Result<&'c Arc<Resource>, Rejection> {
    let unknown = || Rejection::UnknownResource { uri: echo(uri) };
    let resource = catalog.find_declared(uri).ok_or_else(unknown)?;
    granted(decide(caller, &catalog.declared_access(resource)), uri)?;
    Ok(resource)
}

/// Returns whether a caller meets the rules for a URI, whether or not a resource has it.
pub(crate) fn meets_rules_of(catalog: &Catalog, caller: &Caller, uri: &str) -> bool {
    caller.is_local() || decide(caller, &catalog.uri_access(uri).rules) == AccessDecision::Granted
}

pub(crate) fn may_use(catalog: &Catalog, caller: &Caller, index: usize) -> bool {
    decide(caller, catalog.prompt_access(index)) == AccessDecision::Granted
}

/// Returns whether a caller may see the library's diagnostics.
///
/// A diagnostic can quote anything: a hidden prompt as a suggestion or as part of a cycle, or an unreadable file that
/// no access rule applies to yet. The decision is therefore all or none. Without a rule for diagnostics every caller
/// may see them as long as callers are not distinguished, and only the local user otherwise.
pub(crate) fn may_see_diagnostics(catalog: &Catalog, caller: &Caller) -> Result<bool, Rejection> {
    let requirements = catalog.diagnostics_access();
    if requirements.is_empty() {
        return Ok(caller.is_local() || (caller.identity().is_none() && !catalog.is_restricted()));
    }
    match decide(caller, &requirements) {
        AccessDecision::Granted => Ok(true),
        AccessDecision::MissingScopes(scopes) => Err(Rejection::InsufficientScope { scopes }),
        AccessDecision::Hidden => Ok(false),
    }
}

pub(crate) fn permit_skill(caller: &Caller, skill: &Skill, uri: &str) -> Result<(), Rejection> {
    granted(decide(caller, skill.access()), uri)
}

fn granted(decision: AccessDecision, uri: &str) -> Result<(), Rejection> {
    match decision {
        AccessDecision::Granted => Ok(()),
        AccessDecision::MissingScopes(scopes) => Err(Rejection::InsufficientScope { scopes }),
        AccessDecision::Hidden => Err(Rejection::UnknownResource { uri: echo(uri) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_told_what_a_caller_lacks() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let ada = |roles: &[&str], scopes: &[&str]| {
            let (roles, scopes) = (words(roles), words(scopes));
            Caller::authenticated(Arc::new(Identity { name: "ada".to_owned(), roles, scopes, ..Identity::default() }))
        };
        let access = |roles: &[&str], users: &[&str], scopes: &[&str]| {
            let (roles, users, scopes) = (words(roles), words(users), words(scopes));
            Arc::new(Access { roles, users, scopes, ..Access::default() })
        };
        let rows = [
            (Caller::local(), access(&["a"], &["eva"], &["x"]), None),
            (ada(&[], &[]), access(&[], &[], &[]), None),
            (ada(&["a"], &["x"]), access(&["a"], &[], &["x"]), None),
            (ada(&[], &[]), access(&["a"], &["ada"], &[]), None),
            (ada(&["a"], &[]), access(&["a", "b"], &["eva"], &[]), None),
            (Caller::anonymous(), access(&["a"], &[], &[]), Some("it lacks the role a")),
            (ada(&["c"], &[]), access(&["a", "b"], &[], &[]), Some("it has none of the roles a, b")),
            (ada(&["c"], &[]), access(&["a"], &["eva"], &[]), Some("it lacks the role a")),
            (ada(&["c"], &[]), access(&[], &["eva"], &[]), Some("it is none of the users")),
            (
                ada(&[], &["y"]),
                access(&[], &[], &["x", "y", "z"]),
                Some("it lacks the scope x and it lacks the scope z"),
            ),
            (ada(&["a"], &[]), access(&["a"], &[], &["x"]), Some("it lacks the scope x")),
            (ada(&[], &[]), access(&[], &["ada"], &["x"]), Some("it lacks the scope x")),
            (ada(&[], &[]), access(&["a"], &[], &["x"]), Some("it lacks the role a and it lacks the scope x")),
            (Caller::anonymous(), access(&[], &[], &["x"]), Some("it lacks the scope x")),
        ];
        for (caller, access, expected) in rows {
            assert_eq!(caller.lacks(&access).as_deref(), expected, "{access:?}");
            assert_eq!(caller.meets(&access), expected.is_none(), "{access:?}");
        }
    }
}

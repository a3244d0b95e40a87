//! Access rules in words.

use std::sync::Arc;

use promptshelf_core::Access;

use super::{Impact, Notes, listed};

/// Compares the rules for a part of a library; `what` is the subject of the sentence.
pub(super) fn compare(notes: &mut Notes<'_>, what: &str, before: &[Arc<Access>], after: &[Arc<Access>]) {
    let has = |rules: &[Arc<Access>], rule: &Arc<Access>| rules.iter().any(|other| same(other, rule));
    let is_added = after.iter().any(|rule| !has(before, rule));
    let is_removed = before.iter().any(|rule| !has(after, rule));
    // Rules apply together: with only new ones it is closed to more callers, with only fewer ones opened.
    let (impact, effect) = match (is_added, is_removed) {
        (false, false) => return,
        (true, false) => (Impact::Breaking, "other callers will be refused"),
        (false, true) => (Impact::Opening, "more callers have access than before"),
        (true, true) => (Impact::Breaking, "some callers will be refused, and others may have access now"),
    };
    let (old, new) = (described(before), described(after));
    notes.add(impact, format!("{what} is open to {new} now, before to {old}: {effect}"));
}

fn same(one: &Access, other: &Access) -> bool {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names
    };
    let key = |access: &Access| (sorted(&access.scopes), sorted(&access.roles), sorted(&access.users));
    key(one) == key(other)
}

/// Describes the callers that rules let in.
pub(super) fn described(rules: &[Arc<Access>]) -> String {
    let mut conditions = Vec::new();
    for rule in rules {
        let names = |names: &[String]| listed(names.iter().map(String::as_str));
        match rule.scopes.as_slice() {
            [] => {}
            [_] => conditions.push(format!("the scope {}", names(&rule.scopes))),
            scopes => conditions.push(format!("the scopes {}", names(scopes))),
        }
        let people = match (rule.roles.as_slice(), rule.users.as_slice()) {
            ([], []) => continue,
            (roles, []) => format!("one of the roles {}", names(roles)),
            ([], users) => {
                format!("the name {}", users.iter().map(|user| format!("`{user}`")).collect::<Vec<_>>().join(" or "))
            }
            (roles, users) => format!("one of the roles {} or the names {}", names(roles), names(users)),
        };
        conditions.push(people);
    }
    conditions.dedup();
    match conditions.as_slice() {
        [] => "every caller".to_owned(),
        conditions => format!("callers with {}", conditions.join(", and ")),
    }
}

//! Access rules in words.

use std::sync::Arc;

use promptshelf_core::Access;

use super::{Impact, Notes, enumerated, listed};

#[derive(Clone, Copy)]
pub(super) enum Part {
    Subject,
    Diagnostics,
}

pub(super) fn compare(notes: &mut Notes<'_>, part: Part, before: &[Arc<Access>], after: &[Arc<Access>]) {
    let (is_added, is_removed) = (!implies(before, after), opens(before, after));
    let (what, [closed, opened, changed]) = match part {
        Part::Subject => ("it", ["access-closed", "access-opened", "access-changed"]),
        Part::Diagnostics => ("the diagnostics", ["diagnostics-closed", "diagnostics-opened", "diagnostics-changed"]),
    };
    // Rules apply together: with only new ones it is closed to more callers, with only fewer ones opened.
    let (impact, code, effect) = match (is_added, is_removed) {
        (false, false) => return,
        (true, false) => (Impact::Breaking, closed, "other callers will be refused"),
        (false, true) => (Impact::Opening, opened, "more callers have access than before"),
        (true, true) => (Impact::Breaking, changed, "some callers will be refused, and others may have access now"),
    };
    let (old, new) = (described(before), described(after));
    let text = format!("{what} is open to {new} now, before to {old}: {effect}");
    notes.add(impact, code, text).with("before", keys(before)).with("now", keys(after));
}

pub(super) fn new(notes: &mut Notes<'_>, rules: &[Arc<Access>]) {
    notes.add(Impact::Notice, "new", format!("is new, open to {}", described(rules))).with("now", keys(rules));
}

/// Rules in the keys of front matter, such as "scopes: `code`; roles: `author`, users: `ada`". Empty for every caller.
fn keys(rules: &[Arc<Access>]) -> String {
    let rules = rules.iter().map(|rule| {
        let lists = [("scopes", &rule.scopes), ("roles", &rule.roles), ("users", &rule.users)];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        lists.map(|(key, names)| format!("{key}: {}", enumerated(names))).collect::<Vec<_>>().join(", ")
    });
    let mut rules: Vec<String> = rules.filter(|rule| !rule.is_empty()).collect();
    rules.dedup();
    rules.join("; ")
}

pub(super) fn opens(before: &[Arc<Access>], after: &[Arc<Access>]) -> bool {
    !implies(after, before)
}

/// Returns whether rules let in only callers that other ones let in, too. Each scope is a condition of its own, and the people of a rule are
/// one.
fn implies(strict: &[Arc<Access>], other: &[Arc<Access>]) -> bool {
    let within = |names: &[String], others: &[String]| names.iter().all(|name| others.contains(name));
    let has_people = |rule: &Access| !(rule.roles.is_empty() && rule.users.is_empty());
    other.iter().all(|rule| {
        let are_people_met = !has_people(rule)
            || strict.iter().any(|strict| {
                has_people(strict) && within(&strict.roles, &rule.roles) && within(&strict.users, &rule.users)
            });
        are_people_met && rule.scopes.iter().all(|scope| strict.iter().any(|strict| strict.scopes.contains(scope)))
    })
}

pub(super) fn described(rules: &[Arc<Access>]) -> String {
    let mut conditions = Vec::new();
    for rule in rules {
        match rule.scopes.as_slice() {
            [] => {}
            [_] => conditions.push(format!("the scope {}", listed(&rule.scopes))),
            scopes => conditions.push(format!("the scopes {}", listed(scopes))),
        }
        let people = match (rule.roles.as_slice(), rule.users.as_slice()) {
            ([], []) => continue,
            (roles, []) => format!("one of the roles {}", listed(roles)),
            ([], users) => {
                format!("the name {}", users.iter().map(|user| format!("`{user}`")).collect::<Vec<_>>().join(" or "))
            }
            (roles, users) => format!("one of the roles {} or the names {}", listed(roles), listed(users)),
        };
        conditions.push(people);
    }
    conditions.dedup();
    match conditions.as_slice() {
        [] => "every caller".to_owned(),
        conditions => format!("callers with {}", conditions.join(", and ")),
    }
}

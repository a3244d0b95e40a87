//! Access rules: `access:` in a prompt file and in a resource, and `[[access]]` in the manifest.
//!
//! Every mistake in a rule is an error: a misspelled rule would give access to content that it was meant to restrict.

use promptshelf_core::{Access, AccessRule, Code, Glob, GlobError, Origin, Severity, escape_glob};

use super::{
    keys::{Holds, Keys, key, keys},
    table::Table,
    tree::{Node, Notes},
};

pub(crate) const REQUIREMENTS: Keys = keys(&[
    key("scopes", Holds::Texts, "Scopes: a caller's token must have all of them."),
    key("roles", Holds::Texts, "Roles: a caller must have one of them."),
    key("users", Holds::Texts, "Names of callers who need none of the roles."),
    key("visible", Holds::Flag, "Whether callers who lack only a scope can see that it exists."),
]);
pub(crate) const RULE: Keys = keys(&[
    key("prompts", Holds::Texts, "Patterns for the names of prompts."),
    key("folders", Holds::Texts, "Folders of the library, with all prompts and files below them."),
    key("tags", Holds::Texts, "Tags of prompts."),
    key("resources", Holds::Texts, "Patterns for the URIs of resources."),
    key(
        "diagnostics",
        Holds::Flag,
        "Whether callers may read the diagnostics of the library, which quote lines of any file.",
    ),
    key("scopes", Holds::Texts, "Scopes: a caller's token must have all of them."),
    key("roles", Holds::Texts, "Roles: a caller must have one of them."),
    key("users", Holds::Texts, "Names of callers who need none of the roles."),
    key("visible", Holds::Flag, "Whether callers who lack only a scope can see that it exists."),
]);

/// Each content is compared with each rule.
const MAX_RULES: usize = 200;

/// Reads the requirements under the key `access`.
pub(crate) fn access(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<Access> {
    let node = table.node("access", notes)?;
    let prefix = format!("{}.", table.path("access"));
    let requirements = Table::of(node, &prefix, "`access`", notes)?;
    requirements.expect(&REQUIREMENTS, Severity::Error, "in `access`", notes);
    read(&requirements, notes)
}

pub(crate) fn rules(node: &Node, notes: &mut Notes<'_>) -> Vec<AccessRule> {
    let around = std::mem::take(&mut notes.spans);
    let mut rules = Vec::new();
    for (index, item) in node.items().iter().enumerate() {
        notes.spans.clear();
        if index == MAX_RULES {
            notes
                .error(Code::TooMany, &item.start(), format!("there are more than {MAX_RULES} rules in [[access]]"))
                .help = Some("one rule takes many patterns: join the rules with the same requirements".to_owned());
            break;
        }
        let Some(table) = Table::of(item, "", "a rule of [[access]]", notes) else { continue };
        table.expect(&RULE, Severity::Error, "in [[access]]", notes);
        let patterns = ["prompts", "folders", "tags", "resources"].map(|key| table.texts(key, notes));
        let diagnostics = table.flag("diagnostics", notes).unwrap_or_default();
        if patterns.iter().all(Vec::is_empty) && !diagnostics {
            let message = "this rule matches nothing";
            notes.error(Code::MissingKey, &table.node.start(), message).help = Some(
                "add `prompts`, `folders`, `tags`, `resources` or `diagnostics`; `prompts = [\"*\"]` matches all prompts"
                    .to_owned(),
            );
        }
        for (key, globs) in [("prompts", &patterns[0]), ("folders", &patterns[1]), ("resources", &patterns[3])] {
            for (index, glob) in globs.iter().enumerate() {
                // What is no glob is the name of a folder.
                let is_wrong = |error: &GlobError| key != "folders" || error.is_too_large;
                if let Some(error) = Glob::name(glob).err().filter(is_wrong) {
                    let span =
                        notes.spans.get(&format!("{key}.{index}")).cloned().unwrap_or_else(|| table.node.start());
                    notes.error(Code::InvalidValue, &span, format!("invalid pattern {error}"));
                }
            }
        }
        let Some(requirements) = read(&table, notes) else { continue };
        let [prompts, folders, tags, resources] = patterns;
        let mut origin = Origin::new(std::sync::Arc::clone(notes.source));
        origin.spans = std::mem::take(&mut notes.spans).into();
        let rule = AccessRule::new(requirements, origin);
        rules.push(AccessRule { prompts, folders, tags, resources, diagnostics, ..rule });
    }
    notes.spans = around;
    rules
}

/// Creates a rule for exactly these URIs.
pub(crate) fn rule_for<'u>(uris: impl Iterator<Item = &'u str>, requirements: Access, origin: Origin) -> AccessRule {
    AccessRule { resources: uris.map(escape_glob).collect(), ..AccessRule::new(requirements, origin) }
}

fn read(table: &Table<'_, '_>, notes: &mut Notes<'_>) -> Option<Access> {
    let [scopes, roles, users] = ["scopes", "roles", "users"].map(|key| table.texts(key, notes));
    let visible = table.flag("visible", notes);
    if scopes.is_empty() && roles.is_empty() && users.is_empty() {
        notes.error(Code::MissingKey, &table.node.start(), "this rule requires nothing of callers").help =
            Some("add `scopes`, `roles` or `users`".to_owned());
        return None;
    }
    for (index, scope) in scopes.iter().enumerate() {
        // The characters of a scope (RFC 6749, appendix A.4).
        let is_scope = !scope.is_empty() && scope.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
        if !is_scope {
            let span =
                notes.spans.get(&table.path(&format!("scopes.{index}"))).cloned().unwrap_or_else(|| table.node.start());
            notes
                .error(
                    Code::InvalidValue,
                    &span,
                    format!("invalid scope `{scope}`: spaces and quotation marks are not allowed"),
                )
                .help = Some("write several scopes as a list".to_owned());
        }
    }
    if visible == Some(true) && scopes.is_empty() {
        let span = notes.spans.get(&table.path("visible")).cloned().unwrap_or_else(|| table.node.start());
        let message =
            "`visible` has no effect without `scopes`: callers can request a scope, but not a role or another name";
        notes.warning(Code::NoEffect, &span, message);
    }
    Some(Access { scopes, roles, users, visible: visible.unwrap_or_default() })
}

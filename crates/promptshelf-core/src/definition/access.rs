//! Access rules: the scopes, roles and users that prompts and resources require.
//!
//! Callers, and whether a caller satisfies a rule, are deliberately elsewhere.

use std::sync::Arc;

use super::origin::Origin;

/// The requirements for a caller, all of which must be met: all of the scopes, and one of the roles or users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Scopes; a caller's token must have all of them.
    pub scopes: Vec<String>,
    /// Roles; a caller must have one of them, unless it is one of the users.
    pub roles: Vec<String>,
    /// Callers by name; a caller must be one of them, unless it has one of the roles.
    pub users: Vec<String>,
    /// Whether the item is shown to callers who lack only a scope. They receive the missing scope; otherwise the item
    /// does not exist for them.
    pub visible: bool,
}

impl Access {
    /// Creates requirements that no caller meets: no role contains this character.
    pub(crate) fn unsatisfiable() -> Access {
        Access { roles: vec!["\0".to_owned()], ..Access::default() }
    }
}

/// The requirements for everything that matches a pattern. All matching rules apply together, and together with a
/// prompt's own rule.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Globs over the names of prompts.
    pub prompts: Vec<String>,
    /// The text before a prompt's own name in the names that `prompts` match; empty for the own name. Rules of an
    /// operator match the names under which a source is served.
    pub prefix: String,
    /// Folders of the library, or names of its roots with a folder inside: prompts and files below them, under all
    /// their names. Globs are possible.
    pub folders: Vec<String>,
    /// Tags of prompts.
    pub tags: Vec<String>,
    /// Globs over URIs of resources; `*` also matches `/`, and letter case does not count. Closing one name of a file
    /// closes all of them.
    pub resources: Vec<String>,
    /// Whether the rule applies to the diagnostics of the library, which quote lines of its files.
    pub diagnostics: bool,
    /// The requirements.
    pub access: Access,
    /// The location of the rule.
    pub origin: Origin,
}

impl AccessRule {
    /// Creates a rule that matches nothing.
    #[must_use]
    pub fn new(access: Access, origin: Origin) -> AccessRule {
        let none = Vec::new;
        AccessRule {
            prompts: none(),
            prefix: String::new(),
            folders: none(),
            tags: none(),
            resources: none(),
            diagnostics: false,
            access,
            origin,
        }
    }
}

/// Requirements that apply together.
pub type AccessSet = Vec<Arc<Access>>;

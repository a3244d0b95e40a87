//! Access rules: the scopes, roles and users that prompts and resources require.
//!
//! Callers, and whether a caller satisfies a rule, are deliberately elsewhere.

use std::sync::Arc;

use super::origin::Origin;

/// What is asked of a caller. Everything that is named has to be met: one of
/// the roles or users, and all of the scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Scopes, all of which a caller's token has to have.
    pub scopes: Vec<String>,
    /// Roles, one of which a caller has to have, unless it is one of the users.
    pub roles: Vec<String>,
    /// Callers by name, one of which it has to be, unless it has one of the roles.
    pub users: Vec<String>,
    /// Whether the thing is shown to callers who lack only a scope. They are
    /// then told which scope it takes; otherwise it does not exist for them.
    pub visible: bool,
}

/// What is asked for everything that fits a pattern. All rules that fit hold
/// together, and together with what a prompt asks for itself.
#[derive(Clone, Debug)]
pub struct AccessRule {
    /// Globs over the names of prompts.
    pub prompts: Vec<String>,
    /// Folders of the library: prompts and files below them.
    pub folders: Vec<String>,
    /// Tags of prompts.
    pub tags: Vec<String>,
    /// Globs over URIs of resources; `*` also matches `/`, and letter case does not count.
    pub resources: Vec<String>,
    /// What is wrong with the library, with the lines of any file that it points at.
    pub diagnostics: bool,
    /// What is asked.
    pub access: Access,
    /// Where the rule stands.
    pub origin: Origin,
}

impl AccessRule {
    /// A rule that fits nothing yet.
    #[must_use]
    pub fn new(access: Access, origin: Origin) -> AccessRule {
        let none = Vec::new;
        AccessRule {
            prompts: none(),
            folders: none(),
            tags: none(),
            resources: none(),
            diagnostics: false,
            access,
            origin,
        }
    }
}

/// Requirements that hold together.
pub type AccessSet = Vec<Arc<Access>>;

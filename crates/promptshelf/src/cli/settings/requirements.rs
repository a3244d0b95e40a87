//! The requirements of a channel or source for its callers.

use schemars::JsonSchema;
use serde::Deserialize;

/// The requirements of a channel or source. It does not exist for callers who do not meet them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Requirements {
    /// Scopes: a caller's token must have all of them.
    pub(super) scopes: Vec<String>,
    /// Roles: a caller must have one of them.
    pub(super) roles: Vec<String>,
    /// Names of callers who need none of the roles.
    pub(super) users: Vec<String>,
}

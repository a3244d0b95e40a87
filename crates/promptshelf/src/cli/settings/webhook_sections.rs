//! `[[webhook]]` of `server.toml` as serde types, from which its JSON Schema is derived as well.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source_sections::{Interval, SecretFile};

/// One receiver of events of the store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WebhookSection {
    /// The https URL that events are sent to.
    pub(super) url: SecretUrl,
    /// The events: `published`, `rolled-back`, `proposed`, `reviewed`, `broken` and `policy-changed`.
    pub(super) events: Vec<Event>,
    /// The file with the key of the signature, at least 16 bytes in its first line. Only `format = "slack"` does without.
    #[serde(default)]
    pub(super) secret: Option<SecretFile>,
    /// Permit plain http, and addresses that are not public: those of this machine and of private networks.
    /// Default: false.
    #[serde(default)]
    pub(super) allow_private: bool,
    /// `json` for the event, or `slack` for a sentence as `{"text": …}`.
    #[serde(default)]
    pub(super) format: Format,
    /// The time after an event during which its delivery is repeated, such as `30m` or `12h`. Default: 24h.
    #[serde(default)]
    pub(super) retry_for: Option<Interval>,
}

/// A URL that may be secret.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct SecretUrl(pub(super) String);

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl")
    }
}

/// An event that a webhook wants.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Event {
    Published,
    RolledBack,
    Proposed,
    Reviewed,
    Broken,
    PolicyChanged,
}

/// The format of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    #[default]
    Json,
    Slack,
}

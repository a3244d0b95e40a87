//! What changes do to the callers of a channel, as far as a policy or a reviewer has to know it.

use serde::{Deserialize, Serialize};

/// What changes do to callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// Whether calls will fail, or more callers get access.
    pub impact: EffectImpact,
    /// The name by which an approval confirms it, such as `access-opened:secret`. Unique in a proposal.
    pub name: String,
    /// The effect as a sentence.
    pub text: String,
    /// The prompt whose calls will fail.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The calls that will fail, if names of arguments decide it.
    #[serde(default)]
    pub calls: Option<BrokenCalls>,
}

/// How changes affect callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum EffectImpact {
    /// More callers get access, or values are no longer protected.
    Opening,
    /// Calls that succeeded will fail.
    Breaking,
}

/// The calls of a prompt that will fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum BrokenCalls {
    /// Every call.
    All,
    /// Calls that leave this argument out.
    Omitting(String),
    /// Calls that send this argument.
    Sending(String),
}

//! The serde types of `[[rollout]]`, from which its JSON Schema is derived as well.

use std::str::FromStr;

use promptshelf_source::settings::Bounded;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    source_sections::Interval,
    value::{InvalidValue, from_string},
};

const MAX_FACTOR: f64 = 100.0;

/// A share of the signed-in callers of a channel that is served another channel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RolloutSection {
    /// The channel whose signed-in callers are divided.
    pub(super) channel: String,
    /// The channel of the same store that the share is served.
    pub(super) to: String,
    /// The first share, and the size of each step, in per cent. The store keeps the share from then on.
    pub(super) percent: Bounded<0, 100>,
    /// The time between two steps, such as `1h`. Without it, only people change the share.
    #[serde(default)]
    pub(super) steps: Option<Interval>,
    /// The bounds above which the rollout is stopped. None by default.
    #[serde(default)]
    pub(super) stop: StopSection,
}

/// The bounds of a rollout: factors such as `2x`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StopSection {
    /// The factor by which the share of failed calls may be higher.
    pub(super) errors: Option<Factor>,
    /// The factor by which the share of declined and cancelled forms may be higher.
    pub(super) declined: Option<Factor>,
    /// The factor by which calls may be slower.
    pub(super) latency: Option<Factor>,
}

/// A factor, such as `2x`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct Factor(pub(super) f64);

from_string!(Factor);

impl FromStr for Factor {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Factor, InvalidValue> {
        let factor = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
        match factor.filter(|factor| (1.0..=MAX_FACTOR).contains(factor)) {
            Some(factor) => Ok(Factor(factor)),
            None => Err(InvalidValue::new("a factor from 1x to 100x, such as `2x` or `1.5x`", text)),
        }
    }
}

//! The serde types of `[[evaluation]]`, from which its JSON Schema is derived as well.

use std::{collections::BTreeMap, str::FromStr};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    source_sections::Interval,
    value::{InvalidValue, from_string},
};

/// The longest name of an evaluation, in bytes.
const MAX_NAME: usize = 64;

from_string!(EvaluationName);

/// One evaluation of prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EvaluationSection {
    /// The name of the evaluation in policies and results: lower-case letters, digits, `-`, `_` and `.`.
    pub(super) name: EvaluationName,
    /// The program and its arguments. It runs in the folder of this file, and a path of the program is relative to it. It
    /// reads cases as JSON from stdin, and prints scores as JSON.
    pub(super) program: Vec<String>,
    /// The names of variables of the environment that the program gets, such as `OPENAI_API_KEY`. Otherwise it has those of
    /// every program only: `PATH`, `HOME`, `TMPDIR`, the language and the like.
    #[serde(default)]
    pub(super) environment: Vec<String>,
    /// The time for one prompt, such as `60s` or `5m`; the program and all that it started are killed afterwards.
    /// Default: 60s.
    #[serde(default)]
    pub(super) timeout: Option<Interval>,
    /// The least score that passes, by name. Scores without a threshold are stored and do not count.
    #[serde(default)]
    pub(super) thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version, where a policy refuses regressions.
    #[serde(default)]
    pub(super) tolerance: f64,
}

/// The name of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct EvaluationName(pub(super) String);

impl FromStr for EvaluationName {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<EvaluationName, InvalidValue> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        match begins && text.len() <= MAX_NAME && text.chars().all(is_plain) {
            true => Ok(EvaluationName(text.to_owned())),
            false => Err(InvalidValue::new(
                "1 to 64 lower-case letters, digits, `-`, `_` and `.`, starting with a letter or digit",
                text,
            )),
        }
    }
}

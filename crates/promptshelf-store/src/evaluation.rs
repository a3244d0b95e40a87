//! Results of evaluations: a program of the operator judges the messages of a version of a prompt, often with a model, and
//! its scores are stored with the digest of that version.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Digest;

/// The result of one case of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaseResult {
    /// The name of the case, of 1 to 200 characters.
    pub name: String,
    /// Its score; higher is better.
    #[serde(default)]
    pub score: Option<f64>,
    /// Whether it passed.
    #[serde(default)]
    pub passed: Option<bool>,
    /// The reason for the result; at most 4,096 characters. Plain text.
    #[serde(default)]
    pub reason: String,
}

/// A result to store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvaluation {
    /// The name of the evaluation: 1 to 64 lower-case letters, digits, `-`, `_` and `.`.
    pub evaluation: String,
    /// The name of the prompt.
    pub prompt: String,
    /// The digest of the prompt's file and all files that it brings in.
    pub digest: Digest,
    /// The open proposal with this version of the prompt; without it, a revision of the channel has it.
    #[serde(default)]
    pub proposal: Option<u64>,
    /// The scores by name, 1 to 100; higher is better.
    pub scores: BTreeMap<String, f64>,
    /// The least score that passes, by name. Each named score has to exist.
    #[serde(default)]
    pub thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version and is not a regression.
    #[serde(default)]
    pub tolerance: f64,
    /// The results of single cases; at most 1,000, with 256 KiB of text.
    #[serde(default)]
    pub cases: Vec<CaseResult>,
    /// The model that was used.
    #[serde(default)]
    pub model: Option<String>,
    /// The cost, in the currency of the team.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The duration in seconds.
    #[serde(default)]
    pub seconds: f64,
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Its number, unique in the store.
    pub id: u64,
    /// The name of the evaluation.
    pub evaluation: String,
    /// The name of the prompt.
    pub prompt: String,
    /// The digest of the prompt's file and all files that it brings in.
    pub digest: Digest,
    /// Whether every threshold is met.
    pub passed: bool,
    /// The scores by name; higher is better.
    pub scores: BTreeMap<String, f64>,
    /// The least score that passes, by name.
    pub thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version and is not a regression.
    pub tolerance: f64,
    /// The results of single cases. Left out in comparisons, which list the changed ones.
    #[serde(default)]
    pub cases: Vec<CaseResult>,
    /// The model that was used.
    pub model: Option<String>,
    /// The cost, in the currency of the team.
    pub cost: Option<f64>,
    /// The duration in seconds.
    pub seconds: f64,
    /// The name of the person or program that stored it.
    pub author: String,
    /// The time at which it was stored, by the clock of the database.
    pub at: Timestamp,
}

impl Evaluation {
    /// Returns the scores below their thresholds: name, score and threshold.
    pub fn failures(&self) -> impl Iterator<Item = (&str, Option<f64>, f64)> {
        self.thresholds.iter().filter_map(|(name, least)| {
            let score = self.scores.get(name).copied();
            (!score.is_some_and(|score| score >= *least)).then_some((name.as_str(), score, *least))
        })
    }

    /// Returns the scores that are worse than those of another result by more than the tolerance: name, score, and score
    /// of the other one. Without thresholds all scores count, otherwise those that have one. A missing score is worse.
    pub fn regressions(&self, live: &Evaluation) -> Vec<(String, Option<f64>, f64)> {
        let counts = |name: &String| self.thresholds.is_empty() || self.thresholds.contains_key(name);
        let compared = live.scores.iter().filter(|(name, _)| counts(name));
        compared
            .filter_map(|(name, before)| {
                let score = self.scores.get(name).copied();
                // The sum of binary fractions such as 0.8 + 0.1 is inexact.
                let is_as_good = score.is_some_and(|score| score + self.tolerance + 1e-9 >= *before);
                (!is_as_good).then(|| (name.clone(), score, *before))
            })
            .collect()
    }
}

/// Selects results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvaluationQuery {
    /// Those of this prompt.
    pub prompt: Option<String>,
    /// Those of this evaluation.
    pub evaluation: Option<String>,
    /// Those of the version with this digest.
    pub digest: Option<Digest>,
    /// Only results with a smaller number.
    pub before: Option<u64>,
    /// The largest number of results; 0 stands for 100, and at most 500 are returned.
    pub limit: usize,
}

/// The results for a proposal, next to those of the versions that it replaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProposalEvaluations {
    /// The evaluations that the policy of the channel requires.
    pub required: Vec<String>,
    /// Whether the policy refuses results that are worse than those of the served versions.
    pub no_regression: bool,
    /// The prompts that the proposal adds or changes, by name; at most 100.
    pub prompts: Vec<EvaluationsOfPrompt>,
    /// The number of all these prompts.
    pub all: usize,
}

/// The results of a prompt, before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvaluationsOfPrompt {
    /// The name of the prompt.
    pub name: String,
    /// The version that is replaced; null for a new prompt.
    pub before: Option<Digest>,
    /// The new version.
    pub after: Digest,
    /// The number that the new version has or would get.
    pub version: u64,
    /// By name of the evaluation: those with a result, and those that the policy requires.
    pub evaluations: Vec<ResultChange>,
}

/// The newest results of one evaluation for two versions of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResultChange {
    /// The name of the evaluation.
    pub evaluation: String,
    /// The result of the version that is replaced; null if it has none.
    pub before: Option<Evaluation>,
    /// The result of the new version; null if it has none.
    pub after: Option<Evaluation>,
    /// The cases with another score or verdict, in the order of the new result; at most 100.
    pub cases: Vec<CaseChange>,
}

/// A case with two different results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseChange {
    /// The name of the case.
    pub name: String,
    /// The result before; null for a new case.
    pub before: Option<CaseResult>,
    /// The result after; null for a removed case.
    pub after: Option<CaseResult>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvaluatedPrompt {
    pub(crate) name: String,
    pub(crate) new: Digest,
    /// The version that the channel serves; `None` for a new prompt.
    pub(crate) live: Option<Digest>,
}

//! Results of the official suites, as `conformance.mjs` writes them.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;

/// One run of a suite.
#[derive(Debug, Deserialize)]
pub(super) struct Suite {
    pub(super) title: String,
    /// How many scenarios pass, as the suite itself counts.
    pub(super) passing: usize,
    pub(super) scenarios: Vec<Scenario>,
}

/// One scenario of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    /// Number of its checks.
    pub(super) checks: usize,
    /// The reasons why some checks, or all, cannot pass.
    pub(super) reasons: Vec<String>,
}

/// The result of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passes,
    /// Some checks are excused, all others pass.
    Partly,
    /// All checks are excused.
    Excused,
    /// The result differs from the expected one.
    Wrong,
}

/// Reads the results of the last run.
pub(super) fn read(file: &Path) -> Result<Vec<Suite>> {
    let text = fs::read_to_string(file).context("the suites have not run here yet")?;
    serde_json::from_str(&text).context("the results of the suites are not as they have to be")
}

/// Returns the scenarios that count as evidence, of all runs.
pub(super) fn passing(suites: &[Suite]) -> BTreeSet<String> {
    let scenarios = suites.iter().flat_map(|suite| &suite.scenarios);
    let shows = |scenario: &&Scenario| matches!(scenario.outcome, Outcome::Passes | Outcome::Partly);
    scenarios.filter(shows).map(|scenario| scenario.name.clone()).collect()
}

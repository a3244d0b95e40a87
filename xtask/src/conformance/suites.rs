//! What the official suites have found, as `conformance.mjs` writes it down.

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
    /// How many things it looked at.
    pub(super) checks: usize,
    /// Why some of them, or all, cannot pass.
    pub(super) reasons: Vec<String>,
}

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passes,
    /// Some checks of it are excused, all others pass.
    Partly,
    /// All of it is excused.
    Excused,
    /// It did not end as expected.
    Wrong,
}

/// Reads what the last run has left.
pub(super) fn read(file: &Path) -> Result<Vec<Suite>> {
    let text = fs::read_to_string(file).context("the suites have not run here yet")?;
    serde_json::from_str(&text).context("the results of the suites are not as they have to be")
}

/// The scenarios that show something, in any of the runs.
pub(super) fn passing(suites: &[Suite]) -> BTreeSet<String> {
    let scenarios = suites.iter().flat_map(|suite| &suite.scenarios);
    let shows = |scenario: &&Scenario| matches!(scenario.outcome, Outcome::Passes | Outcome::Partly);
    scenarios.filter(shows).map(|scenario| scenario.name.clone()).collect()
}

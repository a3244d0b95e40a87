//! `[[evaluation]]` of `server.toml`: programs that judge the messages of prompts.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    file::ServerFile,
    source_sections::Interval,
    value::{InvalidValue, from_string},
};

/// The longest name of an evaluation, in bytes.
const MAX_NAME: usize = 64;

/// The time for one run by default.
const TIMEOUT: Duration = Duration::from_secs(60);

from_string!(EvaluationName);

/// One evaluation of prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EvaluationSection {
    /// The name of the evaluation in policies and results: lower-case letters, digits, `-`, `_` and `.`.
    name: EvaluationName,
    /// The program and its arguments. It runs in the folder of this file, and a path of the program is relative to it. It
    /// reads cases as JSON from stdin, and prints scores as JSON.
    program: Vec<String>,
    /// The time for one prompt, such as `60s` or `5m`; the program and all that it started are killed afterwards.
    /// Default: 60s.
    #[serde(default)]
    timeout: Option<Interval>,
    /// The least score that passes, by name. Scores without a threshold are stored and do not count.
    #[serde(default)]
    thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version, where a policy refuses regressions.
    /// Default: 0.
    #[serde(default)]
    tolerance: f64,
}

/// The name of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub(super) struct EvaluationName(String);

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

/// An evaluation that can be run.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "channels"), expect(dead_code, reason = "results are stored in channels"))]
pub(crate) struct ConfiguredEvaluation {
    /// The unique name.
    pub(crate) name: String,
    /// The program: a path, or a name that is looked up in `PATH`.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The folder in which it runs: that of `server.toml`.
    pub(crate) folder: PathBuf,
    /// The time for one prompt.
    pub(crate) timeout: Duration,
    /// The least score that passes, by name.
    pub(crate) thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version.
    pub(crate) tolerance: f64,
}

impl ServerFile {
    /// The evaluations under `[[evaluation]]`.
    #[cfg(feature = "channels")]
    pub(crate) fn evaluations(&mut self) -> Vec<ConfiguredEvaluation> {
        let settings = self.read();
        resolve(self, &settings.evaluation.0)
    }
}

/// Returns the absolute path of a path of the file: the program runs in another folder than this one.
fn absolute(file: &ServerFile, path: &str) -> PathBuf {
    let path = file.resolve(Path::new(path));
    let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
    std::path::absolute(&path).unwrap_or(path)
}

/// Checks all evaluations, and reports their mistakes in the file.
pub(super) fn resolve(file: &mut ServerFile, sections: &[EvaluationSection]) -> Vec<ConfiguredEvaluation> {
    let mut names = HashSet::new();
    let mut resolved = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let name = &section.name.0;
        if !names.insert(name) {
            let message = format!("another evaluation has the name `{name}` already");
            file.evaluation_error(index, "name", message).help = Some("give each a name of its own".to_owned());
        }
        if section.thresholds.keys().any(|score| score.trim().is_empty()) {
            file.evaluation_error(index, "thresholds", "expected the name of a score, got an empty one");
        }
        if section.tolerance < 0.0 {
            let message = format!("expected a number of at least 0, got `{}`", section.tolerance);
            file.evaluation_error(index, "tolerance", message);
        }
        let Some((program, arguments)) = section.program.split_first().filter(|(program, _)| !program.is_empty())
        else {
            let message = "expected a program and its arguments, got none";
            file.evaluation_error(index, "program", message).help =
                Some("write for instance program = [\"python3\", \"judge.py\"]".to_owned());
            continue;
        };
        // Without a separator it is a name that is looked up in PATH.
        let has_separator = program.contains(std::path::is_separator);
        let program = if has_separator { absolute(file, program) } else { program.into() };
        let folder = absolute(file, "");
        resolved.push(ConfiguredEvaluation {
            name: name.clone(),
            program,
            arguments: arguments.to_vec(),
            folder,
            timeout: section.timeout.map_or(TIMEOUT, |timeout| timeout.0),
            thresholds: section.thresholds.clone(),
            tolerance: section.tolerance,
        });
    }
    resolved
}

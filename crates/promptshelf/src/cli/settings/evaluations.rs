//! `[[evaluation]]` of `server.toml`: programs that judge the messages of prompts.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{evaluation_section::EvaluationSection, file::ServerFile};

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredEvaluation {
    pub(crate) name: String,
    /// The program: a path, or a name that is looked up in `PATH`.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The folder in which it runs: that of `server.toml`.
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version.
    pub(crate) tolerance: f64,
}

impl ServerFile {
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
        if let Some(name) = section.environment.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let message = format!("expected the name of a variable such as `OPENAI_API_KEY`, got `{name}`");
            file.evaluation_error(index, "environment", message).help =
                Some("write the value into the environment of `promptshelf evaluate`".to_owned());
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
            environment: section.environment.clone(),
            timeout: section.timeout.map_or(TIMEOUT, |timeout| timeout.0),
            thresholds: section.thresholds.clone(),
            tolerance: section.tolerance,
        });
    }
    resolved
}

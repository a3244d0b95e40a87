//! `docs/requirements/*.toml`: what the protocol asks for, in our own words.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// One file: requirements about one thing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Area {
    /// The letters that its requirements begin with.
    pub(super) id: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) requirement: Vec<Requirement>,
}

/// One thing that the protocol asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Requirement {
    pub(super) id: String,
    pub(super) revisions: String,
    pub(super) level: String,
    pub(super) says: String,
    /// What shows that it is done.
    #[serde(default)]
    pub(super) tests: Vec<String>,
    /// Why there is nothing to show.
    pub(super) not_applicable: Option<String>,
}

/// The strengths of the specification, and two of our own: a decision that the
/// text leaves open, and a remark.
const LEVELS: [&str; 7] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "decision", "note"];

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

impl Requirement {
    /// Whether it has to be shown, or said why not.
    pub(super) fn is_binding(&self) -> bool {
        self.level.starts_with("MUST")
    }
}

/// Reads every file of a folder, in the order of their names.
pub(super) fn read(folder: &Path) -> Result<Vec<Area>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    if paths.is_empty() {
        bail!("{} holds no requirements", folder.display());
    }
    let area = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path)?;
        toml::from_str(&text).with_context(|| format!("{} is not as it has to be", path.display()))
    };
    paths.iter().map(area).collect()
}

/// What is wrong with the requirements by themselves.
pub(super) fn problems(areas: &[Area]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for area in areas {
        for row in &area.requirement {
            let mut problem = |text: &str| problems.push(format!("{}: {text}", row.id));
            let number = row.id.strip_prefix(&area.id).unwrap_or_default();
            let number = number.strip_prefix('-').unwrap_or(number);
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                problem(&format!("an id of this file is {} and a number", area.id));
            }
            if !seen.insert(&row.id) {
                problem("is there twice");
            }
            if !LEVELS.contains(&row.level.as_str()) {
                problem(&format!("the level is one of {}", LEVELS.join(", ")));
            }
            if !are_revisions(&row.revisions) {
                problem("revisions are `all`, `legacy`, or dates with `from`, `to` and `and`");
            }
            if row.says.trim().is_empty() {
                problem("says nothing");
            }
            match (&row.not_applicable, row.tests.is_empty()) {
                (Some(_), false) => problem("either something shows it, or it does not apply"),
                (Some(reason), true) if reason.trim().is_empty() => problem("the reason says nothing"),
                (None, true) if row.is_binding() => problem("nothing shows it, and no reason says why"),
                _ => {}
            }
        }
    }
    problems
}

fn are_revisions(text: &str) -> bool {
    matches!(text, "all" | "legacy")
        || text.split([' ', ',']).all(|word| matches!(word, "" | "from" | "to" | "and") || REVISIONS.contains(&word))
            && text.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_of(rows: &str) -> Vec<String> {
        let area = toml::from_str(&format!("id = \"A\"\ntitle = \"All\"\n{rows}")).expect("a file of requirements");
        problems(&[area])
    }

    fn row(members: &str) -> String {
        format!("[[requirement]]\nrevisions = \"all\"\nsays = \"It works.\"\n{members}\n")
    }

    #[test]
    fn what_must_be_is_shown_or_excused() {
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"\ntests = [\"x::y\"]")), [""; 0]);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST NOT\"\nnot-applicable = \"No tools.\"")), [""; 0]);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"SHOULD\"")), [""; 0]);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"")).len(), 1);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"\nnot-applicable = \" \"")).len(), 1);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MAY\"\ntests = [\"x\"]\nnot-applicable = \"y\"")).len(), 1);
    }

    #[test]
    fn ids_levels_and_revisions_are_known_ones() {
        assert_eq!(problems_of(&row("id = \"B1\"\nlevel = \"MAY\"")).len(), 1);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"COULD\"")).len(), 1);
        let twice = row("id = \"A1\"\nlevel = \"MAY\"").repeat(2);
        assert_eq!(problems_of(&twice), ["A1: is there twice"]);
        for good in ["all", "legacy", "2026-07-28", "from 2025-03-26 to 2025-11-25", "2025-06-18 and 2025-11-25"] {
            assert!(are_revisions(good), "{good}");
        }
        for bad in ["", "R5", "from", "2025-06-19", "legacy and 2026-07-28"] {
            assert!(!are_revisions(bad), "{bad}");
        }
    }
}

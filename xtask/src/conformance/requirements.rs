//! `docs/requirements/*.toml`: the requirements of the protocol and the threats, in our own words.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::tags::Tags;

/// One file: the requirements of one area, or the threats.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Area {
    /// The letters that its ids begin with.
    pub(super) id: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) requirement: Vec<Requirement>,
    #[serde(default)]
    pub(super) threat: Vec<Threat>,
}

/// A requirement of the protocol.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Requirement {
    pub(super) id: String,
    pub(super) revisions: String,
    pub(super) level: String,
    pub(super) text: String,
    /// Scenarios of the official suites that prove it. Tests of ours carry a tag instead.
    #[serde(default)]
    pub(super) suites: Vec<String>,
    /// The reason why there is nothing to prove.
    pub(super) not_applicable: Option<String>,
}

/// A threat and its defence: a row of the guide's page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Threat {
    pub(super) id: String,
    pub(super) threat: String,
    pub(super) defence: String,
}

/// The levels of the specification, and two of our own: a decision that the text leaves open, and a remark.
const LEVELS: [&str; 7] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "decision", "note"];

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

impl Requirement {
    /// Whether it needs evidence, or a reason why there is none.
    pub(super) fn is_binding(&self) -> bool {
        self.level.starts_with("MUST")
    }

    /// Whether a test or a scenario proves it.
    pub(super) fn is_proven(&self, tags: &Tags) -> bool {
        !self.suites.is_empty() || !tags.of(&self.id).is_empty()
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
        toml::from_str(&text).with_context(|| format!("{} does not parse", path.display()))
    };
    paths.iter().map(area).collect()
}

/// Checks ids, levels, revisions and evidence. `passing` holds the scenarios that passed, if the suites have run.
pub(super) fn problems(areas: &[Area], tags: &Tags, passing: Option<&BTreeSet<String>>) -> Vec<String> {
    let mut problems = tags.problems.clone();
    let mut ids = BTreeSet::new();
    for area in areas {
        let rows = area.requirement.iter().map(|row| &row.id);
        for id in rows.chain(area.threat.iter().map(|threat| &threat.id)) {
            let number = id.strip_prefix(&area.id).unwrap_or_default();
            let number = number.strip_prefix('-').unwrap_or(number);
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                problems.push(format!("{id}: expected an id of {} and a number", area.id));
            }
            if !ids.insert(id.as_str()) {
                problems.push(format!("{id}: duplicate id"));
            }
        }
        for row in &area.requirement {
            problems.extend(row.problems(tags, passing).map(|problem| format!("{}: {problem}", row.id)));
        }
        for threat in &area.threat {
            if tags.of(&threat.id).is_empty() {
                problems.push(format!("{}: no test has the tag `// req: {}`", threat.id, threat.id));
            }
        }
    }
    for (id, tests) in tags.evidence.iter().filter(|(id, _)| !ids.contains(id.as_str())) {
        problems.push(format!("{}: the tag {id} names no requirement", tests.join(", ")));
    }
    problems
}

impl Requirement {
    fn problems(&self, tags: &Tags, passing: Option<&BTreeSet<String>>) -> impl Iterator<Item = String> {
        let mut problems = Vec::new();
        if !LEVELS.contains(&self.level.as_str()) {
            problems.push(format!("expected a level of {}", LEVELS.join(", ")));
        }
        if !are_revisions(&self.revisions) {
            problems.push("expected revisions as `all`, `legacy`, or dates with `from`, `to` and `and`".to_owned());
        }
        if self.text.trim().is_empty() {
            problems.push("the text is empty".to_owned());
        }
        for suite in self.suites.iter().filter(|suite| passing.is_some_and(|passing| !passing.contains(*suite))) {
            problems.push(format!("`{suite}` is not a scenario of the official suites that passes"));
        }
        match (&self.not_applicable, self.is_proven(tags)) {
            (Some(_), true) => problems.push("has both evidence and a reason for having none".to_owned()),
            (Some(reason), false) if reason.trim().is_empty() => problems.push("the reason is empty".to_owned()),
            (None, false) if self.is_binding() => {
                problems.push(format!("no test has the tag `// req: {}`, and no reason is given", self.id));
            }
            _ => {}
        }
        problems.into_iter()
    }
}

fn are_revisions(text: &str) -> bool {
    matches!(text, "all" | "legacy")
        || text.split([' ', ',']).all(|word| matches!(word, "" | "from" | "to" | "and") || REVISIONS.contains(&word))
            && text.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of these rows, where `x::y` has the tag A1 and `ping` passes.
    fn problems_of(rows: &str) -> Vec<String> {
        let area = toml::from_str(&format!("id = \"A\"\ntitle = \"All\"\n{rows}")).expect("a file of requirements");
        problems(&[area], &Tags::default(), Some(&["ping".to_owned()].into()))
    }

    fn row(members: &str) -> String {
        format!("[[requirement]]\nrevisions = \"all\"\ntext = \"It works.\"\n{members}\n")
    }

    fn tagged(id: &str) -> Tags {
        Tags { evidence: [(id.to_owned(), vec!["x::y".to_owned()])].into(), problems: Vec::new() }
    }

    #[test]
    fn binding_requirement_needs_evidence_or_a_reason() {
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"\nsuites = [\"ping\"]")), [""; 0]);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST NOT\"\nnot-applicable = \"No tools.\"")), [""; 0]);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"SHOULD\"")), [""; 0]);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"")).len(), 1);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"\nsuites = [\"pong\"]")).len(), 1);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"MUST\"\nnot-applicable = \" \"")).len(), 1);
        let both = row("id = \"A1\"\nlevel = \"MAY\"\nsuites = [\"ping\"]\nnot-applicable = \"y\"");
        assert_eq!(problems_of(&both).len(), 1);
    }

    #[test]
    fn tag_is_evidence_for_requirements_and_threats() {
        let rows = "id = \"A\"\ntitle = \"All\"\n".to_owned() + &row("id = \"A1\"\nlevel = \"MUST\"");
        let area = || toml::from_str(&rows).expect("a file of requirements");
        assert_eq!(problems(&[area()], &tagged("A1"), None), [""; 0]);
        let unknown = problems(&[area()], &tagged("A2"), None);
        assert_eq!(unknown.len(), 2, "A1 has no evidence, A2 is not a requirement: {unknown:?}");

        let threats = "id = \"S\"\ntitle = \"T\"\n[[threat]]\nid = \"S-1\"\nthreat = \"a\"\ndefence = \"b\"\n";
        let area = || toml::from_str(threats).expect("a file of threats");
        assert_eq!(problems(&[area()], &tagged("S-1"), None), [""; 0]);
        assert_eq!(problems(&[area()], &Tags::default(), None).len(), 1);
    }

    #[test]
    fn ids_levels_and_revisions_are_checked() {
        assert_eq!(problems_of(&row("id = \"B1\"\nlevel = \"MAY\"")).len(), 1);
        assert_eq!(problems_of(&row("id = \"A1\"\nlevel = \"COULD\"")).len(), 1);
        let twice = row("id = \"A1\"\nlevel = \"MAY\"").repeat(2);
        assert_eq!(problems_of(&twice), ["A1: duplicate id"]);
        for good in ["all", "legacy", "2026-07-28", "from 2025-03-26 to 2025-11-25", "2025-06-18 and 2025-11-25"] {
            assert!(are_revisions(good), "{good}");
        }
        for bad in ["", "R5", "from", "2025-06-19", "legacy and 2026-07-28"] {
            assert!(!are_revisions(bad), "{bad}");
        }
    }
}

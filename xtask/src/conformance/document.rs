//! The guide's pages about requirements and threats.
//!
//! The same tree gives the same bytes: no times, no order of a hash map.

use std::fmt::Write as _;

use super::{
    requirements::{Area, Requirement},
    suites::{Outcome, Suite},
    tags::Tags,
};

const HEADER: &str = "\
# Protocol requirements

The requirements of the Model Context Protocol for a prompt server, in five revisions and in this project's own words,
each with its evidence. A test is named by its crate, its target and its path; a transcript is a file of
`crates/promptshelf/tests/it/transcripts`; a path under `tests/` is a check with an official client or of the page;
a suite is one of the official conformance suites. All of them run in `cargo xtask test`, which fails when a tag names
an unknown requirement, or when a MUST has neither evidence nor a reason.

";

const THREATS: &str = "\
# Threats and defences

Each row names tests that fail when the defence is removed. A test carries the id of the threat (`// req: S-12`), and
`cargo xtask test --only requirements` fails for a threat without one.

| | threat | defence | tests |
|---|---|---|---|
";

/// The heading of the second part.
const SUITES: &str = "# The official suites\n";

const PASSES: &str = "passes";
const PARTLY: &str = "passes, apart from excused checks";

/// The first part, which needs no run of the suites.
pub(super) fn requirements(areas: &[Area], tags: &Tags) -> String {
    let mut out = HEADER.to_owned();
    let _ = writeln!(out, "{}\n", totals(areas, tags));
    for area in areas.iter().filter(|area| !area.requirement.is_empty()) {
        let _ = writeln!(out, "## {}. {}\n", area.id, area.title);
        out.push_str("| | Revisions | Level | Requirement | Evidence |\n|---|---|---|---|---|\n");
        for row in &area.requirement {
            let (id, level) = (&row.id, &row.level);
            let _ = writeln!(
                out,
                "| {id} | {} | {level} | {} | {} |",
                row.revisions,
                cell(&row.text),
                cell(&evidence(row, tags))
            );
        }
        out.push('\n');
    }
    out
}

/// The part about the suites.
pub(super) fn suites(suites: &[Suite]) -> String {
    let mut out = SUITES.to_owned();
    for suite in suites {
        let scored = suite.scenarios.len();
        let _ = writeln!(out, "\n## {}\n\n{} of {scored} scored scenarios pass.\n", suite.title, suite.passing);
        out.push_str("| Scenario | Checks | Result | Reasons for excused checks |\n|---|---|---|---|\n");
        let mut scenarios: Vec<_> = suite.scenarios.iter().collect();
        scenarios.sort_by(|one, other| one.name.cmp(&other.name));
        for scenario in scenarios {
            let outcome = match scenario.outcome {
                Outcome::Passes => PASSES,
                Outcome::Partly => PARTLY,
                Outcome::Excused => "excused",
                Outcome::Wrong => "FAILS",
            };
            let reasons = cell(&scenario.reasons.join("; "));
            let _ = writeln!(out, "| `{}` | {} | {outcome} | {reasons} |", scenario.name, scenario.checks);
        }
    }
    out
}

/// Counts the requirements, and those with evidence.
pub(super) fn totals(areas: &[Area], tags: &Tags) -> String {
    let rows = || areas.iter().flat_map(|area| &area.requirement);
    let proven = |row: &&Requirement| row.is_proven(tags);
    let binding = rows().filter(|row| row.is_binding()).count();
    let binding_proven = rows().filter(|row| row.is_binding()).filter(proven).count();
    format!(
        "{} requirements, {} with evidence. {binding} of them are a MUST or MUST NOT: {binding_proven} have evidence, \
         {} do not apply here, with the reason.",
        rows().count(),
        rows().filter(proven).count(),
        binding - binding_proven
    )
}

fn evidence(row: &Requirement, tags: &Tags) -> String {
    if let Some(reason) = &row.not_applicable {
        return format!("*Does not apply:* {reason}");
    }
    let suites = row.suites.iter().map(|suite| format!("suite {suite}"));
    list(tags.of(&row.id).iter().cloned().chain(suites))
}

fn list(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join("<br>")
}

/// The table of threats.
pub(super) fn threats(areas: &[Area], tags: &Tags) -> String {
    let mut out = THREATS.to_owned();
    for row in areas.iter().flat_map(|area| &area.threat) {
        let tests = list(tags.of(&row.id).iter().cloned());
        let _ = writeln!(out, "| {} | {} | {} | {tests} |", row.id, cell(&row.threat), cell(&row.defence));
    }
    out
}

/// Escapes text for one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::suites::Scenario;

    fn area() -> Area {
        let rows = "id = \"A\"\ntitle = \"All\"\n\
                    [[requirement]]\nid = \"A1\"\nrevisions = \"all\"\nlevel = \"MUST\"\ntext = \"a | b\"\nsuites = [\"z\"]\n\
                    [[requirement]]\nid = \"A2\"\nrevisions = \"all\"\nlevel = \"MUST\"\ntext = \"c\"\nnot-applicable = \"No tools.\"\n\
                    [[threat]]\nid = \"A-3\"\nthreat = \"t\"\ndefence = \"d | e\"\n";
        toml::from_str(rows).expect("a file of requirements")
    }

    fn tags() -> Tags {
        let evidence = ["A1", "A-3"].map(|id| (id.to_owned(), vec!["x::y".to_owned()]));
        Tags { evidence: evidence.into(), problems: Vec::new() }
    }

    fn scenario(name: &str, outcome: Outcome) -> Scenario {
        Scenario { name: name.to_owned(), outcome, checks: 1, reasons: vec!["a|b".to_owned()] }
    }

    #[test]
    fn rows_are_escaped_and_counted() {
        let text = requirements(&[area()], &tags());
        assert!(text.contains("| A1 | all | MUST | a \\| b | `x::y`<br>`suite z` |\n"), "{text}");
        assert!(text.contains("| A2 | all | MUST | c | *Does not apply:* No tools. |\n"), "{text}");
        assert!(
            text.contains("2 requirements, 1 with evidence. 2 of them are a MUST or MUST NOT: 1 have evidence, 1 do")
        );
    }

    #[test]
    fn threats_have_their_tests() {
        let page = threats(&[area()], &tags());
        assert!(page.ends_with("|---|---|---|---|\n| A-3 | t | d \\| e | `x::y` |\n"), "{page}");
    }

    #[test]
    fn scenarios_are_sorted_and_counted() {
        let scenarios = vec![scenario("b", Outcome::Partly), scenario("a", Outcome::Passes)];
        let page = suites(&[Suite { title: "One".to_owned(), passing: 2, scenarios }]);
        assert!(page.contains("2 of 2 scored scenarios pass"), "{page}");
        assert!(page.find("| `a` | 1 | passes | a\\|b |") < page.find("| `b` | 1 | passes, apart"), "{page}");
    }
}

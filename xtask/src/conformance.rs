//! Requirements of the protocol and threats, with the tests that prove them.
//!
//! People write `docs/requirements/*.toml`. A test names the requirements that it proves in a tag, and the official
//! suites leave their results in the target folder:
//!
//! - a Rust test (`#[test]`, `#[tokio::test]`): `// req: C6, R-3` on a line above its attributes;
//! - a transcript: `<!-- req: X1 -->` on a line of the Markdown file;
//! - a test of the official clients or of the page (`.mjs`): a line above the call, such as `test('…'`.
//!
//! The steps `requirements` and `conformance` check that each row has evidence; the guide has both tables as pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::repository::{Repository, Texts};

/// Returns the file to which `tests/peers/conformance.mjs` writes the results of the suites.
pub(crate) fn results_file(repository: &Repository) -> PathBuf {
    repository.target().join("conformance-results.json")
}

/// Checks requirements, threats and tags. Scenarios of the suites count as evidence without a run.
pub(crate) fn check_requirements(repository: &Repository) -> Result<()> {
    let Proven { areas, tags } = Proven::read(repository, None)?;
    println!("{}", totals(&areas, &tags));
    Ok(())
}

/// Checks that the scenarios which requirements name have passed in the last run of the suites.
pub(crate) fn check_suites(repository: &Repository) -> Result<()> {
    let suites = read_suites(&results_file(repository))?;
    Proven::read(repository, Some(&passing(&suites))).map(drop)
}

/// Returns the pages of the guide about requirements and threats: file name and text. The results of the suites are
/// on the first one if they have run here.
pub(crate) fn pages(repository: &Repository) -> Result<[(&'static str, String); 2]> {
    let Proven { areas, tags } = Proven::read(repository, None)?;
    let results = read_suites(&results_file(repository)).map_or_else(|_| String::new(), |it| suites_page(&it));
    Ok([("conformance.md", requirements_page(&areas, &tags) + &results), ("threats.md", threats_page(&areas, &tags))])
}

/// Valid requirements and their evidence.
struct Proven {
    areas: Vec<Area>,
    tags: Tags,
}

impl Proven {
    /// Reads and checks the requirements. `passing` holds the scenarios that passed, if the suites have run.
    fn read(repository: &Repository, passing: Option<&BTreeSet<String>>) -> Result<Proven> {
        let areas = read_areas(&repository.root.join("docs/requirements"))?;
        let tags = Tags::collect(&repository.texts()?);
        let problems = problems(&areas, &tags, passing);
        if problems.is_empty() {
            return Ok(Proven { areas, tags });
        }
        for problem in &problems {
            println!("{problem}");
        }
        bail!("{} problems in docs/requirements and the tags at the tests", problems.len())
    }
}

/// One file: the requirements of one area, or the threats.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Area {
    /// The letters that its ids begin with.
    id: String,
    title: String,
    #[serde(default)]
    requirement: Vec<Requirement>,
    #[serde(default)]
    threat: Vec<Threat>,
}

/// A requirement of the protocol.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Requirement {
    id: String,
    revisions: String,
    level: String,
    text: String,
    /// Scenarios of the official suites that prove it. Tests of ours carry a tag instead.
    #[serde(default)]
    suites: Vec<String>,
    /// The reason why there is nothing to prove.
    not_applicable: Option<String>,
}

/// A threat and its defence: a row of the guide's page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Threat {
    id: String,
    threat: String,
    defence: String,
}

/// The levels of the specification, and two of our own: a decision that the text leaves open, and a remark.
const LEVELS: [&str; 7] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "decision", "note"];

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

impl Requirement {
    /// Whether it needs evidence, or a reason why there is none.
    fn is_binding(&self) -> bool {
        self.level.starts_with("MUST")
    }

    /// Whether a test or a scenario proves it.
    fn is_proven(&self, tags: &Tags) -> bool {
        !self.suites.is_empty() || !tags.of(&self.id).is_empty()
    }
}

/// Reads every file of a folder, in the order of their names.
fn read_areas(folder: &Path) -> Result<Vec<Area>> {
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
fn problems(areas: &[Area], tags: &Tags, passing: Option<&BTreeSet<String>>) -> Vec<String> {
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

/// One run of a suite.
#[derive(Debug, Deserialize)]
struct Suite {
    title: String,
    /// How many scenarios pass, as the suite itself counts.
    passing: usize,
    scenarios: Vec<Scenario>,
}

/// One scenario of a run.
#[derive(Debug, Deserialize)]
struct Scenario {
    name: String,
    outcome: Outcome,
    /// Number of its checks.
    checks: usize,
    /// The reasons why some checks, or all, cannot pass.
    reasons: Vec<String>,
}

/// The result of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Passes,
    /// Some checks are excused, all others pass.
    Partly,
    /// All checks are excused.
    Excused,
    /// The result differs from the expected one.
    Wrong,
}

/// Reads the results of the last run.
fn read_suites(file: &Path) -> Result<Vec<Suite>> {
    let text = fs::read_to_string(file).context("the suites have not run here yet")?;
    serde_json::from_str(&text).context("the results of the suites are not as they have to be")
}

/// Returns the scenarios that count as evidence, of all runs.
fn passing(suites: &[Suite]) -> BTreeSet<String> {
    let scenarios = suites.iter().flat_map(|suite| &suite.scenarios);
    let shows = |scenario: &&Scenario| matches!(scenario.outcome, Outcome::Passes | Outcome::Partly);
    scenarios.filter(shows).map(|scenario| scenario.name.clone()).collect()
}

/// The folder whose Markdown files are played as tests.
const TRANSCRIPTS: &str = "crates/promptshelf/tests/it/transcripts/";

/// How many lines below a tag the call of a JavaScript test and its title may extend.
const REACH: usize = 4;

/// The evidence found in the tree.
#[derive(Debug, Default)]
struct Tags {
    /// Requirement to the names of its tests, in the order of their files.
    evidence: BTreeMap<String, Vec<String>>,
    /// Tags that are not followed by a test that runs.
    problems: Vec<String>,
}

impl Tags {
    /// Collects the tags of all `.rs`, `.mjs` and `.md` files.
    fn collect(texts: &Texts) -> Tags {
        let mut tags = Tags::default();
        for (path, text) in texts {
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let Some(ids) = tag(path, line) else { continue };
                match test_below(path, &lines, at) {
                    Ok(name) => tags.add(ids, &name),
                    Err(problem) => tags.problems.push(format!("{path}:{}: {problem}", at + 1)),
                }
            }
        }
        tags
    }

    fn add(&mut self, ids: &str, name: &str) {
        for id in ids.split(',').map(str::trim) {
            let names = self.evidence.entry(id.to_owned()).or_default();
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }

    /// The names of the tests that prove a requirement.
    fn of(&self, id: &str) -> &[String] {
        self.evidence.get(id).map_or(&[], Vec::as_slice)
    }
}

/// Returns the ids of a tag, if the line is one.
fn tag<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    if path.ends_with(".md") {
        return line.strip_prefix("<!-- req: ")?.strip_suffix(" -->");
    }
    if path.ends_with(".rs") || path.ends_with(".mjs") {
        return line.trim_start().strip_prefix("// req: ");
    }
    None
}

/// Returns the name of the test that a tag stands above.
fn test_below(path: &str, lines: &[&str], tag: usize) -> Result<String, &'static str> {
    if path.ends_with(".md") {
        let name = path.strip_prefix(TRANSCRIPTS).and_then(|name| name.strip_suffix(".md"));
        return name
            .map(|name| format!("transcript {name}"))
            .ok_or("a tag in Markdown belongs into a transcript; move it to the test");
    }
    if path.ends_with(".mjs") {
        return javascript_test(&lines[tag + 1..])
            .map(|title| format!("{path}: {title}"))
            .ok_or("expected a call such as `test('…'` below the tag");
    }
    rust_test(path, lines, tag)
}

fn rust_test(path: &str, lines: &[&str], tag: usize) -> Result<String, &'static str> {
    let mut attributes = Vec::new();
    for line in &lines[tag + 1..] {
        let line = line.trim();
        let code = line.strip_prefix("async ").unwrap_or(line);
        if let Some((name, _)) = code.strip_prefix("fn ").and_then(|code| code.split_once(['(', '<'])) {
            return match attributes.as_slice() {
                found if found.iter().any(|line: &&str| line.starts_with("#[ignore")) => {
                    Err("the test below the tag is ignored, so it proves nothing")
                }
                found if found.iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test")) => {
                    Ok(modules(path, &lines[..=tag]) + name)
                }
                _ => Err("the function below the tag has no `#[test]`"),
            };
        }
        if line.is_empty() || line == "}" {
            break;
        }
        attributes.push(line);
    }
    Err("expected a test directly below the tag")
}

/// Returns the path of the module that the last of these lines is in, as cargo names tests: `crate::it::http::`.
fn modules(path: &str, lines: &[&str]) -> String {
    let mut parts: Vec<&str> = path.strip_suffix(".rs").unwrap_or(path).split('/').collect();
    parts.retain(|part| !["crates", "src", "tests", "lib", "main", "mod"].contains(part));
    // A file `tests.rs` is a module of that name, a folder `tests` holds a crate's integration tests.
    if path.ends_with("/tests.rs") {
        parts.push("tests");
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut inner = Vec::new();
    let mut depth = lines.last().map_or(0, |line| indent(line));
    for line in lines.iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < depth {
            depth = indent(line);
            inner.extend(line.trim().strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")));
        }
    }
    parts.extend(inner.into_iter().rev());
    parts.join("::") + "::"
}

/// Returns the first string literal of the call below a tag; an interpolation becomes `…`.
fn javascript_test(below: &[&str]) -> Option<String> {
    let call = below.first()?.trim_start();
    let (function, _) = call.split_once('(')?;
    if !(function.starts_with("test") || function.starts_with("check")) {
        return None;
    }
    let call = below.iter().take(REACH).copied().collect::<Vec<_>>().join("\n");
    let start = call.find(['\'', '"', '`'])?;
    let quote = call[start..].chars().next()?;
    let literal = call[start + 1..].split(quote).next()?;
    let mut title = String::new();
    for (at, piece) in literal.split("${").enumerate() {
        let rest = if at == 0 { piece } else { piece.split_once('}')?.1 };
        title += if at == 0 { "" } else { "…" };
        title += rest;
    }
    Some(title)
}

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
fn requirements_page(areas: &[Area], tags: &Tags) -> String {
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
fn suites_page(suites: &[Suite]) -> String {
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
fn totals(areas: &[Area], tags: &Tags) -> String {
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
fn threats_page(areas: &[Area], tags: &Tags) -> String {
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

    fn collect(path: &str, text: &str) -> Tags {
        Tags::collect(&[(path.to_owned(), text.to_owned())].into())
    }

    fn evidence(path: &str, text: &str) -> Vec<(String, String)> {
        let tags = collect(path, text);
        assert_eq!(tags.problems, [""; 0]);
        tags.evidence
            .into_iter()
            .flat_map(|(id, names)| names.into_iter().map(move |name| (id.clone(), name)))
            .collect()
    }

    fn pair(id: &str, name: &str) -> (String, String) {
        (id.to_owned(), name.to_owned())
    }

    #[test]
    fn rust_tests_are_named_by_crate_file_and_module() {
        let text = "// req: A1, R-2\n#[cfg(unix)]\n#[tokio::test(flavor = \"x\")]\nasync fn holds() {}\n";
        let name = "one::it::http::modern::holds";
        let found = evidence("crates/one/tests/it/http/modern.rs", text);
        assert_eq!(found, [pair("A1", name), pair("R-2", name)]);

        let text =
            "mod tests {\n    proptest! {\n        // req: F8\n        #[test]\n        fn holds(cut in 1..8) {\n";
        assert_eq!(evidence("crates/one/src/cursor.rs", text), [pair("F8", "one::cursor::tests::holds")]);

        let text = "fn a() {\n    b();\n}\n\n/// Why.\n// req: A1\n#[test]\n// more\nfn holds() {}\n";
        assert_eq!(evidence("crates/one/src/a/tests.rs", text), [pair("A1", "one::a::tests::holds")]);
        assert_eq!(evidence("crates/one/tests/memory.rs", text), [pair("A1", "one::memory::holds")]);
    }

    #[test]
    fn transcripts_and_javascript_tests_are_evidence() {
        let path = format!("{TRANSCRIPTS}x01-names.md");
        assert_eq!(evidence(&path, "# Names\n\n<!-- req: X1 -->\n"), [pair("X1", "transcript x01-names")]);

        let text = "// req: M9\n  checkPeer(\n    {\n      title: `client, ${revision}, pipe`,\n// req: P1\ntest('a \"b\"', () => {\n";
        let found = evidence("tests/peers/a.mjs", text);
        assert_eq!(found, [pair("M9", "tests/peers/a.mjs: client, …, pipe"), pair("P1", "tests/peers/a.mjs: a \"b\"")]);
    }

    #[test]
    fn tag_without_running_test_is_a_problem() {
        let rust = "crates/one/tests/it/a.rs";
        for (path, text) in [
            (rust, "// req: A1\n#[test]\n#[ignore = \"slow\"]\nfn holds() {}\n"),
            (rust, "// req: A1\nfn helps() {}\n"),
            (rust, "// req: A1\n\n#[test]\nfn holds() {}\n"),
            (rust, "// req: A1\n"),
            ("tests/web/a.test.mjs", "// req: A1\nconst a = 'b';\n"),
            ("docs/guide.md", "<!-- req: A1 -->\n"),
        ] {
            let tags = collect(path, text);
            assert_eq!((tags.problems.len(), tags.evidence.len()), (1, 0), "{text}");
        }
    }

    #[test]
    fn other_comments_are_not_tags() {
        assert!(tag("a.rs", "//! `// req: A1` names").is_none());
        assert!(tag("a.toml", "// req: A1").is_none());
        assert!(tag("a.md", "Write `<!-- req: A1 -->`.").is_none());
    }
}

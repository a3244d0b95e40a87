//! `SECURITY.md`: every threat names what shows that it is met.

use super::{Finding, Tree};

const FILE: &str = "SECURITY.md";

/// Each row of the table ends with tests that exist, named as requirements name
/// them: `promptshelf::it::serving::a_test`, `promptshelf-service::limit::tests::a_test`,
/// or, of the browser's, by their file: `tests/web/a.test.mjs`.
pub(super) fn every_threat_names_its_test(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.texts.get(FILE) else { return vec![Finding::new(FILE, 0, "is missing")] };
    let mut findings = Vec::new();
    let mut find = |line: usize, message: String| findings.push(Finding::new(FILE, line + 1, message));
    let rows = text.lines().enumerate().filter(|(_, line)| line.starts_with("| ") && !line.starts_with("| threat |"));
    let mut count = 0;
    for (at, line) in rows {
        count += 1;
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let &[_, _, tests] = &*cells else {
            find(at, "a row has three cells: threat, defence, tests".to_owned());
            continue;
        };
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            find(at, "this threat names no test".to_owned());
        }
        for name in names.into_iter().filter(|name| !is_test(tree, name)) {
            find(at, format!("`{name}` is no test of this workspace"));
        }
    }
    if count == 0 {
        find(0, "has no table of threats".to_owned());
    }
    findings
}

/// Whether a file that the name leads to has a test of this name.
fn is_test(tree: &Tree, name: &str) -> bool {
    if name.ends_with(".test.mjs") {
        return tree.texts.contains_key(name);
    }
    let parts: Vec<&str> = name.split("::").collect();
    let [home, rooms @ .., test] = &*parts else { return false };
    let path = rooms.join("/");
    // Tests of a room stand in it, or beside it.
    let room = path.strip_suffix("/tests").unwrap_or(&path);
    let places = [
        format!("crates/{home}/tests/{path}.rs"),
        format!("crates/{home}/src/{path}.rs"),
        format!("crates/{home}/src/{room}.rs"),
        format!("crates/{home}/src/{room}/mod.rs"),
    ];
    places.iter().filter_map(|place| tree.texts.get(place)).any(|text| has_test(text, test))
}

fn has_test(text: &str, test: &str) -> bool {
    let opening = format!("fn {test}(");
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let is_it = line.strip_prefix("async ").unwrap_or(line).starts_with(&opening);
        let above = || lines[..at].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
        is_it && above().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_with_tests_that_exist_are_right() {
        let found = |rows: &str| {
            let text = format!("| threat | defence | test |\n|---|---|---|\n{rows}");
            let tree = Tree::of(&[
                (FILE, &text),
                (
                    "crates/one/tests/it/deep/a.rs",
                    "#[cfg(unix)]\n#[tokio::test(flavor = \"x\")]\nasync fn holds() {}\nfn helps() {}\n",
                ),
                ("crates/one/src/b.rs", "mod tests {\n    #[test]\n    // why\n    fn holds() {}\n}\n"),
            ]);
            every_threat_names_its_test(&tree).len()
        };
        assert_eq!(found("| a | b | `one::it::deep::a::holds` |\n| a | b | `one::b::tests::holds`, and more |\n"), 0);
        assert_eq!(found("| a | b | `one::it::deep::a::helps` |\n"), 1, "no test");
        assert_eq!(found("| a | b | `one::it::deep::a::hold` |\n"), 1, "no such name");
        assert_eq!(found("| a | b | `two::it::deep::a::holds` |\n"), 1, "no such place");
        assert_eq!(found("| a | b | the same |\n| a | b |\n"), 2);
        assert_eq!(found(""), 1);
    }
}

//! `promptshelf test`: golden files, test data and reports.

use std::fs;

use insta::assert_snapshot;

use super::EXAMPLES;
use crate::program::{library, promptshelf, run, shown};

const GREETING: &str = "\
---
description: Greets
arguments:
  - name: who
    description: Whom to greet
    required: true
    complete: [Ada, Grace]
tests:
  - name: good
    arguments: { who: Ada }
    equals: Hello, Ada!
    roles: user
  - name: wrong
    arguments: { who: Grace }
    contains: Ada
    not_contains: Grace
    roles: [user, assistant]
    complete: { argument: who, value: g, contains: Ada }
  - name: refused
    error: is required
  - name: golden
    arguments: { who: Linus }
    golden: greeting.golden.md
---
Hello, {{ who }}!
";

#[test]
fn differences_are_shown_and_golden_files_written_once() {
    let folder = library(&[("greeting.md", GREETING)]);
    let before = run(&folder, &["test", "prompts"]);
    let update = run(&folder, &["test", "prompts", "--update", "--filter", "golden"]);
    let written = fs::read_to_string(folder.path().join("prompts/greeting.golden.md")).expect("a written file");
    let changed = GREETING.replace("Hello, {{ who }}!", "Good morning, {{ who }}!");
    fs::write(folder.path().join("prompts/greeting.md"), changed).expect("there is room");
    let after = run(&folder, &["test", "prompts", "--filter", "/ golden", "--junit", "report.xml"]);
    assert_snapshot!(format!("{before}\n{update}\n{written}\n{after}"));
    let report = fs::read_to_string(folder.path().join("report.xml")).expect("a written file");
    assert!(report.contains("failures=\"1\"") && report.contains("-Hello, Linus!\n+Good morning, Linus!"), "{report}");
}

#[cfg(unix)]
#[test]
fn golden_file_that_cannot_be_written_stops_no_other() {
    let second = GREETING.replace("greeting.golden.md", "later.golden.md");
    let folder = library(&[("greeting.md", GREETING), ("later.md", &second), ("outside.txt", "mine")]);
    let link = folder.path().join("prompts/greeting.golden.md");
    std::os::unix::fs::symlink("outside.txt", &link).expect("a link");
    let update = run(&folder, &["test", "prompts", "--update", "--filter", "golden"]);
    assert!(update.starts_with("exit code: 1\n") && update.contains("cannot write"), "{update}");
    assert!(update.contains("ok     later / golden"), "{update}");
    assert!(folder.path().join("prompts/later.golden.md").is_file());
    assert_eq!(fs::read_to_string(&link).expect("a file"), "mine");
}

#[test]
fn filter_without_a_match_fails() {
    let folder = library(&[("greeting.md", GREETING)]);
    let shown = run(&folder, &["test", "prompts", "--filter", "golde / nothing"]);
    assert!(shown.starts_with("exit code: 7\n") && shown.contains("no test has `golde / nothing`"), "{shown}");
}

#[test]
fn golden_file_is_neither_prompt_nor_resource() {
    let folder = library(&[("greeting.md", GREETING), ("greeting.golden.md", "[user] text\nHello, Linus!\n")]);
    let list = run(&folder, &["list", "prompts"]);
    assert!(!list.contains("golden"), "{list}");
    assert!(run(&folder, &["test", "prompts", "--filter", "golden"]).starts_with("exit code: 0\n"));
}

#[test]
fn tests_of_missing_prompts_are_errors() {
    let text = GREETING.replace("argument: who", "argument: whom").replace("roles: user\n", "roles: system\n");
    let folder = library(&[("greeting.md", &text)]);
    let found = run(&folder, &["check", "prompts", "--format", "github"]);
    assert!(found.contains("the prompt has no argument `whom`%0Ahelp: did you mean `who`?"), "{found}");
    assert!(found.contains("line=12") && found.contains("`roles`: unknown value `system`"), "{found}");
    assert!(run(&folder, &["test", "prompts"]).starts_with("exit code: 1\n"));
}

#[test]
fn test_data_rows_run_as_tests() {
    let text = |values: &str| {
        format!(
            "description: Sums up\nmessages:\n- {{role: user, content: \"Sum up: {{{{text}}}}\"}}\ntestData:\n{values}"
        )
    };
    let folder = library(&[("sum.prompt.yml", &text("- {text: a, expected: b}\n- {txt: c}\n"))]);
    let output = run(&folder, &["test", "prompts"]);
    assert!(output.starts_with("exit code: 1\n"), "{output}");
    for line in ["ok     sum / 1\n", "FAILED sum / 2\n", "sum.prompt.yml:6:3)\n", "`text` is required\n"] {
        assert!(output.contains(line), "{line} is missing in {output}");
    }
}

#[test]
fn file_of_each_format_passes_tests_and_check() {
    let formats = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/formats");
    for verb in ["test", "check"] {
        let mut command = promptshelf();
        command.args([verb, formats]);
        let output = shown(command, "");
        assert!(output.starts_with("exit code: 0\n"), "{output}");
        let expected = if verb == "test" { "1 test passed" } else { "8 prompts, 1 warning\n" };
        assert!(output.contains(expected), "{output}");
    }
}

#[test]
fn examples_pass_tests_and_strict_check() {
    for line in [&["test", EXAMPLES][..], &["check", EXAMPLES, "--deny", "warnings"]] {
        let mut command = promptshelf();
        command.args(line);
        let output = shown(command, "");
        assert!(output.starts_with("exit code: 0\n"), "{output}");
        assert!(!output.contains("no test"), "{output}");
    }
}

//! `new`, `fmt`, `render` and `schema`: the commands for writing a prompt.

use std::fs;

use insta::assert_snapshot;

use super::EXAMPLES;
use crate::program::{library, promptshelf, run, shown};

#[test]
fn new_writes_valid_prompts() {
    let folder = library(&[]);
    for (name, template) in [("hello", "text"), ("git/review", "code"), ("talk", "conversation")] {
        let output = run(&folder, &["new", name, "-l", "prompts", "--from", template]);
        assert_eq!(output, format!("exit code: 0\n----- stdout -----\nprompts/{name}.md\n----- stderr -----\n"));
    }
    let text = fs::read_to_string(folder.path().join("prompts/git/review.md")).expect("a written file");
    assert!(text.starts_with("---\n# yaml-language-server: $schema=../.promptshelf/prompt.schema.json\n"), "{text}");
    for line in [
        &["check", "prompts", "--deny", "warnings"][..],
        &["test", "prompts"],
        &["fmt", "prompts", "--check"],
        &["get", "git-review", "-l", "prompts", "--arg", "code=x"],
    ] {
        let output = run(&folder, line);
        assert!(output.starts_with("exit code: 0\n"), "{output}");
    }
}

#[test]
fn new_rejects_existing_files_and_unsafe_names() {
    let folder = library(&[("hello.md", "Hello\n")]);
    let lines: [&[&str]; 4] = [
        &["new", "hello", "-l", "prompts"],
        &["new", "Say Hello", "-l", "prompts"],
        &["new", "../hello", "-l", "prompts"],
        &["new", "hello", "-l", "elsewhere"],
    ];
    assert_snapshot!(lines.map(|line| run(&folder, line)).join("\n"));
    assert_eq!(fs::read_to_string(folder.path().join("prompts/hello.md")).ok().as_deref(), Some("Hello\n"));
}

#[test]
fn new_says_that_the_prompt_was_created_although_the_schema_was_not() {
    for obstacle in [".promptshelf", ".promptshelf/prompt.schema.json/x"] {
        let folder = library(&[("hello.md", "Hello\n"), (obstacle, "mine")]);
        let said = run(&folder, &["new", "prompts", "other"]);
        assert!(said.starts_with("exit code: 1\n----- stdout -----\nprompts/other.md\n"), "{said}");
        assert!(said.contains("error: prompts/other.md was created, but the schema for editors was not"), "{said}");
        assert!(run(&folder, &["list", "prompts"]).contains("other"), "{said}");
    }
}

const MESSY: &str = "---\n# who\ndescription:   'Greets'\nname: hello\n---\nHello\n";

#[test]
fn fmt_lists_changes_and_fmt_check_writes_nothing() {
    let folder = library(&[("a.md", MESSY), ("b.md", "---\na: b: c\n---\nHello\n"), ("_c.md", MESSY)]);
    let looked = run(&folder, &["fmt", "prompts", "--check"]);
    assert_eq!(fs::read_to_string(folder.path().join("prompts/a.md")).ok().as_deref(), Some(MESSY));
    let changed = run(&folder, &["fmt", "prompts"]);
    let again = run(&folder, &["fmt", "prompts/a.md"]);
    assert_snapshot!(format!("{looked}\n{changed}\n{again}"));
    let text = fs::read_to_string(folder.path().join("prompts/a.md")).expect("a readable file");
    assert_eq!(text, "---\nname: hello\n# who\ndescription: \"Greets\"\n---\nHello\n");
}

/// A file that fails stands before, between or after the others.
#[cfg(unix)]
#[test]
fn fmt_goes_on_after_files_that_cannot_be_read_or_written() {
    use std::os::unix::fs::PermissionsExt as _;
    for failing in ["a.md", "b.md", "c.md", "a.md b.md c.md"] {
        let folder = library(&[("a.md", MESSY), ("b.md", MESSY), ("c.md", MESSY)]);
        let path = |name: &str| folder.path().join("prompts").join(name);
        for name in failing.split(' ') {
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o444)).expect("its own file");
        }
        let said = run(&folder, &["fmt", "prompts"]);
        assert!(said.starts_with("exit code: 1\n"), "{said}");
        for name in ["a.md", "b.md", "c.md"] {
            let is_failing = failing.contains(name);
            assert_eq!(fs::read_to_string(path(name)).ok().as_deref() == Some(MESSY), is_failing, "{name}: {said}");
            assert_eq!(said.contains(&format!("error: prompts/{name} cannot be written")), is_failing, "{said}");
        }
        let count = failing.split(' ').count();
        assert!(said.contains(&format!("3 prompt files: {} changed, {count} failed\n", 3 - count)), "{said}");
        let json = run(&folder, &["fmt", "prompts", "--json"]);
        assert_eq!(json.matches("\"failed\"").count(), count, "{json}");
    }
}

#[test]
fn fmt_leaves_files_of_other_programs_as_they_are() {
    const COMMAND: &str = "---\nallowed-tools: Bash(git add:*)\ndescription:   Commit\n---\nCommit $ARGUMENTS\n";
    let folder = library(&[("a.md", MESSY), (".claude/commands/git/commit.md", COMMAND)]);
    for path in ["prompts/.claude/commands", "prompts/.claude/commands/git", "prompts/.claude"] {
        let shown = run(&folder, &["fmt", path]);
        assert!(shown.starts_with("exit code: 0\n") && shown.contains("0 prompt files: 0 changed"), "{path}: {shown}");
    }
    let shown = run(&folder, &["fmt", "prompts/.claude/commands/git/commit.md"]);
    assert!(shown.starts_with("exit code: 0\n") && shown.contains("format of another program"), "{shown}");
    let file = folder.path().join("prompts/.claude/commands/git/commit.md");
    assert_eq!(fs::read_to_string(file).ok().as_deref(), Some(COMMAND));
}

#[test]
fn examples_are_formatted() {
    let mut command = promptshelf();
    command.args(["fmt", "--check", EXAMPLES]);
    assert!(shown(command, "").starts_with("exit code: 0\n"));
}

const GREETING: &str = "\
---
description: Greets
arguments:
  - name: who
    description: Whom
    required: true
    examples: [Ada]
---
Hello, {{ who }}!

{{ attach(\"dot.png\") }}

{{ role(\"assistant\") }}
Hi.
";

#[test]
fn render_shows_messages_with_their_cost() {
    let folder =
        library(&[("sub/greeting.md", GREETING), ("dot.png", ""), ("promptshelf.toml", ""), ("bad.md", "{% if %}")]);
    let lines: [&[&str]; 4] = [
        &["render", "prompts/sub/greeting.md"],
        &["render", "sub-greeting", "-l", "prompts", "--arg", "who=Grace"],
        &["render", "prompts/bad.md"],
        &["render", "nothing", "-l", "prompts"],
    ];
    let output = lines.map(|line| run(&folder, line)).join("\n");
    let root = fs::canonicalize(folder.path()).expect("an absolute path");
    assert_snapshot!(output.replace(&*root.to_string_lossy(), "…"));
}

#[test]
fn schemas_cover_every_section() {
    let folder = library(&[]);
    for (file, key) in [("prompt", "arguments"), ("library", "resources"), ("server", "http")] {
        let output = run(&folder, &["schema", file]);
        let json = output
            .split_once("----- stdout -----\n")
            .and_then(|(_, rest)| rest.split_once("----- stderr"))
            .expect("both");
        let schema: serde_json::Value = serde_json::from_str(json.0).expect("valid JSON");
        assert!(schema["properties"][key].is_object(), "{file}");
    }
}

//! Output of `list`, `get`, `complete` and `check`: snapshots of stdout, stderr and the exit code.

use insta::assert_snapshot;

use crate::program::{Folder, library, run, run_with};

const REVIEW: &str = "\
---
title: Review
description: Reviews code
arguments:
  - name: code
    description: The code to review
    type: text
    required: true
  - name: language
    description: Its language
    enum: [rust, python]
    default: rust
  - name: framework
    description: The framework in use
    complete:
      by: language
      rust: [axum, rocket]
      python: [flask, fastapi]
---
Please review this {{ language }} code{% if framework %}, which uses {{ framework }}{% endif %}:

{{ code | fence(language) }}
";

const TALK: &str = "\
---
title: Talk
description: A conversation with a note
---
Read this note:

{{ attach(\"note.txt\") }}

{{ role(\"assistant\") }}
I have read it.

{{ role(\"user\") }}
What does it say?
";

fn sample_folder() -> Folder {
    library(&[("review.md", REVIEW), ("talk.md", TALK), ("note.txt", "Remember the milk.\n")])
}

#[test]
fn list_prints_one_line_per_prompt() {
    assert_snapshot!(run(sample_folder(), &["list", "prompts"]));
}

#[test]
fn list_finds_prompts_by_what_it_shows_of_them() {
    let found = |text: &str| {
        let shown = run(sample_folder(), &["list", "prompts", "--search", text]);
        (shown.contains("review\t"), shown.contains("talk\t"))
    };
    assert_eq!(found("REVIEW"), (true, false));
    assert_eq!(found("a conversation"), (false, true));
    assert_eq!(found(""), (true, true));
    assert_eq!(found("milk"), (false, false), "texts of files are not searched");
}

#[test]
fn list_prints_json_of_the_protocol() {
    assert_snapshot!(run(sample_folder(), &["list", "--json", "-l", "prompts"]));
}

#[test]
fn get_prints_only_the_text_of_a_single_message() {
    assert_snapshot!(run(sample_folder(), &["get", "review", "-l", "prompts", "--arg", "code=fn main() {}"]));
}

#[test]
fn get_reads_values_from_files_and_from_stdin() {
    let folder = sample_folder();
    let from_stdin = run_with(&folder, &["get", "review", "-l", "prompts", "-a", "code=-"], "print(1)\n");
    let from_file = run(&folder, &["get", "review", "-l", "prompts", "-a", "code=@prompts/note.txt"]);
    assert_snapshot!(format!("{from_stdin}\n{from_file}"));
}

#[test]
fn get_prints_roles_of_several_messages() {
    assert_snapshot!(run(sample_folder(), &["get", "talk", "-l", "prompts"]));
}

#[test]
fn get_prints_json_of_the_protocol() {
    assert_snapshot!(run(sample_folder(), &["get", "review", "-l", "prompts", "--arg", "code=x", "--json"]));
}

#[test]
fn get_prints_provider_formats() {
    let folder = sample_folder();
    let [openai, anthropic] =
        ["openai", "anthropic"].map(|format| run(&folder, &["get", "talk", "-l", "prompts", "--format", format]));
    assert_snapshot!(format!("{openai}\n{anthropic}"));
}

#[test]
fn get_works_in_the_current_folder() {
    let folder = sample_folder();
    let mut command = crate::program::promptshelf();
    command.args(["get", "talk"]).current_dir(folder.path().join("prompts"));
    assert!(crate::program::shown(command, "").starts_with("exit code: 0\n"));
}

#[test]
fn complete_uses_known_arguments() {
    let folder = sample_folder();
    let line = ["suggest", "review", "framework", "-l", "prompts"];
    let rust = run(&folder, &line);
    let python = run(&folder, &[&line[..], &["--arg", "language=python"]].concat());
    let typed = run(&folder, &["suggest", "review", "framework", "ax", "-l", "prompts", "--json"]);
    assert_snapshot!(format!("{rust}\n{python}\n{typed}"));
}

#[test]
fn check_reports_success() {
    assert_snapshot!(run(sample_folder(), &["check", "prompts"]));
}

const BROKEN: &str = "\
---
description: Greets
arguments:
  - name: name
    descripton: Whom
    required: true
---
Hello {{ nmae }}!
";

#[test]
fn check_shows_source_lines() {
    assert_snapshot!(run(library(&[("hello.md", BROKEN)]), &["check", "prompts"]));
}

#[test]
fn check_prints_json() {
    assert_snapshot!(run(library(&[("hello.md", BROKEN)]), &["check", "prompts", "--format", "json"]));
}

#[test]
fn deny_warnings_fails_the_check() {
    let folder = library(&[("hello.md", "Say hello.\n")]);
    assert!(run(&folder, &["check", "prompts"]).starts_with("exit code: 0\n"));
    assert_snapshot!(run(&folder, &["check", "prompts", "--deny", "warnings"]));
}

#[test]
fn list_mentions_omitted_prompts() {
    assert_snapshot!(run(
        library(&[("hello.md", BROKEN), ("talk.md", "---\ndescription: Talks\n---\nHi\n")]),
        &["list", "prompts"]
    ));
}

#[test]
fn version_is_printed() {
    let output = crate::program::promptshelf().arg("--version").output().expect("a running process");
    assert_eq!(String::from_utf8_lossy(&output.stdout), concat!("promptshelf ", env!("CARGO_PKG_VERSION"), "\n"));
}

// The whole text is a page of the reference.
#[test]
fn help_shows_examples_and_exit_codes() {
    let folder = sample_folder();
    let help = run(&folder, &["--help"]);
    assert!(
        help.contains("\nExamples:\n") && help.contains("\n  publish  ") && help.contains("\nExit codes:\n"),
        "{help}"
    );
    let serve = run(&folder, &["serve", "--help"]);
    assert!(
        serve.contains("\nExamples:\n") && serve.contains("  http.address                  PROMPTSHELF_HTTP\n"),
        "{serve}"
    );
}

#[cfg(unix)]
#[test]
fn closed_output_pipe_is_not_a_failure() {
    use std::process::Stdio;

    let folder = sample_folder();
    let mut command = crate::program::promptshelf();
    command.args(["list", "prompts", "--json"]).current_dir(folder.path());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().expect("a started process");
    assert_eq!(crate::program::ended(&mut child).code(), Some(0));
}

#[test]
fn get_of_a_broken_prompt_names_its_error_and_the_line() {
    let folder = library(&[
        ("sub/broken.md", "---\ndescription: x\n---\nOne.\n{{ unclosed\n"),
        ("named.md", "---\nname: other\narguments: 5\n---\nText.\n"),
    ]);
    for (name, place) in [("sub-broken", "sub/broken.md:5"), ("other", "named.md:")] {
        let shown = run(&folder, &["get", "prompts", name]);
        assert!(shown.starts_with("exit code: 7\n") && shown.contains("its file has an error"), "{shown}");
        assert!(shown.contains(place) && shown.contains("promptshelf check prompts"), "{shown}");
    }
}

#[test]
fn suggested_command_runs_as_it_is() {
    let keys = "arguments:\n  - { name: text, description: t, required: true, minLength: 20 }\n  - { name: code, description: c, required: true, pattern: '^[A-Z]{2}-[0-9]+$' }";
    let folder =
        library(&[("sum.md", &format!("---\ndescription: Sums up\n{keys}\n---\n{{{{ text }}}} {{{{ code }}}}\n"))]);
    let shown = run(&folder, &["get", "prompts", "sum", "--arg", "text=short"]);
    let line = shown.lines().find_map(|line| line.trim().strip_prefix("help: promptshelf ")).expect("a command line");
    let words = shlex::split(line).expect("words of a shell");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = run(&folder, &words);
    assert!(again.starts_with("exit code: 0\n"), "{line}\n{again}");
}

#[test]
fn render_finds_the_library_of_its_file() {
    let folder = library(&[
        ("lib/support/reply.md", "---\ndescription: x\n---\n{% include \"_shared/style.md\" %}\n"),
        ("lib/support/_local.md", "Local.\n"),
        ("lib/_shared/style.md", "Be kind.\n"),
    ]);
    let shown = run(&folder, &["render", "prompts/lib/support/reply.md"]);
    assert!(shown.starts_with("exit code: 0\n") && shown.contains("Be kind."), "{shown}");
}

//! Errors of the command line: message and exit code.

use insta::assert_snapshot;

use crate::program::{library, run};

const HELLO: &str = "\
---
description: Greets
arguments:
  - name: name
    description: Whom to greet
    required: true
  - name: tone
    description: How
    enum: [kind, formal]
---
Say hello to {{ name }}{% if tone %} in a {{ tone }} tone{% endif %}.
";

#[test]
fn missing_folder_is_reported() {
    let folder = library(&[]);
    let reported = |what: &str| {
        format!("exit code: 3\n----- stdout -----\n----- stderr -----\nerror: there is no {what} promts\n")
    };
    assert_eq!(run(&folder, &["serve", "promts"]), reported("folder"));
    // It could be a file, too.
    let near = reported("folder or file") + " help: did you mean `prompts`?\n";
    assert_eq!(run(&folder, &["check", "promts"]), near);
    for line in [&["check", "https://prompts.example"][..], &["render", "https://prompts.example", "hello"]] {
        let address = run(&folder, line);
        assert!(address.contains("git+https://prompts.example") && !address.contains("create it"), "{address}");
    }
    // The word can also be the name of a server.
    assert!(run(&folder, &["list", "promts"]).starts_with(&reported("folder")));
}

#[test]
fn file_as_folder_is_reported() {
    assert_snapshot!(run(library(&[("hello.md", HELLO)]), &["list", "prompts/hello.md"]));
}

#[test]
fn invalid_toml_is_reported() {
    let folder = library(&[("hello.md", HELLO), ("promptshelf.toml", "[server]\nname = hello\n")]);
    assert_snapshot!(
        [["serve", "prompts"], ["list", "prompts"], ["check", "prompts"]].map(|line| run(&folder, &line)).join("\n")
    );
}

#[test]
fn unknown_server_setting_is_reported() {
    let manifest = "[http]\naddress = \"localhost:8080\"\nallow-remot = true\n";
    let folder = library(&[("hello.md", HELLO), ("promptshelf.toml", manifest)]);
    assert_snapshot!([["serve", "prompts"], ["check", "prompts"]].map(|line| run(&folder, &line)).join("\n"));
}

#[test]
fn server_toml_mistakes_have_lines() {
    let settings = "[http]\naddress = 8080\nallow-remot = true\n[server]\nname = \"x\"\n";
    let folder = library(&[("hello.md", HELLO), ("../server.toml", settings)]);
    let serve = run(&folder, &["serve", "prompts", "--config", "server.toml"]);
    let check = run(&folder, &["check", "prompts", "--config", "server.toml"]);
    let root = std::fs::canonicalize(folder.path()).expect("an absolute path");
    let shown = [check.as_str(), &run(&folder, &["serve", "prompts", "--config", "missing.toml"])].join("\n");
    assert_snapshot!(format!("{serve}\n{}", shown.replace(&*root.to_string_lossy(), "…")));
}

/// `check` finds them before a server does, and both end with the code of invalid settings.
#[test]
fn settings_that_need_each_other_are_found_by_check() {
    let settings = "[auth]\nissuer = \"https://a.example\"\n\n[tls]\ncertificate = \"chain.pem\"\n";
    let folder = library(&[("hello.md", HELLO), ("../server.toml", settings)]);
    let serve = run(&folder, &["serve", "prompts", "--config", "server.toml"]);
    let check = run(&folder, &["check", "prompts", "--config", "server.toml"]);
    let root = std::fs::canonicalize(folder.path()).expect("an absolute path");
    assert_snapshot!(format!("{serve}\n{}", check.replace(&*root.to_string_lossy(), "…")));
    let flag = run(&folder, &["serve", "prompts", "--tls-certificate", "chain.pem"]);
    assert!(flag.starts_with("exit code: 2\n"), "{flag}");
}

// req: S-51
#[test]
fn private_files_inside_the_library_are_found_by_check() {
    let settings = "[audit]\nfile = \"prompts/audit.jsonl\"\n[auth]\ntokens-file = \"prompts/tokens\"\n";
    let folder = library(&[("hello.md", HELLO), ("../server.toml", settings)]);
    let serve = run(&folder, &["serve", "prompts", "--config", "server.toml"]);
    let check = run(&folder, &["check", "prompts", "--config", "server.toml"]);
    let outside = run(&folder, &["check", "--config", "server.toml", "--library", "."]);
    std::fs::create_dir(folder.path().join("other")).expect("created");
    let other = run(&folder, &["check", "other", "--config", "server.toml"]);
    for refused in [&serve, &check, &outside] {
        assert!(refused.starts_with("exit code: 4\n"), "{refused}");
        assert!(refused.contains("the audit file") && refused.contains("the tokens file"), "{refused}");
        assert!(refused.contains("server.toml:2:8") && refused.contains("server.toml:4:15"), "{refused}");
    }
    assert!(other.starts_with("exit code: 0\n"), "{other}");
}

/// A rule with a typo protects nothing.
#[test]
fn access_rules_of_server_toml_are_checked_with_the_library() {
    let rules = "[[access]]\nprompts = [\"helo\"]\nroles = [\"editor\"]\n\n\
                 [[access]]\nprompts = [\"hello\"]\ntags = [\"secret\"]\nroles = [\"editor\"]\n";
    let folder = library(&[("hello.md", HELLO), ("../server.toml", rules)]);
    let check = |more: &[&str]| run(&folder, &[&["check", "prompts", "--config", "server.toml"], more].concat());
    let root = std::fs::canonicalize(folder.path()).expect("an absolute path");
    assert_snapshot!(check(&[]).replace(&*root.to_string_lossy(), "…"));
    assert!(check(&["--deny", "warnings"]).starts_with("exit code: 1\n"));
    // With [[source]] the rules name prompts with the prefixes of their sources.
    let sources = format!("{rules}[[source]]\nname = \"team\"\nkind = \"folder\"\npath = \"prompts\"\n");
    std::fs::write(folder.path().join("server.toml"), sources).expect("written");
    assert!(check(&["--deny", "warnings"]).starts_with("exit code: 0\n"), "{}", check(&[]));
}

#[test]
fn local_commands_ignore_broken_server_toml() {
    let folder = library(&[("hello.md", HELLO), ("../config/promptshelf/server.toml", "[http\n")]);
    let mut command = crate::program::promptshelf();
    command.args(["list", "prompts"]).current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path().join("config"));
    let shown = crate::program::shown(command, "");
    assert!(shown.starts_with("exit code: 0\n") && shown.contains("hello"), "{shown}");
}

#[test]
fn missing_prompt_is_reported() {
    let folder = library(&[("hello.md", HELLO)]);
    let lines: [&[&str]; 3] = [
        &["get", "helo", "-l", "prompts"],
        &["get", "something-else", "-l", "prompts", "--json"],
        &["suggest", "helo", "name", "-l", "prompts"],
    ];
    assert_snapshot!(lines.map(|line| run(&folder, line)).join("\n"));
}

/// What is typed in the wrong place, or as other programs have it, leads to the right words.
#[test]
fn mistaken_words_lead_to_the_right_ones() {
    let folder = library(&[("hello.md", HELLO)]);
    folder.write("hello.md", HELLO);
    folder.write(".claude.json", "{oops");
    for (line, code, expected) in [
        ("install claude-code", 3, "`--client claude-code`"),
        ("install claude", 3, "`--client claude-code`"),
        ("install prompts --client claude-code", 1, ".claude.json: it is not valid JSON: "),
        ("get hello name", 2, "unexpected `name`"),
        ("get hello name = Ada", 2, "write a value as `NAME=VALUE`, without blanks around `=`"),
        ("get hello.md", 7, "did you mean `hello`?"),
        ("list ftp://example.com", 2, "`ftp://` is unknown here"),
        ("check ftp://example.com", 2, "`ftp://` is unknown here"),
        ("fmt team.db", 2, "`fmt` changes files"),
        ("new git+file:///nowhere hello", 2, "`new` changes files"),
        ("check prompts --client zed,cursor", 2, "repeat the option: `--client zed --client cursor`"),
        ("check /dev/null", 3, "/dev/null is neither a folder nor a file"),
        ("fmt /dev/null", 3, "/dev/null is neither a folder nor a file"),
        ("publish prompts -m x", 2, "for `publish` after `--to`"),
        ("publish team.db -m x", 2, "it is the store: write it after `--to`"),
        ("list postgres://ada:Tail99secret@localhost:1/x", 15, "the store postgres://ada:***@localhost:1/x cannot be"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = crate::program::promptshelf();
        command.args(words).current_dir(folder.path()).env("HOME", folder.path());
        command.env("XDG_STATE_HOME", folder.path().join("state"));
        let shown = crate::program::shown(command, "");
        assert!(shown.starts_with(&format!("exit code: {code}\n")) && shown.contains(expected), "{line}: {shown}");
    }
    let stdin = crate::program::run_with(&folder, &["get", "hello", "name=@-"], "Ada");
    assert!(stdin.contains("Say hello to Ada."), "{stdin}");
    // What is empty says so where the results are not.
    for command in ["list", "resources"] {
        let empty = run(library(&[("_part.md", "Part")]), &[command, "prompts"]);
        assert!(empty.contains("----- stdout -----\n----- stderr -----\nnote: there are no "), "{empty}");
    }
}

/// A path that cannot be followed is no store that is missing.
#[cfg(unix)]
#[test]
fn store_that_cannot_be_reached_is_not_a_missing_one() {
    let folder = library(&[]);
    std::os::unix::fs::symlink("circle.db", folder.path().join("circle.db")).expect("a link");
    let circle = run(&folder, &["history", "circle.db"]);
    assert!(circle.starts_with("exit code: 15\n") && circle.contains("cannot be reached: circle.db: "), "{circle}");
    assert!(!circle.contains("init"), "{circle}");
    folder.write("text.db", "This is no database, and long enough to be refused as one.\n");
    let text = run(&folder, &["history", "text.db"]);
    assert!(text.contains("error: the store sqlite:text.db cannot be opened: file is not a database\n"), "{text}");
    assert!(!text.contains("ERROR"), "{text}");
}

#[test]
fn invalid_arguments_are_reported() {
    let folder = library(&[("hello.md", HELLO)]);
    let get = ["get", "hello", "-l", "prompts"];
    let with = |more: &[&str]| run(&folder, &[&get[..], more].concat());
    assert_snapshot!(
        [
            with(&["--arg", "tone=rude"]),
            with(&["--arg", "tone=rude", "--json"]),
            with(&["--arg", "nmae=Ada"]),
            with(&["--arg", "name=@nothing.txt"]),
            with(&["--arg", "name=a", "--literal", "name=b"]),
            run(&folder, &["suggest", "hello", "nmae", "-l", "prompts"]),
        ]
        .join("\n")
    );
}

#[test]
fn unknown_options_are_reported() {
    let folder = library(&[("hello.md", HELLO)]);
    let lines: [&[&str]; 5] = [
        &["serv"],
        &["get", "hello", "--arg", "name"],
        &["serve", "prompts", "--http", "prompts"],
        &["serve", "prompts", "--stdio", "--http", "127.0.0.1:0"],
        &["list", "prompts", "--log", "loud=very"],
    ];
    assert_snapshot!(lines.map(|line| run(&folder, line)).join("\n"));
}

// req: L51, R-15
#[test]
fn reachable_address_is_reported() {
    let folder = library(&[("hello.md", HELLO)]);
    assert_snapshot!(run(&folder, &["serve", "prompts", "--http", "0.0.0.0:0"]));
}

// req: S-160
#[test]
fn editing_without_sign_in_is_for_this_machine() {
    let folder = library(&[("hello.md", HELLO)]);
    let refused = [
        &["serve", "prompts", "--edit", "--http", "0.0.0.0:0", "--allow-remote"][..],
        &["serve", "prompts", "--edit", "--http", "127.0.0.1:0", "--trust-proxy", "10.0.0.1"],
        &["serve", "sqlite:team.db", "--edit"],
    ];
    assert_snapshot!(refused.map(|arguments| run(&folder, arguments)).join("\n"));
}

#[test]
fn address_in_use_is_reported() {
    let folder = library(&[("hello.md", HELLO)]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("a bound listener").to_string();
    assert_snapshot!(run(&folder, &["serve", "prompts", "--http", &address]).replace(&address, "127.0.0.1:[port]"));
}

#[test]
fn strict_server_refuses_errors() {
    let folder = library(&[("hello.md", HELLO), ("broken.md", "---\ndescription: x\n---\n{{ nobody }}\n")]);
    let shown = run(&folder, &["serve", "prompts", "--strict", "--http", "127.0.0.1:0", "--log", "off"]);
    assert_snapshot!(shown);
}

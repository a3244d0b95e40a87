//! The TARGET of `list`, `get`, `complete` and `resources`, the errors of a connection, and suggested command lines.

use std::{fs, net::TcpListener, process::Command};

use axum::{Router, routing::get};
use serde_json::json;

use crate::{
    fake_server::FakeServer,
    program::{Folder, PATIENCE, Server, library, promptshelf, shown},
};

const REVIEW: &str = "\
---
title: Review
description: Reviews code
arguments:
  - name: code
    description: The code to review
    required: true
    examples: [\"it's (a) test\"]
  - name: language
    description: Its language
    enum: [rust, ruby, python]
    required: true
---
Review this {{ language }} code: {{ code }}
";

fn sample_folder() -> Folder {
    library(&[("review.md", REVIEW), ("style.txt", "Be `brief`.\n")])
}

/// Adds a server with the name `mine` to the user's configuration, if the folder is the home of the user.
fn configure(folder: &Folder) {
    let server = json!({ "command": env!("CARGO_BIN_EXE_promptshelf"), "args": ["serve", "prompts", "--stdio"] });
    let file = folder.path().join(".claude.json");
    fs::write(file, json!({ "mcpServers": { "mine": server } }).to_string()).expect("a written file");
}

/// Runs the program in a folder that is the home of the user too.
fn run(folder: &Folder, line: &[&str]) -> String {
    let mut command = promptshelf();
    command.args(line).current_dir(folder.path()).env("HOME", folder.path());
    shown(command, "")
}

#[test]
fn target_is_a_folder_a_url_or_a_configured_name() {
    let folder = sample_folder();
    configure(&folder);
    let server = Server::of(&folder, &[]);
    let values = ["-a", "code=x", "-a", "language=rust"];
    let commands: [(&str, &[&str]); 4] = [
        ("list", &[]),
        ("get", &["review", values[0], values[1], values[2], values[3]]),
        ("suggest", &["review", "language", "ru"]),
        ("resources", &[]),
    ];
    for (command, rest) in commands {
        let expected = run(&folder, &[&[command, "-l", "prompts"], rest].concat());
        assert!(expected.starts_with("exit code: 0\n"), "{expected}");
        for target in ["prompts", "./prompts", &server.url, "mine"] {
            assert_eq!(run(&folder, &[&[command, target], rest].concat()), expected, "{command} {target}");
        }
    }
}

#[test]
fn two_sources_are_rejected() {
    let folder = sample_folder();
    for line in [
        &["list", "prompts", "-l", "prompts"][..],
        &["list", "prompts", "--url", "http://127.0.0.1:1/mcp"],
        &["get", "prompts", "review", "-l", "prompts"],
        &["suggest", "prompts", "review", "language", "ru", "--", "false"],
    ] {
        let shown = run(&folder, line);
        assert!(shown.starts_with("exit code: 2\n"), "{line:?}: {shown}");
    }
}

#[test]
fn three_words_of_complete_prefer_a_prompt_of_the_current_folder() {
    let folder = sample_folder();
    let values = "exit code: 0\n----- stdout -----\nrust\nruby\npython\n----- stderr -----\n";
    // A folder and no prompt of the current folder.
    assert_eq!(run(&folder, &["suggest", "prompts", "review", "language"]), values);
    assert_eq!(run(&folder, &["suggest", "./prompts", "review", "language"]), values);
    // A prompt, although a folder has its name: the third word is the value.
    let here = Folder::library(&[("review.md", REVIEW), ("review/other.md", "Hi.\n")]);
    let mut command = promptshelf();
    command.args(["suggest", "review", "language", "py"]).current_dir(here.path().join("prompts"));
    assert_eq!(shown(command, ""), "exit code: 0\n----- stdout -----\npython\n----- stderr -----\n");
}

#[test]
fn unknown_target_names_the_configured_servers() {
    let folder = sample_folder();
    configure(&folder);
    for line in [&["list", "promts"][..], &["get", "promts", "review"], &["resources", "promts"]] {
        let shown = run(&folder, line);
        assert!(shown.starts_with("exit code: 3\n"), "{shown}");
        assert!(shown.contains("there is no folder promts"), "{shown}");
        assert!(shown.contains("no server is named promts either: the configured servers are mine"), "{shown}");
    }
}

#[test]
fn url_without_a_path_finds_the_endpoint() {
    let folder = sample_folder();
    let server = Server::of(&folder, &[]);
    let root = server.url.trim_end_matches("mcp");
    for url in [root, root.trim_end_matches('/')] {
        let listed = run(&folder, &["list", "--url", url]);
        assert!(listed.starts_with("exit code: 0\n----- stdout -----\nreview\t"), "{listed}");
        assert!(listed.contains(&format!("note: using {}, the MCP endpoint of this server", server.url)), "{listed}");
    }
}

#[test]
fn url_of_another_page_names_the_endpoint() {
    let folder = sample_folder();
    let server = Server::of(&folder, &[]);
    let wrong = run(&folder, &["list", &server.url.replace("/mcp", "/sse")]);
    assert!(wrong.starts_with("exit code: 9\n") && wrong.contains("not an MCP endpoint: HTTP 404"), "{wrong}");
    assert!(wrong.contains(&format!("often it is {}", server.url)), "{wrong}");
    // A website without any endpoint.
    let page = || async { axum::response::Html("<h1>Welcome</h1>") };
    let website = FakeServer::serving(Router::new().fallback(get(page).post(page)));
    let root = website.url.trim_end_matches("/mcp");
    let none = run(&folder, &["list", root]);
    assert!(none.starts_with("exit code: 9\n") && none.contains("it answers with text/html"), "{none}");
    assert!(none.contains(&format!("{root}/mcp does not answer as one either")), "{none}");
}

#[test]
fn connection_errors_name_their_cause() {
    let folder = sample_folder();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("a bound listener");
    let refused = run(&folder, &["list", "--url", &format!("http://{closed}/mcp")]);
    assert!(refused.contains(&format!("{closed} refused the connection")), "{refused}");
    let unknown = run(&folder, &["list", "--url", "http://no-such-host.invalid/mcp"]);
    assert!(unknown.contains("no such host: no-such-host.invalid"), "{unknown}");
    let server = Server::of(&folder, &[]);
    let plain = run(&folder, &["list", "--url", &server.url.replace("http://", "https://")]);
    assert!(plain.contains("TLS failed with 127.0.0.1:"), "{plain}");
    for shown in [refused, unknown, plain] {
        assert!(shown.starts_with("exit code: 9\n") && !shown.contains("error sending request"), "{shown}");
    }
}

#[test]
fn refused_token_is_named() {
    let folder = sample_folder();
    let made = promptshelf().args(["token", "new", "ada", "--json"]).output().expect("the program runs");
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).expect("JSON");
    fs::write(folder.path().join("tokens"), made["store"].as_str().expect("a line")).expect("written");
    let server = Server::of(&folder, &["--tokens", "tokens"]);
    let list = |token: &str| {
        let mut command = promptshelf();
        command.args(["list", &server.url]).current_dir(folder.path()).env("PROMPTSHELF_TOKEN", token);
        shown(command, "")
    };
    let refused = list("wrong");
    assert!(refused.starts_with("exit code: 12\n"), "{refused}");
    assert!(refused.contains("the server did not accept the token in PROMPTSHELF_TOKEN"), "{refused}");
    assert!(list(made["token"].as_str().expect("a token")).starts_with("exit code: 0\n"));
}

#[test]
fn unknown_server_is_named() {
    let folder = sample_folder();
    configure(&folder);
    let shown = run(&folder, &["list", "--server", "yours"]);
    assert!(shown.contains("no server is named yours") && shown.contains("mine"), "{shown}");
}

/// Runs the command line that follows `help: ` in a shell.
#[cfg(unix)]
fn run_suggested(folder: &Folder, output: &str) -> String {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("help: ")).expect("a suggestion");
    let line = line.trim_start_matches('`').split("` lists").next().expect("a line");
    let mut shell = Command::new("sh");
    let program = promptshelf();
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let line = line.replacen("promptshelf", "\"$PROGRAM\"", 1);
    shell
        .env("PROGRAM", program.get_program())
        .env("HOME", folder.path())
        .args(["-c", &line])
        .current_dir(folder.path());
    shown(shell, "")
}

#[cfg(unix)]
#[test]
fn suggested_command_lines_can_be_run() {
    let folder = sample_folder();
    configure(&folder);
    fs::rename(folder.path().join("prompts"), folder.path().join("my prompts")).expect("a renamed folder");
    std::os::unix::fs::symlink("my prompts", folder.path().join("prompts")).expect("a link");
    let server = Server::of(&folder, &[]);
    let sources: [&[&str]; 4] = [&["my prompts"], &[&server.url], &["mine"], &["-l", "my prompts"]];
    for source in sources {
        let missing = run(&folder, &[&["get"], source, &["review"]].concat());
        let worked = run_suggested(&folder, &missing);
        assert!(missing.starts_with("exit code: 8\n") && worked.contains("\nReview this "), "{missing}{worked}");
        // Typed values stay, invalid ones are replaced.
        let typed = [&["get"], source, &["review", "-a", "code=a \"b\" $c", "-a", "language=cobol"]].concat();
        let wrong = run(&folder, &typed);
        let worked = run_suggested(&folder, &wrong);
        assert!(worked.contains("code: a \"b\" $c\n"), "{wrong}{worked}");
        let unknown = run(&folder, &[&["get"], source, &["something-else"]].concat());
        let worked = run_suggested(&folder, &unknown);
        assert!(unknown.starts_with("exit code: 7\n") && worked.contains("\nreview\t"), "{unknown}{worked}");
    }
    let command = [env!("CARGO_BIN_EXE_promptshelf"), "serve", "my prompts", "--stdio"];
    let missing = run(&folder, &[&["get", "review", "--"], &command[..]].concat());
    let worked = run_suggested(&folder, &missing);
    assert!(worked.contains("\nReview this "), "{missing}{worked}");
}

#[cfg(unix)]
#[test]
fn suggested_line_of_a_guided_prompt_answers_its_forms() {
    let folder = library(&[("guided.md", crate::chat::GUIDED)]);
    let server = Server::of(&folder, &[]);
    for target in ["prompts", &server.url] {
        let asked = run(&folder, &["get", target, "guided"]);
        let worked = run_suggested(&folder, &asked);
        assert!(asked.starts_with("exit code: 8\n") && asked.contains("\n  `topic` "), "{asked}");
        assert!(worked.contains("\nWrite about "), "{asked}{worked}");
    }
}

#[test]
fn unknown_prompt_is_one_sentence() {
    let folder = sample_folder();
    let server = Server::of(&folder, &[]);
    for target in ["prompts", &server.url] {
        let unknown = run(&folder, &["get", target, "something-else"]);
        let error = unknown.lines().find(|line| line.starts_with("error: ")).expect("an error");
        assert!(error.ends_with("Unknown prompt: something-else") && error.matches("prompt").count() == 1, "{unknown}");
    }
}

#[test]
fn announced_client_lines_sign_in() {
    let folder = sample_folder();
    let made = promptshelf().args(["token", "new", "ada", "--json"]).output().expect("the program runs");
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).expect("JSON");
    fs::write(folder.path().join("tokens"), made["store"].as_str().expect("a line")).expect("written");
    let announcement = |server: &Server, last: &str| {
        let mut text = server.startup_log.clone();
        while !text.lines().any(|line| line.contains(last)) {
            text += &server.log.recv_timeout(PATIENCE).expect("the rest of the announcement");
            text.push('\n');
        }
        text
    };
    let open = announcement(&Server::of(&folder, &[]), "other clients:");
    assert!(!open.contains("PROMPTSHELF_TOKEN"), "{open}");
    let announced = announcement(&Server::of(&folder, &["--tokens", "tokens"]), "sign-in:");
    let line = |label: &str| announced.lines().find(|line| line.contains(label)).unwrap_or_default().to_owned();
    let claude = line("Claude Code:");
    assert!(claude.ends_with("/mcp --header \"Authorization: Bearer $PROMPTSHELF_TOKEN\""), "{announced}");
    for label in ["VS Code:", "other clients:"] {
        let text = line(label);
        let json = &text[text.find('{').expect("JSON")..=text.rfind('}').expect("JSON")];
        let value: serde_json::Value = serde_json::from_str(json).expect("valid JSON");
        assert!(value.to_string().contains("\"Authorization\":\"Bearer ${"), "{announced}");
    }
    assert!(line("sign-in:").contains("promptshelf token new"), "{announced}");
}

//! The first minutes of a person: the program alone, `init`, `serve --open`, `install` without a client, `health`; and the
//! commands that it prints when a package manager has started it.

use std::{fs, process::Command};

use promptshelf_testkit::folder::executable;
use serde_json::Value;

use crate::{
    program::{Folder, Server, library, promptshelf, run, shown},
    terminal::Terminal,
};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";

fn here(folder: &Folder, line: &[&str]) -> Command {
    let mut command = promptshelf();
    command.args(line).current_dir(folder.path()).env("HOME", folder.path()).env_remove("XDG_CONFIG_HOME");
    command
}

#[test]
fn program_alone_prints_first_commands_on_a_terminal_and_help_elsewhere() {
    let (code, written) = Terminal::start(promptshelf()).end();
    let text = String::from_utf8(written).expect("text");
    assert_eq!((code, text.trim_end().lines().count()), (Some(0), 10), "{text}");
    assert!(text.contains("promptshelf init my-prompts") && text.contains("my-prompts --edit --open"), "{text}");
    let piped = shown(promptshelf(), "");
    assert!(piped.starts_with("exit code: 2") && piped.contains("Usage: promptshelf"), "{piped}");
}

#[test]
fn init_makes_a_library_that_passes_check_test_and_fmt() {
    let folder = Folder::empty();
    let made = run(&folder, &["init", "prompts"]);
    assert!(made.starts_with("exit code: 0"), "{made}");
    assert!(!made.contains("sqlite:") && !made.contains("postgres:"), "{made}");
    let checked = run(&folder, &["check", "prompts", "--deny", "warnings"]);
    assert!(checked.starts_with("exit code: 0"), "{checked}");
    let tested = run(&folder, &["test", "prompts"]);
    assert!(tested.starts_with("exit code: 0") && tested.contains("1 test"), "{tested}");
    let formatted = run(&folder, &["fmt", "prompts", "--check"]);
    assert!(formatted.starts_with("exit code: 0"), "{formatted}");
    let listed = run(&folder, &["list", "prompts", "--json"]);
    assert_eq!(listed.matches("\"title\"").count(), 3, "{listed}");
}

// req: S-410
#[test]
fn init_overwrites_no_file_and_refuses_folders_that_are_too_wide() {
    let folder = Folder::empty();
    folder.write("explain.md", "Mine.\n");
    folder.write("src/main.rs", "fn main() {}\n");
    let made = shown(here(&folder, &["init", "--json"]), "");
    // The working directory is the home folder here.
    assert!(made.starts_with("exit code: 2") && made.contains("home folder"), "{made}");
    let mut command = here(&folder, &["init", "--json"]);
    command.env("HOME", std::env::temp_dir().join("nobody"));
    let output = command.output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["kept"], serde_json::json!(["explain.md"]), "{report}");
    assert_eq!(report["written"].as_array().map(Vec::len), Some(5), "{report}");
    assert_eq!(fs::read_to_string(folder.path().join("explain.md")).ok().as_deref(), Some("Mine.\n"));
    let again = run(&folder, &["init", "."]);
    assert!(again.starts_with("exit code: 14") && again.contains("a library already"), "{again}");
    let file = run(&folder, &["init", "explain.md"]);
    assert!(file.starts_with("exit code: 2") && file.contains("is a file"), "{file}");
    let from = run(&folder, &["init", "--from", "src"]);
    assert!(from.starts_with("exit code: 2") && from.contains("no store is named"), "{from}");
    let database = run(&folder, &["init", "team.db"]);
    assert!(database.starts_with("exit code: 0") && database.contains("sqlite:team.db is ready"), "{database}");
    assert!(folder.path().join("team.db").is_file());
    let scheme = run(&folder, &["init", "mysql://db/prompts"]);
    assert!(scheme.starts_with("exit code: 2") && scheme.contains("sqlite:"), "{scheme}");
}

#[test]
fn serve_open_starts_the_browser_with_the_page() {
    let folder = library(&[("hello.md", HELLO)]);
    let pipe = folder.path().join("opened");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("a pipe");
    let browser = executable(folder.path().join("browser"), format!("#!/bin/sh\necho \"$1\" >'{}'\n", pipe.display()));
    let mut command = here(&folder, &["serve", "prompts", "--open", "--http", "127.0.0.1:0"]);
    command.env("BROWSER", &browser);
    let server = Server::start(command);
    let opened = fs::read_to_string(&pipe).expect("the address");
    assert_eq!(opened.trim(), format!("http://{}/", server.authority()));
}

#[test]
fn health_tells_running_servers_from_others() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    let folder = Folder::empty();
    for base in ["", "/", "/mcp"] {
        let asked = run(&folder, &["health", &format!("http://{}{base}", server.authority())]);
        assert!(asked.starts_with("exit code: 0") && asked.contains("runs\n"), "{asked}");
    }
    let other = run(&folder, &["health", &format!("http://{}/docs", server.authority())]);
    assert!(other.starts_with("exit code: 1") && other.contains("status 404"), "{other}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    let away = run(&folder, &["health", &format!("http://127.0.0.1:{port}")]);
    assert!(away.starts_with("exit code: 9") && away.contains("does not answer"), "{away}");
    let word = run(&folder, &["health", "localhost:8080"]);
    assert!(word.starts_with("exit code: 2") && word.contains("http://127.0.0.1:8080"), "{word}");
}

/// A project of other programs is served or converted; examples come only with `--yes`.
#[test]
fn init_offers_what_a_project_has() {
    let folder = Folder::empty();
    folder.write(".claude/commands/review.md", "Review\n");
    folder.write(".github/prompts/plan.prompt.md", "Plan\n");
    // One with the name of another is not served, and is here all the same.
    folder.write(".github/prompts/review.prompt.md", "Review\n");
    let offered = run(&folder, &["init"]);
    for words in [".claude/commands: 1 file", ".github/prompts: 2 files", "serve --open", "import . --to prompts"] {
        assert!(offered.contains(words), "{words}: {offered}");
    }
    assert!(!folder.path().join("promptshelf.toml").exists(), "{offered}");
    let made = run(&folder, &["init", "--yes"]);
    assert!(made.starts_with("exit code: 0") && folder.path().join("promptshelf.toml").exists(), "{made}");
}

#[test]
fn version_as_json_has_target_and_commit() {
    let output = promptshelf().args(["--version", "--json"]).output().expect("it runs");
    let version: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let target = version["target"].as_str().expect("a target");
    assert!(target.starts_with(std::env::consts::ARCH), "{target}");
    assert!(version["commit"].is_null() || version["commit"].is_string(), "{version}");
}

#[test]
fn install_without_a_client_lists_those_that_are_here() {
    let folder = library(&[("hello.md", HELLO)]);
    let none = shown(here(&folder, &["install", "prompts"]), "");
    assert!(none.starts_with("exit code: 7") && none.contains("no client is found"), "{none}");
    folder.write(".cursor/mcp.json", "{}");
    folder.write(".claude.json", "{}");
    let listed = shown(here(&folder, &["install", "prompts"]), "");
    assert!(listed.starts_with("exit code: 0"), "{listed}");
    for words in ["cursor", "claude-code", "promptshelf install prompts --client all"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    assert_eq!(fs::read_to_string(folder.path().join(".claude.json")).ok().as_deref(), Some("{}"));
    let removed = shown(here(&folder, &["uninstall"]), "");
    assert!(removed.contains("promptshelf uninstall --client all\n"), "{removed}");
}

#[test]
fn printed_and_installed_commands_start_the_package_that_started_it() {
    let folder = library(&[("hello.md", HELLO)]);
    folder.write(".cursor/mcp.json", "{}");
    let place = "cache/_npx/1f/node_modules/@promptshelf/linux-x64/bin/promptshelf";
    let program = fs::read(env!("CARGO_BIN_EXE_promptshelf")).expect("a program");
    let program = executable(folder.path().join(place), program);
    let cached = |line: &[&str]| {
        let mut command = Command::new(&program);
        command.args(line).current_dir(folder.path()).env("HOME", folder.path()).env_remove("XDG_CONFIG_HOME");
        command
    };
    let made = shown(cached(&["init", "new"]), "");
    assert!(made.contains("npx -y promptshelf serve --edit --open new"), "{made}");
    let installed = shown(cached(&["install", "--client", "cursor", "prompts"]), "");
    assert!(installed.starts_with("exit code: 0"), "{installed}");
    let text = fs::read_to_string(folder.path().join(".cursor/mcp.json")).expect("a file");
    let entry = &serde_json::from_str::<Value>(&text).expect("JSON")["mcpServers"]["promptshelf"];
    assert_eq!(entry["command"], "npx", "{entry}");
    assert_eq!(entry["args"][1], "promptshelf", "{entry}");
    assert_eq!(entry["args"][2], "serve", "{entry}");
    // An entry of this kind is its own: it is removed again.
    fs::remove_dir_all(folder.path().join(".local")).ok();
    let removed = shown(cached(&["uninstall", "--client", "cursor"]), "");
    assert!(removed.contains("removed"), "{removed}");
}

/// What help texts show works, in the library that `init` and `new` make.
#[cfg(unix)]
#[test]
fn examples_of_help_texts_work() {
    // Those that make what the examples of others need.
    const FIRST: [&str; 2] = ["init", "new"];
    // Addresses and states that others make, programs that are not everywhere, and what runs on or is large.
    const OTHERS: &[&str] = &[
        "https://",
        "http://",
        "postgres://",
        "npx",
        "github",
        "git ",
        "jq",
        "logs://",
        "library:///",
        "--watch",
        "serve ",
        "--config",
        "--client",
        "--mcpb",
        "--evaluation",
        "/etc/",
        "audit.jsonl",
        "completions ",
        "import ",
        "install ",
        "use prompts",
        "staging",
        "rollout ",
        "team.db 7",
        "11",
    ];
    let (folder, home) = (Folder::empty(), Folder::empty());
    folder.write("src/main.rs", "fn main() {}\n");
    let program = promptshelf();
    let programs = std::path::Path::new(program.get_program()).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder.path()).env("PATH", &path).env("HOME", home.path());
        command.envs([("XDG_STATE_HOME", home.path()), ("XDG_CONFIG_HOME", home.path())]).env("USER", "ada");
        shown(command, "")
    };
    shell("promptshelf init prompts");
    let (mut count, mut failed) = (0, Vec::new());
    let all = shell("promptshelf --help");
    let commands = all.lines().filter_map(|line| line.strip_prefix("  ")?.split("  ").next());
    let commands = commands.filter(|name| !name.contains(' ') && name.starts_with(|c: char| c.is_ascii_lowercase()));
    let of_tokens = ["token new", "token create"];
    let rest = commands.filter(|name| !FIRST.contains(name)).chain(of_tokens);
    for command in FIRST.into_iter().chain(rest) {
        let help = shell(&format!("promptshelf {command} --help")).replace("\\\n    ", "");
        for line in
            help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| line.starts_with("promptshelf "))
        {
            let line = line.split("   ").next().unwrap_or(line);
            if OTHERS.iter().any(|other| line.contains(other)) {
                continue;
            }
            count += 1;
            let ran = shell(line);
            if !ran.starts_with("exit code: 0\n") {
                failed.push(format!("{line}\n{ran}"));
            }
        }
        if command == "new" {
            // The examples that name no library have this one in the current folder.
            shell("cp prompts/code_review.md .; promptshelf publish prompts --to sqlite:team.db -m x");
        }
    }
    assert!(failed.is_empty() && count > 40, "{count}\n{}", failed.join("\n"));
}

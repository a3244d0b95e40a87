//! Servers in the configuration of other clients: a project's file neither replaces a server of the user nor starts a
//! command without the user's consent.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{
    program::{Folder, library, promptshelf, shown},
    terminal::Terminal,
};

const HELLO: &str = "---\ndescription: Greets\n---\nHello.\n";

/// Returns an entry that leaves the file `started` behind, and then serves the library.
fn entry(more: &str) -> Value {
    let line = format!("touch started{more}; exec {} serve prompts --stdio", env!("CARGO_BIN_EXE_promptshelf"));
    json!({ "command": "sh", "args": ["-c", line] })
}

/// Writes a configuration with one server of the name `mine`.
fn configure(folder: &Folder, file: &str, server: &Value) {
    fs::write(folder.path().join(file), json!({ "mcpServers": { "mine": server } }).to_string()).expect("written");
}

fn list(folder: &Folder) -> Command {
    let mut command = promptshelf();
    command.args(["list", "--server", "mine"]).current_dir(folder.path());
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path().join("state"));
    command
}

fn has_started(folder: &Folder, more: &str) -> bool {
    folder.path().join(format!("started{more}")).exists()
}

// req: S-76
#[test]
fn project_command_needs_consent_once_per_content() {
    let folder = library(&[("hello.md", HELLO)]);
    configure(&folder, ".mcp.json", &entry(""));
    let asked = |answer: &str| {
        let mut terminal = Terminal::start(list(&folder));
        terminal.wait_for("The server mine is configured by a project, in");
        terminal.wait_for(".mcp.json:");
        terminal.wait_for("touch started");
        terminal.wait_for("Allow it until this entry changes? [y/N] ");
        assert!(!has_started(&folder, ""));
        terminal.press(&format!("{answer}\r"));
        terminal.end()
    };
    for answer in ["", "n"] {
        assert_eq!(asked(answer).0, Some(11));
        assert!(!has_started(&folder, ""));
    }
    let (code, written) = asked("y");
    assert_eq!((code, has_started(&folder, "")), (Some(0), true), "{}", String::from_utf8_lossy(&written));

    let mut again = Terminal::start(list(&folder));
    again.wait_for("mine is configured in ");
    again.wait_for("hello");
    let (code, written) = again.end();
    assert!(code == Some(0) && !String::from_utf8_lossy(&written).contains("[y/N]"));
    assert!(shown(list(&folder), "").starts_with("exit code: 0\n"), "the consent holds without a terminal");

    // Another content is another question, with the same name in the same file.
    configure(&folder, ".mcp.json", &entry("-changed"));
    let refused = shown(list(&folder), "");
    assert!(refused.starts_with("exit code: 2\n") && !has_started(&folder, "-changed"), "{refused}");
}

// req: S-76
#[test]
fn project_command_is_refused_without_a_terminal() {
    let folder = library(&[("hello.md", HELLO)]);
    configure(&folder, ".mcp.json", &entry(""));
    let refused = shown(list(&folder), "");
    assert!(refused.starts_with("exit code: 2\n") && refused.contains("you have not allowed it"), "{refused}");
    let (_, way) = refused.split_once("PROMPTSHELF_ALLOW_SERVER=").expect("the way to allow it");
    let digest = &way[..64];
    let with = |value: &str| {
        let mut command = list(&folder);
        command.env("PROMPTSHELF_ALLOW_SERVER", value);
        shown(command, "")
    };
    let other = "0".repeat(64);
    assert!(with(&other).starts_with("exit code: 2\n") && !has_started(&folder, ""));
    assert!(with(&format!("{other}, {digest}")).starts_with("exit code: 0\n") && has_started(&folder, ""));
}

/// A header could otherwise carry any variable of the environment to any server.
// req: S-76
#[test]
fn project_url_with_placeholders_needs_consent() {
    let folder = library(&[]);
    let server = json!({ "url": "http://127.0.0.1:1/mcp", "headers": { "X-Key": "${HOME}" } });
    configure(&folder, ".mcp.json", &server);
    assert!(shown(list(&folder), "").contains("you have not allowed it"));
    configure(&folder, ".mcp.json", &json!({ "url": "http://127.0.0.1:1/mcp" }));
    assert!(shown(list(&folder), "").starts_with("exit code: 9\n"), "a plain URL is only requested");
}

// req: S-76
#[test]
fn project_does_not_shadow_a_server_of_the_user() {
    let folder = library(&[("hello.md", HELLO)]);
    configure(&folder, ".claude.json", &entry("-mine"));
    configure(&folder, ".mcp.json", &entry("-evil"));
    let listed = shown(list(&folder), "");
    assert!(listed.starts_with("exit code: 0\n"), "{listed}");
    assert!(listed.contains("note: mine is the server in ") && listed.contains("has the same name"), "{listed}");
    assert!(has_started(&folder, "-mine") && !has_started(&folder, "-evil"));
}

use promptshelf_author::clients::find;
use serde_json::json;

use super::*;

fn configuration(client: &str) -> &'static Configuration {
    find(client).and_then(Client::configuration).expect("a known configuration")
}

use promptshelf_author::clients::Client;

fn set(client: &str, text: &str) -> Result<String, EditError> {
    with_entry(configuration(client), text, "p", Some(&json!({ "command": "c", "args": ["a", "b"] })))
}

fn unset(client: &str, text: &str) -> Result<String, EditError> {
    with_entry(configuration(client), text, "p", None)
}

#[track_caller]
fn there_and_back(client: &str, text: &str) -> String {
    let with = set(client, text).expect("an entry can be added");
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line = line.trim_matches(['{', '}', ' ', ',']);
        assert!(with.contains(line), "{line:?} is lost in {with}");
    }
    let without = unset(client, &with).expect("the entry can be removed");
    let format = configuration(client).format;
    let place = configuration(client).containers[configuration(client).containers.len() - 1];
    let normal = without_empty(place);
    assert_eq!(
        normal(parse(format, &without).expect("a valid file")),
        normal(parse(format, text).expect("a valid file"))
    );
    assert_eq!(set(client, &with).as_deref(), Ok(with.as_str()), "a second time changes nothing");
    with
}

#[test]
fn json_keeps_comments_order_and_style() {
    let zed = "// Zed\n{\n  \"theme\": \"One\", // mine\n  \"context_servers\": {\n    /* other */\n    \"x\": {\"url\": \"u\"},\n  },\n}\n";
    let with = there_and_back("zed", zed);
    assert!(with.starts_with("// Zed\n{\n  \"theme\": \"One\", // mine\n"), "{with}");
    assert!(
        with.contains("/* other */\n    \"x\": {\"url\": \"u\"},\n    \"p\": {\n      \"command\": \"c\","),
        "{with}"
    );
    let strict = there_and_back("cursor", "{\"mcpServers\":{}}");
    assert!(serde_json::from_str::<Value>(&strict).is_ok(), "{strict}");
    let tabs =
        there_and_back("claude-code", "{\r\n\t\"a\": [1, 2.50, \"\\u00e9\"],\r\n\t\"mcpServers\": {\r\n\t}\r\n}\r\n");
    assert!(tabs.contains("\r\n\t\t\"p\": {\r\n\t\t\t\"command\"") && tabs.contains("2.50, \"\\u00e9\""), "{tabs:?}");
    assert!(tabs.split('\n').rev().skip(1).all(|line| line.ends_with('\r')), "{tabs:?}");
    assert!(there_and_back("amp", "{\"amp.url\": \"x\"}").contains("\"amp.mcpServers\""));
    assert_eq!(set("kiro", "\u{feff}{}").expect("a file with a mark").chars().next(), Some('\u{feff}'));
    for empty in ["", " \n", "// only a comment\n"] {
        there_and_back("opencode", empty);
    }
    assert!(there_and_back("opencode", "{\"mcp\": {\"servers\": {}}}").contains("\"servers\""));
}

#[test]
fn toml_keeps_comments_and_tables() {
    let codex =
        "# mine\nmodel = \"m\" # fast\n\n[mcp_servers.x]\ncommand = \"y\"\n\n# last\n[profiles.a]\nmodel = 'b'\n";
    let with = there_and_back("codex", codex);
    assert!(with.contains("[mcp_servers.p]\ncommand = \"c\"\nargs = [\"a\", \"b\"]\n"), "{with}");
    there_and_back("codex", "");
    there_and_back("codex", "mcp_servers = { x = { command = \"y\" } }\n");
    let crlf = there_and_back("codex", "a = 1\r\n[b]\r\nc = 2\r\n");
    assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count(), "{crlf:?}");
}

/// Those at the end of the file would become a part of the entry below which they come, and go with it.
#[test]
fn toml_keeps_comments_around_an_entry_that_goes() {
    for before in [
        "model = \"x\"\n# [mcp_servers.old]\n# command = \"old\"\n",
        "# only a comment\n",
        "[mcp_servers.x]\ncommand = \"y\"\n# key = 1\n",
        "[[list]]\na = 1\n\n# at the end",
    ] {
        let with = set("codex", before).expect("an entry can be added");
        for added in ["", "startup_timeout_sec = 9\n", "# mine\nb = 1\n", "\n# next\n[profiles.a]\nm = 1\n"] {
            let edited = format!("{with}{added}");
            let without = unset("codex", &edited).expect("the entry can be removed");
            for line in before.lines().chain(added.lines()).filter(|line| line.starts_with('#')) {
                assert_eq!(without.matches(line).count(), 1, "{line:?} in {without:?} of {edited:?}");
            }
        }
    }
    let with = set("codex", "a = 1\n").expect("an entry can be added");
    let commented = with.replace("command", "# mine\ncommand");
    let changed = with_entry(configuration("codex"), &commented, "p", Some(&json!({ "command": "c", "args": [] })));
    assert!(changed.is_ok_and(|changed| changed.contains("# mine\ncommand = \"c\"\nargs = []")));
}

#[test]
fn yaml_keeps_comments_and_indentation() {
    let goose = "# mine\nGOOSE_MODE: auto # fast\nextensions: # all\n    # built in\n    developer:\n        enabled: true\n        timeout: 300\n\n    # last\nother:\n  - 1\n";
    let with = there_and_back("goose", goose);
    assert!(
        with.contains("extensions: # all\n    p:\n      command: \"c\"\n      args: [\"a\",\"b\"]\n    # built in\n"),
        "{with}"
    );
    assert_eq!(unset("goose", &with).as_deref(), Ok(goose), "by lines, every byte comes back");
    for text in [
        "",
        "a: 1",
        "extensions:\n",
        "extensions: {}\nb: 2\n",
        "extensions: {\"x\":{\"type\":\"stdio\"}}\n",
        "---\na: 1\n",
    ] {
        there_and_back("goose", text);
    }
    let crlf = there_and_back("goose", "a: 1\r\nextensions:\r\n  x:\r\n    type: stdio\r\n");
    assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count(), "{crlf:?}");
}

// req: S-132
#[test]
fn files_that_cannot_be_edited_safely_are_refused() {
    for (client, text) in [
        ("cursor", "{"),
        ("cursor", "[1]"),
        ("cursor", "{\"mcpServers\": []}"),
        ("cursor", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        ("cursor", "{'mcpServers': {}}"),
        ("codex", "mcp_servers = 1"),
        ("codex", "[a"),
        ("goose", "extensions: [1]\n"),
        ("goose", "a: *b\n"),
        ("goose", "{a: 1}\n"),
        ("goose", "a: 1\n...\n"),
        ("goose", "extensions: {x: {type: stdio}, # c\n}\n"),
    ] {
        let refused = set(client, text);
        assert!(refused.is_err(), "{client} {text:?}: {refused:?}");
    }
}

use promptshelf_author::clients::find;
use serde_json::json;

use super::{super::text_edit::missing_newline, *};

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
            let edited = format!("{with}{}{added}", missing_newline(&with));
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
    for text in ["", "a: 1", "extensions:\n", "extensions: {}\nb: 2\n", "---\na: 1\n"] {
        there_and_back("goose", text);
    }
    let crlf = there_and_back("goose", "a: 1\r\nextensions:\r\n  x:\r\n    type: stdio\r\n");
    assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count(), "{crlf:?}");
}

/// The text with the ends of lines that programs write.
fn with_ends(text: &str) -> [String; 4] {
    let mixed = text.split_inclusive('\n').enumerate().map(|(number, line)| match number % 2 {
        0 => line.replace('\n', "\r\n"),
        _ => line.to_owned(),
    });
    let last = text.strip_suffix('\n').unwrap_or(text);
    [text.to_owned(), text.replace('\n', "\r\n"), mixed.collect(), last.to_owned()]
}

/// Adds an entry in one piece, and removes it again, also between other edits.
#[track_caller]
fn in_one_piece(client: &str, text: &str, (above, below): (&str, &str)) {
    for text in with_ends(text) {
        let with = set(client, &text).expect("an entry can be added");
        let same = |pair: &(u8, u8)| pair.0 == pair.1;
        let start = text.bytes().zip(with.bytes()).take_while(same).count();
        let end = text.bytes().rev().zip(with.bytes().rev()).take_while(same).count();
        assert!(with.len() > text.len() && start + end >= text.len(), "{text:?} became {with:?}");
        let is_made =
            entries(configuration(client), &parse(configuration(client).format, &text).expect("valid")).is_none();
        for (above, below) in [("", ""), (above, ""), ("", below)] {
            let ends = if below.is_empty() { ["", ""] } else { [&text, &with].map(|text| missing_newline(text)) };
            let edited = format!("{above}{with}{}{below}", ends[1]);
            let without = unset(client, &edited).expect("the entry can be removed");
            let without = if is_made { without_empty_container(configuration(client), &without) } else { without };
            assert_eq!(without, format!("{above}{text}{}{below}", ends[0]), "{edited:?}");
        }
    }
}

#[test]
fn toml_keeps_the_bytes_of_all_other_lines() {
    for text in [
        "",
        "# only a comment\n",
        "model = \"x\" # fast\n\n\n",
        "[mcp_servers.x]\ncommand = \"y\"\n\n[profiles.p]\nmodel=\"q\"\n# effort = \"high\"\n",
        "[mcp_servers.x]\ncommand = \"y\"\n# key = 1\n\n[mcp_servers.x.env]\nA = \"b\"\n\n# last\n",
        "[mcp_servers]\nx = { command = \"y\" }\n[[list]]\na = [\n  1, # one\n]\n# z\n",
        "[a]\nb = 0x1F\nc = \"\"\"\n[mcp_servers.p]\n# text\n\"\"\"\n",
    ] {
        in_one_piece("codex", text, ("first = 1\n", "\n# next\n[last]\nb = 1\n"));
    }
    in_one_piece("codex", "mcp_servers = { x = { a = 0x1F } } # all\n", ("first = 1\n", "\n[last]\nb = 1\n"));
    in_one_piece("codex", "mcp_servers = {}\nb = 1\n", ("first = 1\n", "\n[last]\nb = 1\n"));
}

#[test]
fn toml_changes_and_removes_entries_that_a_person_arranged() {
    let change = json!({ "command": "c", "args": ["new"], "env": { "K": "v" }, "url": "u" });
    for (entry, rest) in [
        ("[mcp_servers.p]\nargs = [\n  \"a\", # one\n]\ncommand = \"c\" # mine\n", ""),
        ("[mcp_servers.p]\ncommand = \"old\"\n\n[mcp_servers.p.env]\nK = \"v\"\n", ""),
        ("[mcp_servers.p.env]\nK = \"v\"\n\n[mcp_servers.p]\ncommand = \"c\"\n", ""),
        (
            "[mcp_servers.p]\ncommand = \"c\"\nenv.K = \"v\"\n\n[[mcp_servers.p.x]]\na = 1\n\n[[mcp_servers.p.x]]\na = 2\n",
            "",
        ),
        ("[mcp_servers]\np = { command = \"old\" }\nx = { a = 1 }\n", "[mcp_servers]\nx = { a = 1 }\n"),
        ("[mcp_servers.p]\n# command = \"d\"\ncommand = \"c\"\n", "# command = \"d\"\n"),
    ] {
        for text in with_ends(&format!("a = 1\n\n{entry}\n# b\n[b]\nc = 0x1F\n")) {
            let changed = with_entry(configuration("codex"), &text, "p", Some(&change)).expect("can be changed");
            let is_crlf = |text: &str| text.matches('\n').count() == text.matches("\r\n").count();
            assert_eq!(is_crlf(&changed), is_crlf(&text), "{changed:?}");
            let without = unset("codex", &text).expect("can be removed").replace('\r', "");
            let table = if rest.starts_with('[') { "\n" } else { "" };
            let expected = format!("a = 1\n{table}{rest}\n# b\n[b]\nc = 0x1F\n");
            assert_eq!(without.trim_end(), expected.trim_end(), "{text:?}");
        }
    }
}

#[test]
fn yaml_keeps_the_bytes_of_all_other_lines() {
    for text in [
        "",
        "# only a comment\n",
        "a: 0x1F\nextensions:\n  x:\n    timeout: 010\n\n  # last\nother:\n  - 1\n",
        "extensions: # all\n    # built in\n    x:\n        enabled: true\n",
        "extensions:\nb: 1\n",
        "a: |\n  extensions:\n    p: 1\n# end\n",
    ] {
        in_one_piece("goose", text, ("first: 1\n", "last: 1\n# next\n"));
    }
    let other =
        "enabled: true, a: 0x1F, b: 010, c: 12345678901234567890123, d: .inf, e: ~, f: 1.10, 5: \"}\", g: [1, 'x, y']";
    let braces = ["{}", "{ }", "{x: {type: stdio}, # c\n  }", "{ # c\n  x: {}\n  }"].map(str::to_owned);
    let others = [format!("{{dev: {{{other}}}}}"), format!("{{ dev: {{ {other} }}, x: {{}} }}")];
    for braces in braces.iter().chain(&others) {
        let text = format!("extensions: {braces}\nb: 2\n");
        in_one_piece("goose", &text, ("first: 1\n", "last: 1\n"));
        let with = set("goose", &text).expect("an entry can be added");
        let changed = with_entry(configuration("goose"), &with, "p", Some(&json!({ "cmd": "d#e" })));
        assert_eq!(changed.and_then(|changed| unset("goose", &changed)).as_deref(), Ok(text.as_str()));
    }
}

#[test]
fn yaml_keeps_comments_next_to_an_entry_in_braces() {
    for braces in ["{x: 1, # c\n  p: {}}", "{p: {}, # c\n  x: 1}"] {
        let refused = unset("goose", &format!("extensions: {braces}\n")).expect_err("a comment would go");
        assert!(refused.to_string().contains("comment"), "{refused}");
    }
}

#[test]
fn json_keeps_comments_around_an_entry_that_goes() {
    let entry = "\"p\": {\n      \"command\": \"c\"\n    }";
    for (with, without) in [
        (
            "    @\n    // keep: z needs a VPN\n    , \"z\": {\"command\":\"q\"}\n",
            "    // keep: z needs a VPN\n    \"z\": {\"command\":\"q\"}\n",
        ),
        ("    @,\n    // z\n    \"z\": 1\n", "    // z\n    \"z\": 1\n"),
        ("    @, // p\n    \"z\": 1\n", "    \"z\": 1\n"),
        ("    @, \"z\": 1\n", "    \"z\": 1\n"),
        ("    @ /* z */, \"z\": 1\n", "    /* z */\"z\": 1\n"),
        ("    @\n    /* a\n    , b */\n    ,\n    \"z\": 1\n", "    /* a\n    , b */\n    \n    \"z\": 1\n"),
        ("    \"a\": 1, // a\n    @\n    // end\n", "    \"a\": 1 // a\n    // end\n"),
        ("    \"a\": 1\n    // a\n    , @\n", "    \"a\": 1\n    // a\n    \n"),
        ("    \"a\": 1, @, \"z\": 2,\n", "    \"a\": 1, \"z\": 2,\n"),
        ("    \"a\": 1,\n    @, // p\n", "    \"a\": 1,\n"),
        ("    // only\n    @\n", "    // only\n"),
    ] {
        let whole = |members: &str| format!("{{\n  \"mcpServers\": {{\n{}  }}\n}}\n", members.replace('@', entry));
        for end in ["\n", "\r\n"] {
            let lines = |members: &str| whole(members).replace('\n', end);
            assert_eq!(unset("kiro", &lines(with)), Ok(lines(without)), "{with}");
        }
    }
}

#[test]
fn container_goes_only_without_entries_and_comments() {
    for (client, text, expected) in [
        ("kiro", "{\"a\": 1, \"mcpServers\": {}}", "{\"a\": 1}"),
        ("kiro", "{\"mcpServers\": {}, // mine\n\"a\": 1}", "{// mine\n\"a\": 1}"),
        ("kiro", "\u{feff}{\n  \"mcpServers\": {}\n}\n", "\u{feff}{}\n"),
        ("goose", "a: 1\nextensions:\nb: 1\n", "a: 1\nb: 1\n"),
    ] {
        assert_eq!(without_empty_container(configuration(client), text), expected);
    }
    for (client, text) in [
        ("kiro", "{\"mcpServers\": {/* mine */}}"),
        ("kiro", "{\"mcpServers\": {\"x\": {}}}"),
        ("opencode", "{\"mcp\": {\"servers\": {}}}"),
        ("goose", "extensions: # mine\n"),
        ("goose", "extensions:\n  # mine\n"),
        ("goose", "extensions:\n\n  x:\n    a: 1\n"),
        ("goose", "extensions: {}\n"),
        ("codex", "[mcp_servers]\n"),
    ] {
        assert_eq!(without_empty_container(configuration(client), text), text);
    }
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
    ] {
        let refused = set(client, text);
        assert!(refused.is_err(), "{client} {text:?}: {refused:?}");
    }
}

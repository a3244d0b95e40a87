//! The commands `install` and `uninstall`, on configuration files as clients write them.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

/// Files as the documentation of each client shows them, or as the client writes them: client, path below the home
/// folder, text.
#[cfg(target_os = "linux")]
const FIXTURES: &[(&str, &str, &str)] = &[
    (
        "claude-code",
        ".claude.json",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"github\": {\n      \"type\": \"http\",\n      \"url\": \"https://api.githubcopilot.com/mcp\"\n    }\n  },\n  \"projects\": {\n    \"/work\": {\n      \"mcpServers\": {}\n    }\n  }\n}",
    ),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "{\n  \"mcpServers\": {\n    \"filesystem\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/tmp\"]\n    }\n  }\n}\n",
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t\"inputs\": [\n\t\t{ \"type\": \"promptString\", \"id\": \"key\", \"password\": true }\n\t],\n\t\"servers\": {\n\t\t// The one of the team\n\t\t\"playwright\": {\n\t\t\t\"command\": \"npx\",\n\t\t\t\"args\": [\"-y\", \"@microsoft/mcp-server-playwright\"],\n\t\t},\n\t}\n}\n",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"a\": { \"url\": \"http://localhost:3000/mcp\" }\n  }\n}\n",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\n  \"mcpServers\": {\n    \"zapier\": {\n      \"serverUrl\": \"https://example.com/sse\"\n    }\n  }\n}\n",
    ),
    (
        "zed",
        ".config/zed/settings.json",
        "// Zed settings\n//\n// For information on how to configure Zed, see the Zed\n// documentation: https://zed.dev/docs/configuring-zed\n{\n  \"ui_font_size\": 16,\n  \"context_servers\": {\n    \"remote\": { \"url\": \"https://example.com/mcp\" }, // team\n  },\n}\n",
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "# Model Configuration\nactive_provider: anthropic\nGOOSE_TEMPERATURE: 0.7\n\n# Extensions Configuration\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    name: developer\n    timeout: 300\n    type: builtin\n",
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    // Used in the evening\n    \"jira\": { \"type\": \"remote\", \"url\": \"https://jira.example.com/mcp\", \"enabled\": true },\n  },\n}\n",
    ),
    (
        "codex",
        ".codex/config.toml",
        "model = \"gpt-5.1\"  # overrides the default\n\n[features]\nweb_search_request = true\n\n[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"docs\"]\n\n[mcp_servers.docs.env]\nKEY = \"value\"\n\n[projects.\"/work\"]\ntrust_level = \"trusted\"\n",
    ),
    (
        "antigravity",
        ".gemini/config/mcp_config.json",
        "{\n  \"mcpServers\": {\n    \"docs\": {\n      \"serverUrl\": \"https://docs.example.com/mcp\"\n    }\n  }\n}\n",
    ),
    (
        "copilot-cli",
        ".copilot/mcp-config.json",
        "{\n  \"mcpServers\": {\n    \"x\": {\n      \"type\": \"local\",\n      \"command\": \"npx\",\n      \"args\": [],\n      \"tools\": [\"*\"]\n    }\n  }\n}\n",
    ),
    (
        "amp",
        ".config/amp/settings.json",
        "{\n  \"amp.url\": \"https://ampcode.com\",\n  \"amp.mcpServers\": {\n    \"playwright\": { \"command\": \"npx\", \"args\": [\"-y\", \"@playwright/mcp@latest\"] }\n  }\n}\n",
    ),
    (
        "kiro",
        ".kiro/settings/mcp.json",
        "{\n  \"mcpServers\": {\n    \"local\": {\n      \"command\": \"uvx\",\n      \"args\": [\"x\"],\n      \"disabled\": false,\n      \"autoApprove\": [\"t\"]\n    }\n  }\n}\n",
    ),
    ("jetbrains", ".junie/mcp/mcp.json", "{\n  \"mcpServers\": {}\n}\n"),
    ("gemini-cli", ".gemini/settings.json", "{\n  \"theme\": \"Default\"\n}\n"),
    (
        "crush",
        ".config/crush/crush.json",
        "{\n  \"$schema\": \"https://charm.land/crush.json\",\n  \"lsp\": { \"go\": { \"command\": \"gopls\" } }\n}\n",
    ),
];

/// A home folder with a library and a project.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Home {
        let folder = TempDir::new().expect("a folder");
        let home = Home { folder };
        home.write("library/hello.md", "---\ndescription: Greets\n---\nHello!\n");
        fs::create_dir_all(home.path("project")).expect("a folder");
        home
    }

    #[cfg(target_os = "linux")]
    fn with_fixtures() -> Home {
        let home = Home::new();
        FIXTURES.iter().for_each(|(_, path, text)| home.write(path, text));
        home
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder above")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a readable file")
    }

    fn run(&self, folder: &str, arguments: &[&str]) -> Output {
        let home = self.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_promptshelf"));
        command.args(arguments).current_dir(home.join(folder));
        command.env("HOME", home).env("USERPROFILE", home).env("APPDATA", home.join(".config"));
        command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command.output().expect("a running process")
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run("", arguments);
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], code: i32) -> String {
        let done = self.run("", arguments);
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {}{}", text(&done.stdout), text(&done.stderr));
        text(&done.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[cfg(target_os = "linux")]
#[test]
fn every_client_gets_an_entry_and_its_file_back() {
    let home = Home::with_fixtures();
    let report = json(&home.ok(&["install", "--client", "all", "--json", "library"]));
    let clients = report["items"].as_array().expect("a list");
    assert_eq!(clients.len(), FIXTURES.len());
    for (client, path, before) in FIXTURES {
        let one = clients.iter().find(|one| one["client"] == *client).expect("the client");
        assert_eq!(one["status"], "written", "{client}");
        assert_eq!(one["file"], home.path(path).to_str().expect("UTF-8"), "{client}");
        let backup = one["backup"].as_str().expect("a backup");
        assert_eq!(fs::read_to_string(backup).ok().as_deref(), Some(*before), "{client}");
        let entry = one["entry"].to_string();
        assert!(entry.contains("serve") && entry.contains("--stdio"), "{client}: {entry}");
        let now = home.read(path);
        // Every line is still there, apart from the end of the mapping that the entry was added to.
        for line in before.lines().filter(|line| line.trim_matches([' ', '\t', '}', ',']).len() > 2) {
            let line = line.trim_end_matches(['}', ',', ' ']);
            assert!(now.contains(line), "{client} lost {line:?}:\n{now}");
        }
        assert!(now.contains("promptshelf"), "{client}");
    }
    let again = home.ok(&["install", "--client", "all", "library"]);
    assert_eq!(again.matches("already installed").count(), FIXTURES.len(), "{again}");

    home.ok(&["uninstall", "--client", "all"]);
    for (client, path, before) in FIXTURES {
        assert_eq!(home.read(path), *before, "{client}");
    }
    assert!(home.ok(&["uninstall", "--client", "zed"]).contains("not installed"));
}

#[cfg(target_os = "linux")]
#[test]
fn later_changes_of_the_file_survive_uninstall() {
    let home = Home::with_fixtures();
    let url = "https://example.com/team/mcp";
    // The file of Claude Desktop cannot have a URL, which does not keep the others from theirs.
    let done = home.run("", &["install", "--client", "all", "--url", url, "--name", "team", "--json"]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    let report = json(&text(&done.stdout));
    let failed = report["items"].as_array().into_iter().flatten().filter(|one| one["status"] == "failed");
    assert_eq!(failed.map(|one| one["client"].as_str()).collect::<Vec<_>>(), [Some("claude-desktop")]);
    let changes = [
        (".config/zed/settings.json", "\"ui_font_size\": 16", "\"ui_font_size\": 18"),
        (".codex/config.toml", "gpt-5.1", "gpt-6"),
        (".config/goose/config.yaml", "0.7", "0.8"),
    ];
    for (path, old, new) in changes {
        let text = home.read(path);
        assert!(text.contains(url) && text.contains(old), "{text}");
        home.write(path, &text.replace(old, new));
    }
    for client in ["zed", "codex", "goose"] {
        assert!(home.ok(&["uninstall", "--client", client, "--name", "team"]).contains("removed from"));
    }
    for (path, old, new) in changes {
        let (_, _, before) = FIXTURES.iter().find(|(_, at, _)| *at == path).expect("a fixture");
        assert_eq!(home.read(path), before.replace(old, new), "{path}");
    }
}

/// In any order; a container that was there before stays.
#[test]
fn entries_that_go_leave_the_file_as_it_was() {
    let home = Home::new();
    let files = [
        ("cursor", ".cursor/mcp.json", "{}"),
        ("cursor", ".cursor/mcp.json", "{\n  \"mcpServers\": {}\n}"),
        ("goose", ".config/goose/config.yaml", "a: 1\n"),
        ("goose", ".config/goose/config.yaml", "a: 1\nextensions:\n"),
        ("codex", ".codex/config.toml", "a = 1\n"),
    ];
    for (client, path, before) in files {
        for order in [["a", "b"], ["b", "a"]] {
            home.write(path, before);
            for name in ["a", "b"] {
                home.ok(&["install", "--client", client, "--name", name, "library"]);
            }
            for name in order {
                home.ok(&["uninstall", "--client", client, "--name", name]);
            }
            assert_eq!(home.read(path), before, "{client} {order:?}");
        }
    }
}

/// `install` again changes what it wrote, and nothing that a person added to the entry.
#[test]
fn keys_of_a_person_stay_in_the_entry() {
    let home = Home::new();
    for (client, path) in [("cursor", ".cursor/mcp.json"), ("codex", ".codex/config.toml")] {
        home.ok(&["install", "--client", client, "library"]);
        let own = match client {
            "codex" => format!("{}env = {{ K = \"v\" }} # mine\n", home.read(path)),
            _ => home.read(path).replacen("\"command\"", "\"env\": {\"K\": \"v\"}, \"command\"", 1),
        };
        home.write(path, &own);
        home.ok(&["install", "--client", client, "--tools", "library"]);
        let again = home.read(path);
        assert!(again.contains("--tools") && again.contains("\"v\""), "{again}");
        assert_eq!(again.contains("# mine"), client == "codex", "{again}");
        home.ok(&["uninstall", "--client", client]);
        assert!(!home.read(path).contains("promptshelf"), "{}", home.read(path));
    }
}

#[test]
fn entries_with_several_keys_are_recognized_in_every_format() {
    let home = Home::new();
    let url = "https://prompts.example.com/mcp";
    for client in ["codex", "cursor", "opencode", "vscode"] {
        let install = ["install", "--client", client, "--url", url, "--token-env", "PROMPTS_TOKEN"];
        assert!(home.ok(&install).contains("installed"), "{client}");
        assert!(home.ok(&["uninstall", "--client", client]).contains("removed from"), "{client}");
    }
    for client in ["zed", "goose"] {
        let error = home.refused(&["install", "--client", client, "--url", url, "--token-env", "PROMPTS_TOKEN"], 2);
        assert!(error.contains("cannot read a token") && error.contains("without --token-env"), "{error}");
    }
}

#[test]
fn files_of_all_kinds_are_refused_or_followed() {
    let home = Home::new();
    let install = ["install", "--client", "cursor", "library"];
    for (content, reason) in [
        ("{\"mcpServers\": ", "mcp.json:"),
        ("[]", "expected a mapping"),
        ("{\"mcpServers\": 1}", "`mcpServers` is not a mapping"),
        ("null", "it has only `null`: expected settings"),
    ] {
        home.write(".cursor/mcp.json", content);
        let error = home.refused(&install, 1);
        assert!(error.contains(reason) && error.contains("nothing was changed"), "{error}");
        assert_eq!(home.read(".cursor/mcp.json"), content);
    }
    fs::write(home.path(".cursor/mcp.json"), [0xff, 0xfe, 0x00]).expect("a file");
    assert!(home.refused(&install, 1).contains("not UTF-8"));
    let other = "{\"mcpServers\": {\"promptshelf\": {\"command\": \"other\"}}}";
    home.write(".cursor/mcp.json", other);
    assert!(home.refused(&install, 14).contains("was not written by promptshelf"));
    assert!(home.refused(&["uninstall", "--client", "cursor"], 14).contains("was not written by promptshelf"));
    assert_eq!(home.read(".cursor/mcp.json"), other);
    home.write(".cursor/mcp.json", "");
    home.ok(&install);
    home.ok(&["uninstall", "--client", "cursor"]);
    assert_eq!(home.read(".cursor/mcp.json"), "", "an empty file is empty again");
    fs::remove_file(home.path(".cursor/mcp.json")).expect("a removed file");
    home.ok(&install);
    home.ok(&["uninstall", "--client", "cursor"]);
    assert!(!home.path(".cursor/mcp.json").exists(), "a file that was created is removed");

    for arguments in [
        &["install", "--client", "nope", "library"][..],
        &["install", "--client", "chatgpt", "library"],
        &["install", "--client", "cursor", "--name", "a b", "library"],
        &["install", "--client", "cursor", "--url", "https://ada:secret@example.com/mcp"],
        &["install", "--client", "cursor", "--url", "ftp://example.com"],
        &["install", "--client", "claude-desktop", "--url", "https://example.com/mcp"],
        &["install", "--client", "windsurf", "--scope", "project", "library"],
        &["install", "--client", "zed", "--url", "https://example.com/mcp", "--token-env", "TOKEN"],
    ] {
        let error = home.refused(arguments, 2);
        assert!(!error.contains("secret"), "{error}");
    }
    home.refused(&["install", "--client", "cursor", "missing"], 3);
    assert!(Home::new().refused(&["install", "--client", "all", "library"], 7).contains("no client is found"));
}

#[test]
fn shared_file_has_no_path_of_this_machine() {
    let home = Home::new();
    home.write("project/prompts/a.md", "---\ndescription: x\n---\nHello\n");
    let install =
        |library: &str| home.run("project", &["install", "--client", "vscode", "--scope", "project", library]);
    let refused = install("../library");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("outside of the project"), "{}", text(&refused.stderr));
    assert!(!home.path("project/.vscode/mcp.json").exists());
    assert_eq!(install("prompts").status.code(), Some(0));
    let written = home.read("project/.vscode/mcp.json");
    let here = home.folder.path().to_string_lossy().into_owned();
    assert!(written.contains("\"promptshelf\"") && !written.contains(&here), "{written}");
}

#[cfg(unix)]
#[test]
fn permissions_links_and_read_only_files_are_respected() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let home = Home::new();
    let set =
        |path: &str, mode| fs::set_permissions(home.path(path), fs::Permissions::from_mode(mode)).expect("a mode");
    let mode = |path: &str| fs::metadata(home.path(path)).expect("a file").permissions().mode() & 0o777;
    let install = ["install", "--client", "kiro", "library"];
    home.write("dotfiles/kiro.json", "{}");
    set("dotfiles/kiro.json", 0o640);
    fs::create_dir_all(home.path(".kiro/settings")).expect("folders");
    symlink("../../dotfiles/kiro.json", home.path(".kiro/settings/mcp.json")).expect("a link");
    home.ok(&install);
    assert!(home.path(".kiro/settings/mcp.json").is_symlink());
    assert!(home.read("dotfiles/kiro.json").contains("promptshelf"));
    assert_eq!(mode("dotfiles/kiro.json"), 0o640);
    home.ok(&["uninstall", "--client", "kiro"]);
    assert_eq!((home.read("dotfiles/kiro.json").as_str(), mode("dotfiles/kiro.json")), ("{}", 0o640));
    set("dotfiles/kiro.json", 0o440);
    let kept = || fs::read_dir(home.path(".local/state/promptshelf/installed")).expect("the records").count();
    let before = kept();
    assert!(home.refused(&install, 1).contains("read-only"));
    assert_eq!(home.read("dotfiles/kiro.json"), "{}");
    assert_eq!(kept(), before, "a refused installation leaves no record and no backup");
    fs::create_dir_all(home.path(".cursor/mcp.json")).expect("a folder in place of the file");
    assert!(home.refused(&["install", "--client", "cursor", "library"], 1).contains("not a regular file"));
    home.ok(&["install", "--client", "windsurf", "library"]);
    assert_eq!(mode(".codeium/windsurf/mcp_config.json"), 0o600, "a new file of the user is private");
}

// req: S-131
#[cfg(unix)]
#[test]
fn link_of_a_project_cannot_lead_out_of_it() {
    use std::os::unix::fs::symlink;

    let home = Home::new();
    home.write("victim.json", "{}");
    home.write("project/prompts/a.md", "Hello\n");
    let install =
        |home: &Home| home.run("project", &["install", "--client", "vscode", "--scope", "project", "prompts"]);
    fs::create_dir(home.path("project/.vscode")).expect("a folder");
    symlink(home.path("victim.json"), home.path("project/.vscode/mcp.json")).expect("a link");
    assert!(text(&install(&home).stderr).contains("leads out of the project"));
    fs::remove_dir_all(home.path("project/.vscode")).expect("a removed folder");
    symlink(home.folder.path(), home.path("project/.vscode")).expect("a link");
    assert_eq!(install(&home).status.code(), Some(1));
    assert_eq!(home.read("victim.json"), "{}");
    assert!(!home.path("mcp.json").exists());
    fs::remove_file(home.path("project/.vscode")).expect("a removed link");
    let done = install(&home);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let entry = &json(&home.read("project/.vscode/mcp.json"))["servers"]["promptshelf"];
    assert_eq!(entry["command"], "promptshelf");
    assert_eq!(entry["args"][2], "${workspaceFolder}/prompts");
    let gone = home.run("project", &["uninstall", "--client", "vscode", "--scope", "project"]);
    assert_eq!(gone.status.code(), Some(0));
    assert!(!home.path("project/.vscode").exists(), "the folder was created, and is gone");
}

// req: S-132
#[test]
fn concurrent_writers_lose_nothing() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{\n  \"mcpServers\": {},\n  \"count\": 0\n}\n");
    let file = home.path(".cursor/mcp.json");
    std::thread::scope(|scope| {
        for name in ["one", "two", "three", "four"] {
            let home = &home;
            scope.spawn(move || home.ok(&["install", "--client", "cursor", "--name", name, "library"]));
        }
    });
    let now = json(&fs::read_to_string(&file).expect("a file"));
    assert_eq!(now["mcpServers"].as_object().map(serde_json::Map::len), Some(4), "{now}");
    let folder = file.parent().expect("a folder");
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1, "no temporary file is left");
    for name in ["one", "two", "three", "four"] {
        home.ok(&["uninstall", "--client", "cursor", "--name", name]);
    }
    assert_eq!(json(&home.read(".cursor/mcp.json")), serde_json::json!({ "mcpServers": {}, "count": 0 }));
}

// req: S-234
#[test]
fn stores_and_settings_become_command_lines_without_secrets() {
    let home = Home::new();
    let entry = |arguments: &[&str]| {
        let line = [&["install", "--client", "cursor", "--dry-run", "--json"], arguments].concat();
        json(&home.ok(&line))["items"][0]["entry"].clone()
    };
    let words = |entry: &Value| entry["args"].as_array().into_iter().flatten().cloned().collect::<Vec<_>>();
    home.ok(&["init", "sqlite:team.db"]);
    let store = format!("sqlite:{}", home.path("team.db").canonicalize().expect("a path").display());
    assert_eq!(words(&entry(&["sqlite:team.db"])), ["serve", "--stdio", &store]);
    assert_eq!(words(&entry(&["sqlite:team.db#production"])).last(), Some(&format!("{store}#production").into()));
    home.refused(&["install", "--client", "cursor", "sqlite:team.db#other"], 7);
    home.refused(&["install", "--client", "cursor", "sqlite:missing.db"], 15);
    home.refused(&["install", "--client", "cursor", "sqlite:team.db#production@1"], 2);
    for url in ["postgres://ada:hunter2@localhost:1/x", "postgres://localhost:1/x?user=ada&password=hunter2#staging"] {
        let error = home.refused(&["install", "--client", "cursor", url], 2);
        assert!(error.contains(".pgpass") && !error.contains("hunter2"), "{error}");
    }

    // The settings are named, not copied; sources in them take the place of a library.
    home.write("server.toml", "[tools]\nmode = \"search\"\n");
    let config = home.path("server.toml").canonicalize().expect("a path");
    let config = config.to_str().expect("UTF-8");
    let library = home.path("library").canonicalize().expect("a path");
    let with_library = words(&entry(&["--config", "server.toml", "--tools", "library"]));
    assert_eq!(with_library[..5], ["serve", "--stdio", "--tools", "--config", config]);
    assert_eq!(with_library[5..], [library.to_str().expect("UTF-8")]);
    home.write("server.toml", "[[source]]\nname = \"team\"\nkind = \"folder\"\npath = \"library\"\n");
    assert_eq!(words(&entry(&["--config", "server.toml"])), ["serve", "--stdio", "--config", config]);
    home.write("server.toml", "[tols]\n");
    assert!(home.refused(&["install", "--client", "cursor", "--config", "server.toml"], 4).contains("unknown"));
    home.refused(&["install", "--client", "cursor", "--config", "missing.toml"], 4);
    assert!(!home.path(".cursor").exists(), "nothing is written");

    // In the project's file, paths inside the project are relative.
    home.ok(&["init", "sqlite:project/team.db"]);
    let line = ["install", "--client", "vscode", "--scope", "project", "sqlite:team.db#production", "--json"];
    let done = home.run("project", &line);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let entry = &json(&text(&done.stdout))["items"][0]["entry"];
    assert_eq!(words(entry).last(), Some(&"sqlite:${workspaceFolder}/team.db#production".into()));
    assert_eq!(entry["command"], "promptshelf");
}

#[test]
fn clients_without_prompts_get_a_note_and_tools() {
    let home = Home::new();
    let install = |more: &[&str]| {
        let done = home.run("", &[&["install", "--client", "codex", "--dry-run", "library"], more].concat());
        (text(&done.stdout), text(&done.stderr))
    };
    let (_, note) = install(&[]);
    assert!(note.contains("`--tools`") && note.contains("promptshelf sync --client codex"), "{note}");
    let (entry, note) = install(&["--tools"]);
    assert!(entry.contains("\"--tools\"") && !note.contains("`--tools`"), "{entry}{note}");
    assert!(note.contains("no prompt has `tool: true`"), "{note}");
}

#[test]
fn dry_run_prints_the_entry_in_the_syntax_of_the_client() {
    let home = Home::new();
    let toml = home.ok(&[
        "install",
        "--client",
        "codex",
        "--url",
        "https://example.com/mcp",
        "--token-env",
        "TOKEN",
        "--dry-run",
    ]);
    assert!(
        toml.contains("[mcp_servers.promptshelf]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TOKEN\""),
        "{toml}"
    );
    let yaml = home.ok(&["install", "--client", "goose", "--url", "https://example.com/mcp", "--dry-run"]);
    assert!(yaml.contains("extensions:\n  promptshelf:\n    type: \"streamable_http\"\n"), "{yaml}");
    let windsurf = home.ok(&["install", "--client", "windsurf", "--url", "https://example.com", "--dry-run"]);
    assert!(windsurf.contains("\"serverUrl\": \"https://example.com/mcp\""), "{windsurf}");
    assert!(!home.path(".codex").exists() && !home.path(".config").exists());
}

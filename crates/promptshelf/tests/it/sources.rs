//! `[[source]]` of `server.toml`: several sources in one server, and other MCP servers among them.

#[cfg(unix)]
mod git_sources;
mod joined_channels;
mod joined_skills;
mod ssh_sources;
mod upstream_forms;
mod upstream_lists;
mod upstream_resources;
mod upstream_restarts;
mod upstreams;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{PATIENCE, Server, promptshelf, shown};
use promptshelf_testkit::folder::{Folder, repository};

/// A folder with a `server.toml` and its state.
struct Workplace(Folder);

impl Workplace {
    fn new(files: &[(&str, &str)], settings: &str) -> Workplace {
        let folder = Folder::empty();
        files.iter().for_each(|(path, text)| folder.write(path, text));
        folder.write("server.toml", settings);
        Workplace(folder)
    }

    fn command(&self, line: &[&str]) -> std::process::Command {
        let mut command = promptshelf();
        command.args(line).args(["--config", "server.toml"]).current_dir(self.0.path());
        command.env("XDG_STATE_HOME", self.0.path().join("state"));
        command
    }

    fn serve(&self) -> Server {
        Server::start(self.command(&["serve", "--http", "127.0.0.1:0"]))
    }

    fn run(&self, line: &[&str]) -> String {
        shown(self.command(line), "")
    }

    /// Returns the state of each source.
    fn states(&self) -> Vec<Value> {
        let output = self.run(&["source", "list", "--json"]);
        let json = output.split("----- stdout -----\n").nth(1).and_then(|rest| rest.split("----- stderr").next());
        let states: Value = serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|_| panic!("{output}"));
        states["items"].as_array().cloned().expect("a list")
    }

    fn state(&self, name: &str) -> Value {
        self.states().into_iter().find(|source| source["name"] == name).expect("a source")
    }
}

/// Waits until a value fits.
fn eventually<T: std::fmt::Debug>(mut value: impl FnMut() -> T, fits: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = value();
        if fits(&now) {
            return now;
        }
        assert!(Instant::now() < deadline, "{now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn prompts(server: &Server) -> Vec<Value> {
    // Titles and `_meta` of entries are newer than the revision of a request without this header.
    let mut answer = ureq::post(&server.url)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": {} }).to_string())
        .expect("an answer");
    let text = answer.body_mut().read_to_string().expect("a text");
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    answer["result"]["prompts"].as_array().cloned().expect("a list")
}

fn names(server: &Server) -> Vec<String> {
    prompts(server).iter().map(|prompt| prompt["name"].as_str().expect("a name").to_owned()).collect()
}

fn get(server: &Server, name: &str, arguments: &Value) -> Value {
    server.request("prompts/get", &json!({ "name": name, "arguments": arguments })).1
}

const HELLO: &str = "---\ndescription: Greets\n---\nHello!\n";

#[test]
fn sources_are_served_together_and_report_their_state() {
    let program = promptshelf().get_program().to_string_lossy().into_owned();
    let command = json!([program, "serve", repository("examples/library"), "--stdio"]);
    let settings = format!(
        "[[source]]\nname = \"team\"\nkind = \"folder\"\npath = \"team\"\n\n\
         [[source]]\nname = \"plain\"\nkind = \"folder\"\npath = \"plain\"\nprefix = \"\"\n\n\
         [[source]]\nname = \"gone\"\nkind = \"folder\"\npath = \"gone\"\n\n\
         [[source]]\nname = \"up\"\nkind = \"mcp\"\ncommand = {command}\n"
    );
    let place = Workplace::new(&[("team/hello.md", HELLO), ("plain/hello.md", HELLO)], &settings);
    // Without a running server the command reads the sources itself.
    assert_eq!(place.state("team")["state"], "current");
    let server = place.serve();
    let served = eventually(|| names(&server), |names| names.iter().any(|name| name.starts_with("up-")));
    assert!(served.contains(&"team-hello".to_owned()) && served.contains(&"hello".to_owned()), "{served:?}");
    let listed = prompts(&server);
    let meta = |name: &str| listed.iter().find(|prompt| prompt["name"] == name).expect("a prompt")["_meta"].clone();
    assert_eq!(meta("team-hello")["dev.promptshelf/source"], "team");
    assert_eq!(meta("up-git-commit")["dev.promptshelf/foreign"], true);

    // Through the other server: rendering, its error, and completion.
    let answer = get(&server, "up-git-commit", &json!({ "changes": "one line" }));
    let text = answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("one line"), "{answer}");
    let answer = get(&server, "up-git-commit", &json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let argument = json!({ "name": "language", "value": "ru" });
    let reference = json!({ "type": "ref/prompt", "name": "up-code_review" });
    let (_, answer) = server.request("completion/complete", &json!({ "ref": reference, "argument": argument }));
    assert_eq!(answer["result"]["completion"]["values"][0], "rust", "{answer}");

    let gone = eventually(|| place.state("gone"), |gone| gone["state"] == "failed");
    assert!(gone["problem"].as_str().is_some_and(|problem| problem.contains("there is no folder")), "{gone}");
    assert!(gone["behindSince"].is_string() && gone["prompts"] == 0, "{gone}");
    place.0.write("gone/late.md", HELLO);
    assert!(place.run(&["source", "refresh", "gone"]).starts_with("exit code: 0"));
    eventually(|| names(&server), |names| names.contains(&"gone-late".to_owned()));
    eventually(|| place.state("gone"), |gone| gone["state"] == "current" && gone["prompts"] == 1);

    // The same over HTTP, from another machine.
    let remote = |line: &[&str]| {
        let mut command = promptshelf();
        command.args(line).args(["--url", &server.url]).env("XDG_STATE_HOME", place.0.path().join("elsewhere"));
        shown(command, "")
    };
    let listed = remote(&["source", "list", "--json"]);
    assert!(listed.starts_with("exit code: 0") && listed.contains("\"behindSince\": null"), "{listed}");
    let refreshed = remote(&["source", "refresh", "team"]);
    assert!(refreshed.contains("The server reads the source team again."), "{refreshed}");
    for (name, expected) in [("nothing", "The source `nothing`"), ("a/../b", "a source cannot have the name a/../b")] {
        let unknown = remote(&["source", "refresh", name]);
        assert!(unknown.contains("exit code: 7") && unknown.contains(expected), "{unknown}");
    }
    let unknown = place.run(&["source", "refresh", "nothing"]);
    assert!(unknown.contains("exit code: 7") && unknown.contains("its sources are team, plain, gone, up"), "{unknown}");
}

#[test]
fn mistakes_in_sources_are_reported_at_their_lines() {
    let source = |lines: &str| format!("[[source]]\nname = \"a\"\n{lines}\n");
    let oauth = |url: &str, issuer: &str, more: &str| {
        let client = "client-id = \"mirror\", client-secret = { file = \"s\" }, scopes = [\"read\"]";
        source(&format!("kind = \"mcp\"\nurl = \"{url}\"\noauth = {{ issuer = \"{issuer}\", {client} }}\n{more}"))
    };
    for (settings, expected) in [
        (
            source("kind = \"folder\""),
            "server.toml:3:8: error[invalid-value]: a source of the kind `folder` needs `path`",
        ),
        (source("kind = \"ftp\""), "server.toml:3:8: error[invalid-value]: `kind`: expected one of"),
        (
            source("kind = \"folder\"\npath = \"a\"\nurl = \"b\""),
            "server.toml:5:7: error[invalid-value]: a source of the kind `folder` does not use `url`",
        ),
        (source("kind = \"folder\"\npth = \"a\""), "unknown key `pth`"),
        (source("path = \"a\""), "missing key `kind`"),
        (
            source("kind = \"mcp\"\nurl = \"https://ada:secret@example.com/mcp\""),
            "server.toml:4:7: error[invalid-value]: expected an http or https URL without user",
        ),
        (
            source("kind = \"mcp\"\nurl = \"http://example.com/mcp\"\ncredentials = { file = \"t\" }"),
            "a token is sent over https only",
        ),
        (
            oauth("https://mcp.example.com/mcp", "https://id.example.com", "credentials = { file = \"t\" }"),
            "server.toml:5:9: error[invalid-value]: `credentials` and `oauth` exclude each other",
        ),
        (
            oauth("https://mcp.example.com/mcp", "http://id.example.com", ""),
            "server.toml:5:9: error[invalid-value]: expected the issuer of the authorization server, an https URL",
        ),
        (oauth("http://mcp.example.com/mcp", "https://id.example.com", ""), "a token is sent over https only"),
        (
            oauth("https://mcp.example.com/mcp", "https://id.example.com", "").replace("\"read\"", "\"read write\""),
            "expected a scope without spaces, got \"read write\"",
        ),
        (
            oauth("https://mcp.example.com/mcp", "https://id.example.com", "").replace("\"mirror\"", "\"\""),
            "`client-id` is empty",
        ),
        (
            oauth("https://mcp.example.com/mcp", "https://id.example.com", "")
                .replace("{ file = \"s\" }", "\"hunter2\""),
            "server.toml:5:",
        ),
        (
            oauth("x", "https://id.example.com", "").replace("url = \"x\"", "command = [\"x\"]"),
            "server.toml:5:9: error[invalid-value]: a token is sent to a URL only",
        ),
        (source("kind = \"mcp\"\ncommand = []"), "server.toml:4:11: error[invalid-value]: expected a program"),
        (
            source("kind = \"mcp\"\nurl = \"https://a.example/mcp\"\ninterval = \"60\""),
            "server.toml:5:12: error[invalid-value]",
        ),
        (
            source("kind = \"git\"\nurl = \"git+https://a.example/x.git\"\nref = \"--upload-pack=x\""),
            "server.toml:5:7: error[invalid-value]",
        ),
        (
            source("kind = \"git\"\nurl = \"git+https://a.example/x.git\"\nwebhook-secret = \"hunter2\""),
            "server.toml:5:",
        ),
        (source("kind = \"store\"\nurl = \"sqlite:\""), "server.toml:4:7: error[invalid-value]"),
        (
            "[[source]]\nname = \"A b\"\nkind = \"folder\"\npath = \"a\"\n".to_owned(),
            "server.toml:2:8: error[invalid-value]: `name`",
        ),
        (
            source("kind = \"folder\"\npath = \"a\"").repeat(2),
            "server.toml:6:8: error[invalid-value]: another source has the name `a` already",
        ),
    ] {
        let place = Workplace::new(&[], &settings);
        let output = place.run(&["source", "list"]);
        assert!(output.contains("exit code: 4") && output.contains(expected), "{settings}\n{output}");
        assert!(!output.contains("secret@") && !output.contains("hunter2"), "{output}");
    }
    let place = Workplace::new(&[("a/hello.md", HELLO)], &source("kind = \"folder\"\npath = \"a\""));
    for line in [&["source", "pin", "a"][..], &["source", "rollback", "a"]] {
        assert!(place.run(line).contains("the source a is not a git repository"), "{}", place.run(line));
    }
    let approved = place.run(&["source", "approve", "a"]);
    assert!(approved.contains("exit code: 2") && approved.contains("a is not another MCP server"), "{approved}");
    let place = Workplace::new(&[], &source("kind = \"mcp\"\nurl = \"http://127.0.0.1:9/mcp\""));
    let approved = place.run(&["source", "approve", "a"]);
    assert!(approved.contains("add `approve-changes = true` to it"), "{approved}");
    // Without --config only the folders of the user and the system are searched.
    let mut command = promptshelf();
    command.args(["source", "list"]).current_dir(place.0.path()).env("XDG_CONFIG_HOME", place.0.path().join("none"));
    let missing = shown(command, "");
    assert!(missing.contains("exit code: 7") && missing.contains("none/promptshelf/server.toml or /etc/"), "{missing}");
    assert!(missing.contains("name the file with --config"), "{missing}");
    let empty = Workplace::new(&[], "").run(&["source", "list"]);
    assert!(empty.contains("exit code: 7") && empty.contains("has no sources"), "{empty}");
}

// req: S-150
#[test]
fn requirements_of_sources_and_rules_of_the_server_hold() {
    let settings = "[[source]]\nname = \"a\"\nkind = \"folder\"\npath = \"a\"\naccess = { roles = [\"staff\"] }\n\n\
                    [[source]]\nname = \"b\"\nkind = \"folder\"\npath = \"b\"\n\n\
                    [[access]]\nprompts = [\"b-secret\"]\nroles = [\"staff\"]\n";
    let files = [("a/hello.md", HELLO), ("b/hello.md", HELLO), ("b/secret.md", HELLO), ("b/a-hello.md", HELLO)];
    let place = Workplace::new(&files, settings);
    let server = place.serve();
    assert_eq!(eventually(|| names(&server), |names| !names.is_empty()), ["b-a-hello", "b-hello"]);
    for hidden in ["a-hello", "b-secret"] {
        let answer = get(&server, hidden, &json!({}));
        assert_eq!(answer["error"]["message"], format!("Unknown prompt: {hidden}"));
    }
    // A rule that is added while the server runs binds all sources at once.
    let more = format!("{settings}\n[[access]]\nprompts = [\"*-hello\"]\nroles = [\"staff\"]\n");
    place.0.write("server.toml", &more);
    eventually(|| names(&server), Vec::is_empty);
}

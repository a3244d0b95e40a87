//! A reviewed channel among other sources, at one URL.

use std::process::Command;

use promptshelf_testkit::git::Repository;
use serde_json::{Value, json};

use super::{HELLO, Workplace, eventually, get, names};
use crate::program::{Server, promptshelf, shown};

fn note(text: &str) -> String {
    HELLO.replace("Hello!", text)
}

fn ok(place: &Workplace, line: &[&str]) -> String {
    let mut command = promptshelf();
    command.args(line).current_dir(place.0.path());
    let done = shown(command, "");
    assert!(done.starts_with("exit code: 0"), "{line:?}: {done}");
    done
}

fn facts(server: &Server, path: &str) -> Value {
    let url = format!("http://{}/{path}", server.authority());
    let text = ureq::get(&url).call().expect("an answer").body_mut().read_to_string().expect("text");
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn text(server: &Server, name: &str) -> String {
    let answer = get(server, name, &json!({}));
    answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default().to_owned()
}

fn names_at(server: &Server, path: &str) -> Vec<String> {
    let url = format!("http://{}/{path}", server.authority());
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": {} });
    let mut answer = ureq::post(&url)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .send(request.to_string())
        .expect("an answer");
    let answer: Value = serde_json::from_str(&answer.body_mut().read_to_string().expect("text")).expect("JSON");
    let listed = answer["result"]["prompts"].as_array().cloned().unwrap_or_default();
    listed.iter().map(|prompt| prompt["name"].as_str().expect("a name").to_owned()).collect()
}

/// A store with a reviewed channel and another one, a repository, and a receiver of events that is away.
fn place(repository: &Repository, channel: &str) -> Workplace {
    let git = format!(
        "[[source]]\nname = \"platform\"\nkind = \"git\"\nurl = \"{}\"\nref = \"main\"\ninterval = \"1h\"\n",
        repository.address("")
    );
    let settings = format!(
        "{channel}{git}[[webhook]]\nurl = \"http://127.0.0.1:9/events\"\nallow-private = true\nevents = [\"published\"]\n\
         secret = {{ file = \"secret\" }}\n[api]\nenabled = true\n[channels.staging]\n"
    );
    let secret = "6d9d5b2c1f7e4a386d9d5b2c1f7e4a38\n";
    let place = Workplace::new(&[("secret", secret), ("prompts/note.md", &note("One"))], &settings);
    ok(&place, &["init", "sqlite:team.db"]);
    for channel in ["production", "staging"] {
        let line =
            ["publish", "prompts", "--store", "sqlite:team.db", "--channel", channel, "-m", "First", "--as", "ada"];
        ok(&place, &line);
    }
    place
}

// req: S-430
#[test]
fn channel_among_sources_has_review_history_and_api() {
    let repository = Repository::new(&[("hello.md", &note("Platform"))]);
    let source = "[[source]]\nname = \"team\"\nkind = \"store\"\nurl = \"sqlite:team.db#production\"\n";
    let place = place(&repository, source);
    let server = place.serve();
    eventually(|| names(&server), |names| *names == ["platform-hello", "team-note"]);
    assert_eq!(names_at(&server, "channels/staging/mcp"), ["platform-hello", "team-note"]);
    for _ in 0..3 {
        assert_eq!(text(&server, "team-note"), "One");
    }

    // Review, and a publish over the API of the server.
    let url = format!("http://{}", server.authority());
    ok(&place, &["policy", "--channel", "production", "--url", &url, "--approvals", "1", "-m", "Two pairs of eyes"]);
    place.0.write("prompts/note.md", &note("Two"));
    let proposed = ok(&place, &["publish", "prompts", "--url", &url, "-m", "Second", "--dry-run"]);
    assert!(proposed.contains("lacks: "), "{proposed}");
    ok(
        &place,
        &["policy", "--channel", "production", "--store", "sqlite:team.db", "--approvals", "0", "-m", "One pair"],
    );
    ok(&place, &["publish", "prompts", "--url", &url, "-m", "Second"]);
    eventually(|| text(&server, "team-note"), |text| text == "Two");
    assert_eq!(text(&server, "platform-hello"), "Platform");
    let ready = facts(&server, "readyz").as_str().unwrap_or_default().to_owned();
    assert!(ready.starts_with("ready") && ready.contains("channel production: revision 2"), "{ready}");

    // Earlier versions have the served name, the name of the event's prompt too; other sources have no versions.
    let earlier = facts(&server, "api/v1/prompts/team-note?version=1&rendered=true");
    assert_eq!((&earlier["name"], &earlier["version"]), (&json!("team-note"), &json!(1)), "{earlier}");
    assert_eq!(earlier["messages"][0]["content"]["text"], "One", "{earlier}");
    let present = facts(&server, "api/v1/prompts/team-note");
    assert_eq!((&present["channel"], &present["version"]), (&json!("production"), &json!(2)), "{present}");
    let unknown = ureq::get(format!("{url}/api/v1/prompts/platform-hello?version=1")).call();
    assert!(matches!(unknown, Err(ureq::Error::StatusCode(404))), "{unknown:?}");
    let revisions = facts(&server, "api/v1/channels/production/revisions");
    assert_eq!(revisions["items"][0]["prompts"][0]["name"], "note", "{revisions}");
    assert_eq!(
        facts(&server, "api/v1/webhooks")["items"][0]["pending"],
        1,
        "the server knows the receiver since its start"
    );

    // Calls are counted under the name in the channel: what breaks them is known before a publish.
    place.0.write(
        "prompts/note.md",
        "---\ndescription: Greets\narguments:\n  - name: who\n    required: true\n---\n{{ who }}\n",
    );
    let warned = || ok(&place, &["publish", "prompts", "--url", &url, "-m", "Third", "--dry-run"]);
    eventually(warned, |warned| warned.contains("by 1 client in the last 30 days"));
}

#[test]
fn sources_added_to_a_store_change_no_name() {
    let repository = Repository::new(&[("hello.md", &note("Platform"))]);
    let place = place(&repository, "");
    let serve = |config: &str| {
        let mut command: Command = promptshelf();
        command.args(["serve", "sqlite:team.db", "--http", "127.0.0.1:0", "--config", config]);
        command.current_dir(place.0.path()).env("XDG_STATE_HOME", place.0.path().join("state"));
        Server::start(command)
    };
    place.0.write("alone.toml", "");
    let alone = names(&serve("alone.toml"));
    assert_eq!(alone, ["note"]);
    let server = serve("server.toml");
    eventually(|| names(&server), |names| *names == ["note", "platform-hello"]);
    assert_eq!(names_at(&server, "channels/staging/mcp"), ["note", "platform-hello"]);
    place.0.write("prompts/note.md", &note("Two"));
    ok(&place, &["publish", "prompts", "--url", &format!("http://{}", server.authority()), "-m", "Second"]);
    eventually(|| text(&server, "note"), |text| text == "Two");
    assert_eq!(facts(&server, "api/v1/prompts/note?version=1&rendered=true")["messages"][0]["content"]["text"], "One");
    assert_eq!(facts(&server, "api/v1/sources")["items"][0]["name"], "platform");
}

/// The share is served the other channel together with the sources that it is among, under the same names.
// req: S-430
#[test]
fn rollout_of_a_channel_among_sources_keeps_the_sources() {
    let repository = Repository::new(&[("hello.md", &note("Platform"))]);
    let store = "[[source]]\nname = \"team\"\nkind = \"store\"\nurl = \"sqlite:team.db#production\"\n";
    let place = place(&repository, store);
    let token = "psh_of-ada";
    let digest: String = promptshelf::http::auth::digest_of(token).iter().map(|byte| format!("{byte:02x}")).collect();
    let settings = std::fs::read_to_string(place.0.path().join("server.toml")).expect("the settings");
    let sign_in = format!("[auth]\ntokens = [{{ name = \"ada\", sha256 = \"{digest}\" }}]\n");
    place.0.write("server.toml", &format!("{settings}{sign_in}"));
    place.0.write("prompts/note.md", &note("Next"));
    let publish = ["publish", "prompts", "--store", "sqlite:team.db", "--channel", "next", "-m", "Next", "--as", "ada"];
    ok(&place, &publish);
    let server = place.serve();
    let ask = |method: &str, params: Value| -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answer = ureq::post(&server.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("Authorization", format!("Bearer {token}"))
            .send(request.to_string())
            .expect("an answer");
        serde_json::from_str(&answer.body_mut().read_to_string().expect("text")).expect("JSON")
    };
    let served = |name: &str| {
        let answer = ask("prompts/get", json!({ "name": name }));
        answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default().to_owned()
    };
    let both = || (served("team-note"), served("platform-hello"));
    let of = |text: &str| (text.to_owned(), "Platform".to_owned());
    eventually(both, |both| *both == of("One"));
    for (words, expected) in [
        (&["start", "production", "--to", "next", "--percent", "100"][..], "Next"),
        (&["stop", "production"], "One"),
        (&["set", "production", "100"], "Next"),
    ] {
        ok(&place, &[&["rollout"], words, &["--store", "sqlite:team.db"]].concat());
        eventually(both, |both| *both == of(expected));
    }
    let listed = ask("prompts/list", json!({}))["result"]["prompts"].clone();
    let names: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["platform-hello", "team-note"]);
    // The target is followed while callers are served it.
    place.0.write("prompts/note.md", &note("Newer"));
    ok(&place, &publish);
    eventually(both, |both| *both == of("Newer"));
    ok(&place, &["rollout", "finish", "production", "--all", "--store", "sqlite:team.db"]);
    eventually(both, |both| *both == of("Newer"));
    let production = ok(&place, &["history", "--store", "sqlite:team.db"]);
    assert!(production.contains("promot"), "{production}");
}

//! Versions and approvers in what a served channel sends to clients.

use std::{
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{BYE, HELLO, Team};
use crate::program::Server;

fn served(team: &Team, more: &[&str]) -> Server {
    let words = [&["serve", &team.store, "--http", "127.0.0.1:0"], more].concat();
    Server::start(team.command(&words))
}

/// Sends a request of revision 2025-06-18, the first with `_meta` in lists.
fn request(server: &Server, method: &str, params: &Value) -> Value {
    let mut answer = ureq::post(format!("http://{}/mcp", server.authority()))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("Mcp-Protocol-Version", "2025-06-18")
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
        .expect("the server answers");
    let text = answer.body_mut().read_to_string().expect("the answer is text");
    serde_json::from_str(&text).expect("JSON")
}

/// The members of provenance of a prompt, in the list and in a result.
fn provenance(server: &Server, name: &str, arguments: &Value) -> Value {
    let members = |meta: &Value| {
        let meta = meta.as_object().cloned().unwrap_or_default();
        let own =
            meta.into_iter().filter_map(|(key, value)| Some((key.strip_prefix("dev.promptshelf/")?.to_owned(), value)));
        Value::Object(own.collect())
    };
    let list = request(server, "prompts/list", &json!({}));
    let prompts = list["result"]["prompts"].as_array().expect("prompts");
    let listed = members(&prompts.iter().find(|prompt| prompt["name"] == name).expect("the prompt")["_meta"]);
    let got = request(server, "prompts/get", &json!({ "name": name, "arguments": arguments }));
    assert_eq!(members(&got["result"]["_meta"]), listed, "{got}");
    listed
}

#[test]
fn clients_see_the_version_and_who_approved_it() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    team.policy(&["--approvals", "1"]);
    team.write("prompts", &[("bye.md", &format!("{BYE}Twice.\n"))]);
    team.json(&["publish", "prompts", "-m", "Longer", "--as", "ada"]);
    team.approve(&["2", "--as", "Größe <b>"]);

    let cache = team.path("cache").display().to_string();
    let server = served(&team, &["--cache", &cache]);
    let (hello, bye) =
        (provenance(&server, "hello", &json!({ "name": "you" })), provenance(&server, "bye", &json!({})));
    for (found, version, approvers) in [(&hello, 1, json!([])), (&bye, 2, json!(["Größe <b>"]))] {
        assert_eq!(found["digest"].as_str().map(str::len), Some(64), "{found}");
        assert_eq!(
            (&found["version"], &found["channel"], &found["revision"], &found["approvedBy"]),
            (&json!(version), &json!("production"), &json!(2), &approvers)
        );
    }
    // The copy is written after the revision is served.
    let copy = team.path("cache/channel-production");
    let begun = Instant::now();
    while !copy.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no copy of the channel");
        sleep(Duration::from_millis(20));
    }
    drop(server);

    // A restart without the store knows them too, and the operator can hide them.
    fs::rename(team.path("team.db"), team.path("away.db")).expect("renamed");
    let server = served(&team, &["--cache", &cache]);
    assert_eq!(provenance(&server, "bye", &json!({})), bye);
    drop(server);
    fs::rename(team.path("away.db"), team.path("team.db")).expect("renamed");
    team.folder.write("server.toml", "[provenance]\nenabled = false\n");
    let server = served(&team, &["--config", "server.toml"]);
    assert_eq!(provenance(&server, "bye", &json!({})), json!({}));
}

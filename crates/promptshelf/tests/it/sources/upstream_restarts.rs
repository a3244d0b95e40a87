//! The list of another server: its changes, and the last one over a restart.

use promptshelf_testkit::folder::Folder;
use serde_json::{Value, json};

use super::{HELLO, Workplace, eventually, get, names};
use crate::program::{Pipes, Server};

/// Returns settings with one upstream, which is listed again only after a notification or a failure.
fn settings(url: &str) -> String {
    format!("[[source]]\nname = \"up\"\nkind = \"mcp\"\nurl = \"{url}\"\ninterval = \"1h\"\ntimeout = \"2s\"\n")
}

// req: S-229, S-230
#[test]
fn changes_pass_through_and_the_last_list_survives_a_restart() {
    let library = Folder::empty();
    library.write("prompts/hello.md", HELLO);
    let upstream = Server::of(&library, &[]);
    let place = Workplace::new(&[], &settings(&upstream.url));

    // A change of the other server becomes a notification of this one.
    let mut client = Pipes::start(place.command(&["serve", "--stdio"]));
    client.initialize();
    let listed = |client: &mut Pipes, id| client.request(id, "prompts/list", &json!({}))["result"]["prompts"].clone();
    assert_eq!(listed(&mut client, 1)[0]["name"], "up-hello");
    library.write("prompts/late.md", HELLO);
    loop {
        let message: Value = serde_json::from_str(&client.line()).expect("JSON");
        if message["method"] == "notifications/prompts/list_changed" {
            break;
        }
    }
    assert_eq!(listed(&mut client, 2)[1]["name"], "up-late");
    drop(client);
    drop(upstream);

    // Without the other server its last list is served, with the reason.
    let server = place.serve();
    assert_eq!(eventually(|| names(&server), |names| !names.is_empty()), ["up-hello", "up-late"]);
    let state = eventually(|| place.state("up"), |state| state["state"] == "behind");
    assert!(state["behindSince"].is_string() && state["prompts"] == 2, "{state}");
    assert!(state["problem"].as_str().is_some_and(|problem| !problem.is_empty()), "{state}");
    let answer = get(&server, "up-hello", &json!({}));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("source up") && message.contains("try again later"), "{answer}");
    assert!(!message.contains("127.0.0.1"), "{answer}");
    drop(server);

    // It is not the list of another server.
    place.0.write("server.toml", &settings("http://127.0.0.1:9/mcp"));
    let server = place.serve();
    eventually(|| place.state("up"), |state| state["state"] == "failed");
    assert_eq!(names(&server), [""; 0]);
}

//! A git source from the push to the answer, on two servers that share a store.

use promptshelf_testkit::git::Repository;
use serde_json::{Value, json};

use super::{HELLO, Workplace, eventually, get, names};
use crate::program::{Server, promptshelf, shown};

const SECRET: &str = "6d9d5b2c1f7e4a38";

fn hello(text: &str) -> String {
    HELLO.replace("Hello!", text)
}

/// Returns a prompt's text and the id of its commit.
fn served(server: &Server, name: &str) -> (String, String) {
    let answer = get(server, name, &json!({}));
    let commit = answer["result"]["_meta"]["dev.promptshelf/commit"].as_str().unwrap_or_default();
    let text = answer["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_default();
    (text.to_owned(), commit.to_owned())
}

fn until_served(server: &Server, name: &str, text: &str, commit: &str) {
    eventually(|| served(server, name), |found| *found == (text.to_owned(), commit.to_owned()));
}

/// Sends a webhook, and returns the status of the answer.
fn hook(server: &Server, token: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("http://{}/api/v1/hooks/platform", server.authority());
    let answer = agent.post(&url).header("X-Gitlab-Token", token).send("{\"object_kind\":\"push\"}");
    answer.expect("an answer").status().as_u16()
}

fn facts(server: &Server, path: &str) -> Value {
    let url = format!("http://{}/api/v1/{path}", server.authority());
    let text = ureq::get(&url).call().expect("an answer").body_mut().read_to_string().expect("text");
    serde_json::from_str(&text).expect("JSON")
}

// req: S-227
#[test]
fn push_is_served_by_every_replica_and_can_be_pinned_and_rolled_back() {
    let repository = Repository::new(&[("prompts/hello.md", &hello("One"))]);
    let first = repository.git(&["rev-parse", "HEAD"]);
    let store = format!("sqlite:{}", repository.path().join("team.db").display());
    std::fs::create_dir(repository.path().join("channel")).expect("a folder");
    std::fs::write(repository.path().join("channel/note.md"), HELLO).expect("a file");
    for line in [&["init"][..], &["publish", "channel", "-m", "First", "--as", "ada"]] {
        let mut command = promptshelf();
        command.args(line).current_dir(repository.path()).env("PROMPTSHELF_STORE", &store);
        let done = shown(command, "");
        assert!(done.starts_with("exit code: 0"), "{done}");
    }
    let git = |name: &str, interval: &str| {
        let url = repository.address("");
        format!(
            "[[source]]\nname = \"{name}\"\nkind = \"git\"\nurl = \"{url}\"\nref = \"main\"\npath = \"prompts\"\n\
             interval = \"{interval}\"\n"
        )
    };
    let settings = format!(
        "{}webhook-secret = {{ file = \"secret\" }}\n\n{}\n\
         [[source]]\nname = \"team\"\nkind = \"store\"\nurl = \"{store}#production\"\n",
        git("platform", "1h"),
        git("polled", "1s"),
    );
    let secret = format!("{SECRET}\n");
    let places = [(); 2].map(|()| Workplace::new(&[("secret", &secret)], &settings));
    let servers = [places[0].serve(), places[1].serve()];
    for server in &servers {
        eventually(|| names(server), |names| *names == ["platform-hello", "polled-hello", "team-note"]);
        assert_eq!(served(server, "platform-hello"), ("One".to_owned(), first.clone()));
    }
    // The API names the source of a prompt, and the states of all sources.
    let prompts = facts(&servers[0], "prompts");
    assert_eq!(prompts["items"][0]["source"], "platform", "{prompts}");
    assert_eq!(prompts["items"][0]["commit"], first.as_str(), "{prompts}");
    assert_eq!((&prompts["items"][2]["source"], &prompts["items"][2]["commit"]), (&json!("team"), &Value::Null));
    assert_eq!(facts(&servers[0], "sources")["items"][2]["revision"], 1);

    // One webhook reaches both servers; the other source polls.
    assert_eq!(hook(&servers[0], "another secret"), 401);
    let second = repository.commit(&[("prompts/hello.md", &hello("Two"))]);
    assert_eq!(hook(&servers[0], SECRET), 202);
    for server in &servers {
        until_served(server, "platform-hello", "Two", &second);
        until_served(server, "polled-hello", "Two", &second);
    }
    let usage = facts(&servers[0], "usage/overview");
    let sources: Vec<_> = usage["sources"].as_array().into_iter().flatten().map(|one| one["name"].clone()).collect();
    assert!(sources.contains(&json!("platform")) && sources.contains(&json!("polled")), "{usage}");

    // A pin and a rollback hold on their machine.
    let pinned = places[0].run(&["source", "pin", "platform", &first]);
    assert!(pinned.contains("stays at commit"), "{pinned}");
    until_served(&servers[0], "platform-hello", "One", &first);
    eventually(|| places[0].state("platform"), |state| state["commit"] == first.as_str());
    assert!(places[0].run(&["source", "pin", "platform"]).starts_with("exit code: 0"));
    until_served(&servers[0], "platform-hello", "Two", &second);
    let back = places[0].run(&["source", "rollback", "platform"]);
    assert!(back.contains("stays at commit"), "{back}");
    until_served(&servers[0], "platform-hello", "One", &first);
    assert_eq!(served(&servers[1], "platform-hello").1, second);
    assert!(places[0].run(&["source", "pin", "platform"]).starts_with("exit code: 0"));

    // A forced push replaces the history.
    repository.git(&["reset", "--quiet", "--hard", &first]);
    let third = repository.commit(&[("prompts/hello.md", &hello("Three"))]);
    assert_eq!(hook(&servers[1], SECRET), 202);
    for server in &servers {
        until_served(server, "platform-hello", "Three", &third);
    }
}

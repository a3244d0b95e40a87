//! Several channels of one store, and guided prompts across replicas.

use promptshelf_testkit::folder::Folder;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Author, get_at, modern, prompt, promptshelf, serve, signal, sqlite, until, until_readiness};
use crate::{
    chat::GUIDED,
    program::{Server, shown},
};

/// The status of `prompts/list` for a caller at a path, and the names of the prompts.
fn list(server: &Server, path: &str, token: &str) -> (u16, Vec<String>) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent
        .post(format!("http://{}{path}", server.authority()))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("Authorization", format!("Bearer {token}"))
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#)
        .expect("the server answers");
    let text = answer.body_mut().read_to_string().expect("text");
    let list: Value = serde_json::from_str(&text).unwrap_or_default();
    let names = list["result"]["prompts"].as_array().into_iter().flatten();
    (answer.status().as_u16(), names.map(|prompt| prompt["name"].as_str().expect("a name").to_owned()).collect())
}

/// Makes a token, and returns it with the lines for `server.toml`.
fn token(name: &str, roles: &[&str]) -> (String, String) {
    let mut command = promptshelf();
    command.args(["token", "new", name, "--json"]).args(roles.iter().flat_map(|role| ["--role", role]));
    let output = shown(command, "");
    let json = output.lines().find(|line| line.starts_with('{')).map(|_| {
        let (_, rest) = output.split_once("----- stdout -----\n").expect("stdout");
        let (json, _) = rest.split_once("----- stderr -----").expect("stderr");
        serde_json::from_str::<Value>(json).expect("JSON")
    });
    let json = json.unwrap_or_else(|| panic!("no token in {output}"));
    let line = json["store"].as_str().unwrap_or_else(|| panic!("no line in {json}"));
    (json["token"].as_str().unwrap_or_else(|| panic!("no token in {json}")).to_owned(), line.to_owned())
}

// req: S-96
#[tokio::test(flavor = "multi_thread")]
async fn channels_are_served_side_by_side_with_rules_of_the_operator() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("live.md", Some(prompt("live")))]).await;
    author.on("staging").publish([("draft.md", Some(prompt("draft")))]).await;
    let ((ada, ada_line), (bob, bob_line)) = (token("ada", &["editor"]), token("bob", &[]));
    let settings =
        |role: &str| format!("[auth]\ntokens = [{ada_line}, {bob_line}]\n\n[channels.staging]\nroles = [\"{role}\"]\n");
    folder.write("server.toml", &settings("editor"));
    let mut command = serve(&store, &["--metrics", "127.0.0.1:0"]);
    command.env("PROMPTSHELF_CONFIG", folder.path().join("server.toml"));
    let server = Server::start(command);
    let metrics = server.startup_log.split_once("metrics are served on ").expect("the address of metrics").1;
    let metrics = metrics.split(['"', ' ', '\n']).next().expect("a URL").to_owned();

    assert_eq!(list(&server, "/mcp", &bob), (200, vec!["live".to_owned()]));
    assert_eq!(list(&server, "/channels/staging/mcp", &ada), (200, vec!["draft".to_owned()]));
    assert_eq!(list(&server, "/channels/staging/mcp", &bob).0, 404);

    // Each channel follows its own revisions.
    author.on("staging").publish([("second.md", Some(prompt("second")))]).await;
    let both = (200, vec!["draft".to_owned(), "second".to_owned()]);
    until("the staging channel", || (list(&server, "/channels/staging/mcp", &ada) == both).then_some(()));
    assert_eq!(list(&server, "/mcp", &ada), (200, vec!["live".to_owned()]));
    // The operator's readiness and metrics have all channels, the public readiness has the default one.
    let readiness = until_readiness(&server, "ready");
    assert!(readiness.contains("channel production: revision 1,") && !readiness.contains("staging"), "{readiness}");
    let (_, readiness) = get_at(&metrics.replace("/metrics", "/readyz"));
    assert!(readiness.contains("\nchannel staging: revision 2,"), "{readiness}");
    let (_, metrics) = get_at(&metrics);
    for line in [
        "promptshelf_channel_revision{channel=\"production\"} 1.0",
        "promptshelf_channel_revision{channel=\"staging\"} 2.0",
        "promptshelf_channel_degraded{channel=\"staging\"} 0.0",
        "promptshelf_channel_lag_seconds{channel=\"staging\"} ",
        "promptshelf_channel_info{channel=\"staging\",epoch=\"",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }

    // A rule changes without a restart.
    folder.write("server.toml", &settings("owner"));
    signal(&server.child, Signal::HUP);
    until("the new rule", || (list(&server, "/channels/staging/mcp", &ada).0 == 404).then_some(()));
    assert_eq!(list(&server, "/mcp", &ada), (200, vec!["live".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn channel_that_does_not_exist_ends_the_start() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    Author::at(&store).await.publish([("live.md", Some(prompt("live")))]).await;
    let output = shown(serve(&store, &["--channel", "stagin"]), "");
    assert!(output.starts_with("exit code: 7\n") && output.contains("stagin"), "{output}");
    let output = shown(serve(&format!("{store}#other"), &[]), "");
    assert!(output.starts_with("exit code: 7\n") && output.contains("other"), "{output}");
}

fn answers(step: &Value, content: &Value) -> Value {
    let requests = step["inputRequests"].as_object().unwrap_or_else(|| panic!("no input is required in {step}"));
    requests.keys().map(|key| (key.clone(), json!({ "action": "accept", "content": content }))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn guided_prompt_ends_on_another_replica_also_across_a_publish() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await;
    author.publish([("guided.md", Some(GUIDED.to_owned()))]).await;
    let replicas = [(); 2].map(|()| {
        let mut command = serve(&store, &[]);
        command.env("PROMPTSHELF_STATE_KEY", "a key of at least 16 bytes");
        Server::start(command)
    });
    let [first, second] = &replicas;
    let begin = || modern(&first.url, "prompts/get", json!({ "name": "guided" }))["result"].clone();
    let next = |server: &Server, step: &Value, content: Value| {
        let params = json!({
            "name": "guided",
            "inputResponses": answers(step, &content),
            "requestState": step["requestState"],
        });
        modern(&server.url, "prompts/get", params)
    };
    let step = begin();
    author.publish([("other.md", Some(prompt("other")))]).await;
    until_readiness(second, "ready\nchannel production: revision 2,");
    let step = next(second, &step, json!({ "topic": "bees" }))["result"].clone();
    let done = next(first, &step, json!({ "tone": "kind" }));
    let text = done["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert_eq!(text.trim_end(), "Write about bees in a kind tone.");

    // A step of another version of the prompt is refused, on each replica alike.
    let step = begin();
    author.publish([("guided.md", Some(GUIDED.replace("Write about", "Write a poem about")))]).await;
    for server in &replicas {
        until_readiness(server, "ready\nchannel production: revision 3,");
        let refused = next(server, &step, json!({ "topic": "bees" }));
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(message.contains("again"), "{message}");
    }
}

//! Guarded rollouts across replicas.

use std::fmt::Write as _;

use promptshelf::http::auth::digest_of;
use promptshelf_testkit::folder::Folder;
use serde_json::{Value, json};

use super::{Author, prompt, promptshelf, serve, sqlite, until};
use crate::program::{Server, shown};

/// The number of callers: all are in one group with a probability of 2 in a trillion. Each counts once in five minutes.
const CALLERS: usize = 40;

/// A prompt that fails for callers of the one before.
const BROKEN: &str = "---\ndescription: Says\narguments:\n  - name: what\n    required: true\n---\n{{ what }}\n";

fn caller(number: usize) -> String {
    format!("psh_caller-{number}")
}

/// The settings of a server with all callers, and a rollout.
fn settings(rollout: &str) -> String {
    // On an idle machine, the calls that wait for a change would exceed the limits of a minute.
    let mut settings = String::from(
        "[limits]\nrequests-per-minute = 1000000\nrequests-per-minute-per-address = 1000000\n[auth]\ntokens = [\n",
    );
    for number in 0..CALLERS {
        let digest: String = digest_of(&caller(number)).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(settings, "  {{ name = \"caller-{number}\", sha256 = \"{digest}\" }},").expect("a string");
    }
    settings + "]\n\n[[rollout]]\nchannel = \"production\"\n" + rollout
}

/// The text of `hello` for a caller; `None` if the call is refused.
fn hello(server: &Server, number: usize) -> Option<String> {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent
        .post(format!("http://{}/mcp", server.authority()))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("Authorization", format!("Bearer {}", caller(number)))
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"hello"}}"#)
        .expect("the server answers");
    assert_eq!(answer.status().as_u16(), 200);
    let answer: Value = serde_json::from_str(&answer.body_mut().read_to_string().expect("text")).expect("JSON");
    answer["result"]["messages"][0]["content"]["text"].as_str().map(|text| text.trim_end().to_owned())
}

fn all(server: &Server) -> Vec<Option<String>> {
    (0..CALLERS).map(|number| hello(server, number)).collect()
}

fn rollout(store: &str, words: &[&str]) -> Value {
    let mut command = promptshelf();
    command.arg("rollout").args(words).args(["--json", "--store", store]).env("USER", "ada");
    let output = shown(command, "");
    let (_, rest) = output.split_once("----- stdout -----\n").expect("stdout");
    let (printed, _) = rest.split_once("----- stderr -----").expect("stderr");
    serde_json::from_str(printed).unwrap_or_else(|error| panic!("{words:?}: {error}\n{output}"))
}

// req: S-199
#[tokio::test(flavor = "multi_thread")]
async fn regression_is_stopped_on_every_replica() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await.checked();
    author.publish([("hello.md", Some(prompt("one")))]).await;
    author.on("next").publish([("hello.md", Some(BROKEN.to_owned()))]).await;
    folder.write("server.toml", &settings("to = \"next\"\npercent = 50\nstop = { errors = \"2x\" }\n"));
    let replica = || {
        let mut command = serve(&store, &[]);
        command.env("PROMPTSHELF_CONFIG", folder.path().join("server.toml"));
        Server::start(command)
    };
    let servers = [replica(), replica()];
    // A regression that no test has noticed: calls of both replicas are the evidence.
    let state = until("the stop", || {
        servers.iter().for_each(|server| drop(all(server)));
        let state = rollout(&store, &["list"])["rollouts"][0].clone();
        (state["stopped"] == true).then_some(state)
    });
    assert_eq!((&state["percent"], &state["to"]), (&json!(0), &json!("next")));
    assert!(state["reason"].as_str().is_some_and(|reason| reason.starts_with("errors: ")), "{state}");
    assert!(state["counts"]["stable"]["calls"].as_u64() > Some(0), "{state}");
    let one = vec![Some("one".to_owned()); CALLERS];
    for server in &servers {
        until("the version from before", || (all(server) == one).then_some(()));
    }
    // A restart does not begin it again, and an operator does.
    author.on("next").publish([("hello.md", Some(prompt("two")))]).await;
    let restarted = replica();
    assert_eq!(all(&restarted), one);
    assert_eq!(rollout(&store, &["set", "production", "50"])["percent"], 50);
    let is_divided = |texts: &[Option<String>]| texts.iter().any(|text| text.as_deref() == Some("two"));
    until("half of the callers", || is_divided(&all(&restarted)).then_some(()));
    // The share can have changed between two of the calls before.
    let divided = all(&restarted);
    assert_ne!(divided, vec![Some("two".to_owned()); CALLERS], "the others keep their version");
    for server in &servers {
        until("the same callers", || (all(server) == divided).then_some(()));
    }
    assert_eq!(rollout(&store, &["stop", "production", "-m", "a complaint"])["stopped"], true);
    until("the end", || (all(&restarted) == one).then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout_that_left_the_settings_is_listed_so() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await.checked();
    author.publish([("hello.md", Some(prompt("one")))]).await;
    author.on("next").publish([("hello.md", Some(prompt("two")))]).await;
    folder.write("server.toml", &settings("to = \"next\"\npercent = 50\n"));
    let mut command = serve(&store, &[]);
    command.env("PROMPTSHELF_CONFIG", folder.path().join("server.toml"));
    let server = Server::start(command);
    until("the rollout", || (rollout(&store, &["list"])["rollouts"][0]["percent"] == 50).then_some(()));
    let listed = || {
        let mut command = promptshelf();
        command.args(["rollout", "list", "--store", &store]);
        shown(command, "")
    };
    let words = "no running server has the rollout of production to next in its settings; it was last applied at 2";
    assert!(!listed().contains(words), "{}", listed());
    drop(server);
    // As if that was a minute ago.
    let path = store.strip_prefix("sqlite:").expect("a file");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut database = sqlx::ConnectOptions::connect(&options).await.expect("a database");
    let earlier = "UPDATE ps_rollout SET applied_at = applied_at - 60000000";
    sqlx::query(earlier).execute(&mut database).await.expect("updated");
    assert!(listed().contains(words), "{}", listed());
    assert!(rollout(&store, &["list"])["rollouts"][0]["unappliedSince"].is_string());
    rollout(&store, &["stop", "production"]);
    assert!(!listed().contains(words), "a stopped rollout needs no server");
}

// req: S-201
#[tokio::test(flavor = "multi_thread")]
async fn rollout_without_its_channels_ends_the_start() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    Author::at(&store).await.publish([("hello.md", Some(prompt("one")))]).await;
    for (keys, expected) in [
        ("to = \"nxt\"\npercent = 50\n", "the channel `nxt` does not exist"),
        ("to = \"production\"\npercent = 50\n", "expected another channel than `production`"),
        ("to = \"next\"\npercent = 500\n", "from 0 to 100"),
    ] {
        folder.write("server.toml", &settings(keys));
        let mut command = serve(&store, &[]);
        command.env("PROMPTSHELF_CONFIG", folder.path().join("server.toml"));
        let output = shown(command, "");
        assert!(!output.starts_with("exit code: 0") && output.contains(expected), "{output}");
    }
}

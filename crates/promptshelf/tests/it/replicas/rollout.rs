//! Guarded rollouts across replicas.

use std::{fmt::Write as _, fs};

use promptshelf::http::auth::digest_of;
use promptshelf_testkit::{folder::Folder, receiver::Receiver};
use serde_json::{Value, json};

use super::{Author, get_at, logged, prompt, promptshelf, serve, sqlite, until};
use crate::program::{Server, shown};

/// The number of callers: all are in one group with a probability of 2 in a trillion. Each counts once in five minutes.
const CALLERS: usize = 40;

/// A prompt that fails for callers of the one before.
const BROKEN: &str = "---\ndescription: Says\narguments:\n  - name: what\n    required: true\n---\n{{ what }}\n";

fn caller(number: usize) -> String {
    format!("psh_caller-{number}")
}

/// The settings of a server with all callers.
fn settings(more: &str) -> String {
    // On an idle machine, the calls that wait for a change would exceed the limits of a minute.
    let mut settings = String::from(
        "[limits]\nrequests-per-minute = 1000000\nrequests-per-minute-per-address = 1000000\n[auth]\ntokens = [\n",
    );
    for number in 0..CALLERS {
        let digest: String = digest_of(&caller(number)).iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(settings, "  {{ name = \"caller-{number}\", sha256 = \"{digest}\" }},").expect("a string");
    }
    settings + "]\n\n" + more
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

/// Starts a server of all callers, with an audit file and metrics.
fn replica(folder: &Folder, store: &str, number: usize) -> Server {
    let audit = folder.path().join(format!("audit-{number}.jsonl")).display().to_string();
    let mut command = serve(store, &["--metrics", "127.0.0.1:0", "--audit", &audit]);
    command.env("PROMPTSHELF_CONFIG", folder.path().join("server.toml"));
    Server::start(command)
}

/// The metrics of a server.
fn metrics(server: &Server) -> String {
    let address = server.startup_log.lines().find_map(|line| line.split_once("metrics are served on "));
    get_at(address.expect("metrics are served").1.trim()).1
}

// req: S-199, S-416, S-417
#[tokio::test(flavor = "multi_thread")]
async fn rollout_begins_stops_and_ends_on_every_replica_without_a_restart() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await.checked();
    author.publish([("hello.md", Some(prompt("one")))]).await;
    author.on("next").publish([("hello.md", Some(BROKEN.to_owned()))]).await;
    let receiver = Receiver::start([]);
    let events = "[\"rollout-started\", \"rollout-stopped\", \"rollout-finished\"]";
    folder.write("hook.secret", &"s".repeat(32));
    let secret = "secret = { file = \"hook.secret\" }\nallow-private = true\n";
    let webhook = format!("[[webhook]]\nurl = \"{}\"\nevents = {events}\n{secret}", receiver.url());
    folder.write("server.toml", &settings(&webhook));
    let servers = [replica(&folder, &store, 0), replica(&folder, &store, 1)];
    let mut logs = [Vec::new(), Vec::new()];
    let one = vec![Some("one".to_owned()); CALLERS];
    assert_eq!(all(&servers[0]), one);
    let begun = rollout(&store, &["start", "production", "--to", "next", "--percent", "50", "--stop", "errors=2x"]);
    assert_eq!((&begun["state"], &begun["changedBy"]), (&json!("running"), &json!("ada")));
    // A regression that no test has noticed: calls of both replicas are the evidence.
    let state = until("the stop", || {
        servers.iter().for_each(|server| drop(all(server)));
        let state = rollout(&store, &["list"])["items"][0].clone();
        (state["state"] == "failed").then_some(state)
    });
    assert_eq!((&state["percent"], &state["to"]), (&json!(0), &json!("next")));
    assert!(state["reason"].as_str().is_some_and(|reason| reason.starts_with("errors: ")), "{state}");
    assert!(state["counts"]["stable"]["calls"].as_u64() > Some(0), "{state}");
    for server in &servers {
        until("the version from before", || (all(server) == one).then_some(()));
    }
    // Everyone is told: metrics and log of each replica, the audit of the one that stopped it, the webhook.
    for (server, log) in servers.iter().zip(&mut logs) {
        let labels = "{channel=\"production\",to=\"next\"}";
        until("the metrics", || {
            metrics(server).contains(&format!("promptshelf_rollout_stopped{labels} 1")).then_some(())
        });
        assert!(metrics(server).contains(&format!("promptshelf_rollout_percent{labels} 0")));
        let told =
            |line: &&String| line.contains("the rollout of production to next is stopped by promptshelf: errors: ");
        until("the log", || {
            log.extend(logged(server));
            log.iter().any(|line| told(&line)).then_some(())
        });
    }
    until("one record", || {
        let audits = [0, 1]
            .map(|number| fs::read_to_string(folder.path().join(format!("audit-{number}.jsonl"))).unwrap_or_default());
        let records = audits.iter().flat_map(|audit| audit.lines()).filter(|line| line.contains("\"rollout/stop\""));
        let records: Vec<Value> = records.filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(records.len() <= 1, "{records:?}");
        let record = records.first()?;
        assert_eq!(
            (&record["channel"], &record["to"], &record["caller"]),
            (&json!("production"), &json!("next"), &json!("promptshelf"))
        );
        Some(())
    });
    // A restart does not begin it again, and a person does.
    author.on("next").publish([("hello.md", Some(prompt("two")))]).await;
    let restarted = replica(&folder, &store, 2);
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
    // Callers keep their versions over another restart, from the first request on.
    assert_eq!(all(&replica(&folder, &store, 3)), divided);
    assert_eq!(rollout(&store, &["pause", "production"])["state"], "paused");
    assert_eq!(rollout(&store, &["resume", "production"])["state"], "running");
    let finished = rollout(&store, &["finish", "production", "--all", "-m", "Two for all"]);
    assert_eq!(finished["rollout"]["state"], "finished");
    assert_eq!(finished["promotion"]["proposal"]["kind"], "promote");
    let two = vec![Some("two".to_owned()); CALLERS];
    for server in [&servers[0], &servers[1], &restarted] {
        until("the end", || (all(server) == two).then_some(()));
    }
    let received = receiver.wait_for(3);
    let event = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["event"].clone();
    let events: Vec<Value> = received.iter().map(|request| event(&request.body)).collect();
    assert_eq!(events, ["rollout-started", "rollout-stopped", "rollout-finished"]);
}

// req: S-417
#[tokio::test(flavor = "multi_thread")]
async fn finish_waits_for_the_policy() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await.checked();
    author.publish([("hello.md", Some(prompt("one")))]).await;
    author.on("next").publish([("hello.md", Some(prompt("two")))]).await;
    let run = |words: &[&str], name: &str| {
        let mut command = promptshelf();
        command.args(words).args(["--store", &store]).env("USER", name);
        shown(command, "")
    };
    run(&["policy", "--channel", "production", "--approvals", "1"], "ada");
    rollout(&store, &["start", "production", "--to", "next", "--percent", "100"]);
    let waiting = rollout(&store, &["finish", "production", "--all"]);
    assert_eq!((&waiting["rollout"]["state"], &waiting["rollout"]["percent"]), (&json!("running"), &json!(100)));
    let proposal = &waiting["promotion"]["proposal"];
    assert_eq!(proposal["state"], "open", "{waiting}");
    let (id, digest) = (proposal["id"].to_string(), proposal["digest"].as_str().expect("a digest"));
    run(&["approve", &id, "--digest", digest], "bob");
    let ended = &rollout(&store, &["show", "production"])["items"][0];
    assert_eq!((&ended["state"], &ended["percent"]), (&json!("finished"), &json!(0)));
    // What the channel has already needs no promotion.
    rollout(&store, &["start", "production", "--to", "next"]);
    let finished = rollout(&store, &["finish", "production"]);
    assert_eq!((&finished["rollout"]["state"], &finished["promotion"]), (&json!("finished"), &json!(null)));
    let refused = run(&["rollout", "finish", "production"], "ada");
    assert!(refused.starts_with("exit code: 14") && refused.contains("is finished"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout_that_no_server_applies_is_listed_so() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    let author = Author::at(&store).await.checked();
    author.publish([("hello.md", Some(prompt("one")))]).await;
    author.on("next").publish([("hello.md", Some(prompt("two")))]).await;
    rollout(&store, &["start", "production", "--to", "next", "--percent", "50"]);
    let listed = || {
        let mut command = promptshelf();
        command.args(["rollout", "list", "--store", &store]);
        shown(command, "")
    };
    let words = "no running server serves production with its rollout to next; it was last applied at 2";
    assert!(!listed().contains(words), "{}", listed());
    // As if that was a minute ago.
    let path = store.strip_prefix("sqlite:").expect("a file");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut database = sqlx::ConnectOptions::connect(&options).await.expect("a database");
    let earlier = "UPDATE ps_rollout SET applied_at = applied_at - 60000000";
    sqlx::query(earlier).execute(&mut database).await.expect("updated");
    assert!(listed().contains(words), "{}", listed());
    assert!(rollout(&store, &["list"])["items"][0]["unappliedSince"].is_string());
    rollout(&store, &["stop", "production"]);
    assert!(!listed().contains(words), "a stopped rollout needs no server");
}

// req: S-201
#[tokio::test(flavor = "multi_thread")]
async fn impossible_rollouts_are_refused() {
    let folder = Folder::empty();
    let store = sqlite(folder.path());
    Author::at(&store).await.publish([("hello.md", Some(prompt("one")))]).await;
    for (words, code, expected) in [
        (&["--to", "nxt"][..], 7, "the channel `nxt` does not exist"),
        (&["--to", "production"], 1, "needs another channel"),
        (&["--to", "next", "--percent", "101"], 2, "1..=100"),
        (&["--to", "next", "--stop", "errors=0.5x"], 2, "such as errors=2x"),
        (&["--to", "production", "--steps", "soon"], 1, "such as `1h`"),
    ] {
        let mut command = promptshelf();
        command.args(["rollout", "start", "production", "--store", &store]).args(words).env("USER", "ada");
        let output = shown(command, "");
        assert!(output.starts_with(&format!("exit code: {code}\n")) && output.contains(expected), "{output}");
    }
}

//! The audit log: written records, and the `audit` command that reads them.

#[cfg(unix)]
mod refusing;

use std::fs;

use serde_json::{Value, json};

use crate::{
    program::{Pipes, Server, library, promptshelf, run},
    server_auth::{ask, ask_at},
};

const HELLO: &str = "---\ndescription: Greets\nversion: 1.2\narguments:\n  - name: whom\n    description: Whom\n    audit: true\n  \
                     - name: password\n    description: Password\n    sensitive: true\n    enum: [right]\n---\n\
                     Hello {{ whom }} {{ password }} {{ missing_function() if false }}.\n";
const SECRET: &str = "correct-horse-battery";

// req: S-27
#[test]
fn requests_are_recorded_without_secrets() {
    let hello = HELLO.replace(" {{ missing_function() if false }}", "");
    let folder = library(&[("hello.md", &hello)]);
    let made = promptshelf().args(["token", "new", "ada", "--json"]).output().expect("the program runs");
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let token = made["token"].as_str().expect("a token");
    fs::write(folder.path().join("tokens"), made["store"].as_str().expect("a line")).expect("written");
    let mut server = Server::of(&folder, &["--tokens", "tokens", "--audit", "audit.jsonl", "--log", "trace"]);

    let params = json!({ "name": "hello", "arguments": { "whom": "Eve", "password": SECRET } });
    let refused = ask(&server.url, token, "prompts/get", &params);
    assert!(refused.body.contains("must be one of") && !refused.body.contains(SECRET), "{}", refused.body);
    let right = json!({ "name": "hello", "arguments": { "whom": "Eve" } });
    let answered = ask(&server.url, token, "prompts/get", &right);
    assert_eq!(answered.status, 200);
    ask(&server.url, token, "prompts/get", &json!({ "name": "nothing" }));
    ask_at(&server.url, &format!("?token={SECRET}"), &[], "prompts/list", &json!({}));
    ask(&server.url, SECRET, "prompts/list", &json!({}));
    #[cfg(unix)]
    {
        let pid = rustix::process::Pid::from_child(&server.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        crate::program::ended(&mut server.child);
    }

    let text = fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let sign_ins = records.iter().filter(|record| record["method"] == "sign-in").map(|record| &record["outcome"]);
    assert_eq!(sign_ins.collect::<Vec<_>>(), [&json!("no-token"), &json!("unknown-token")], "{text}");
    assert_eq!(records.len(), 5, "{text}");
    assert_eq!((&records[0]["outcome"], &records[1]["outcome"]), (&json!("invalid-arguments"), &json!("ok")));
    assert_eq!(records[1]["arguments"], json!({ "whom": "Eve" }));
    assert_eq!((&records[1]["caller"], &records[1]["version"]), (&json!("ada"), &json!("1.2")));
    let id = answered.headers["x-request-id"].to_str().expect("ASCII");
    assert_eq!(records[1]["request"], id);

    // All output of the server, at its most verbose log level.
    let log: String = std::iter::once(std::mem::take(&mut server.startup_log)).chain(server.log.try_iter()).collect();
    for place in [&text, &log] {
        assert!(!place.contains(SECRET) && !place.contains(token), "{place}");
        assert!(!place.contains("Hello Eve"), "{place}");
    }

    let shown = run(&folder, &["audit", "audit.jsonl", "--refused", "--caller", "ada"]);
    assert_eq!(shown.matches("\tada\tget\t").count(), 2, "{shown}");
    assert!(shown.contains("\tunknown-prompt\t"), "{shown}");
    let json = run(&folder, &["audit", "audit.jsonl", "--outcome", "ok", "--since", "2020-01-01", "--json"]);
    assert_eq!(json.matches("\"outcome\":\"ok\"").count(), 1, "{json}");
    assert!(!run(&folder, &["audit", "audit.jsonl", "--since", "2100-01-01"]).contains("ada"));
}

#[test]
fn rotated_files_are_read_in_order_and_losses_reported() {
    let folder = library(&[]);
    let record =
        |name: &str| format!("{{\"time\":\"2026-01-01T00:00:00Z\",\"caller\":\"{name}\",\"outcome\":\"ok\"}}\n");
    fs::write(folder.path().join("a.jsonl.2"), record("first")).expect("written");
    fs::write(folder.path().join("a.jsonl.1"), record("second") + "{\"lost\":7}\n{\"cut").expect("written");
    fs::write(folder.path().join("a.jsonl"), record("third")).expect("written");
    let shown = run(&folder, &["audit", "a.jsonl"]);
    let places: Vec<_> = ["first", "second", "third"].iter().map(|name| shown.find(name)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{shown}");
    fs::remove_file(folder.path().join("a.jsonl.1")).expect("removed");
    assert!(run(&folder, &["audit", "a.jsonl"]).contains("first"), "a missing number hides no file");
    assert!(shown.contains("7 records could not be written") && shown.contains("1 line skipped"), "{shown}");
    assert!(run(&folder, &["audit", "nowhere.jsonl"]).contains("exit code: 1"));
}

// req: S-434
#[test]
fn records_of_several_servers_are_joined_in_the_order_of_time() {
    let folder = library(&[]);
    let record = |minute: u32, server: &str, channel: &str| {
        format!(
            "{{\"time\":\"2026-01-01T00:{minute:02}:00Z\",\"caller\":\"{server}{minute}\",\"outcome\":\"ok\",\"channel\":\"{channel}\",\
             \"request\":\"r-{server}{minute}\",\"address\":\"10.0.0.{minute}\"}}\n"
        )
    };
    fs::write(folder.path().join("a.jsonl.1"), record(1, "a", "production")).expect("written");
    fs::write(folder.path().join("a.jsonl"), record(4, "a", "staging") + &record(5, "a", "production"))
        .expect("written");
    fs::write(folder.path().join("b.jsonl"), record(2, "b", "production") + &record(6, "b", "staging"))
        .expect("written");
    let long = "x".repeat(10 << 20) + "\n";
    fs::write(folder.path().join("c.jsonl"), long + &record(3, "c", "production")).expect("written");
    let callers = |line: &[&str]| {
        let shown = run(&folder, &[&["audit", "a.jsonl", "a.jsonl.1", "b.jsonl", "c.jsonl"], line].concat());
        let rows = shown.lines().filter(|line| line.starts_with("2026"));
        rows.map(|row| row.split('\t').nth(1).expect("a caller").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(callers(&[]), ["a1", "b2", "c3", "a4", "a5", "b6"]);
    assert_eq!(callers(&["--since", "2026-01-01T00:02:00Z", "--until", "2026-01-01T00:05:00Z"]), ["b2", "c3", "a4"]);
    assert_eq!(callers(&["--since", "2026-01-01T00:02:00", "--until", "2026-01-01 00:05"]), ["b2", "c3", "a4"]);
    assert_eq!(callers(&["--channel", "staging"]), ["a4", "b6"]);
    assert_eq!(callers(&["--request", "r-c3"]), ["c3"]);
    assert_eq!(callers(&["--address", "10.0.0.5"]), ["a5"]);
    let shown = run(&folder, &["audit", "b.jsonl"]);
    assert!(shown.contains("\tproduction\tr-b2\t10.0.0.2\t-\n"), "{shown}");
    let refused = r#"{"time":"2026-01-01T00:00:00Z","caller":"anonymous","method":"sign-in","claimed":"eve","address":"10.0.0.9","request":"r-1","reason":"The token has expired","outcome":"expired-token"}"#;
    fs::write(folder.path().join("d.jsonl"), refused).expect("written");
    let shown = run(&folder, &["audit", "d.jsonl"]);
    assert!(shown.contains("\teve\texpired-token\t0.0 ms\t-\tr-1\t10.0.0.9\tThe token has expired\n"), "{shown}");
}

#[test]
fn methods_of_the_protocol_select_their_records() {
    let folder = library(&[]);
    let record =
        |method: &str, more: &str| format!("{{\"time\":\"2026-01-01T00:00:00Z\",\"method\":\"{method}\"{more}}}\n");
    let list = |name: &str| record("list", &format!(",\"list\":\"{name}\""));
    let records = [
        list("prompts"),
        list("resources"),
        list("resource-templates"),
        record("get", ""),
        record("complete", ""),
        record("read", ""),
        record("follow", ""),
        record("subscribe", ""),
        record("sign-in", ""),
        record("api/start-rollout", ""),
        record("rollout/stop", ""),
        record("store/restore", ""),
    ];
    fs::write(folder.path().join("a.jsonl"), records.concat()).expect("written");
    for (word, expected) in [
        ("list", &records[..3]),
        ("prompts/list", &records[..1]),
        ("resources/list", &records[1..2]),
        ("resources/templates/list", &records[2..3]),
        ("prompts/get", &records[3..4]),
        ("get", &records[3..4]),
        ("completion/complete", &records[4..5]),
        ("resources/read", &records[5..6]),
        ("resources/subscribe", &records[6..7]),
        ("subscriptions/listen", &records[7..8]),
        ("sign-in", &records[8..9]),
        ("api/start-rollout", &records[9..10]),
        ("rollout/stop", &records[10..11]),
        ("store/restore", &records[11..]),
    ] {
        let shown = run(&folder, &["audit", "a.jsonl", "--method", word, "--json"]);
        let expected = format!("exit code: 0\n----- stdout -----\n{}----- stderr -----\n", expected.concat());
        assert_eq!(shown, expected, "{word}");
    }
    let unknown = run(&folder, &["audit", "a.jsonl", "--method", "prompts/gte"]);
    assert!(unknown.starts_with("exit code: 2\n") && unknown.contains("did you mean `prompts/get`?"), "{unknown}");
    let unknown = run(&folder, &["audit", "a.jsonl", "--method", "tools/call"]);
    assert!(unknown.starts_with("exit code: 2\n") && unknown.contains("unknown method `tools/call`"), "{unknown}");
}

#[test]
fn stdio_user_is_recorded_outside_the_library() {
    let folder = library(&[("hello.md", HELLO.replace(" {{ missing_function() if false }}", "").as_str())]);
    let mut command = promptshelf();
    command.args(["serve", "prompts", "--stdio", "--audit", "audit.jsonl"]).current_dir(folder.path());
    let mut pipes = Pipes::start(command);
    pipes.initialize();
    pipes.request(1, "prompts/list", &json!({}));
    pipes.rest();
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    assert!(text.contains("\"caller\":\"local\"") && text.contains("\"list\":\"prompts\""), "{text}");
    let refused = run(&folder, &["serve", "prompts", "--stdio", "--audit", "prompts/audit.jsonl"]);
    assert!(refused.contains("exit code: 2") && refused.contains("inside the library"), "{refused}");
}

/// Requests that are refused would otherwise fill the files with one record each.
// req: S-79
#[cfg(unix)]
#[test]
fn repeated_refusals_are_one_record() {
    let folder = library(&[("hello.md", "---\ndescription: Greets\n---\nHello.\n")]);
    let mut server = Server::of(&folder, &["--audit", "audit.jsonl"]);
    for _ in 0..200 {
        server.request("prompts/get", &json!({ "name": "x".repeat(1_000) }));
    }
    assert_eq!(server.request("prompts/list", &json!({})).0, 200);
    let pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    crate::program::ended(&mut server.child);
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let in_full = records.iter().filter(|record| record["prompt"].is_string()).count();
    let counted: Vec<&Value> = records.iter().filter(|record| record["count"].is_u64()).collect();
    assert_eq!((in_full, counted.len(), records.len()), (10, 1, 12), "{text}");
    assert_eq!((&counted[0]["count"], &counted[0]["outcome"]), (&json!(190), &json!("unknown-prompt")));
    let shown = run(&folder, &["audit", "audit.jsonl", "--outcome", "unknown-prompt"]);
    assert!(shown.contains("\t190 more\t"), "{shown}");
    // A filter by what the count does not have says so.
    let prompt = "x".repeat(1_000);
    let noted = ["--prompt", "--channel", "--request"]
        .map(|filter| run(&folder, &["audit", "audit.jsonl", filter, &prompt]).contains("190 refusals more"));
    assert_eq!(noted, [true; 3]);
    for others in [["--caller", "eve"], ["--method", "prompts/list"]] {
        let shown = run(&folder, &[&["audit", "audit.jsonl", "--prompt", "x"], &others[..]].concat());
        assert!(!shown.contains("refusals more"), "{shown}");
    }
}

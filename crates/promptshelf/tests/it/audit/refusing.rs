//! `on-loss = "refuse"`: no answer without its record.

use std::{
    collections::HashSet,
    fs,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::{
    program::{Folder, Server, ended, library},
    server_auth::ask_at,
};

const HELLO: &str = "---\ndescription: Greets\n---\nHello.\n";

fn refusing() -> Folder {
    let settings = "[audit]\nfile = \"audit.jsonl\"\non-loss = \"refuse\"\n";
    library(&[("hello.md", HELLO), ("../server.toml", settings)])
}

/// Starts the server with a limit on the size of files, in the units of `ulimit -f`. Later writes fail.
fn with_file_limit(folder: &Folder, blocks: u32) -> Server {
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_promptshelf");
    let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec {program} serve prompts --http 127.0.0.1:0");
    command.args(["-c", &line]).env("PROMPTSHELF_CONFIG", "server.toml").current_dir(folder.path());
    Server::start(command)
}

fn status(server: &Server, path: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = server.url.replace("/mcp", path);
    agent.get(&url).call().expect("the server answers").status().as_u16()
}

// req: S-78
#[test]
fn requests_are_refused_while_nothing_can_be_written() {
    let folder = refusing();
    let mut server = with_file_limit(&folder, 4);
    assert_eq!(status(&server, "/readyz"), 200);
    let get = || ask_at(&server.url, "", &[], "prompts/get", &json!({ "name": "hello" }));
    let mut answered = 0;
    let refused = loop {
        let answer = get();
        if answer.status != 200 {
            break answer;
        }
        answered += 1;
        assert!(answered < 1_000, "the limit has no effect");
    };
    assert!(refused.status == 503 && !refused.body.contains("Hello."), "{}", refused.body);
    assert!(refused.json()["error"]["message"].as_str().is_some_and(|text| text.contains("cannot be recorded")));
    assert_eq!((status(&server, "/readyz"), status(&server, "/healthz")), (503, 200));
    for _ in 0..3 {
        assert_eq!(get().status, 503);
        assert_eq!(status(&server, "/library/prompts"), 503, "the page's interface too");
    }
    let file = folder.path().join("audit.jsonl");
    let records = |text: String| text.lines().filter(|line| line.contains("\"outcome\":\"ok\"")).count();
    let text = fs::read_to_string(&file).expect("the file");
    assert!(answered > 3 && records(text) == answered, "each answer has its record");

    // With space again, the server recovers by itself and reports the loss.
    fs::write(&file, "").expect("emptied");
    let begun = std::time::Instant::now();
    while status(&server, "/readyz") != 200 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it never recovers");
        thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(get().status, 200);
    assert!(fs::read_to_string(&file).expect("the file").contains("\"lost\":"));
    server.child.kill().expect("a signal");
    ended(&mut server.child);
}

// req: S-78
#[test]
fn killed_server_has_recorded_what_it_answered() {
    let folder = refusing();
    let mut server = Server::of(&folder, &[]);
    let (answered, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let asking: Vec<_> = (0..6)
        .map(|_| {
            let (url, answered, stop) = (server.url.clone(), Arc::clone(&answered), Arc::clone(&stop));
            thread::spawn(move || {
                let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
                let message =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "hello" } });
                while !stop.load(Ordering::Relaxed) {
                    let request = agent.post(&url).header("Content-Type", "application/json");
                    let request = request.header("Accept", "application/json, text/event-stream");
                    let Ok(answer) = request.send(message.to_string()) else { return };
                    let id = answer.headers()["x-request-id"].to_str().expect("ASCII").to_owned();
                    answered.lock().expect("no panic").push(id);
                }
            })
        })
        .collect();
    while answered.lock().expect("no panic").len() < 300 {
        thread::yield_now();
    }
    server.child.kill().expect("a signal");
    stop.store(true, Ordering::Relaxed);
    asking.into_iter().for_each(|thread| thread.join().expect("no panic"));
    ended(&mut server.child);
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).expect("the file");
    let recorded: HashSet<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["request"].as_str().map(str::to_owned))
        .collect();
    let answered = answered.lock().expect("no panic");
    let missing = answered.iter().filter(|id| !recorded.contains(*id)).count();
    assert_eq!(missing, 0, "of {}", answered.len());
}

//! X23 over real sockets: as many concurrent listeners as file descriptors permit, at most ten thousand; then many
//! edits; then all listeners disconnect.

use std::{
    collections::{HashMap, HashSet},
    fs,
    time::Instant,
};

use http::Method;
use promptshelf::mcp::Revision;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::{
    program::PATIENCE,
    wire::{Folder, HttpWire, Request, Response, serve_command, usual_headers},
};

/// The number of listeners if there are enough descriptors.
const LISTENERS: u64 = 10_000;
/// Descriptors reserved for everything else, including other tests.
const SPARE: u64 = 1_000;
const EDITS: usize = 1_000;
/// The program's maximum memory for one listener and its connection, in KiB.
const EACH: u64 = 20;

/// Returns the possible number of listeners: each one needs a descriptor here and one in the program.
fn listeners() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX).min(LISTENERS + SPARE);
    if limit.current.is_some_and(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).ok();
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    current.saturating_sub(SPARE).clamp(100, LISTENERS)
}

/// Returns the program's resident memory in KiB and its number of open files, as the operating system reports them.
fn used(wire: &HttpWire) -> Option<(u64, usize)> {
    let folder = format!("/proc/{}", wire.process()?);
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let memory = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((memory, fs::read_dir(format!("{folder}/fd")).ok()?.count()))
}

fn request(id: u64, method: &str, mut params: Value) -> Request {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.as_str(),
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let body = message.to_string().into_bytes();
    let headers = usual_headers(&body, &Method::POST, Some(Revision::V2026_07_28.as_str()));
    Request { method: Method::POST, headers, body: body.into() }
}

async fn listen(wire: &mut HttpWire, id: u64) {
    let filter = json!({ "promptsListChanged": true, "resourceSubscriptions": ["docs://note"] });
    let answer = wire.send(request(id, "subscriptions/listen", json!({ "notifications": filter }))).await;
    assert!(matches!(answer, Response::Stream), "{answer:?}");
}

/// Returns the method of the next message on any stream, and its subscription id.
async fn receive(wire: &mut HttpWire) -> (String, u64) {
    let message = wire.receive().await.message.expect("a message");
    let method = message["method"].as_str().unwrap_or_else(|| panic!("a notification, got {message}"));
    let id = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64();
    (method.to_owned(), id.expect("a subscription's id"))
}

async fn list(wire: &mut HttpWire) -> Value {
    match wire.send(request(0, "prompts/list", json!({}))).await {
        Response::One(received) => received.message.expect("a list")["result"]["prompts"].clone(),
        Response::Stream => panic!("a list is no stream"),
    }
}

/// Waits until the program has no more open files than before, as long as their number decreases.
async fn freed(wire: &HttpWire, before: Option<(u64, usize)>) {
    let mut fewest = (usize::MAX, Instant::now());
    while let (Some((_, now)), Some((_, before))) = (used(wire), before)
        && now > before + 8
    {
        if now < fewest.0 {
            fewest = (now, Instant::now());
        }
        assert!(fewest.1.elapsed() < PATIENCE, "{now} files are still open, and {before} were before");
        tokio::task::yield_now().await;
    }
}

// req: H10, H11, R-12, X23
#[tokio::test]
async fn ten_thousand_streams_get_few_notifications_and_are_freed() {
    let listeners = listeners();
    let folder = Folder::empty();
    folder.write("storm.md", "---\ndescription: Edit 0\n---\nText.\n");
    folder.write("_note.txt", "before\n");
    folder.write("promptshelf.toml", "[[resources]]\nuri = \"docs://note\"\nname = \"note\"\nfile = \"_note.txt\"\n");
    folder.write("_server.toml", &format!("[limits]\nconnections = {}\n", listeners + SPARE));
    let mut command = serve_command(folder.path());
    command.args(["--http", "127.0.0.1:0", "--config"]).arg(folder.path().join("_server.toml"));
    let mut wire = HttpWire::program(command).await;
    list(&mut wire).await;
    let before = used(&wire);

    let mut waiting = HashMap::new();
    for id in 1..=listeners {
        listen(&mut wire, id).await;
        waiting.insert(id, 0_usize);
    }
    for _ in 1..=listeners {
        let (method, id) = receive(&mut wire).await;
        assert_eq!((&*method, waiting.get(&id)), ("notifications/subscriptions/acknowledged", Some(&0)));
    }
    if let (Some((memory, files)), Some((before, _))) = (used(&wire), before) {
        assert!(files as u64 >= listeners, "{files} files");
        let each = memory.saturating_sub(before) / listeners;
        println!("{listeners} listeners of {each} KiB");
        assert!(each < EACH, "{each} KiB a listener");
    }

    for number in 1..=EDITS {
        folder.write("storm.md", &format!("---\ndescription: Edit {number}\n---\nText.\n"));
    }
    let last = json!(format!("Edit {EDITS}"));
    let written = Instant::now();
    while list(&mut wire).await[0]["description"] != last {
        assert!(written.elapsed() < PATIENCE, "the last edit is not served");
    }
    folder.write("_note.txt", "after\n");
    // A listener that was notified of the resource was notified of the edits before. Listeners that subscribed late
    // receive the remaining notifications afterwards.
    let mut unaware: HashSet<u64> = waiting.keys().copied().collect();
    while !unaware.is_empty() {
        let (method, id) = receive(&mut wire).await;
        let count = waiting.get_mut(&id).expect("a listener");
        match &*method {
            "notifications/prompts/list_changed" => *count += 1,
            "notifications/resources/updated" => {
                assert!(unaware.remove(&id), "listener {id} was notified twice");
                assert!(*count > 0, "listener {id} missed the edits");
            }
            other => panic!("unexpected notification {other}"),
        }
    }
    let (total, most) = (waiting.values().sum::<usize>(), waiting.values().max().copied().unwrap_or_default());
    println!("{total} notifications to {listeners} listeners, {most} to one of them, for {EDITS} edits");
    assert!(most < 100, "{most} notifications for {EDITS} edits");

    wire.vanish().await;
    wire.waiting();
    freed(&wire, before).await;
    // The program still serves requests.
    listen(&mut wire, 1).await;
    assert_eq!(receive(&mut wire).await, ("notifications/subscriptions/acknowledged".to_owned(), 1));
    assert!(wire.end().await.is_empty());
}

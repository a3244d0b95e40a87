//! X23 over real sockets: as many listeners at once as the machine has file
//! descriptors for, up to ten thousand, a storm of edits, and all of them gone.

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
    wire::{Folder, HttpWire, Request, Response, http_to_program, usual_headers},
};

/// As many as are asked for where there are enough descriptors.
const LISTENERS: u64 = 10_000;
/// Descriptors that are left to everything else, other tests among it.
const SPARE: u64 = 1_000;
const EDITS: usize = 1_000;
/// The most memory of the program for one listener with its connection, in KiB.
const EACH: u64 = 20;

/// How many there can be: one descriptor each here, and one each in the program.
fn listeners() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX).min(LISTENERS + SPARE);
    if limit.current.is_some_and(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).ok();
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    current.saturating_sub(SPARE).clamp(100, LISTENERS)
}

/// The program's resident memory in KiB, and its number of open files, from the system.
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

/// The kind of the next message of any stream, and the subscription that it belongs to.
async fn receive(wire: &mut HttpWire) -> (String, u64) {
    let message = wire.receive().await.message.expect("a message");
    let method = message["method"].as_str().unwrap_or_else(|| panic!("a notification, and not {message}"));
    let id = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64();
    (method.to_owned(), id.expect("a subscription's id"))
}

async fn list(wire: &mut HttpWire) -> Value {
    match wire.send(request(0, "prompts/list", json!({}))).await {
        Response::One(heard) => heard.message.expect("a list")["result"]["prompts"].clone(),
        Response::Stream => panic!("a list is no stream"),
    }
}

/// Waits until the program has no more files open than before, for as long as they become fewer.
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
    let mut wire = http_to_program(folder.path()).await;
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
    // A listener that was notified of the note was notified of the storm before. Late ones receive the rest of it
    // afterwards.
    let mut unaware: HashSet<u64> = waiting.keys().copied().collect();
    while !unaware.is_empty() {
        let (method, id) = receive(&mut wire).await;
        let heard = waiting.get_mut(&id).expect("a listener");
        match &*method {
            "notifications/prompts/list_changed" => *heard += 1,
            "notifications/resources/updated" => {
                assert!(unaware.remove(&id), "listener {id} has been told twice");
                assert!(*heard > 0, "listener {id} has missed the storm");
            }
            other => panic!("nobody asked for {other}"),
        }
    }
    let (told, most) = (waiting.values().sum::<usize>(), waiting.values().max().copied().unwrap_or_default());
    println!("{told} words to {listeners} listeners, {most} to one of them, for {EDITS} edits");
    assert!(most < 100, "{most} notifications for {EDITS} edits");

    wire.vanish().await;
    wire.waiting();
    freed(&wire, before).await;
    // The program is as it was.
    listen(&mut wire, 1).await;
    assert_eq!(receive(&mut wire).await, ("notifications/subscriptions/acknowledged".to_owned(), 1));
    assert!(wire.end().await.is_empty());
}

//! Operation of the program: certificates, settings changed at run time, reverse proxies, and service managers.

mod proxies;
mod settings;
mod supervised;
mod tls;
#[cfg(target_os = "linux")]
mod walk;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::Child,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{PATIENCE, Server};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a running process");
}

/// Waits for a new log line with these words, and returns it.
fn receive(server: &Server, words: &str) -> String {
    let begun = Instant::now();
    let mut lines = Vec::new();
    loop {
        match server.log.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
            Ok(line) if line.contains(words) => return line,
            Ok(line) => lines.push(line),
            Err(_) => panic!("no line contains {words:?}: {lines:?}"),
        }
    }
}

/// Replaces a file atomically, so that no reader gets a part of it.
fn put(folder: &Path, name: &str, text: &str) {
    let temporary = folder.join("being-written");
    fs::write(&temporary, text).expect("written");
    fs::rename(temporary, folder.join(name)).expect("put in place");
}

/// Waits until a condition holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
    }
}

/// The messages of a subscription, over any byte stream.
pub(crate) struct Subscription<S>(BufReader<S>);

impl<S: Read + Write> Subscription<S> {
    /// Subscribes to list changes, and waits for the acknowledgment.
    pub(crate) fn open(mut carrier: S, token: &str) -> Subscription<S> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "notifications": { "promptsListChanged": true }, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params }).to_string();
        write!(
            carrier,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: subscriptions/listen\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("the server reads");
        carrier.flush().expect("the server reads");
        let mut subscription = Subscription(BufReader::new(carrier));
        assert_eq!(subscription.next()["method"], "notifications/subscriptions/acknowledged");
        subscription
    }

    /// Returns the next message.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.0.read_line(&mut line).expect("the server writes");
            assert_ne!(read, 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }

    /// Asserts that the subscription ends with its result, as the protocol requires.
    pub(crate) fn assert_end(&mut self) {
        let last = self.next();
        assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(5), &json!("complete")), "{last}");
    }
}

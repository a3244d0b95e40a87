//! Settings changed while the server runs.

use std::{fs, net::TcpStream, path::PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{HELLO, Subscription, put, receive, send, until};
use crate::{
    program::{PATIENCE, Server, library, promptshelf},
    server_auth::{ask, ask_at},
};

/// Creates a token, and returns it and its line for the token file.
fn token(name: &str) -> (String, String) {
    let made = promptshelf().args(["token", "new", name, "--json"]).output().expect("the program runs");
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let text = |key: &str| made[key].as_str().expect("a text").to_owned();
    (text("token"), text("store"))
}

fn status(server: &Server, token: &str) -> u16 {
    ask(&server.url, token, "prompts/list", &json!({})).status
}

const SETTINGS: &str = "server.toml";

fn subscription(server: &Server, token: &str) -> Subscription<TcpStream> {
    let stream = TcpStream::connect(server.authority()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    Subscription::open(stream, token)
}

// req: S-4
#[test]
fn withdrawn_token_ends_its_own_streams_only() {
    let folder = library(&[("hello.md", HELLO)]);
    let [(ada, ada_line), (bob, bob_line), (eve, eve_line)] = ["ada", "bob", "eve"].map(token);
    put(folder.path(), "tokens", &format!("{ada_line}\n{bob_line}\n"));
    let server = Server::of(&folder, &["--tokens", "tokens"]);
    let (mut of_ada, mut of_bob) = (subscription(&server, &ada), subscription(&server, &bob));
    assert_eq!(status(&server, &eve), 401);

    put(folder.path(), "tokens", &format!("{ada_line}\n{eve_line}\n"));
    of_bob.assert_end();
    receive(&server, "settings reloaded");
    assert_eq!([&ada, &bob, &eve].map(|token| status(&server, token)), [200, 401, 200]);

    // An invalid file changes nothing.
    put(folder.path(), "tokens", "ada, please\n");
    let line = receive(&server, "invalid settings, the previous ones stay active");
    assert!(line.contains("tokens:1:"), "{line}");
    assert_eq!(status(&server, &ada), 200);
    put(folder.path(), "tokens", "");
    receive(&server, "contains no tokens");
    assert_eq!(status(&server, &ada), 200);

    put(folder.path(), "prompts/another.md", HELLO);
    assert_eq!(of_ada.next()["method"], "notifications/prompts/list_changed", "her stream is as it was");
}

// req: S-5
#[test]
fn edited_manifest_applies_where_possible() {
    let folder = library(&[("hello.md", HELLO), ("../server.toml", "")]);
    let server = Server::of(&folder, &[]);
    let list = || ask_at(&server.url, "", &[], "prompts/list", &json!({})).status;
    let from = |host: &str| ask_at(&server.url, "", &[("Host", host)], "prompts/list", &json!({})).status;
    assert_eq!((list(), list(), from("prompts.example")), (200, 200, 403));

    let other = "[http]\nallow-hosts = [\"prompts.example\"]\n[limits]\nrequests-per-minute = 1\n";
    put(folder.path(), SETTINGS, other);
    receive(&server, "settings reloaded");
    assert_eq!((from("prompts.example"), list()), (200, 429));

    put(folder.path(), SETTINGS, "[limits]\nrequests-per-minute = 0\n");
    let line = receive(&server, "invalid settings, the previous ones stay active");
    assert!(line.contains("server.toml:2:") && line.contains("requests-per-minute"), "{line}");
    put(folder.path(), SETTINGS, "[limits\n");
    receive(&server, "invalid settings, the previous ones stay active");
    fs::remove_file(folder.path().join(SETTINGS)).expect("a removed file");
    let line = receive(&server, "invalid settings, the previous ones stay active");
    assert!(line.contains("cannot be read"), "{line}");
    send(&server.child, Signal::HUP);
    receive(&server, "invalid settings, the previous ones stay active");
    assert_eq!((from("prompts.example"), list()), (429, 429));

    put(folder.path(), SETTINGS, "[http]\naddress = \"127.0.0.1:1\"\n[audit]\nfile = \"audit.jsonl\"\n");
    let line = receive(&server, "[audit] was added or removed");
    assert!(line.contains("restart to apply"), "{line}");
    receive(&server, "settings reloaded");
    assert_eq!((list(), list(), from("prompts.example")), (200, 200, 403), "without limits, where it was");
    assert!(!folder.path().join("audit.jsonl").exists());
}

// req: A21
#[test]
fn tools_are_disabled_and_enabled_by_reload() {
    let folder = library(&[("hello.md", HELLO), ("../server.toml", "[tools]\nenabled = false\n")]);
    let server = Server::of(&folder, &[]);
    let list = || server.request("tools/list", &json!({})).1;
    assert_eq!(list()["error"]["code"], -32601);
    put(folder.path(), SETTINGS, "");
    receive(&server, "settings reloaded");
    assert_eq!(list()["result"], json!({ "tools": [] }));
}

// req: S-5
#[test]
fn sign_in_cannot_be_disabled_by_reload() {
    let (ada, line) = token("ada");
    let auth = format!("[auth]\nresource = \"https://prompts.example/mcp\"\ntokens = [{line}]\n");
    let folder = library(&[("hello.md", HELLO), ("../server.toml", &auth)]);
    let server = Server::of(&folder, &[]);
    put(folder.path(), SETTINGS, "");
    let line = receive(&server, "[auth] was added or removed");
    assert!(line.contains("restart to apply"), "{line}");
    receive(&server, "settings reloaded");
    assert_eq!(ask_at(&server.url, "", &[], "prompts/list", &json!({})).status, 401);
    assert_eq!(status(&server, &ada), 200);
    let headers = [("Authorization", &*format!("Bearer {ada}")), ("Host", "prompts.example")];
    assert_eq!(ask_at(&server.url, "", &headers, "prompts/list", &json!({})).status, 200, "its name is what it was");
}

#[test]
fn signal_reloads_and_reopens_the_audit_log() {
    let folder = library(&[("hello.md", HELLO)]);
    let server = Server::of(&folder, &["--audit", "audit.jsonl"]);
    let [audit, moved] = ["audit.jsonl", "audit.old"].map(|name| folder.path().join(name));
    let list = || ask_at(&server.url, "", &[], "prompts/list", &json!({})).status;
    let records = |path: &PathBuf| fs::read_to_string(path).map_or(0, |text| text.lines().count());
    assert_eq!(list(), 200);
    until("it is recorded", || records(&audit) == 1);
    fs::rename(&audit, &moved).expect("a renamed file");
    send(&server.child, Signal::HUP);
    receive(&server, "SIGHUP: reloading library and settings");
    receive(&server, "settings reloaded");
    assert_eq!(list(), 200);
    until("it is recorded", || records(&audit) == 1);
    assert_eq!(records(&moved), 1);
}

//! Replicas that follow channels of a store: real processes and real databases.

mod author;
mod channels;
mod crowd;
#[cfg(target_os = "linux")]
mod faults;
mod following;
#[cfg(target_os = "linux")]
mod pooler;
#[cfg(target_os = "linux")]
mod proxied;
mod rollout;

use std::{
    path::Path,
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

pub(crate) use self::author::Author;
use crate::program::{PATIENCE, Server, promptshelf};

/// A prompt with a text.
fn prompt(text: &str) -> String {
    format!("---\ndescription: Says {text}\n---\n{text}\n")
}

/// The address of an SQLite store in a folder.
fn sqlite(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("team.db").display())
}

/// Returns the program with the arguments to serve a store over HTTP.
fn serve(store: &str, more: &[&str]) -> Command {
    let mut command = promptshelf();
    command.args(["serve", store, "--http", "127.0.0.1:0"]).args(more);
    command
}

/// Starts a replica.
fn replica(store: &str, more: &[&str]) -> Server {
    Server::start(serve(store, more))
}

/// Waits until `look` finds something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        sleep(Duration::from_millis(20));
    }
}

/// Waits until a replica serves a prompt with this text.
fn until_served(server: &Server, name: &str, text: &str) {
    until(&format!("{name} with {text:?}"), || (got(server, name).as_deref() == Some(text)).then_some(()));
}

/// The text of a prompt; `None` if the server does not have it.
fn got(server: &Server, name: &str) -> Option<String> {
    let (status, answer) = server.request("prompts/get", &json!({ "name": name }));
    assert_eq!(status, 200, "{answer}");
    answer["result"]["messages"][0]["content"]["text"].as_str().map(|text| text.trim_end().to_owned())
}

/// Sends a modern request to an address, and returns the response.
fn modern(url: &str, method: &str, mut params: Value) -> Value {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent.post(url);
    for (header, value) in [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ] {
        request = request.header(header, value);
    }
    if !name.is_empty() {
        request = request.header("Mcp-Name", name);
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut answer = request.send(body).expect("the server answers");
    let text = answer.body_mut().read_to_string().expect("the answer is text");
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The status and the body of a path.
fn get(server: &Server, path: &str) -> (u16, String) {
    get_at(&format!("http://{}{path}", server.authority()))
}

fn get_at(url: &str) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(url).call().expect("the server answers");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("text"))
}

/// Waits until the first line of `/readyz` begins with a word; the status is 200 in any case.
fn until_readiness(server: &Server, word: &str) -> String {
    until(&format!("readiness {word}"), || {
        let (status, body) = get(server, "/readyz");
        assert_eq!(status, 200, "{body}");
        body.starts_with(word).then_some(body)
    })
}

/// Sends a signal to a process.
fn signal(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has an id");
    kill_process(id, signal).expect("a running process");
}

/// The lines that a server has logged so far, without waiting for more.
fn logged(server: &Server) -> Vec<String> {
    server.log.try_iter().collect()
}

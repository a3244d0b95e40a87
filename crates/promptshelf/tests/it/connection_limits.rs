//! Connections, memory and open files of the program under attack: many, slow and huge, beside a valid caller.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::{
    program::{Folder, PATIENCE, Server, library, promptshelf},
    server_auth::ask,
};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";

/// A valid caller must not notice the attack; a loaded machine is slow by itself.
const PROMPT: Duration = Duration::from_secs(5);

/// Serves a folder with fewer open files, as `ulimit` sets them.
fn serve_with(ulimit: &str, folder: &Folder, more: &[&str]) -> Server {
    let program = promptshelf();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {ulimit}; exec \"$@\""), "sh"]).arg(program.get_program());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if folder.path().join("server.toml").exists() {
        command.env("PROMPTSHELF_CONFIG", "server.toml");
    }
    command.args(["serve", "prompts", "--http", "127.0.0.1:0"]).args(more).current_dir(folder.path());
    Server::start(command)
}

fn token(name: &str) -> (String, String) {
    let made = promptshelf().args(["token", "new", name, "--json"]).output().expect("the program runs");
    let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    let text = |key: &str| made[key].as_str().expect("a text").to_owned();
    (text("token"), text("store"))
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.authority()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

fn head(token: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

fn get(token: &str, prompt: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"{prompt}"}}}}"#);
    format!("{}{body}", head(token, body.len()))
}

/// Returns the status of the response; `None` if the connection ends without one.
fn status(stream: &mut TcpStream, request: &str) -> Option<String> {
    stream.write_all(request.as_bytes()).ok()?;
    let mut received = [0; 2_048];
    let read = stream.read(&mut received).ok()?;
    String::from_utf8_lossy(&received[..read]).split(' ').nth(1).map(str::to_owned)
}

/// Resident memory of the server, in bytes.
fn memory(server: &Server) -> usize {
    let pages = fs::read_to_string(format!("/proc/{}/statm", server.child.id())).expect("Linux");
    let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * rustix::param::page_size()
}

fn open_files(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.child.id())).expect("Linux").count()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

// req: S-58
#[test]
fn idle_crowd_without_tokens_does_not_delay_a_valid_caller() {
    let folder = library(&[("hello.md", HELLO)]);
    let [(ada, ada_line), (bob, bob_line)] = ["ada", "bob"].map(token);
    fs::write(folder.path().join("tokens"), format!("{ada_line}\n{bob_line}\n")).expect("written");
    let server = serve_with("-n 256", &folder, &["--tokens", "tokens", "--audit", "audit.jsonl"]);
    let mut of_ada = connect(&server);
    assert_eq!(status(&mut of_ada, &get(&ada, "hello")).as_deref(), Some("200"));
    let crowd: Vec<TcpStream> = (0..1_100).map(|_| connect(&server)).collect();
    let begun = Instant::now();
    assert_eq!(status(&mut of_ada, &get(&ada, "hello")).as_deref(), Some("200"), "the open connection");
    assert_eq!(status(&mut connect(&server), &get(&bob, "hello")).as_deref(), Some("200"), "a new connection");
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    let files = open_files(&server);
    assert!(files <= 256 - 16, "{files} files are open, and files have to be opened besides");

    // Files are read and written while the crowd is there.
    fs::write(folder.path().join("tokens"), format!("{ada_line}\n")).expect("written");
    until("the withdrawn token is refused", || ask(&server.url, &bob, "prompts/list", &json!({})).status == 401);
    assert_eq!(ask(&server.url, &ada, "prompts/list", &json!({})).status, 200);
    fs::write(folder.path().join("prompts/second.md"), HELLO).expect("written");
    until("the new prompt is served", || {
        status(&mut connect(&server), &get(&ada, "second")).as_deref() == Some("200")
            && ask(&server.url, &ada, "prompts/list", &json!({})).prompts() == ["hello", "second"]
    });
    until("the audit is written", || {
        fs::read_to_string(folder.path().join("audit.jsonl")).is_ok_and(|audit| audit.contains("\"prompt\":\"second\""))
    });
    drop(crowd);
}

#[test]
fn soft_limit_of_open_files_is_raised() {
    let folder = library(&[("hello.md", HELLO)]);
    let server = serve_with("-Sn 200", &folder, &[]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("Linux");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] == numbers[1] && numbers[0] != "200", "{line}");
}

/// A limit below the number of files that are open: nothing can be opened, as when the whole system has no descriptor.
// req: S-61
#[test]
fn withdrawn_token_is_refused_while_no_file_can_be_opened() {
    let folder = library(&[("hello.md", HELLO)]);
    let [(ada, ada_line), (bob, bob_line)] = ["ada", "bob"].map(token);
    fs::write(folder.path().join("tokens"), format!("{ada_line}\n{bob_line}\n")).expect("written");
    let server = Server::of(&folder, &["--tokens", "tokens"]);
    let mut of_bob = connect(&server);
    assert_eq!(status(&mut of_bob, &get(&bob, "hello")).as_deref(), Some("200"));

    let process = i32::try_from(server.child.id()).ok().and_then(Pid::from_raw);
    let before = prlimit(process, Resource::Nofile, Rlimit { current: None, maximum: None });
    // Reading the limit needs no change: an unlimited number is refused for a process with a limit.
    let maximum = before.map_or_else(|_| limit(&server), |limit| limit.maximum);
    prlimit(process, Resource::Nofile, Rlimit { current: Some(4), maximum }).expect("a smaller limit");
    fs::write(folder.path().join("tokens"), format!("{ada_line}\n")).expect("written");
    let begun = Instant::now();
    while status(&mut of_bob, &get(&bob, "hello")).as_deref() == Some("200") {
        assert!(begun.elapsed() < PATIENCE, "the withdrawn token still works");
        std::thread::sleep(Duration::from_millis(100));
    }
    while !server.log.recv_timeout(PATIENCE).expect("the server logs why").contains("all connections are closed") {}

    prlimit(process, Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the limit of before");
    until("the server serves again", || status(&mut connect(&server), &get(&ada, "hello")).as_deref() == Some("200"));
    assert_eq!(status(&mut connect(&server), &get(&bob, "hello")).as_deref(), Some("401"));
}

/// The hard limit of open files of the server.
fn limit(server: &Server) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("Linux");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    line.split_whitespace().filter_map(|word| word.parse().ok()).nth(1)
}

/// `serve --help` states the bound: 128 KiB for each connection, twice `request-bytes`, and `response-bytes`.
// req: S-38, S-59
#[test]
fn slow_and_silent_clients_occupy_bounded_memory() {
    const CONNECTIONS: usize = 300;
    const BYTES: usize = 16 << 20;
    let settings =
        format!("[limits]\nconnections = {CONNECTIONS}\nrequest-bytes = {BYTES}\nresponse-bytes = {BYTES}\n");
    // Two bytes in JSON for each character.
    let big = format!("---\ndescription: Big\n---\n{}\n", "\"\"\"\"\"\"\"\n".repeat(400_000));
    let folder = library(&[("hello.md", HELLO), ("big.md", &big), ("../server.toml", &settings)]);
    let server = Server::of(&folder, &[]);
    let mut waiting = Vec::new();
    // What one rendering takes at its most, and the library, stay allocated.
    let mut stream = connect(&server);
    stream.write_all(get("", "big").replace("Host", "Connection: close\r\nHost").as_bytes()).expect("the server reads");
    stream.read_to_end(&mut Vec::new()).expect("a response");
    let before = memory(&server);
    for _ in 0..40 {
        let mut stream = connect(&server);
        stream.write_all(get("", "big").as_bytes()).expect("the server reads");
        waiting.push(stream);
    }
    for _ in 0..40 {
        let mut stream = connect(&server);
        stream.write_all(head("", 4 << 20).as_bytes()).expect("the server reads");
        // Refused ones are closed while this is written.
        stream.write_all(&vec![b' '; (4 << 20) - 1]).ok();
        waiting.push(stream);
    }
    let unfinished_head = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Long: {}", "x".repeat(30 << 10));
    for _ in 0..CONNECTIONS {
        let mut stream = connect(&server);
        stream.write_all(unfinished_head.as_bytes()).ok();
        waiting.push(stream);
    }
    let begun = Instant::now();
    assert_eq!(status(&mut connect(&server), &get("", "hello")).as_deref(), Some("200"));
    assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
    let bound = (128 << 10) * CONNECTIONS + 2 * BYTES + BYTES;
    let used = memory(&server).saturating_sub(before);
    println!("{used} bytes of {bound}, {before} before");
    // The allocator keeps freed memory for a time.
    assert!(used < bound + bound / 2, "{used} bytes of {bound}");
    drop(waiting);
}

//! Running servers: responses, logs, and limits of requests.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{PATIENCE, Pipes, Server, ended, library, promptshelf, shown};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";
const BROKEN: &str = "---\ndescription: x\n---\n{{ nobody }} \u{1b}[2J\n";

/// Waits until a condition holds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
    }
}

#[test]
fn folder_is_served_over_http_at_the_logged_address() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    let (status, answer) = server.request("prompts/list", &json!({}));
    assert_eq!((status, &answer["result"]["prompts"][0]["name"]), (200, &json!("hello")), "{answer}");
    let (_, answer) = server.request("prompts/get", &json!({ "name": "hello" }));
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Say hello.", "{answer}");
    assert!(
        server.startup_log.contains("serves prompts\n  1 prompt, 0 resources, no findings\n"),
        "{}",
        server.startup_log
    );
}

/// Page, API, commands and the metrics' listener, as on 127.0.0.1.
#[test]
fn server_listens_on_ipv6() {
    let folder = library(&[("hello.md", HELLO)]);
    let run = |words: &[&str]| {
        let mut command = promptshelf();
        command.args(words).current_dir(folder.path()).env("USER", "ada");
        let printed = shown(command, "");
        assert!(printed.starts_with("exit code: 0"), "{words:?}: {printed}");
        printed
    };
    run(&["init", "sqlite:team.db"]);
    run(&["publish", "prompts", "--store", "sqlite:team.db", "-m", "First"]);
    let mut command = promptshelf();
    command.args(["serve", "sqlite:team.db", "--http", "[::1]:0", "--metrics", "[::1]:0", "--api"]);
    let server = Server::start({
        command.current_dir(folder.path());
        command
    });
    let url = format!("http://{}", server.authority());
    assert!(url.starts_with("http://[::1]:"), "{}", server.startup_log);
    let (status, answer) = server.request("prompts/list", &json!({}));
    assert_eq!((status, &answer["result"]["prompts"][0]["name"]), (200, &json!("hello")), "{answer}");
    let ask = |path: &str, origin: &str| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.get(format!("{url}{path}")).header("Origin", origin).call().expect("an answer").status().as_u16()
    };
    assert_eq!((ask("/", &url), ask("/api/v1/prompts", &url), ask("/readyz", &url)), (200, 200, 200));
    assert_eq!(ask("/api/v1/prompts", "http://[::2]:80"), 403);
    assert!(run(&["health", &url]).contains("runs"));
    assert!(run(&["list", &server.url]).contains("hello"));
    fs::write(folder.path().join("prompts/hello.md"), HELLO.replace("hello", "goodbye")).expect("written");
    assert!(run(&["publish", "prompts", "--url", &url, "-m", "Second"]).contains("revision 2"));
    let (_, metrics) = server.startup_log.split_once("metrics are served on ").expect("logged");
    let metrics = metrics.split_whitespace().next().expect("a URL");
    assert!(metrics.starts_with("http://[::1]:"), "{metrics}");
    let mut found = ureq::get(metrics).call().expect("an answer");
    assert!(found.body_mut().read_to_string().expect("text").contains("promptshelf_build_info"));
}

/// The variable is set for the commands of channels; a server that is given a library does not use it.
#[test]
fn store_variable_is_reported_if_a_library_is_given() {
    let folder = library(&[("hello.md", HELLO)]);
    let store = "postgres://ada:s3cret@db.example/prompts";
    let mut command = promptshelf();
    command.args(["serve", "prompts", "--http", "127.0.0.1:0"]).current_dir(folder.path());
    let server = Server::start({
        command.env("PROMPTSHELF_STORE", store);
        command
    });
    let log = &server.startup_log;
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("PROMPTSHELF_STORE")).collect();
    assert!(matches!(warnings.as_slice(), [line] if line.contains("WARN") && line.contains("ignored")), "{log}");
    assert!(!log.contains("s3cret") && !log.contains("db.example"), "{log}");
    assert_eq!(server.request("prompts/list", &json!({})).1["result"]["prompts"][0]["name"], "hello");

    let mut list = promptshelf();
    list.args(["list", "prompts"]).current_dir(folder.path()).env("PROMPTSHELF_STORE", store);
    assert!(!shown(list, "").contains("PROMPTSHELF_STORE"), "only `serve` would use it");
}

// req: L54
#[test]
fn every_response_forbids_storing() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    for (path, status) in [("healthz", 200), ("elsewhere", 404)] {
        let url = server.url.replace("mcp", path);
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let answer = agent.get(&url).call().expect("the server answers");
        assert_eq!(answer.status(), status, "{url}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    }
}

/// DNS rebinding: a web page whose host name resolves to this machine is refused.
// req: L52, S-1
#[test]
fn only_allowed_hosts_are_served() {
    let folder = library(&[("hello.md", HELLO)]);
    let status = |server: &Server, host: &str| {
        let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#;
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("the server reads");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("the server answers");
        line.split(' ').nth(1).map(str::to_owned)
    };
    let server = Server::of(&folder, &[]);
    assert_eq!(status(&server, "localhost").as_deref(), Some("200"));
    assert_eq!(status(&server, "evil.example").as_deref(), Some("403"));
    let server = Server::of(&folder, &["--allow-host", "prompts.example"]);
    assert_eq!(status(&server, "prompts.example").as_deref(), Some("200"));
    assert_eq!(status(&server, "localhost").as_deref(), Some("200"));
    assert_eq!(status(&server, "evil.example").as_deref(), Some("403"));
}

#[test]
fn too_large_body_is_refused() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &["--max-body-bytes", "2000"]);
    let (status, _) = server.request("prompts/get", &json!({ "name": "x".repeat(3_000) }));
    assert_eq!(status, 413);
}

// req: O14, S-25
#[test]
fn unfinished_request_times_out() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &["--request-timeout", "1"]);
    let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
                text/event-stream\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("the server answers");
    assert!(line.contains(" 408 "), "{line}");
}

// req: R-12, S-25
#[test]
fn too_large_head_is_refused() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    let many = |count: usize| "X-Many: x\r\n".repeat(count);
    for (headers, status) in [
        (format!("X-Long: {}\r\n", "x".repeat(300_000)), " 431 "),
        (many(101), " 431 "),
        // With `Host` these are 100.
        (many(99), " 200 "),
    ] {
        let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        // The server may close the connection before everything is sent.
        stream.write_all(head.as_bytes()).ok();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("the server answers");
        assert!(line.contains(status), "{line}");
    }
}

// req: O12, R-11
#[test]
fn requests_are_logged_without_their_contents() {
    let server = Server::of(&library(&[("hello.md", HELLO)]), &["--log", "trace"]);
    server.request("prompts/get", &json!({ "name": "hello", "arguments": { "secret": "swordfish" } }));
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("method=POST path=\"/mcp\" status=200")) {
        lines.push(server.log.recv_timeout(PATIENCE).expect("the server logs the request"));
    }
    assert!(!lines.iter().any(|line| line.contains("swordfish")), "{lines:?}");
}

// req: S-67
#[test]
fn log_inside_the_library_does_not_feed_itself() {
    let folder = library(&[("hello.md", HELLO)]);
    let log = folder.path().join("prompts/server.log");
    let mut command = promptshelf();
    command.args(["serve", "prompts", "--http", "127.0.0.1:0", "--log", "trace"]).current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).expect("a new file"));
    let mut server = command.spawn().expect("the server can be started");
    let read = || fs::read_to_string(&log).expect("a log");
    until("the server listens", || read().contains("listening on"));
    fs::write(folder.path().join("prompts/second.md"), HELLO).expect("written");
    until("the edit is served", || read().contains("library changed: 2 prompts"));
    // Longer than the longest delay from a change to its reload.
    let pause = Duration::from_millis(500);
    until("the log comes to rest", || {
        let before = read().len();
        thread::sleep(pause);
        read().len() == before
    });
    let lines = read().lines().count();
    assert!(lines < 500, "{lines} lines");
    kill_process(Pid::from_child(&server), Signal::TERM).expect("a running process");
    assert!(ended(&mut server).success());
}

#[test]
fn environment_and_manifest_configure_the_server() {
    let folder = library(&[("hello.md", HELLO), ("../server.toml", "[http]\nmax-body-bytes = 2000\n")]);
    let mut command = promptshelf();
    command.args(["serve", "prompts"]).current_dir(folder.path()).env("PROMPTSHELF_HTTP", "localhost:0");
    command.args(["--config", "server.toml"]);
    let server = Server::start(command);
    let (status, _) = server.request("prompts/get", &json!({ "name": "x".repeat(3_000) }));
    assert_eq!(status, 413);
}

#[test]
fn broken_file_is_logged_and_the_rest_served() {
    let server = Server::of(&library(&[("hello.md", HELLO), ("broken.md", BROKEN)]), &[]);
    let (_, answer) = server.request("prompts/list", &json!({}));
    assert_eq!(answer["result"]["prompts"].as_array().map(Vec::len), Some(1), "{answer}");
    assert!(server.startup_log.contains("ERROR broken.md:4:4: error[undeclared-argument]"), "{}", server.startup_log);
    assert!(!server.startup_log.contains('\u{1b}'));
}

#[test]
fn edit_is_served_and_logged() {
    let folder = library(&[("hello.md", HELLO)]);
    let server = Server::of(&folder, &[]);
    std::fs::write(folder.path().join("prompts/second.md"), HELLO).expect("a written file");
    loop {
        let line = server.log.recv_timeout(PATIENCE).expect("the server logs the change");
        if line.contains("library changed: 2 prompts, no findings") {
            break;
        }
    }
    let (_, answer) = server.request("prompts/list", &json!({}));
    assert_eq!(answer["result"]["prompts"].as_array().map(Vec::len), Some(2), "{answer}");
}

#[test]
fn json_log_starts_with_the_first_line() {
    let server = Server::of(&library(&[("hello.md", HELLO), ("broken.md", BROKEN)]), &["--log-format", "json"]);
    for line in server.startup_log.lines() {
        let line: Value = serde_json::from_str(line).expect("each line is JSON");
        assert!(line["message"].is_string() && line["level"].is_string(), "{line}");
    }
}

// req: K2, S-45, X24
#[test]
fn stdout_contains_protocol_lines_only() {
    let folder = library(&[("hello.md", HELLO), ("broken.md", BROKEN)]);
    let mut command = promptshelf();
    command.args(["serve", "--stdio", "prompts", "--log", "trace"]).current_dir(folder.path());
    let mut pipes = Pipes::start(command);
    pipes.initialize();
    for line in ["nonsense", "{}", "[]", "null", "\u{0}", r#"{"jsonrpc":"2.0","id":7}"#, &"[".repeat(100_000)] {
        pipes.send(line);
    }
    pipes.send(r#"{"jsonrpc":"2.0","id":8,"method":"prompts/get","params":{"name":"broken"}}"#);
    let lines: Vec<Value> =
        pipes.rest().iter().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert!(lines.iter().all(|line| line["jsonrpc"] == "2.0"), "{lines:?}");
    assert!(lines.iter().any(|line| line["id"] == 8 && line["error"].is_object()), "{lines:?}");
}

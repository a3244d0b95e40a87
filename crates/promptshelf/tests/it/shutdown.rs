//! Shutdown: by a signal, at the end of input, and with a closed output.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{PATIENCE, Pipes, Server, ended, ended_within, library, promptshelf};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";

fn send(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has an id");
    kill_process(id, signal).expect("a running process");
}

/// Opens the notification stream of legacy clients, and waits for the response's head.
fn open_stream(server: &Server) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let host = server.authority();
    write!(
        stream,
        "GET /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n\r\n"
    )
    .expect("the server reads");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).expect("the server answers");
    assert!(line.contains("200"), "{line}");
    stream
}

#[test]
fn signal_ends_open_streams_in_time() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
        let _stream = open_stream(&server);
        send(&server.child, signal);
        let status = ended_within(&mut server.child, Duration::from_secs(6));
        assert_eq!(status.code(), Some(0), "{signal:?}");
    }
}

// req: O14
#[test]
fn unfinished_request_does_not_delay_shutdown() {
    let mut server = Server::of(&library(&[("hello.md", HELLO)]), &["--shutdown-timeout", "1"]);
    let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
    write!(stream, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{").expect("the server reads");
    // A response to another client shows that the server has accepted the first connection.
    server.request("prompts/list", &serde_json::json!({}));
    send(&server.child, Signal::TERM);
    assert_eq!(ended_within(&mut server.child, Duration::from_secs(3)).code(), Some(0));
}

// req: K8
#[test]
fn signal_ends_stdio_server() {
    let folder = library(&[("hello.md", HELLO)]);
    let mut command = promptshelf();
    command.args(["serve", "--stdio", "prompts"]).current_dir(folder.path());
    let mut pipes = Pipes::start(command);
    pipes.initialize();
    send(&pipes.child, Signal::TERM);
    assert_eq!(ended(&mut pipes.child).code(), Some(0));
}

/// Some clients (those on Node.js) give the server sockets instead of pipes.
// req: K8
#[test]
fn socket_stdio_is_served_until_signal() {
    use std::os::{fd::OwnedFd, unix::net::UnixStream};

    let folder = library(&[("hello.md", HELLO)]);
    let (mut client, server) = UnixStream::pair().expect("two sockets");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let output = OwnedFd::from(server.try_clone().expect("a descriptor"));
    let mut child = promptshelf()
        .args(["serve", "--stdio", "prompts"])
        .current_dir(folder.path())
        .stdin(OwnedFd::from(server))
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .expect("a started process");
    for id in 1..=3 {
        writeln!(client, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).expect("the server reads");
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).expect("the server answers");
        assert!(line.contains(&format!("\"id\":{id}")), "{line}");
    }
    // The input stays open; a thread of the server still waits for its next bytes.
    send(&child, Signal::TERM);
    assert_eq!(ended(&mut child).code(), Some(0));
}

// req: K7
#[test]
fn end_of_input_ends_stdio_server() {
    let folder = library(&[("hello.md", HELLO)]);
    let mut command = promptshelf();
    command.args(["serve", "prompts"]).current_dir(folder.path());
    let shown = crate::program::shown(command, "");
    assert!(shown.starts_with("exit code: 0\n----- stdout -----\n----- stderr -----\n"), "{shown}");
    assert!(shown.contains("serving on stdio"), "{shown}");
}

#[test]
fn vanished_client_ends_stdio_server_without_error() {
    let folder = library(&[("hello.md", HELLO)]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut child = promptshelf()
        .args(["serve", "--stdio", "prompts"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .expect("a started process");
    let mut input = child.stdin.take().expect("a pipe");
    // The input stays open; only the failing output can end the server.
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).expect("the server reads");
    assert_eq!(ended(&mut child).code(), Some(0));
}

// req: K3
#[test]
fn unread_log_does_not_block_requests() {
    let folder = library(&[("hello.md", HELLO), ("broken.md", "---\ndescription: x\n---\n{{ nobody }}\n")]);
    for format in ["text", "json"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = promptshelf();
        command.args(["serve", "--stdio", "prompts", "--log", "trace", "--log-format", format]);
        let mut pipes = Pipes::start_with(command.current_dir(folder.path()), writer.into());
        pipes.initialize();
        let answer = pipes.request(1, "prompts/get", &serde_json::json!({ "name": "hello" }));
        assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Say hello.", "{answer}");
        assert!(pipes.rest().is_empty());
    }
}

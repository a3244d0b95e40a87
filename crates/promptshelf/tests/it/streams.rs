//! Event streams at the byte level: heads, chunks and ends, and clients that read slowly or not at all.

use std::{
    collections::HashSet,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::program::{Folder, PATIENCE, Server, ended, ended_within, library};

const HELLO: &str = "---\ndescription: Greets\n---\nSay hello.\n";
const NOTES: &str = "[[resources]]\nuri-template = \"docs://{id}\"\nname = \"notes\"\ntext = \"A note.\"\n";

/// The maximum number of resources of a stream, with long names: two or three notifications of each exceed the socket
/// buffers of a client that does not read.
const MANY: usize = 1_000;
const LONG: usize = 1_900;

fn folder() -> Folder {
    library(&[("hello.md", HELLO), ("promptshelf.toml", NOTES)])
}

fn terminate(server: &Server) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).expect("a running process");
}

/// A request for a stream of revision 2026-07-28 that follows the list and these resources.
fn listen(version: &str, uris: &[String]) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let filter = json!({ "promptsListChanged": true, "resourceSubscriptions": uris });
    let params = json!({ "notifications": filter, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params }).to_string();
    format!(
        "POST /mcp {version}\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: \
         {}\r\n\r\n{body}",
        body.len()
    )
}

/// A request for the notification stream of legacy revisions, with any HTTP method.
fn legacy(verb: &str) -> String {
    format!(
        "{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n\r\n"
    )
}

/// One client's connection.
struct Wire(BufReader<TcpStream>);

impl Wire {
    fn open(server: &Server, sent: &str) -> Wire {
        let mut stream = TcpStream::connect(server.authority()).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(sent.as_bytes()).expect("the server reads");
        Wire(BufReader::new(stream))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server writes");
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("a whole line, got {line:?}")).to_owned()
    }

    /// Returns the head of a response, without its date and request id.
    fn head(&mut self) -> Vec<String> {
        let lines: Vec<String> = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty())).collect();
        let (varying, lines): (Vec<String>, Vec<String>) =
            lines.into_iter().partition(|line| line.starts_with("date: ") || line.starts_with("x-request-id: "));
        assert_eq!(varying.len(), 2, "{varying:?} {lines:?}");
        lines
    }

    /// Returns the data of the next chunk; the last one is empty.
    fn chunk(&mut self) -> String {
        let size = self.line();
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("a size, got {size:?}"));
        let mut data = vec![0; size];
        self.0.read_exact(&mut data).expect("a whole chunk");
        assert_eq!(self.line(), "", "a chunk's end");
        String::from_utf8(data).expect("text")
    }

    /// Returns the next message.
    fn message(&mut self) -> Value {
        loop {
            match &*self.chunk() {
                ":\n\n" => {}
                event => return parse(event),
            }
        }
    }

    /// Reads until this number of different resources has been reported as changed.
    fn receive_updates(&mut self, resources: usize) {
        let mut updated = HashSet::new();
        while updated.len() < resources {
            let chunk = self.chunk();
            let messages = chunk.split_inclusive("\n\n").filter(|event| *event != ":\n\n").map(parse);
            updated.extend(messages.filter_map(|message| message["params"]["uri"].as_str().map(str::to_owned)));
        }
    }

    /// Asserts that the stream ends with its result, as the protocol requires, and the connection with it.
    fn assert_end(&mut self) {
        assert_eq!(self.message()["result"]["resultType"], "complete");
        assert_eq!(self.chunk(), "");
        assert_eq!(self.rest(), "");
    }

    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).expect("an orderly end");
        rest
    }
}

fn parse(event: &str) -> Value {
    let data = event.strip_prefix("event: message\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
    serde_json::from_str(data.unwrap_or_else(|| panic!("one event, got {event:?}"))).expect("JSON")
}

/// The expected head of each stream: every header that other responses have.
const HEAD: [&str; 6] = [
    "HTTP/1.1 200 OK",
    "content-type: text/event-stream",
    "cache-control: no-store",
    "x-accel-buffering: no",
    "x-content-type-options: nosniff",
    "transfer-encoding: chunked",
];

#[test]
fn stream_has_headers_and_is_chunked() {
    let folder = folder();
    let mut server = Server::of(&folder, &[]);
    let mut modern = Wire::open(&server, &listen("HTTP/1.1", &[]));
    assert_eq!(modern.head(), HEAD);
    assert_eq!(modern.message()["method"], "notifications/subscriptions/acknowledged");
    let mut legacy = Wire::open(&server, &legacy("GET"));
    assert_eq!(legacy.head(), HEAD);
    assert_eq!(legacy.chunk(), ":\n\n");

    fs::write(folder.path().join("prompts/second.md"), HELLO).expect("a written file");
    for stream in [&mut modern, &mut legacy] {
        assert_eq!(stream.message()["method"], "notifications/prompts/list_changed");
    }
    terminate(&server);
    modern.assert_end();
    assert_eq!((legacy.chunk(), legacy.rest()), (String::new(), String::new()));
    assert_eq!(ended(&mut server.child).code(), Some(0));
}

#[test]
fn http_1_0_client_gets_no_chunks() {
    let mut server = Server::of(&folder(), &[]);
    let mut stream = Wire::open(&server, &listen("HTTP/1.0", &[]));
    let head = stream.head();
    assert_eq!(head, [&["HTTP/1.0 200 OK"], &HEAD[1..5]].concat());
    let mut event = String::new();
    while !event.ends_with("\n\n") {
        stream.0.read_line(&mut event).expect("the server writes");
    }
    assert_eq!(parse(&event)["method"], "notifications/subscriptions/acknowledged");
    terminate(&server);
    assert_eq!(parse(&stream.rest())["result"]["resultType"], "complete");
    assert_eq!(ended(&mut server.child).code(), Some(0));
}

#[test]
fn stream_is_last_on_its_connection() {
    let folder = folder();
    let mut server = Server::of(&folder, &["--shutdown-timeout", "600"]);
    // A head without a body is not a stream, and the connection stays usable.
    let mut wire = Wire::open(&server, &legacy("HEAD"));
    assert_eq!(wire.head()[0], "HTTP/1.1 405 Method Not Allowed");
    let pipelined = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Requests after the stream's request, in the same packet or later, neither disturb the stream nor are answered
    // before its end.
    let sent = [&listen("HTTP/1.1", &[]), pipelined].concat();
    wire.0.get_mut().write_all(sent.as_bytes()).expect("the server reads");
    assert_eq!(wire.head(), HEAD);
    assert_eq!(wire.message()["method"], "notifications/subscriptions/acknowledged");
    wire.0.get_mut().write_all(pipelined.repeat(100).as_bytes()).expect("space in the socket buffer");
    fs::write(folder.path().join("prompts/second.md"), HELLO).expect("a written file");
    assert_eq!(wire.message()["method"], "notifications/prompts/list_changed");
    terminate(&server);
    assert_eq!(wire.message()["result"]["resultType"], "complete");
    assert_eq!(wire.chunk(), "");
    // No connection remains open that would delay the exit.
    assert_eq!(ended(&mut server.child).code(), Some(0));
}

#[test]
fn half_closed_client_is_gone() {
    let folder = folder();
    fs::write(folder.path().join("server.toml"), "[limits]\nsubscriptions = 1\n").expect("a written file");
    let server = Server::of(&folder, &[]);
    for _ in 0..3 {
        let mut stream = Wire::open(&server, &listen("HTTP/1.1", &[]));
        assert_eq!(stream.head(), HEAD);
        assert_eq!(stream.message()["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(Wire::open(&server, &legacy("GET")).line(), "HTTP/1.1 429 Too Many Requests");
        stream.0.get_mut().shutdown(Shutdown::Write).expect("an open connection");
        assert_eq!(stream.rest(), "", "the place is free when the connection has ended");
    }
}

#[test]
fn slow_reader_gets_everything_and_blocks_no_other() {
    let folder = folder();
    let mut server = Server::of(&folder, &["--shutdown-timeout", "1"]);
    let uris: Vec<String> = (0..MANY).map(|number| format!("docs://{number:0>LONG$}")).collect();
    let open = |uris: &[String]| {
        let mut stream = Wire::open(&server, &listen("HTTP/1.1", uris));
        assert_eq!(stream.head(), HEAD);
        stream
    };
    let (mut slow, never) = (open(&uris), open(&uris));
    let mut quick = open(&uris[..1]);
    quick.message();
    let edit = |text: &str| {
        // The file is replaced atomically: a partial file would be another change.
        let temporary = folder.path().join("being-written");
        fs::write(&temporary, NOTES.replace("A note", text)).expect("a written file");
        fs::rename(temporary, folder.path().join("prompts/promptshelf.toml")).expect("a renamed file");
    };
    edit("Another one");
    assert_eq!(
        quick.message()["method"],
        "notifications/resources/updated",
        "a reader that is not slow is not delayed"
    );
    let honoured = &slow.message()["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(honoured.as_array().map(Vec::len), Some(MANY));
    slow.receive_updates(MANY);
    edit("A third one");
    slow.receive_updates(MANY);
    terminate(&server);
    slow.assert_end();
    assert_eq!(ended_within(&mut server.child, Duration::from_secs(10)).code(), Some(0));
    drop(never);
}

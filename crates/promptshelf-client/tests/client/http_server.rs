//! A server over HTTP whose answers are bytes that a test defines, one connection for each request.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use promptshelf_client::{Client, Endpoint};
use serde_json::{Value, json};

pub(crate) struct Request {
    /// The method of HTTP.
    pub(crate) verb: String,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

impl Request {
    /// Returns the method of JSON-RPC.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// Creates the response to this request.
    pub(crate) fn result(&self, result: &Value) -> Answer {
        json_answer("200 OK", &json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Bytes, and the end of the connection.
    Ended(Vec<u8>),
    /// Bytes, and a connection that stays open.
    Open(Vec<u8>),
}

/// Creates an answer of one message.
pub(crate) fn json_answer(status: &str, message: &Value) -> Answer {
    let body = message.to_string();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    Answer::Ended(format!("{head}\r\nConnection: close\r\n\r\n{body}").into_bytes())
}

/// Creates an answer without a body.
pub(crate) fn empty_answer(status: &str) -> Answer {
    Answer::Ended(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes())
}

/// Returns the bytes of an event stream that ends with the connection.
pub(crate) fn events(events: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}").into_bytes()
}

#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpServer {
    /// Starts a server, which runs until the test ends.
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("a bound listener"));
        let server = HttpServer { url, requests: Arc::default() };
        let (requests, answer) = (Arc::clone(&server.requests), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &requests, &*answer));
            }
        });
        server
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Url { url: self.url.clone(), headers: BTreeMap::new() }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(&self.endpoint()).await.expect("a connection")
    }

    /// Returns what a function makes of the requests so far.
    pub(crate) fn received<T>(&self, of: impl Fn(&Request) -> Option<T>) -> Vec<T> {
        self.requests.lock().expect("no panic while it is locked").iter().filter_map(of).collect()
    }

    /// Returns the times of the requests with a method of HTTP or JSON-RPC.
    pub(crate) fn times(&self, method: &str) -> Vec<Instant> {
        self.received(|request| (request.verb == method || request.method() == method).then_some(request.at))
    }
}

fn serve(stream: TcpStream, requests: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Answer) {
    let mut reader = BufReader::new(&stream);
    let Some(request) = read(&mut reader) else { return };
    let answer = answer(&request);
    requests.lock().expect("no panic while it is locked").push(request);
    let (Answer::Ended(bytes) | Answer::Open(bytes)) = &answer;
    (&stream).write_all(bytes).ok();
    if let Answer::Open(_) = answer {
        reader.read_exact(&mut [0]).ok();
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let at = Instant::now();
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let verb = line.split(' ').next()?.to_owned();
    let mut length = 0;
    while !line.trim().is_empty() {
        if let Some(("content-length", value)) = line.to_ascii_lowercase().trim().split_once(": ") {
            length = value.parse().ok()?;
        }
        line.clear();
        reader.read_line(&mut line).ok()?;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { verb, body: serde_json::from_slice(&body).unwrap_or_default(), at })
}

/// Returns the answers of a server of revision 2026-07-28 with one prompt, whose list changes.
pub(crate) fn modern(request: &Request) -> Answer {
    match request.method() {
        "server/discover" => request.result(&json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "prompts": { "listChanged": true } },
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        })),
        "prompts/list" => request.result(&json!({
            "prompts": [{ "name": "one" }], "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        })),
        _ => empty_answer("202 Accepted"),
    }
}

/// Returns the answers of a server of revision 2025-11-25 with one prompt.
pub(crate) fn older(request: &Request) -> Answer {
    match (request.verb.as_str(), request.method()) {
        ("POST", "initialize") => request.result(&json!({
            "protocolVersion": "2025-11-25", "capabilities": { "prompts": { "listChanged": true } },
            "serverInfo": { "name": "older", "version": "1" },
        })),
        ("POST", "prompts/list") => request.result(&json!({ "prompts": [{ "name": "one" }] })),
        ("POST", "server/discover") => json_answer(
            "400 Bad Request",
            &json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "not initialized" } }),
        ),
        ("POST", _) => empty_answer("202 Accepted"),
        _ => empty_answer("405 Method Not Allowed"),
    }
}

//! The budget over real sockets: idle crowds, clients that do not read, clients that do not send, and bytes in flight.

use std::{num::NonZeroU32, time::Duration};

use promptshelf_core::PromptDefinition;
use promptshelf_server::http::{App, ConnectionLimits, Options, Usage};
use promptshelf_service::Limits;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};

use crate::{TIMEOUT, library};

/// The size of the text of the prompt `big`. Each of its characters takes two bytes in JSON, more than the system
/// buffers for a client that does not read.
const BIG: usize = 7 << 20;

struct Server {
    app: App,
    address: std::net::SocketAddr,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(limits: impl FnOnce(&mut ConnectionLimits), callers: Option<Limits>) -> Server {
        let mut options = Options::default();
        limits(&mut options.limits);
        Server::with_options(&options, callers).await
    }

    async fn with_options(options: &Options, callers: Option<Limits>) -> Server {
        let big = PromptDefinition::template("big", "\"".repeat(BIG));
        let library = callers.into_iter().fold(library().prompt(big), promptshelf_server::Builder::limits);
        let library = library.build().expect("a library");
        assert_eq!(library.diagnostics().iter().filter(|one| one.is_error()).count(), 0);
        let app = App::new(&library, options);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = app.clone();
        let task = tokio::spawn(async move { serving.serve(listener, std::future::pending()).await }).abort_handle();
        Server { app, address, task }
    }

    /// Connects from a local address, with a small receive buffer.
    async fn connect(&self, from: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(8_192).expect("a socket option");
        socket.bind((from, 0).into()).expect("a loopback address");
        timeout(TIMEOUT, socket.connect(self.address)).await.expect("the server accepts").expect("the server listens")
    }

    async fn usage_until(&self, is_reached: impl Fn(&Usage) -> bool) -> Usage {
        let begun = Instant::now();
        loop {
            let usage = self.app.usage();
            if is_reached(&usage) {
                return usage;
            }
            assert!(begun.elapsed() < TIMEOUT, "{usage:?}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

const HERE: [u8; 4] = [127, 0, 0, 1];

fn count(counts: &[(&'static str, u64)], name: &str) -> u64 {
    counts.iter().find(|(known, _)| *known == name).expect("a known name").1
}

fn request(body: &str) -> String {
    format!("{}{body}", head(body.len()))
}

fn head(length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nContent-Length: {length}\r\n\r\n"
    )
}

fn get(prompt: &str) -> String {
    request(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"{prompt}"}}}}"#))
}

/// Sends a request, and returns the whole response, or the beginning of a long one.
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    response(stream).await
}

async fn response(stream: &mut TcpStream) -> String {
    let mut received = String::new();
    let mut buffer = [0; 1 << 10];
    let reading = async {
        loop {
            let read = stream.read(&mut buffer).await.expect("the server answers");
            assert!(read > 0, "the connection ended after {received:?}");
            received.push_str(&String::from_utf8_lossy(&buffer[..read]));
            let Some((head, body)) = received.split_once("\r\n\r\n") else { continue };
            let length = head
                .to_lowercase()
                .split_once("content-length: ")
                .and_then(|(_, rest)| rest.lines().next().and_then(|length| length.parse::<usize>().ok()));
            if length.is_none_or(|length| length > buffer.len() || body.len() >= length) {
                return;
            }
        }
    };
    timeout(TIMEOUT, reading).await.expect("the server answers");
    received
}

/// Reads to the end of the connection, and returns the number of bytes.
async fn read_to_end(stream: &mut TcpStream) -> usize {
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 20]);
    let reading = async {
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return bytes,
                Ok(read) => bytes += read,
            }
        }
    };
    timeout(TIMEOUT, reading).await.expect("the connection ends")
}

// req: S-58
#[tokio::test]
async fn idle_crowd_gives_way_to_a_valid_caller() {
    let server = Server::start(
        |limits| {
            limits.connections = 40;
            limits.connections_per_address = 20;
        },
        None,
    )
    .await;
    let mut valid = server.connect(HERE).await;
    assert!(exchange(&mut valid, &get("greet")).await.starts_with("HTTP/1.1 200"));
    let mut crowd = Vec::new();
    for number in 0..300_u16 {
        // Of five addresses, one of them that of the valid caller.
        crowd.push(server.connect([127, 0, 0, 1 + u8::try_from(number % 5).expect("a small number")]).await);
    }
    assert!(exchange(&mut valid, &get("greet")).await.starts_with("HTTP/1.1 200"), "the connection in use is open");
    let mut another = server.connect(HERE).await;
    let begun = Instant::now();
    assert!(exchange(&mut another, &get("greet")).await.starts_with("HTTP/1.1 200"));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let usage = server.app.usage();
    assert!(usage.connections <= 40, "{usage:?}");
    assert!(count(&usage.closed, "idle") >= 200, "{usage:?}");
    drop(crowd);
    server.usage_until(|usage| usage.connections <= 2).await;
}

// req: S-58
#[tokio::test]
async fn unfinished_requests_give_way_and_answered_ones_do_not() {
    let server = Server::start(|limits| limits.connections = 8, None).await;
    let mut reading = server.connect([127, 0, 0, 2]).await;
    let answer = exchange(&mut reading, &get("big")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.200}");
    let mut unfinished = Vec::new();
    for _ in 0..20 {
        let mut stream = server.connect([127, 0, 0, 3]).await;
        stream.write_all(head(1_000).as_bytes()).await.expect("the server reads");
        unfinished.push(stream);
        // The server has to know that it is reading a body.
        sleep(Duration::from_millis(5)).await;
    }
    let mut valid = server.connect(HERE).await;
    assert!(exchange(&mut valid, &get("greet")).await.starts_with("HTTP/1.1 200"));
    let rest = tokio::spawn(async move {
        let mut bytes = answer.len();
        let mut buffer = vec![0; 1 << 20];
        while bytes < 2 * BIG {
            match reading.read(&mut buffer).await.expect("the connection is open") {
                0 => panic!("the response is cut after {bytes} bytes"),
                read => bytes += read,
            }
        }
    });
    timeout(TIMEOUT, rest).await.expect("the response arrives").expect("the response is complete");
}

// req: S-59
#[tokio::test]
async fn unread_response_is_dropped_after_a_time() {
    let server = Server::start(|limits| limits.progress_timeout = Duration::from_secs(1), None).await;
    let mut silent = server.connect(HERE).await;
    silent.write_all(get("big").as_bytes()).await.expect("the server reads");
    let usage = server.usage_until(|usage| usage.response_bytes > 0).await;
    assert!(usage.response_bytes > 2 * BIG, "{usage:?}");
    let usage = server.usage_until(|usage| usage.response_bytes == 0 && usage.connections == 0).await;
    assert_eq!(count(&usage.closed, "stalled"), 1);
    assert!(read_to_end(&mut silent).await < 2 * BIG);
    // A client that reads steadily receives everything.
    let mut reader = server.connect(HERE).await;
    reader
        .write_all(get("big").replace("Host", "Connection: close\r\nHost").as_bytes())
        .await
        .expect("the server reads");
    assert!(read_to_end(&mut reader).await > 2 * BIG);
}

// req: S-24
#[tokio::test]
async fn refused_messages_count_for_the_limit_of_their_caller() {
    let callers = Limits { requests_per_minute: NonZeroU32::new(2).expect("it is not zero"), ..Limits::default() };
    let invalid = [
        ("JSON", "400", request("{")),
        ("a method", "200", request(r#"{"jsonrpc":"2.0","id":1,"method":"none"}"#)),
        ("parameters", "200", request(r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":1}}"#)),
        ("a prompt", "200", get("none")),
        ("a header", "400", get("greet").replace("2025-06-18", "2025-06-00")),
    ];
    for (what, status, message) in &invalid {
        let server = Server::start(|_| {}, Some(callers)).await;
        let mut stream = server.connect(HERE).await;
        for (number, expected) in [*status, status, "429", "429"].into_iter().enumerate() {
            let answer = exchange(&mut stream, message).await;
            assert_eq!(&answer[9..12], expected, "{what}, request {number}: {answer}");
        }
        assert_eq!(&exchange(&mut stream, &get("greet")).await[9..12], "429", "{what}");
    }
}

// req: S-59
#[tokio::test]
async fn concurrent_request_counts_until_its_response_is_taken() {
    let callers = Limits { concurrent_requests: NonZeroU32::MIN, ..Limits::default() };
    let server = Server::start(|_| {}, Some(callers)).await;
    let mut silent = server.connect(HERE).await;
    let answer = exchange(&mut silent, &get("big")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.200}");
    let mut other = server.connect(HERE).await;
    let refusal = exchange(&mut other, &get("greet")).await;
    assert!(refusal.starts_with("HTTP/1.1 429"), "{refusal}");
    let mut elsewhere = server.connect([127, 0, 0, 2]).await;
    assert!(exchange(&mut elsewhere, &get("greet")).await.starts_with("HTTP/1.1 200"), "another caller");
    drop(silent);
    server.usage_until(|usage| usage.response_bytes == 0).await;
    let mut other = server.connect(HERE).await;
    assert!(exchange(&mut other, &get("greet")).await.starts_with("HTTP/1.1 200"));
    assert!(exchange(&mut other, &get("greet")).await.starts_with("HTTP/1.1 200"), "a taken response is not counted");
}

// req: S-59
#[tokio::test]
async fn unread_responses_have_a_bound() {
    let server = Server::start(|limits| limits.response_bytes = 40 << 20, None).await;
    let mut waiting = Vec::new();
    let mut statuses = Vec::new();
    for number in 0..4_u8 {
        // One address has half of the bytes.
        let mut silent = server.connect([127, 0, 0, 1 + number % 2]).await;
        let answer = exchange(&mut silent, &get("big")).await;
        assert!(
            !answer.starts_with("HTTP/1.1 503") || answer.to_lowercase().contains("retry-after: 5"),
            "{answer:.200}"
        );
        statuses.push(answer[9..12].to_owned());
        waiting.push(silent);
    }
    assert_eq!(statuses, ["200", "200", "503", "503"]);
    let usage = server.app.usage();
    assert!(usage.response_bytes <= 40 << 20, "{usage:?}");
    assert_eq!(count(&usage.refused, "response-bytes"), 2);
    let mut valid = server.connect(HERE).await;
    assert!(exchange(&mut valid, &get("greet")).await.starts_with("HTTP/1.1 200"), "short responses always pass");
    drop(waiting);
    server.usage_until(|usage| usage.response_bytes == 0).await;
}

// req: S-59
#[tokio::test]
async fn body_that_stops_arriving_is_refused_after_a_time() {
    let server = Server::start(|limits| limits.progress_timeout = Duration::from_secs(1), None).await;
    for sent in [1, 3 << 20] {
        let mut silent = server.connect(HERE).await;
        let begun = Instant::now();
        silent.write_all(head(4 << 20).as_bytes()).await.expect("the server reads");
        silent.write_all(&vec![b' '; sent]).await.expect("the server reads");
        let refusal = response(&mut silent).await;
        assert!(refusal.starts_with("HTTP/1.1 408"), "{refusal}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        read_to_end(&mut silent).await;
    }
    let usage = server.usage_until(|usage| usage.request_bytes == 0).await;
    assert_eq!(count(&usage.closed, "stalled"), 2);
    // A byte now and then is not progress either.
    let mut slow = server.connect(HERE).await;
    let begun = Instant::now();
    slow.write_all(head(4 << 20).as_bytes()).await.expect("the server reads");
    let mut received = vec![0; 12];
    loop {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server still waits");
        tokio::select! {
            read = slow.read_exact(&mut received) => {
                read.expect("the server answers");
                break;
            }
            () = sleep(Duration::from_millis(100)) => slow.write_all(b" ").await.unwrap_or_default(),
        }
    }
    assert_eq!(received, b"HTTP/1.1 408");
}

/// The idle time-out of [`impatient_server`].
const IDLE: Duration = Duration::from_millis(400);

async fn impatient_server() -> Server {
    let mut options = Options::default();
    options.idle_timeout = IDLE;
    Server::with_options(&options, None).await
}

// req: S-25
#[tokio::test]
async fn connections_without_a_request_end_after_the_idle_timeout() {
    let server = impatient_server().await;
    let mut silent = server.connect(HERE).await;
    assert_eq!(read_to_end(&mut silent).await, 0, "a connection without a request");

    let mut used = server.connect(HERE).await;
    for _ in 0..3 {
        sleep(IDLE / 2).await;
        let answer = exchange(&mut used, &get("greet")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(read_to_end(&mut used).await, 0, "a connection after its last response");

    // A byte now and then does not complete the head.
    let mut slow = server.connect(HERE).await;
    let head = head(10);
    let mut bytes = head.as_bytes()[..head.len() - 4].chunks(1).cycle();
    let begun = Instant::now();
    let mut received = [0; 1];
    loop {
        assert!(begun.elapsed() < TIMEOUT, "the server still waits");
        tokio::select! {
            read = slow.read(&mut received) => {
                assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
                break;
            }
            () = sleep(IDLE / 8) => slow.write_all(bytes.next().unwrap_or_default()).await.unwrap_or_default(),
        }
    }
}

#[tokio::test]
async fn connections_of_a_separate_listener_end_after_the_idle_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let routes = axum::Router::new().route("/healthz", axum::routing::get(promptshelf_server::http::healthy));
    let serving = tokio::spawn(promptshelf_server::http::serve_routes(listener, routes, IDLE));
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let answer = exchange(&mut stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.ends_with("ok\n"), "{answer}");
    assert_eq!(read_to_end(&mut stream).await, 0);
    serving.abort();
}

#[tokio::test]
async fn request_in_progress_is_not_idle() {
    let server = impatient_server().await;
    let mut stream = server.connect(HERE).await;
    let request = get("greet");
    let (head, body) = request.split_at(request.len() - 10);
    stream.write_all(head.as_bytes()).await.expect("the server reads");
    sleep(4 * IDLE).await;
    let answer = exchange(&mut stream, body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

// req: S-59
#[tokio::test]
async fn unfinished_bodies_have_a_bound_and_a_share_for_each_address() {
    let server = Server::start(|limits| limits.request_bytes = 8 << 20, None).await;
    let mut unfinished = Vec::new();
    for address in [2, 3, 4, 5, 6, 7] {
        for _ in 0..2 {
            let mut silent = server.connect([127, 0, 0, address]).await;
            silent.write_all(head(2 << 20).as_bytes()).await.expect("the server reads");
            // Refused ones are closed while this is written.
            silent.write_all(&vec![b' '; (2 << 20) - 1]).await.unwrap_or_default();
            unfinished.push(silent);
        }
    }
    let usage = server.usage_until(|usage| count(&usage.refused, "request-bytes") >= 8).await;
    assert!(usage.request_bytes <= 8 << 20, "{usage:?}");
    // A refused body that went on would occupy memory that nothing counts.
    server.usage_until(|usage| usage.connections == 4).await;
    let mut valid = server.connect(HERE).await;
    let padded = request(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{{}}{}}}"#,
        " ".repeat(28 << 10)
    ));
    assert!(exchange(&mut valid, &padded).await.starts_with("HTTP/1.1 200"), "short bodies always pass");
    drop(unfinished);
    server.usage_until(|usage| usage.request_bytes == 0).await;
}

//! The endpoint behind a real listener: what no test without a socket can show.

use std::time::Duration;

use axum::Router;
use promptshelf_mcp::HttpOptions;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use super::endpoint::{Endpoint, greet, modern};

/// A connection over which requests are written by hand.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn write(address: std::net::SocketAddr, request: &str) -> Connection {
        let mut stream = TcpStream::connect(address).await.expect("the listener listens");
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        Connection(BufReader::new(stream))
    }

    /// The status of the answer; the rest of its head is passed over.
    async fn status(&mut self) -> u16 {
        let mut line = String::new();
        self.0.read_line(&mut line).await.expect("a status line");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        while line != "\r\n" {
            line.clear();
            assert_ne!(self.0.read_line(&mut line).await.expect("a header"), 0, "the head ends");
        }
        status
    }
}

const GET: &str = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";

#[tokio::test]
async fn a_client_that_vanishes_frees_its_stream() {
    let endpoint = Endpoint::with(HttpOptions { max_streams: 1, ..HttpOptions::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().route_service("/mcp", endpoint.service.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });

    let mut first = Connection::write(address, GET).await;
    assert_eq!(first.status().await, 200);
    assert_eq!(Connection::write(address, GET).await.status().await, 503);
    drop(first);
    let freed = async { while Connection::write(address, GET).await.status().await != 200 {} };
    tokio::time::timeout(Duration::from_secs(20), freed).await.expect("the stream is freed");

    let body = modern(&json!(1), "prompts/get", greet()).to_string();
    let post = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: prompts/get\r\nMCP-NAME: \t greet \r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = Connection::write(address, &post).await;
    assert_eq!(answer.status().await, 200);
    let mut text = String::new();
    answer.0.read_to_string(&mut text).await.expect("a body");
    assert!(text.contains("Say hello to Ada."), "{text}");
    serving.abort();
}

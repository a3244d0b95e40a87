//! The endpoint behind a real listener: behaviour that needs a socket.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use promptshelf_mcp::HttpOptions;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::endpoint::{Ask, Endpoint, greet, modern};

/// A connection with hand-written requests.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn write(address: std::net::SocketAddr, request: &str) -> Connection {
        let mut stream = TcpStream::connect(address).await.expect("the listener listens");
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        Connection(BufReader::new(stream))
    }

    /// Returns the status of the response and skips the rest of its head.
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

// req: H12, L11, L16, X23
#[tokio::test]
async fn vanished_client_frees_stream() {
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

/// A peer that opens a stream and then disappears. The connection stays open for the server until the system reports
/// that its writes fail.
struct Gone {
    request: &'static [u8],
    closed: Arc<AtomicBool>,
}

impl AsyncRead for Gone {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.request.is_empty() {
            return Poll::Pending;
        }
        let (now, later) = self.request.split_at(self.request.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.request = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gone {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(match self.closed.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(bytes.len()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Accepts prepared connections.
struct Handed(mpsc::UnboundedReceiver<Gone>);

impl axum::serve::Listener for Handed {
    type Io = Gone;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Gone, SocketAddr) {
        match self.0.recv().await {
            Some(gone) => (gone, SocketAddr::from(([127, 0, 0, 1], 1))),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([127, 0, 0, 1], 2)))
    }
}

// req: H12, H13, L16, X23
#[tokio::test(start_paused = true)]
async fn silent_peer_is_detected_and_freed() {
    let options = HttpOptions { max_streams: 1, keep_alive: Duration::from_secs(20), ..HttpOptions::default() };
    let endpoint = Endpoint::with(options);
    let (hand, handed) = mpsc::unbounded_channel();
    let router = Router::new().route_service("/mcp", endpoint.service.clone());
    let serving = tokio::spawn(async move { axum::serve(Handed(handed), router).await });
    let is_taken = async || endpoint.open(Ask::get_stream().request()).await.status() == 503;

    let closed = Arc::new(AtomicBool::new(false));
    assert!(hand.send(Gone { request: GET.as_bytes(), closed: Arc::clone(&closed) }).is_ok(), "the listener accepts");
    let opened = async {
        while !is_taken().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), opened).await.expect("the stream is opened");
    // A lost peer cannot be detected while the system accepts writes.
    tokio::time::advance(Duration::from_secs(3_600)).await;
    tokio::task::yield_now().await;
    assert!(is_taken().await);
    closed.store(true, Ordering::Relaxed);
    let sent = tokio::time::Instant::now();
    while is_taken().await {
        // Time is paused: this advances to the next keep-alive and no further.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(sent.elapsed() < Duration::from_secs(60), "nothing is written to a quiet stream");
    }
    serving.abort();
}

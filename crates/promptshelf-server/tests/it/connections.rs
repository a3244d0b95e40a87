//! Connections over real sockets: replaced options and shutdown.

use axum::http::StatusCode;
use promptshelf_server::http::{App, Options};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::{TIMEOUT, library};

/// Reads until `wanted` has been received.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut received = String::new();
    let mut buffer = [0; 4096];
    let reading = async {
        while !received.contains(wanted) {
            let read = stream.read(&mut buffer).await.expect("the server writes");
            assert!(read > 0, "the connection ended after {received:?}");
            received.push_str(std::str::from_utf8(&buffer[..read]).expect("UTF-8"));
        }
    };
    tokio::time::timeout(TIMEOUT, reading).await.expect("the server answers");
    received
}

#[tokio::test]
async fn options_are_replaced_without_closing_connections_and_shutdown_ends_streams() {
    let library = library().build().expect("a library");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let app = App::new(&library, &Options::default());
    let (shut_down, is_shut_down) = oneshot::channel::<()>();
    let serving = tokio::spawn({
        let app = app.clone();
        async move { app.serve(listener, async { drop(is_shut_down.await) }).await }
    });
    let mut connection = TcpStream::connect(address).await.expect("the server listens");
    let request = b"GET /library/facts HTTP/1.1\r\nHost: localhost\r\n\r\n";
    connection.write_all(request).await.expect("the server reads");
    assert!(read_until(&mut connection, "\"limits\"").await.starts_with("HTTP/1.1 200 OK"));

    let mut options = app.options();
    options.mcp.allowed_hosts = vec!["prompts.example.com".to_owned()];
    app.replace(&options);
    connection.write_all(request).await.expect("the connection is open");
    let refusal = read_until(&mut connection, ".\n").await;
    assert!(refusal.starts_with(&format!("HTTP/1.1 {}", StatusCode::FORBIDDEN)), "{refusal}");

    let head = "GET /mcp HTTP/1.1\r\nHost: prompts.example.com\r\nAccept: text/event-stream\r\n\
                MCP-Protocol-Version: 2025-06-18\r\n\r\n";
    connection.write_all(head.as_bytes()).await.expect("the connection is open");
    read_until(&mut connection, ":\n\n").await;
    shut_down.send(()).expect("the server runs");
    read_until(&mut connection, "0\r\n\r\n").await;
    tokio::time::timeout(TIMEOUT, serving).await.expect("the server ends").expect("it does not panic");
    assert!(TcpStream::connect(address).await.is_err());
}

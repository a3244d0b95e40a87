//! Client of Streamable HTTP, with one connection for each request.

use std::{convert::Infallible, net::SocketAddr, process::Stdio};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::Command,
    sync::mpsc,
    task::JoinSet,
};

use crate::{in_time, served::Served};

/// A request to send.
#[derive(Clone, Debug)]
pub struct Request {
    /// Any method.
    pub method: Method,
    /// All headers apart from `Host`, which is added if it is missing.
    pub headers: HeaderMap,
    /// The body as it is.
    pub body: Bytes,
}

/// A response with one message, or a message of a stream.
#[derive(Clone, Debug)]
pub struct Received {
    /// The status of the response.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: HeaderMap,
    /// `None` for an empty body.
    pub message: Option<Value>,
}

/// The response to a request.
#[derive(Debug)]
pub enum Response {
    /// A whole body.
    One(Received),
    /// A stream; [`HttpWire::receive`] returns its messages.
    Stream,
}

/// The client's end.
pub struct HttpWire {
    address: SocketAddr,
    received: mpsc::UnboundedReceiver<Received>,
    sender: mpsc::UnboundedSender<Received>,
    streams: JoinSet<()>,
    served: Served,
}

impl HttpWire {
    /// Creates a client of a server that already listens.
    pub fn new(address: SocketAddr, served: Served) -> HttpWire {
        let (sender, received) = mpsc::unbounded_channel();
        HttpWire { address, received, sender, streams: JoinSet::new(), served }
    }

    /// Starts a program, and waits until it logs its address.
    pub async fn program(mut command: Command) -> HttpWire {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut log = BufReader::new(child.stderr.take().expect("its stderr")).lines();
        let address = loop {
            let line = in_time("the program's address", log.next_line()).await.expect("an intact pipe");
            let line = line.expect("the program logs its address");
            if let Some((_, url)) = line.split_once("listening on http://") {
                break url.trim_end_matches("/mcp").parse().expect("an address");
            }
        };
        // A full pipe would block the program, so the log is read to its end.
        tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
        HttpWire::new(address, Served::Program(child))
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request, and waits for the response to begin.
    pub async fn send(&mut self, request: Request) -> Response {
        let response = in_time("a response over HTTP", exchange(self.address, request)).await;
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type == Some("text/event-stream") {
            assert_eq!(head.status, StatusCode::OK, "the status of a stream is 200");
            self.streams.spawn(follow(body, head.headers, self.sender.clone()));
            return Response::Stream;
        }
        let body = in_time("a body", body.collect()).await.expect("a whole body").to_bytes();
        let message = (!body.is_empty()).then(|| {
            assert_eq!(content_type, Some("application/json"), "{body:?}");
            serde_json::from_slice(&body).expect("JSON")
        });
        Response::One(Received { status: head.status, headers: head.headers, message })
    }

    /// Receives the next message of any stream.
    pub async fn receive(&mut self) -> Received {
        in_time("a message of a stream", self.received.recv()).await.expect("this client owns a sender")
    }

    /// Returns the messages that have arrived and were not received yet.
    pub fn waiting(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }

    /// Closes every stream without notice. Messages that have arrived stay.
    pub async fn vanish(&mut self) {
        self.streams.shutdown().await;
    }

    /// Returns the id of the program, if one serves.
    pub fn process(&self) -> Option<u32> {
        match &self.served {
            Served::Task { .. } => None,
            Served::Program(child) => child.id(),
        }
    }

    /// Asks the server to end, as an operator does.
    pub fn shut_down(&mut self) {
        self.served.shut_down();
    }

    /// Closes every stream, ends the server, and returns the messages that were not received.
    pub async fn end(mut self) -> Vec<Received> {
        self.vanish().await;
        self.shut_down();
        self.served.ended().await;
        self.waiting()
    }
}

async fn exchange(address: SocketAddr, request: Request) -> http::Response<Incoming> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let mut wire = http::Request::new(Full::<Bytes>::new(request.body).map_err(|never: Infallible| match never {}));
    *wire.method_mut() = request.method;
    *wire.uri_mut() = http::Uri::from_static("/mcp");
    *wire.headers_mut() = request.headers;
    if !wire.headers().contains_key(header::HOST) {
        let host = address.to_string().parse().expect("a header");
        wire.headers_mut().insert(header::HOST, host);
    }
    sender.send_request(wire).await.expect("a response")
}

/// Reads events of one message each until the stream ends.
async fn follow(mut body: Incoming, headers: HeaderMap, sender: mpsc::UnboundedSender<Received>) {
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        // The server may end in the middle of a stream; complete events count.
        let Ok(frame) = frame else { return };
        let Ok(data) = frame.into_data() else { continue };
        text.push_str(std::str::from_utf8(&data).expect("events are UTF-8, written whole"));
        while let Some((event, rest)) = text.split_once("\n\n") {
            if event != ":" {
                let message = event.strip_prefix("event: message\ndata: ").expect("an event of one message");
                let message = Some(serde_json::from_str(message).expect("JSON"));
                let received = Received { status: StatusCode::OK, headers: headers.clone(), message };
                if sender.send(received).is_err() {
                    return;
                }
            }
            text = rest.to_owned();
        }
    }
}

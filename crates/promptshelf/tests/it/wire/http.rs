//! Streamable HTTP from the client's side, a connection a request.

use std::{convert::Infallible, net::SocketAddr, path::Path, process::Stdio};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use promptshelf::{Library, http::Options, source::ReloadTask};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::Child,
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};

use super::{patiently, pipe};

/// What is to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What came, from an answer or from a stream.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Nothing where the body was empty.
    pub(crate) message: Option<Value>,
}

/// How a request was answered.
#[derive(Debug)]
pub(crate) enum Answer {
    One(Heard),
    /// The messages of the stream come by themselves: see [`HttpWire::hear`].
    Stream,
}

/// The client's end.
pub(crate) struct HttpWire {
    address: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
    tell: mpsc::UnboundedSender<Heard>,
    streams: JoinSet<()>,
    served_by: ServedBy,
}

enum ServedBy {
    Memory { end: Option<oneshot::Sender<()>>, serving: JoinHandle<()>, _following: ReloadTask },
    Program(Child),
}

impl HttpWire {
    /// A server in this process, on a real port.
    pub(crate) async fn memory(folder: &Path) -> HttpWire {
        let library = Library::builder().folder(folder).build().expect("a library");
        let _following = library.loader().spawn();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let until = async move { drop(ended.await) };
            promptshelf::http::serve(listener, &library, &Options::default(), until).await;
        });
        HttpWire::new(address, ServedBy::Memory { end: Some(end), serving, _following })
    }

    /// The program with a port.
    pub(crate) async fn program(folder: &Path) -> HttpWire {
        let mut command = pipe::serving(folder);
        command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("its stderr")).lines();
        let address = loop {
            let line = patiently("the program's address", said.next_line()).await.expect("a whole pipe");
            let line = line.expect("the program says where it listens");
            if let Some((_, url)) = line.split_once("listening on http://") {
                break url.trim_end_matches("/mcp").parse().expect("an address");
            }
        };
        // Somebody has to read on: a full pipe would hold the program up.
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        HttpWire::new(address, ServedBy::Program(child))
    }

    fn new(address: SocketAddr, served_by: ServedBy) -> HttpWire {
        let (tell, heard) = mpsc::unbounded_channel();
        HttpWire { address, heard, tell, streams: JoinSet::new(), served_by }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request and waits for its answer to begin.
    pub(crate) async fn send(&mut self, request: Request) -> Answer {
        let response = patiently("an answer over HTTP", exchange(self.address, request)).await;
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if content_type == Some("text/event-stream") {
            assert_eq!(head.status, StatusCode::OK, "a stream comes with 200");
            self.streams.spawn(follow(body, head.headers, self.tell.clone()));
            return Answer::Stream;
        }
        let body = patiently("a body", body.collect()).await.expect("a whole body").to_bytes();
        let message = (!body.is_empty()).then(|| {
            assert_eq!(content_type, Some("application/json"), "{body:?}");
            serde_json::from_slice(&body).expect("JSON")
        });
        Answer::One(Heard { status: head.status, headers: head.headers, message })
    }

    /// The next message of any stream.
    pub(crate) async fn hear(&mut self) -> Heard {
        patiently("a stream's message", self.heard.recv()).await.expect("the sender is ours")
    }

    /// What came and nobody has asked for.
    pub(crate) fn waiting(&mut self) -> Vec<Heard> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }

    /// Closes every stream without a word. What has come by then can still be heard.
    pub(crate) async fn vanish(&mut self) {
        self.streams.shutdown().await;
    }

    /// The program's process id.
    pub(crate) fn process(&self) -> Option<u32> {
        match &self.served_by {
            ServedBy::Memory { .. } => None,
            ServedBy::Program(child) => child.id(),
        }
    }

    /// Asks the server to end, as an operator does.
    pub(crate) fn shut_down(&mut self) {
        match &mut self.served_by {
            ServedBy::Memory { end, .. } => drop(end.take()),
            ServedBy::Program(child) => pipe::terminate(child),
        }
    }

    /// Closes every stream, ends the server, and gives what came and nobody
    /// asked for.
    pub(crate) async fn end(mut self) -> Vec<Heard> {
        self.vanish().await;
        self.shut_down();
        match &mut self.served_by {
            ServedBy::Memory { serving, .. } => patiently("the end", serving).await.expect("no panic"),
            ServedBy::Program(child) => {
                let status = patiently("the end", child.wait()).await.expect("an end");
                assert!(status.success(), "the program ended with {status}");
            }
        }
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
    sender.send_request(wire).await.expect("an answer")
}

/// Reads events, one message each, until the stream ends.
async fn follow(mut body: Incoming, headers: HeaderMap, tell: mpsc::UnboundedSender<Heard>) {
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        // The server may be gone in the middle of a stream; what came came.
        let Ok(frame) = frame else { return };
        let Ok(data) = frame.into_data() else { continue };
        text.push_str(std::str::from_utf8(&data).expect("events are text, written whole"));
        while let Some((event, rest)) = text.split_once("\n\n") {
            if event != ":" {
                let message = event.strip_prefix("event: message\ndata: ").expect("an event of one message");
                let message = Some(serde_json::from_str(message).expect("JSON"));
                let heard = Heard { status: StatusCode::OK, headers: headers.clone(), message };
                if tell.send(heard).is_err() {
                    return;
                }
            }
            text = rest.to_owned();
        }
    }
}

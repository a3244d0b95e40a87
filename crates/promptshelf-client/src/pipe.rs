//! The transport over a pair of streams: one JSON-RPC message per line.
//!
//! Sending is the SDK's. Its reader drops batches, and what it drops is never answered.

use std::{collections::VecDeque, future, io, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    },
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty},
    time::Instant,
};

use crate::{tolerance, transport::probe_error};

/// The longest message, in bytes: a prompt with images fits.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Boxed streams compile the SDK's generic code once.
type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) struct Pipe {
    reader: BufReader<Reader>,
    writer: AsyncRwTransport<RoleClient, Empty, Writer>,
    line: Vec<u8>,
    /// Whether the rest of the line is dropped, because it is too long.
    is_dropping: bool,
    ready: VecDeque<ServerJsonRpcMessage>,
    /// The time for the answer to `server/discover`.
    probe_timeout: Duration,
    probe: Option<Probe>,
    /// The request that was sent in place of one in the server's revision.
    initialize: Option<RequestId>,
}

struct Probe {
    id: RequestId,
    /// The end of the wait; `None` once it has been given up.
    deadline: Option<Instant>,
}

impl Pipe {
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        probe_timeout: Duration,
    ) -> Pipe {
        let (reader, writer): (Reader, Writer) = (Box::new(reader), Box::new(writer));
        Pipe {
            reader: BufReader::new(reader),
            writer: AsyncRwTransport::new(tokio::io::empty(), writer),
            line: Vec::new(),
            is_dropping: false,
            ready: VecDeque::new(),
            probe_timeout,
            probe: None,
            initialize: None,
        }
    }

    /// Reads up to the end of a line; `None` at the end of the stream. A wait that is cancelled loses nothing.
    async fn read_line(&mut self) -> io::Result<Option<()>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(bytes.len(), |end| end + 1);
            self.is_dropping |= self.line.len() + length > MAX_LINE_BYTES;
            if self.is_dropping {
                self.line.clear();
            } else {
                self.line.extend_from_slice(&bytes[..length]);
            }
            self.reader.consume(length);
            if end.is_some() {
                self.is_dropping = false;
                return Ok(Some(()));
            }
        }
    }

    /// Returns whether a message is the answer to the probe, which needs no further wait.
    fn ends_probe(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            // An error without an identifier answers the only request so far.
            JsonRpcMessage::Error(error) => {
                let waited_for = self.probe.as_ref().filter(|probe| probe.deadline.is_some());
                error.id.as_ref().or(waited_for.map(|probe| &probe.id))
            }
            _ => None,
        };
        matches!((id, &self.probe), (Some(id), Some(probe)) if *id == probe.id)
    }
}

/// Returns an error in place of an answer that cannot be read. Other lines are left out: some servers write their log to stdout.
fn unreadable(line: &[u8], error: &serde_json::Error) -> Vec<ServerJsonRpcMessage> {
    #[derive(serde::Deserialize)]
    struct Answer {
        id: RequestId,
        method: Option<serde::de::IgnoredAny>,
    }
    let text = format!("the server's answer is no message of JSON-RPC: {error}");
    let answer = serde_json::from_str::<Answer>(&String::from_utf8_lossy(line)).ok().filter(|it| it.method.is_none());
    let error = |id| ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::PARSE_ERROR, text, None), Some(id));
    answer.map(|answer| error(answer.id)).into_iter().collect()
}

impl Transport<RoleClient> for Pipe {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            match request.request {
                ClientRequest::DiscoverRequest(_) => {
                    let deadline = Some(Instant::now() + self.probe_timeout);
                    self.probe = Some(Probe { id: request.id.clone(), deadline });
                }
                ClientRequest::InitializeRequest(_) => self.initialize = Some(request.id.clone()),
                _ => {}
            }
        }
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while let Some(message) = self.ready.pop_front() {
                if !self.ends_probe(&message) {
                    return Some(message);
                }
                if self.probe.take().is_some_and(|probe| probe.deadline.is_some()) {
                    return Some(message);
                }
                // The server was slow to start, and would go on in an older revision: it has to be asked again.
                if let (JsonRpcMessage::Response(_), Some(id)) = (&message, self.initialize.take()) {
                    return Some(probe_error(id));
                }
            }
            let deadline = self.probe.as_ref().and_then(|probe| probe.deadline);
            let late = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                biased;
                line = self.read_line() => line.ok()??,
                () = late => {
                    let probe = self.probe.as_mut()?;
                    probe.deadline = None;
                    return Some(probe_error(probe.id.clone()));
                }
            }
            let line = self.line.trim_ascii();
            if !line.is_empty() {
                self.ready.extend(tolerance::messages(line).unwrap_or_else(|error| unreadable(line, &error)));
            }
            self.line.clear();
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await
    }
}

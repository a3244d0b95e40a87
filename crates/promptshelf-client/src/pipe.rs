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

use crate::{client_handler::ProbeOutcome, tolerance, transport::probe_error};

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
    outcome: ProbeOutcome,
    /// The request that was sent in place of one in the server's revision.
    initialize: Option<RequestId>,
}

struct Probe {
    id: RequestId,
    wait: Wait,
}

enum Wait {
    /// Until then, for the answer.
    Begun(Instant),
    /// Without end: `initialize` is sent.
    GivenUp,
    /// Until then, with the answer to `initialize`: a server may answer both in another order.
    Held(Instant, Box<ServerJsonRpcMessage>),
}

/// The longest time in which the answer to `server/discover` can follow that to `initialize`.
const OVERTAKEN: Duration = Duration::from_secs(1);

impl Pipe {
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        probe_timeout: Duration,
        outcome: ProbeOutcome,
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
            outcome,
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
                let waited_for = self.probe.as_ref().filter(|probe| matches!(probe.wait, Wait::Begun(_)));
                error.id.as_ref().or(waited_for.map(|probe| &probe.id))
            }
            _ => None,
        };
        matches!((id, &self.probe), (Some(id), Some(probe)) if *id == probe.id)
    }

    /// Ends the probe with its answer, and returns what the client has to see of it.
    fn answered(&mut self, answer: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match (self.probe.take()?.wait, answer, self.initialize.take()) {
            (Wait::Begun(_), answer, _) => {
                self.outcome.note(Some(&answer));
                Some(answer)
            }
            // The server was slow to start, and would go on in an older revision: it has to be asked again.
            (_, JsonRpcMessage::Response(_), Some(id)) => Some(probe_error(id)),
            (Wait::Held(_, initialized), ..) => Some(*initialized),
            (Wait::GivenUp, ..) => None,
        }
    }

    /// Keeps the answer to `initialize` for a moment, if that to the probe is missing.
    fn hold(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match (&message, &mut self.probe, &self.initialize) {
            (JsonRpcMessage::Response(response), Some(Probe { wait: wait @ Wait::GivenUp, .. }), Some(initialize))
                if response.id == *initialize =>
            {
                let time = OVERTAKEN.min(self.probe_timeout / 2);
                *wait = Wait::Held(Instant::now() + time, Box::new(message));
                None
            }
            _ => Some(message),
        }
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
                    let wait = Wait::Begun(Instant::now() + self.probe_timeout);
                    self.probe = Some(Probe { id: request.id.clone(), wait });
                }
                ClientRequest::InitializeRequest(_) => {
                    self.initialize = Some(request.id.clone());
                    // The SDK has a time limit of its own.
                    if let Some(probe) = &mut self.probe {
                        probe.wait = Wait::GivenUp;
                    }
                }
                _ => {}
            }
        }
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while let Some(message) = self.ready.pop_front() {
                let seen = if self.ends_probe(&message) { self.answered(message) } else { self.hold(message) };
                if seen.is_some() {
                    return seen;
                }
            }
            let deadline = match self.probe.as_ref().map(|probe| &probe.wait) {
                Some(Wait::Begun(end) | Wait::Held(end, _)) => Some(*end),
                _ => None,
            };
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
                    return match std::mem::replace(&mut probe.wait, Wait::GivenUp) {
                        Wait::Held(_, initialized) => {
                            self.initialize = None;
                            Some(*initialized)
                        }
                        _ => Some(probe_error(probe.id.clone())),
                    };
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex, split};

    use super::*;

    const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}}"#;
    const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#;

    fn message(value: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(value).expect("a message")
    }

    /// Returns a pipe over which both requests were sent, before the end of the wait or after it.
    async fn asked(gives_up: bool) -> (Pipe, DuplexStream) {
        let (ours, theirs) = duplex(1 << 16);
        let (reader, writer) = split(ours);
        let mut pipe = Pipe::new(reader, writer, Duration::from_secs(3), ProbeOutcome::default());
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        let discover = json!({ "jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": { "_meta": meta } });
        pipe.send(message(discover)).await.expect("an open pipe");
        if gives_up {
            assert!(matches!(pipe.receive().await, Some(JsonRpcMessage::Error(_))));
        }
        let client = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        pipe.send(message(initialize)).await.expect("an open pipe");
        (pipe, theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn late_server_of_the_present_revision_is_taken_for_no_older_one() {
        for gives_up in [true, false] {
            for (answers, is_older) in [
                (&[DISCOVERED][..], false),
                (&[DISCOVERED, INITIALIZED], false),
                (&[INITIALIZED, DISCOVERED], false),
                (&[INITIALIZED], true),
                (&[INITIALIZED, UNKNOWN], true),
                (&[UNKNOWN, INITIALIZED], true),
            ] {
                let (mut pipe, mut server) = asked(gives_up).await;
                server.write_all((answers.join("\n") + "\n").as_bytes()).await.expect("an open pipe");
                let seen = match pipe.receive().await.expect("an answer") {
                    JsonRpcMessage::Response(response) => (true, response.id),
                    JsonRpcMessage::Error(error) => (false, error.id.expect("an identifier")),
                    other => panic!("{other:?}"),
                };
                assert_eq!(seen, (is_older, RequestId::Number(1)), "{gives_up} {answers:?}");
            }
        }
    }
}

//! HTTP load over persistent connections, with one request at a time on each.

use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

/// Result of a load.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Latency of each response, sorted.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) elapsed: Duration,
}

impl Seen {
    /// The latency that so many per cent of the answers did not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let at = (self.latencies.len() * percent / 100).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// A persistent connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Result<Connection> {
        Connection::from(Ipv4Addr::LOCALHOST, port).await
    }

    /// Connects from another loopback address.
    pub(crate) async fn from(address: Ipv4Addr, port: u16) -> Result<Connection> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((address, 0).into())?;
        let stream = socket.connect((Ipv4Addr::LOCALHOST, port).into()).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(64 << 10) })
    }

    /// Sends a request and reads the whole response. Returns the status, the range of the body in the read buffer,
    /// and whether the connection stays open.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<(u16, std::ops::Range<usize>, bool)> {
        send(&mut self.stream, request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
            let Some(head) = find(&self.buffer, b"\r\n\r\n").map(|at| at + 4) else { continue };
            let (status, length) = read_head(&self.buffer[..head])?;
            let Some(length) = length else {
                while !self.buffer.ends_with(b"0\r\n\r\n") {
                    ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
                }
                return Ok((status, head..self.buffer.len(), true));
            };
            while self.buffer.len() < head + length {
                ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
            }
            return Ok((status, head..head + length, false));
        }
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Sends a request and parses the response as JSON, or as one event with JSON.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Value> {
        let (status, body, chunked) = self.exchange(request).await?;
        let body = if chunked { unchunked(&self.buffer[body]) } else { self.buffer[body].to_vec() };
        let text = String::from_utf8_lossy(&body);
        let json = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        serde_json::from_str(json)
            .with_context(|| format!("status {status}: {}", text.chars().take(300).collect::<String>()))
    }
}

/// Writes in pieces. A kernel that does not preempt its own code, as servers often have, would keep the other threads of
/// this core waiting for the whole time that it copies and delivers megabytes.
pub(crate) async fn send(stream: &mut TcpStream, request: &[u8]) -> Result<()> {
    for piece in request.chunks(128 << 10) {
        stream.write_all(piece).await?;
    }
    Ok(())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Parses the status and, if present, the content length.
fn read_head(head: &[u8]) -> Result<(u16, Option<usize>)> {
    let head = str::from_utf8(head)?;
    let status = head.get(9..12).context("no status")?.parse()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Ok((status, length))
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = find(body, b"\r\n") {
        let size = str::from_utf8(&body[..end]).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0 && body.len() >= end + 4 + size) else { break };
        out.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    out
}

/// Repeats a request on `connections` connections for `time`. Every response must have the length of the first one,
/// which was validated.
pub(crate) async fn run(port: u16, request: &[u8], connections: usize, time: Duration) -> Result<Seen> {
    let mut open = JoinSet::new();
    let started = Instant::now();
    let until = started + time;
    for _ in 0..connections {
        let request = request.to_vec();
        open.spawn(async move {
            let mut connection = Connection::open(port).await?;
            let mut latencies = Vec::new();
            let mut expected = None;
            loop {
                let sent = Instant::now();
                if sent >= until && !latencies.is_empty() {
                    return Ok::<_, anyhow::Error>(latencies);
                }
                let (status, body, _) = connection.exchange(&request).await?;
                latencies.push(sent.elapsed());
                ensure!(status == 200, "status {status}");
                ensure!(*expected.get_or_insert(body.len()) == body.len(), "answers of different length");
            }
        });
    }
    let mut seen = Seen::default();
    while let Some(latencies) = open.join_next().await {
        seen.latencies.extend(latencies??);
    }
    seen.elapsed = started.elapsed();
    seen.latencies.sort_unstable();
    Ok(seen)
}

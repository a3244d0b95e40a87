//! Scaling with the size of the library, cost of subscriptions, and start-up.
//!
//! These measurements compare the server with itself at different sizes, or with the minimum work of the machine for
//! the same task.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    Plan, library,
    load::{self, Connection},
    message::{Era, ROWS},
    pipe::Pipe,
    rows::median,
    server::{self, Kind, Server},
};

/// Measurements at one library size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) prompts: usize,
    /// Size of its files in bytes.
    pub(crate) bytes: u64,
    /// Reading the files sequentially.
    pub(crate) reading: Duration,
    /// From process start to the first response.
    pub(crate) loading: Duration,
    pub(crate) memory: u64,
    pub(crate) most_memory: u64,
    /// CPU time of 10,000 `prompts/get`.
    pub(crate) request: Duration,
    /// From an edit to the notification.
    pub(crate) edit: Duration,
}

/// Many open subscriptions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscriptions {
    pub(crate) streams: usize,
    /// Server memory per subscription.
    pub(crate) bytes_each: u64,
    /// From the first notified listener to the last.
    pub(crate) notifying: Duration,
    /// Writing the same amount to the same number of plain sockets.
    pub(crate) writing: Duration,
}

/// Start-up on stdio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// From process start to the first response, with the example library.
    pub(crate) answer: Duration,
    /// `/bin/true`, then reading the files.
    pub(crate) least: Duration,
    pub(crate) binary: u64,
}

/// All measurements of this module.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    pub(crate) sizes: Vec<Size>,
    pub(crate) subscriptions: Option<Subscriptions>,
    pub(crate) start: Option<Start>,
}

/// Runs the selected measurements.
pub(crate) async fn measure(plan: &Plan) -> Result<Growth> {
    let mut growth = Growth::default();
    if plan.wants("start") {
        let found = start(plan)?;
        println!("start: first answer {:.1?}, /bin/true and reading {:.1?}", found.answer, found.least);
        growth.start = Some(found);
    }
    if plan.wants("growth") {
        for prompts in [10, 1_000, if plan.quick { 10_000 } else { 100_000 }] {
            let found = size(plan, prompts).await.with_context(|| format!("a library of {prompts}"))?;
            println!("growth: {found:.1?}");
            growth.sizes.push(found);
        }
        let found = subscriptions(plan, if plan.quick { 1_000 } else { 10_000 }.min(most_streams())).await?;
        println!("growth: {found:.1?}");
        growth.subscriptions = Some(found);
    }
    Ok(growth)
}

fn start(plan: &Plan) -> Result<Start> {
    let library = plan.root.join("examples/library");
    let message = ROWS[0].message(Era::Modern);
    let message = message.body.replace("prompts/get", "prompts/list");
    let mut answers = Vec::new();
    let mut least = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        ensure!(Command::new("/bin/true").stdin(Stdio::null()).status()?.success(), "/bin/true is not true");
        library::bytes(&library)?;
        least.push(began.elapsed().as_secs_f64());
        let began = Instant::now();
        let mut pipe = Pipe::start(plan.programs.command(Kind::Promptshelf, 0, (0, 0), &library), None)?;
        ensure!(pipe.ask(&message)?.get("result").is_some(), "no response");
        answers.push(began.elapsed().as_secs_f64());
    }
    Ok(Start {
        answer: Duration::from_secs_f64(median(answers)),
        least: Duration::from_secs_f64(median(least)),
        binary: fs::metadata(&plan.promptshelf)?.len(),
    })
}

async fn size(plan: &Plan, prompts: usize) -> Result<Size> {
    let folder = plan.scratch.join(format!("growth-{prompts}"));
    library::write_listed(&folder, prompts, 1_000)?;
    library::write_asked(&folder)?;
    // Warms the file cache, so that both readings come from memory.
    let bytes = library::bytes(&folder)?;
    let began = Instant::now();
    library::bytes(&folder)?;
    let reading = began.elapsed();

    let port = server::free_port()?;
    let command = plan.programs.command(Kind::Promptshelf, port, (prompts, 1_000), &folder);
    let began = Instant::now();
    let server = Server::start(command, port, None, &plan.scratch.join("growth.log"))?;
    let row = &ROWS[0];
    let request = row.message(Era::Modern).http(port);
    row.check(&Connection::open(port).await?.ask(&request).await?)?;
    let loading = began.elapsed();

    // Waits for the second inspection of the library after the load.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = server::cpu(server.child.id())?;
    let seen = load::run(port, &request, 16, plan.time()).await?;
    let used = server::cpu(server.child.id())?.saturating_sub(before);
    let request = used.mul_f64(10_000.0 / seen.latencies.len() as f64);

    let mut listener = Stream::open(port).await?;
    let mut edits = Vec::new();
    for edit in 0..3 {
        let began = Instant::now();
        fs::write(folder.join("part-000/7.md"), library::listed(7, &format!(" Edit {edit}.")))?;
        listener.wait_for("notifications/prompts/list_changed").await?;
        edits.push(began.elapsed().as_secs_f64());
    }
    let (memory, most_memory) = server::memory(server.child.id())?;
    let edit = Duration::from_secs_f64(median(edits));
    Ok(Size { prompts, bytes, reading, loading, memory, most_memory, request, edit })
}

/// An open subscription.
pub(crate) struct Stream {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Stream {
    /// Subscribes and waits for the acknowledgement.
    pub(crate) async fn open(port: u16) -> Result<Stream> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let params = json!({
            "notifications": { "promptsListChanged": true },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": Era::Modern.revision(),
                "io.modelcontextprotocol/clientInfo": { "name": "meter", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\naccept: \
             application/json, text/event-stream\r\nmcp-protocol-version: {}\r\nmcp-method: \
             subscriptions/listen\r\ncontent-length: {}\r\n\r\n",
            Era::Modern.revision(),
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
        let mut stream = Stream { stream, read: Vec::new() };
        stream.wait_for("notifications/subscriptions/acknowledged").await?;
        Ok(stream)
    }

    /// Reads until `what` arrives, and returns the time.
    pub(crate) async fn wait_for(&mut self, what: &str) -> Result<Instant> {
        loop {
            if let Some(at) = String::from_utf8_lossy(&self.read).find(what) {
                self.read.drain(..at + what.len());
                return Ok(Instant::now());
            }
            let reading = self.stream.read_buf(&mut self.read);
            let read =
                tokio::time::timeout(Duration::from_secs(60), reading).await.context("no notification arrived")??;
            ensure!(read > 0, "the stream ended: {}", String::from_utf8_lossy(&self.read));
        }
    }
}

async fn subscriptions(plan: &Plan, streams: usize) -> Result<Subscriptions> {
    let folder = plan.scratch.join("subscriptions");
    library::write_listed(&folder, 10, 1_000)?;
    let port = server::free_port()?;
    let mut command = plan.programs.command(Kind::Promptshelf, port, (10, 1_000), &folder);
    command.arg("--config").arg(plan.programs.root.join("bench/meter/many-connections.toml"));
    let server = Server::start(command, port, None, &plan.scratch.join("subscriptions.log"))?;
    // The first request's one-time allocations are not attributed to streams.
    let first = Stream::open(port).await?;
    let before = server::memory(server.child.id())?.0;
    let mut open = Vec::with_capacity(streams);
    for _ in 0..streams {
        open.push(Stream::open(port).await?);
    }
    let after = server::memory(server.child.id())?.0;
    fs::write(folder.join("part-000/7.md"), library::listed(7, " An edit."))?;
    let mut listening = JoinSet::new();
    for mut stream in open {
        listening.spawn(async move { stream.wait_for("notifications/prompts/list_changed").await });
    }
    let mut notified = Vec::with_capacity(streams);
    while let Some(at) = listening.join_next().await {
        notified.push(at??);
    }
    drop(first);
    let notifying = match (notified.iter().min(), notified.iter().max()) {
        (Some(first), Some(last)) => *last - *first,
        _ => Duration::ZERO,
    };
    Ok(Subscriptions {
        streams,
        bytes_each: after.saturating_sub(before) / streams as u64,
        notifying,
        writing: writing(streams).await?,
    })
}

/// Time to write one event to `streams` sockets and to receive it.
async fn writing(streams: usize) -> Result<Duration> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..streams {
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        there.push(client?);
        here.push(accepted?.0);
    }
    let mut listening = JoinSet::new();
    for mut stream in there {
        listening.spawn(async move { stream.read(&mut [0; 512]).await });
    }
    let began = Instant::now();
    for stream in &mut here {
        stream.write_all(&[b'x'; 200]).await?;
    }
    while let Some(read) = listening.join_next().await {
        read??;
    }
    Ok(began.elapsed())
}

/// Descriptors per stream in the plain measurement: both ends.
const ENDS: u64 = 2;
/// Descriptors reserved for everything else.
const SPARE: u64 = 200;

/// Raises the limit of open files for this process and the servers, as far as permitted.
pub(crate) fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const ENOUGH: u64 = 65_536;
    let limit = getrlimit(Resource::Nofile);
    let enough = Some(limit.maximum.map_or(ENOUGH, |maximum| maximum.max(ENOUGH)));
    // Only root may raise the hard limit.
    setrlimit(Resource::Nofile, Rlimit { current: enough, maximum: enough })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }))
        .ok();
}

/// Maximum number of concurrent streams.
fn most_streams() -> usize {
    use rustix::process::{Resource, getrlimit};
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(SPARE) / ENDS).unwrap_or(usize::MAX)
}

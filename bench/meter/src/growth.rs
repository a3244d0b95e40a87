//! What grows with a library, and what must not; and how the program starts.
//!
//! Nothing here is compared with other servers: what is compared is the same
//! server with libraries of different sizes, or the least that the machine
//! could do for the same.

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

/// One size of a library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) prompts: usize,
    /// The bytes of its files.
    pub(crate) bytes: u64,
    /// Reading the files plainly, one after the other, and nothing else.
    pub(crate) reading: Duration,
    /// From the start of the program to its first answer.
    pub(crate) loading: Duration,
    pub(crate) memory: u64,
    pub(crate) most_memory: u64,
    /// Processor time of 10,000 `prompts/get`.
    pub(crate) request: Duration,
    /// From the edit of one file to the notification.
    pub(crate) edit: Duration,
}

/// Many open subscriptions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    pub(crate) streams: usize,
    /// What each one adds to the memory of the server.
    pub(crate) bytes_each: u64,
    /// From the first one that is told of a change to the last one.
    pub(crate) telling: Duration,
    /// Writing as many bytes to as many sockets, and nothing else.
    pub(crate) writing: Duration,
}

/// The start on stdio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// From the start to the first answer, with the example library.
    pub(crate) answer: Duration,
    /// `/bin/true`, and then reading the files.
    pub(crate) least: Duration,
    pub(crate) binary: u64,
}

/// Everything that was measured here.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    pub(crate) sizes: Vec<Size>,
    pub(crate) crowd: Option<Crowd>,
    pub(crate) start: Option<Start>,
}

/// Measures what is asked for.
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
        let found = crowd(plan, if plan.quick { 1_000 } else { 10_000 }.min(most_streams())).await?;
        println!("growth: {found:.1?}");
        growth.crowd = Some(found);
    }
    Ok(growth)
}

fn start(plan: &Plan) -> Result<Start> {
    let library = plan.root.join("examples/library");
    let message = ROWS[0].message(Era::Modern, None);
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
        ensure!(pipe.ask(&message)?.get("result").is_some(), "no answer");
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
    // Once before, so that both read from memory.
    let bytes = library::bytes(&folder)?;
    let began = Instant::now();
    library::bytes(&folder)?;
    let reading = began.elapsed();

    let port = server::free_port()?;
    let command = plan.programs.command(Kind::Promptshelf, port, (prompts, 1_000), &folder);
    let began = Instant::now();
    let server = Server::start(command, port, None, &plan.scratch.join("growth.log"))?;
    let row = &ROWS[0];
    let request = row.message(Era::Modern, None).http(port);
    row.check(&Connection::open(port).await?.ask(&request).await?)?;
    let loading = began.elapsed();

    // Once the library has been looked at a second time, for what changed while it was loaded.
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
        listener.hear("notifications/prompts/list_changed").await?;
        edits.push(began.elapsed().as_secs_f64());
    }
    let (memory, most_memory) = server::memory(server.child.id())?;
    let edit = Duration::from_secs_f64(median(edits));
    Ok(Size { prompts, bytes, reading, loading, memory, most_memory, request, edit })
}

/// A subscription.
struct Stream {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Stream {
    /// Opens it and waits for the acknowledgment.
    async fn open(port: u16) -> Result<Stream> {
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
        stream.hear("notifications/subscriptions/acknowledged").await?;
        Ok(stream)
    }

    /// Reads until something was said.
    async fn hear(&mut self, what: &str) -> Result<Instant> {
        loop {
            if let Some(at) = String::from_utf8_lossy(&self.read).find(what) {
                self.read.drain(..at + what.len());
                return Ok(Instant::now());
            }
            let reading = self.stream.read_buf(&mut self.read);
            let read = tokio::time::timeout(Duration::from_secs(60), reading).await.context("nothing was told")??;
            ensure!(read > 0, "the stream ended: {}", String::from_utf8_lossy(&self.read));
        }
    }
}

async fn crowd(plan: &Plan, streams: usize) -> Result<Crowd> {
    let folder = plan.scratch.join("crowd");
    library::write_listed(&folder, 10, 1_000)?;
    let port = server::free_port()?;
    let command = plan.programs.command(Kind::Promptshelf, port, (10, 1_000), &folder);
    let server = Server::start(command, port, None, &plan.scratch.join("crowd.log"))?;
    // What the first request makes once is no stream's.
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
        listening.spawn(async move { stream.hear("notifications/prompts/list_changed").await });
    }
    let mut told = Vec::with_capacity(streams);
    while let Some(at) = listening.join_next().await {
        told.push(at??);
    }
    drop(first);
    let telling = match (told.iter().min(), told.iter().max()) {
        (Some(first), Some(last)) => *last - *first,
        _ => Duration::ZERO,
    };
    Ok(Crowd {
        streams,
        bytes_each: after.saturating_sub(before) / streams as u64,
        telling,
        writing: writing(streams).await?,
    })
}

/// How long it takes to write one event to so many sockets and to hear it there.
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

/// How many files the plain writing has open for each stream: both ends.
const ENDS: u64 = 2;
/// More than everything else has open.
const SPARE: u64 = 200;

/// Raises the number of files that this process and the servers may open, as
/// far as the system lets it.
pub(crate) fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const ENOUGH: u64 = 65_536;
    let limit = getrlimit(Resource::Nofile);
    let enough = Some(limit.maximum.map_or(ENOUGH, |maximum| maximum.max(ENOUGH)));
    // Only root may raise the higher one of the two.
    setrlimit(Resource::Nofile, Rlimit { current: enough, maximum: enough })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }))
        .ok();
}

/// How many streams can be open at once.
fn most_streams() -> usize {
    use rustix::process::{Resource, getrlimit};
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(SPARE) / ENDS).unwrap_or(usize::MAX)
}

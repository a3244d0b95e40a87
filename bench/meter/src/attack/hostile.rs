//! Hostile callers, a kind a function: floods, bodies and heads that never end
//! or never come, and values that nobody can use.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
    time::sleep,
};

use super::{Caller, with_token};
use crate::{
    load::Connection,
    message::{Era, Message, ROWS},
    server,
};

/// The kinds, how many connections each holds, and what it does.
const ALL: [(&str, usize); 6] = [
    ("a flood with a token", 16),
    ("a flood without a token", 16),
    ("values of 2 MiB", 4),
    ("bodies, a byte each 100 ms", 256),
    ("heads, a byte each 100 ms", 256),
    ("heads without an end", 8),
];

pub(crate) const KINDS: u8 = ALL.len() as u8;

/// A byte of what is slow.
const SLOW: Duration = Duration::from_millis(100);

/// How long it may take until all of them are at work.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one kind did.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) kind: &'static str,
    pub(crate) connections: usize,
    /// Requests that were answered with 200.
    pub(crate) answered: u64,
    /// Requests that were refused, and connections that were closed.
    pub(crate) refused: u64,
    pub(crate) bytes: u64,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done { kind, connections, answered, refused, bytes } = self;
        write!(
            f,
            "{kind:<28} {connections:>3} connections, {answered} answered, {refused} refused or closed, {bytes} bytes"
        )
    }
}

/// Adds what was done in one more turn.
pub(super) fn add(all: &mut Vec<Done>, turn: Vec<Done>) {
    if all.is_empty() {
        *all = turn;
        return;
    }
    for (sum, turn) in all.iter_mut().zip(turn) {
        sum.answered += turn.answered;
        sum.refused += turn.refused;
        sum.bytes += turn.bytes;
    }
}

#[derive(Debug, Default)]
struct Count {
    answered: AtomicU64,
    refused: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    fn add(count: &AtomicU64, more: usize) {
        count.fetch_add(more as u64, Ordering::Relaxed);
    }
}

/// Hostile callers at work, until they are stopped.
pub(super) struct Attackers {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<()>>,
    counts: Vec<Arc<Count>>,
}

impl Attackers {
    pub(super) fn start(port: u16, callers: &[Caller], core: Option<usize>) -> Result<Attackers> {
        let (stop, stopped) = oneshot::channel::<()>();
        let counts: Vec<Arc<Count>> = ALL.iter().map(|_| Arc::default()).collect();
        let (callers, shared) = (callers.to_vec(), counts.clone());
        let work = move || {
            if let Some(core) = core {
                server::pin(core);
            }
            // Without the right to give way the figures are worse, not better.
            rustix::process::nice(5).ok();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                for (kind, (caller, count)) in callers.into_iter().zip(shared).enumerate() {
                    for _ in 0..ALL[kind].1 {
                        tokio::spawn(attack(kind, port, caller.clone(), Arc::clone(&count)));
                    }
                }
                // Nobody who could stop it means the same.
                stopped.await.ok();
            });
            Ok(())
        };
        let thread = thread::Builder::new().name("hostile".to_owned()).spawn(work).context("no thread")?;
        Ok(Attackers { stop, thread, counts })
    }

    /// Waits until every kind is at work.
    pub(super) async fn at_work(&self) -> Result<()> {
        let patience = Instant::now() + PATIENCE;
        let waiting = || ALL.iter().zip(&self.counts).find(|(_, count)| count.bytes.load(Ordering::Relaxed) == 0);
        while let Some(((kind, _), _)) = waiting() {
            ensure!(Instant::now() < patience, "{kind}: nothing of it has happened, so there is no attack");
            sleep(SLOW).await;
        }
        Ok(())
    }

    pub(super) fn stop(self) -> Result<Vec<Done>> {
        // It may have ended by itself, and then says why.
        self.stop.send(()).ok();
        self.thread.join().map_err(|_| anyhow!("the hostile callers panicked"))??;
        let done = |((kind, connections), count): (&(&'static str, usize), &Arc<Count>)| {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let (answered, refused, bytes) = (read(&count.answered), read(&count.refused), read(&count.bytes));
            Done { kind, connections: *connections, answered, refused, bytes }
        };
        Ok(ALL.iter().zip(&self.counts).map(done).collect())
    }
}

/// One connection after the other; whatever goes wrong is counted, and tried again.
async fn attack(kind: usize, port: u16, caller: Caller, count: Arc<Count>) {
    let plain = ROWS[0].message(Era::Modern, None).http(port);
    let huge = Message { body: huge(), ..ROWS[0].message(Era::Modern, None) };
    loop {
        let Ok(connection) = Connection::from(caller.address, port).await else {
            Count::add(&count.refused, 1);
            sleep(SLOW).await;
            continue;
        };
        let ended = match kind {
            0 => flood(connection, &with_token(&plain, &caller.token), &count).await,
            1 => flood(connection, &plain, &count).await,
            2 => flood(connection, &with_token(&huge.http(port), &caller.token), &count).await,
            3 => drip(connection, &promise(&with_token(&plain, &caller.token)), &count).await,
            4 => drip(connection, b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-", &count).await,
            _ => pour(connection, &count).await,
        };
        if ended.is_err() {
            Count::add(&count.refused, 1);
        }
    }
}

/// A message with a value that is larger than any may be.
fn huge() -> String {
    let value = "x".repeat(2 << 20);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"one","arguments":{{"change":"{value}"}},{meta}}}}}"#
    )
}

/// The head of a request whose body is said to be a mebibyte.
fn promise(request: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let head = text.split("content-length").next().unwrap_or_default();
    format!("{head}content-length: 1048576\r\n\r\n").into_bytes()
}

/// The same request, as fast as it is answered.
async fn flood(mut connection: Connection, request: &[u8], count: &Count) -> Result<()> {
    loop {
        let (status, ..) = connection.exchange(request).await?;
        Count::add(if status == 200 { &count.answered } else { &count.refused }, 1);
        Count::add(&count.bytes, request.len());
    }
}

/// A beginning, and then a byte now and then.
async fn drip(connection: Connection, beginning: &[u8], count: &Count) -> Result<()> {
    let mut stream = connection.into_stream();
    stream.write_all(beginning).await?;
    Count::add(&count.bytes, beginning.len());
    let mut answer = [0; 1_024];
    loop {
        tokio::select! {
            read = stream.read(&mut answer) => {
                anyhow::ensure!(read? == 0, "it was answered");
                anyhow::bail!("it was closed");
            }
            () = sleep(SLOW) => stream.write_all(b"x").await?,
        }
        Count::add(&count.bytes, 1);
    }
}

/// Headers for as long as somebody reads them.
async fn pour(connection: Connection, count: &Count) -> Result<()> {
    let mut stream = connection.into_stream();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n").await?;
    let line = [b"x-".as_slice(), &[b'y'; 60], b": z\r\n"].concat().repeat(64);
    loop {
        stream.write_all(&line).await?;
        Count::add(&count.bytes, line.len());
    }
}

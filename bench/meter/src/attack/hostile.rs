//! Hostile callers, one function for each kind: floods, slow and endless bodies and headers, oversized values, idle
//! crowds, responses that are not read.

use std::{
    fmt,
    net::Ipv4Addr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
    time::sleep,
};

use super::{Caller, check_of, http, with_token};
use crate::{
    load::{Connection, send},
    message::{Era, Message, ROWS},
    server,
};

/// Kinds of attack, with the number of connections of each.
const ALL: [(&str, usize); 20] = [
    ("a flood with a token", 16),
    ("a flood without a token", 16),
    ("values of 2 MiB", 4),
    ("bodies, a byte each 100 ms", 256),
    ("heads, a byte each 100 ms", 256),
    ("heads without an end", 8),
    ("idle, from 64 addresses", 1_500),
    ("large responses, not read", 32),
    ("bodies of 4 MiB without the last byte", 32),
    ("20,000 argument names", 4),
    ("checks of 2,500 patterns", 4),
    ("renderings with a large pattern", 4),
    ("proposals with slow tests", 4),
    ("proposals with 9,000 unknown names", 4),
    ("proposals of 30,000 digests", 4),
    ("uploads of 3 MB", 4),
    ("analyses of a slow template", 4),
    ("earlier versions", 4),
    ("event streams, not read", 64),
    ("webhooks of 1 MiB without a signature", 4),
];

/// The number of addresses of the idle crowd.
const ADDRESSES: usize = 64;

/// The time for which a response is not read, longer than a server should wait.
const UNREAD: Duration = Duration::from_secs(60);

pub(crate) const KINDS: u8 = ALL.len() as u8;

/// Interval between the bytes of slow senders.
const SLOW: Duration = Duration::from_millis(100);

/// Time-out for all kinds to have started.
const PATIENCE: Duration = Duration::from_secs(60);

/// Totals of one kind.
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
            "{kind:<36} {connections:>4} connections, {answered} answered, {refused} refused or closed, {bytes} bytes"
        )
    }
}

/// Lets the threads of valid callers, which share a core with this one, run at once. A lower nice value would not: the
/// kernel lets a running thread finish its time slice, up to 4 ms. Without permission the results are worse, not better.
fn give_way() {
    let thread = rustix::thread::gettid().as_raw_pid().to_string();
    Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status().ok();
}

/// Adds the totals of another turn.
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

/// Running hostile callers.
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
            give_way();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                for (kind, (caller, count)) in callers.into_iter().zip(shared).enumerate() {
                    let request: Arc<[u8]> = sent(kind, port, &caller.token).into();
                    for at in 0..ALL[kind].1 {
                        let of_crowd = u8::try_from(at % ADDRESSES).unwrap_or_default() + 1;
                        let address = if kind == 6 { Ipv4Addr::new(127, 0, 3, of_crowd) } else { caller.address };
                        tokio::spawn(attack(kind, port, address, Arc::clone(&request), Arc::clone(&count)));
                    }
                }
                // A dropped sender also stops the attack.
                stopped.await.ok();
            });
            Ok(())
        };
        let thread =
            thread::Builder::new().name("hostile".to_owned()).spawn(work).context("a thread cannot be started")?;
        Ok(Attackers { stop, thread, counts })
    }

    /// Waits until every kind has sent something, or was refused.
    pub(super) async fn at_work(&self) -> Result<()> {
        let patience = Instant::now() + PATIENCE;
        let waiting = || {
            ALL.iter().zip(&self.counts).find(|(_, count)| {
                [&count.bytes, &count.refused].iter().all(|count| count.load(Ordering::Relaxed) == 0)
            })
        };
        while let Some(((kind, _), _)) = waiting() {
            ensure!(Instant::now() < patience, "{kind}: no request was sent within the time-out");
            sleep(SLOW).await;
        }
        Ok(())
    }

    pub(super) fn stop(self) -> Result<Vec<Done>> {
        // The thread may have ended with an error, which `join` returns.
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

/// The bytes that a kind of attack sends: a request, or its beginning.
fn sent(kind: usize, port: u16, token: &str) -> Vec<u8> {
    let plain = || message().http(port);
    let with_token = |request: &[u8]| with_token(request, token);
    let get = |prompt: &'static str, arguments: &str| {
        with_token(&Message { body: get(prompt, arguments), name: Some(prompt), ..message() }.http(port))
    };
    let post = |path: &str, body: String| http(port, "POST", path, token, &body);
    let propose = |changes: &Value| {
        let body = json!({ "base": 1, "message": "x", "dryRun": true, "changes": changes });
        post("/api/v1/channels/production/proposals", body.to_string())
    };
    match kind {
        0 => with_token(&plain()),
        1 => plain(),
        2 => get("one", &format!("{{\"change\":\"{}\"}}", "x".repeat(2 << 20))),
        3 => promise(&with_token(&plain()), 1 << 20),
        4 => b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-".to_vec(),
        5 => b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_vec(),
        6 => b"POST /mcp HTTP/1.1\r\n".to_vec(),
        7 => get("large", "{}"),
        8 => {
            let mut request = promise(&with_token(&plain()), 4 << 20);
            request.resize(request.len() + (4 << 20) - 1, b' ');
            request
        }
        9 => {
            let names: Vec<String> = (0..20_000).map(|name| format!("\"n{name}\":\"\"")).collect();
            get("one", &format!("{{{}}}", names.join(",")))
        }
        10 => {
            let patterns = lines(2_500, |n| format!("  - {{ name: a{n}, pattern: '\\w{{50}}{n}' }}\n"));
            post("/api/v1/check", check_of("p.md", &prompt(&format!("arguments:\n{patterns}"), "x")))
        }
        11 => {
            let text = prompt("arguments:\n  - { name: a, pattern: \"[ab]*a[ab]{3000}c\" }\n", "{{ a }}");
            let after: Value = serde_json::from_str(&check_of("p.md", &text)).unwrap_or_default();
            let (after, values) = (json!({ "changes": after }), json!({ "a": "ab".repeat(50_000) }));
            let body = json!({ "after": after, "prompt": "p", "arguments": values });
            post("/api/v1/compare/renderings", body.to_string())
        }
        12 => {
            let tests = "  - { contains: [\"x\"] }\n".repeat(200);
            let body = "{% for i in range(1000) %}{{ i }}{% endfor %}".repeat(20);
            propose(&json!([file("p.md", &prompt(&format!("tests:\n{tests}"), &body))]))
        }
        13 => {
            let known = lines(9_000, |n| format!("  - {{ name: argument_{n:05} }}\n"));
            let unknown = lines(9_000, |n| format!("{{{{ unknown_{n:05} }}}} "));
            propose(&json!([file("p.md", &prompt(&format!("arguments:\n{known}"), &unknown))]))
        }
        14 => {
            let digest = json!({ "digest": "0".repeat(64) });
            let change = |n| json!({ "path": format!("f/{n}.txt"), "before": null, "content": digest });
            propose(&(0..30_000).map(change).collect())
        }
        15 => {
            let text = json!({ "contents": [{ "text": "x".repeat(3_000_000) }] });
            post("/api/v1/channels/production/uploads", text.to_string())
        }
        16 => {
            let slow = "{% for i in range(1000) %}{% for j in range(1000) %}{{ i }}{% endfor %}{% endfor %}";
            let unsaved = json!([{ "path": "p.md", "content": { "text": prompt("", slow) } }]);
            let body = json!({ "path": "p.md", "changes": unsaved, "arguments": {}, "tests": true });
            post("/api/v1/channels/production/analysis", body.to_string())
        }
        17 => http(port, "GET", "/api/v1/prompts/one?version=1", token, ""),
        18 => http(port, "GET", "/api/v1/channels/production/events", token, ""),
        _ => http(port, "POST", "/api/v1/hooks/forge", "none", &"x".repeat(1 << 20)),
    }
}

/// Repeats an attack on new connections; failures are counted.
async fn attack(kind: usize, port: u16, address: Ipv4Addr, request: Arc<[u8]>, count: Arc<Count>) {
    loop {
        let Ok(connection) = Connection::from(address, port).await else {
            Count::add(&count.refused, 1);
            sleep(SLOW).await;
            continue;
        };
        let ended = match kind {
            3 | 4 => drip(connection, &request, &count).await,
            5 => pour(connection, &request, &count).await,
            6 | 8 => wait(connection, &request, &count).await,
            7 | 18 => ignore(connection, &request, &count).await,
            _ => flood(connection, &request, &count).await,
        };
        if ended.is_err() {
            Count::add(&count.refused, 1);
            // Without a pause, thousands of closed connections would be opened again at once, and the measurement would be
            // of the system's handshakes.
            sleep(SLOW).await;
        }
    }
}

fn prompt(front: &str, body: &str) -> String {
    format!("---\ndescription: Crafted\n{front}---\n{body}\n")
}

fn file(path: &str, text: &str) -> Value {
    json!({ "path": path, "before": null, "content": { "text": text } })
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

fn message() -> Message {
    ROWS[0].message(Era::Modern)
}

/// A request for a prompt, with its arguments as JSON.
fn get(prompt: &str, arguments: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"{prompt}","arguments":{arguments},{meta}}}}}"#
    )
}

/// Headers that announce a body.
fn promise(request: &[u8], bytes: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let head = text.split("content-length").next().unwrap_or_default();
    format!("{head}content-length: {bytes}\r\n\r\n").into_bytes()
}

/// Repeats a request as fast as responses arrive.
async fn flood(mut connection: Connection, request: &[u8], count: &Count) -> Result<()> {
    loop {
        let (status, ..) = connection.exchange(request).await?;
        Count::add(if status == 200 { &count.answered } else { &count.refused }, 1);
        Count::add(&count.bytes, request.len());
    }
}

/// Sends a prefix, then single bytes at long intervals.
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

/// Sends a beginning and then nothing, until the server answers or closes the connection.
async fn wait(connection: Connection, beginning: &[u8], count: &Count) -> Result<()> {
    let mut stream = connection.into_stream();
    send(&mut stream, beginning).await?;
    Count::add(&count.bytes, beginning.len());
    stream.read_u8().await?;
    anyhow::bail!("it was answered");
}

/// Sends a request and does not read its response.
async fn ignore(connection: Connection, request: &[u8], count: &Count) -> Result<()> {
    let mut stream = connection.into_stream();
    stream.write_all(request).await?;
    Count::add(&count.bytes, request.len());
    sleep(UNREAD).await;
    Ok(())
}

/// Sends header lines without end.
async fn pour(connection: Connection, beginning: &[u8], count: &Count) -> Result<()> {
    let mut stream = connection.into_stream();
    stream.write_all(beginning).await?;
    let line = [b"x-".as_slice(), &[b'y'; 60], b": z\r\n"].concat().repeat(64);
    loop {
        stream.write_all(&line).await?;
        Count::add(&count.bytes, line.len());
    }
}

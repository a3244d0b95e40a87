//! Load over stdio, with a window of concurrent requests.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::{load::Seen, message::Era, server::on_core};

/// A server behind two pipes, killed on drop.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_id: u64,
}

/// The id of a prepared message, replaced for each request.
const ID: &str = r#""id":1"#;

/// Time-out for a response.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

impl Pipe {
    /// Starts a server on one core.
    pub(crate) fn start(mut command: Command, core: Option<usize>) -> Result<Pipe> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = on_core(core, || command.spawn().with_context(|| format!("{command:?} cannot be started")))?;
        let to = child.stdin.take().context("no stdin")?;
        let from = BufReader::with_capacity(256 << 10, child.stdout.take().context("no stdout")?);
        Ok(Pipe { child, to, from, last_id: 1_000_000 })
    }

    /// Performs the legacy handshake.
    pub(crate) fn greet(&mut self) -> Result<()> {
        let params = json!({
            "protocolVersion": Era::Legacy.revision(),
            "capabilities": {},
            "clientInfo": { "name": "meter", "version": "1" },
        });
        self.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string())?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string())
    }

    fn send(&mut self, message: &str) -> Result<()> {
        self.to.write_all(&[message.as_bytes(), b"\n"].concat())?;
        Ok(self.to.flush()?)
    }

    /// Waits until the pipe is readable.
    fn wait(&self) -> Result<()> {
        if self.from.buffer().is_empty() {
            let ready = poll(&mut [PollFd::new(self.from.get_ref(), PollFlags::IN)], Some(&PATIENCE))?;
            ensure!(ready > 0, "no answer for {} seconds", PATIENCE.tv_sec);
        }
        Ok(())
    }

    /// Sends one request and returns its response, skipping notifications.
    pub(crate) fn ask(&mut self, message: &str) -> Result<Value> {
        self.send(message)?;
        loop {
            let mut line = String::new();
            self.wait()?;
            ensure!(self.from.read_line(&mut line)? > 0, "the server ended");
            let answer: Value = serde_json::from_str(&line)?;
            if answer.get("id").is_some() {
                return Ok(answer);
            }
        }
    }

    /// Sends requests for `time` with `window` of them in flight. Ids are unique: a server may reject a duplicate.
    pub(crate) fn run(&mut self, message: &str, window: usize, time: Duration) -> Result<Seen> {
        let (before, after) = message.split_once(ID).context("the message has another id")?;
        let mut sent = std::collections::VecDeque::with_capacity(window);
        let mut seen = Seen::default();
        let mut answer = Vec::new();
        let started = Instant::now();
        while !sent.is_empty() || started.elapsed() < time {
            while sent.len() < window && started.elapsed() < time {
                sent.push_back(Instant::now());
                self.last_id += 1;
                self.to.write_all(format!("{before}\"id\":{}{after}\n", self.last_id).as_bytes())?;
            }
            answer.clear();
            self.wait()?;
            ensure!(self.from.read_until(b'\n', &mut answer)? > 0, "the server ended");
            if let Some(sent) = sent.pop_front() {
                seen.latencies.push(sent.elapsed());
            }
        }
        seen.elapsed = started.elapsed();
        seen.latencies.sort_unstable();
        Ok(seen)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // The server may have ended on its own.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

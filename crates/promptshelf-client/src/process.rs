//! A server process: starting it, keeping the end of its stderr for error messages, and ending it.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{oneshot, watch},
};

use crate::{
    closing::{self, Owner},
    error::ClientError,
};

/// How much of the end of stderr is kept, in bytes.
const MAX_STDERR_BYTES: usize = 2 << 10;
/// How long to wait for the rest of stderr after a process seems to have ended.
const STDERR_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for the end of a process: first after the end of its input, then after SIGTERM (specification
/// 2025-11-25, *Lifecycle, Shutdown*).
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The process of a connection; empty for servers that were not started by this client.
#[derive(Default)]
pub(crate) struct Process {
    /// Dropping it lets the process end.
    _running: Option<(oneshot::Sender<()>, Owner)>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    is_open: Option<watch::Receiver<bool>>,
}

impl Process {
    /// Starts a command; no shell is involved.
    pub(crate) fn start(
        line: &[String],
        environment: &BTreeMap<String, String>,
        folder: Option<&Path>,
    ) -> Result<(Process, ChildStdin, ChildStdout), ClientError> {
        let [program, arguments @ ..] = line else {
            return Err(ClientError::InvalidEndpoint("the command line is empty".to_owned()));
        };
        let mut command = Command::new(program);
        // stderr is a pipe: a server must not write to the user's terminal.
        command.args(arguments).envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process group of its own keeps Ctrl-C at the terminal away from the server.
        #[cfg(unix)]
        command.process_group(0);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| ClientError::Unreachable {
            reason: format!("`{program}` cannot be started: {error}"),
            source: Some(Box::new(error)),
        })?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ClientError::unreachable("the command has no pipes"));
        };
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let (open, is_open) = watch::channel(true);
        let reading = tokio::spawn(read_stderr(stderr, Arc::clone(&tail), open));
        let (running, dropped) = oneshot::channel();
        let (open, owner) = closing::open();
        tokio::spawn(async move {
            let _open = open;
            // The sender is only ever dropped.
            dropped.await.ok();
            end(child).await;
            reading.abort();
        });
        let process = Process { _running: Some((running, owner)), stderr: tail, is_open: Some(is_open) };
        Ok((process, stdin, stdout))
    }

    /// Waits until the process has closed its stderr, for a limited time.
    pub(crate) async fn finish_stderr(&self) {
        if let Some(mut is_open) = self.is_open.clone() {
            // A child of the process can keep its stderr open.
            tokio::time::timeout(STDERR_TIMEOUT, is_open.wait_for(|is_open| !is_open)).await.ok();
        }
    }

    pub(crate) fn stderr(&self) -> String {
        let bytes: Vec<u8> = self.stderr.lock().iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    pub(crate) fn with_stderr(&self, reason: &str) -> String {
        match self.stderr() {
            stderr if stderr.is_empty() => reason.to_owned(),
            stderr => format!("{reason}; the end of its stderr:\n{stderr}"),
        }
    }
}

/// Waits until a process has ended, whose input is closed with the connection, and makes it end.
async fn end(mut child: Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // Commands such as `npx` start the server as their child, which may go on without them.
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let signal = |signal| group.is_some_and(|group| kill_process_group(group, signal).is_ok());
        let ended = async |child: &mut Child| tokio::time::timeout(END_TIMEOUT, child.wait()).await.is_ok();
        if !ended(&mut child).await {
            signal(Signal::TERM);
            ended(&mut child).await;
        } else if signal(Signal::TERM) {
            tokio::time::sleep(END_TIMEOUT).await;
        }
        signal(Signal::KILL);
    }
    child.kill().await.ok();
}

async fn read_stderr(mut stderr: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>, open: watch::Sender<bool>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut tail = tail.lock();
        tail.extend(&buffer[..read]);
        let surplus = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..surplus);
    }
    open.send_replace(false);
}

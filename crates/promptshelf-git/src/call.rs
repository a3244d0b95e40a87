//! A call of the program `git`, with bounds of time, output and disk space.

use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
    time::{Instant, interval, timeout_at},
};

use crate::{error::GitError, stderr};

/// The largest output of a call that is kept in memory as a whole, in bytes: a list of a million files.
const MAX_OUTPUT: usize = 128 << 20;

/// The largest part of stderr that is kept, in bytes.
const MAX_STDERR: usize = 16 << 10;

const MEASURED: Duration = Duration::from_millis(250);

/// A call that has not started.
pub(crate) struct Call {
    pub(crate) command: Command,
    name: &'static str,
    pub(crate) secrets: Vec<String>,
    timeout: Duration,
    input: Vec<u8>,
    /// A folder that may grow by this number of bytes.
    growth: Option<(PathBuf, u64)>,
}

impl Call {
    pub(crate) fn new(name: &'static str, timeout: Duration) -> Call {
        let mut call = Call::of_program("git", name, timeout);
        call.command.arg(name);
        call
    }

    pub(crate) fn of_program(program: &str, name: &'static str, timeout: Duration) -> Call {
        let command = Command::new(program);
        Call { command, name, secrets: Vec::new(), timeout, input: Vec::new(), growth: None }
    }

    /// Adds to the configuration of this call. It is in the environment, as arguments are visible to other users.
    pub(crate) fn configure(&mut self, pairs: Vec<(String, String)>) {
        let count = self.command.as_std().get_envs().find(|(name, _)| *name == "GIT_CONFIG_COUNT");
        let before = count.and_then(|(_, count)| count?.to_str()?.parse::<usize>().ok()).unwrap_or_default();
        let after = before + pairs.len();
        for (number, (key, value)) in (before..).zip(pairs) {
            self.command.env(format!("GIT_CONFIG_KEY_{number}"), key);
            self.command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        self.command.env("GIT_CONFIG_COUNT", after.to_string());
    }

    /// Permits no protocol: older releases of git fetch missing objects whenever they are needed.
    pub(crate) fn offline(mut self) -> Call {
        self.command.env("GIT_ALLOW_PROTOCOL", "none");
        self
    }

    pub(crate) fn configured(mut self, key: &str, value: &str) -> Call {
        self.configure(vec![(key.to_owned(), value.to_owned())]);
        self
    }

    pub(crate) fn arguments<A: AsRef<std::ffi::OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Call {
        self.command.args(arguments);
        self
    }

    pub(crate) fn input(self, input: impl Into<Vec<u8>>) -> Call {
        Call { input: input.into(), ..self }
    }

    /// Ends the call once a folder has grown by more than a number of bytes.
    pub(crate) fn growth_limit(self, folder: PathBuf, bytes: u64) -> Call {
        Call { growth: Some((folder, bytes)), ..self }
    }

    pub(crate) async fn run(mut self) -> Result<Vec<u8>, GitError> {
        let (limit, deadline) = (self.timeout, Instant::now() + self.timeout);
        let mut running = self.start()?;
        let growth = self.growth.take().map(|(folder, limit)| Growth { before: size(&folder), folder, limit });
        let input = std::mem::take(&mut self.input);
        let ended = tokio::select! {
            ended = timeout_at(deadline, running.finish(&input)) => {
                ended.unwrap_or(Err(GitError::TimedOut { after: limit }))
            }
            error = Growth::watch(growth.as_ref()) => Err(error),
        };
        let ended = ended.and_then(|ended| growth.iter().try_for_each(Growth::check).map(|()| ended));
        match ended {
            Ok((output, status)) => {
                let stderr = running.stderr(deadline).await;
                running.is_ended = true;
                if status.success() { Ok(output) } else { Err(self.failure(status, &stderr)) }
            }
            Err(error) => {
                running.kill().await;
                Err(error)
            }
        }
    }

    fn start(&mut self) -> Result<Running, GitError> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // git starts other processes, which end together with it.
        #[cfg(unix)]
        self.command.process_group(0);
        let mut child = self.command.spawn().map_err(|source| GitError::Program { source: Arc::new(source) })?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(cannot_read(io::Error::other("no pipes")));
        };
        let group = child.id();
        let stderr = tokio::spawn(read_stderr(stderr));
        Ok(Running { child, group, stdout, stderr, is_ended: false })
    }

    fn failure(&self, status: ExitStatus, stderr: &[u8]) -> GitError {
        let text = stderr::cleaned(stderr, &self.secrets);
        tracing::debug!(command = self.name, %status, stderr = text, "git failed");
        stderr::error(self.name, status.code(), &text)
    }
}

struct Running {
    child: Child,
    group: Option<u32>,
    stdout: ChildStdout,
    stderr: JoinHandle<Vec<u8>>,
    is_ended: bool,
}

impl Running {
    async fn finish(&mut self, input: &[u8]) -> Result<(Vec<u8>, ExitStatus), GitError> {
        let (stdin, stdout) = (self.child.stdin.take(), &mut self.stdout);
        let writing = async {
            // git ends early if it refuses the request; its stderr has the reason.
            if let Some(mut stdin) = stdin {
                stdin.write_all(input).await.ok();
            }
        };
        let mut output = Vec::new();
        let mut bounded = stdout.take(MAX_OUTPUT as u64 + 1);
        let (read, ()) = tokio::join!(bounded.read_to_end(&mut output), writing);
        read.map_err(cannot_read)?;
        if output.len() > MAX_OUTPUT {
            let reason = format!("git printed more than {MAX_OUTPUT} bytes: the repository has too many files");
            return Err(GitError::TooLarge { reason });
        }
        let status = self.child.wait().await.map_err(cannot_read)?;
        Ok((output, status))
    }

    async fn stderr(&mut self, deadline: Instant) -> Vec<u8> {
        // A child that outlives git can keep it open.
        let read = timeout_at(deadline, &mut self.stderr).await;
        read.ok().and_then(Result::ok).unwrap_or_default()
    }

    async fn kill(&mut self) {
        self.kill_group();
        self.child.kill().await.ok();
        self.is_ended = true;
    }

    fn kill_group(&self) {
        #[cfg(unix)]
        if let Some(group) = self.group.and_then(|group| rustix::process::Pid::from_raw(group.cast_signed())) {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        #[cfg(not(unix))]
        let _ = self.group;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stderr.abort();
        if !self.is_ended {
            self.kill_group();
        }
    }
}

async fn read_stderr(mut stderr: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    // The rest is read too, so that git can go on.
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        // The reason comes last.
        let surplus = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..surplus);
    }
    kept
}

/// A folder that may grow by a number of bytes.
struct Growth {
    folder: PathBuf,
    before: u64,
    limit: u64,
}

impl Growth {
    fn check(&self) -> Result<(), GitError> {
        if size(&self.folder).saturating_sub(self.before) <= self.limit {
            return Ok(());
        }
        let reason = format!(
            "the commit needs more than {} bytes of its repository: make the repository smaller, or serve another one",
            self.limit
        );
        Err(GitError::TooLarge { reason })
    }

    /// Returns once the folder is too large; never without a limit.
    async fn watch(growth: Option<&Growth>) -> GitError {
        let Some(growth) = growth else { return std::future::pending().await };
        let mut ticks = interval(MEASURED);
        loop {
            ticks.tick().await;
            if let Err(error) = growth.check() {
                return error;
            }
        }
    }
}

fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum()
}

fn cannot_read(error: io::Error) -> GitError {
    GitError::Protocol { reason: format!("its output cannot be read: {error}") }
}

//! Runs the program of an evaluation: bounded in time and output, without secrets of this command, and with all processes
//! that it starts.

#[cfg(target_os = "linux")]
mod descendants;

use std::{
    fmt, io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::settings::ConfiguredEvaluation;

/// The largest output in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// The bytes of stderr that a message shows, from its end.
const MAX_STDERR: usize = 2_048;

/// The time in which the output has to end after the program, if other processes hold it open.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Ran {
    pub(super) output: Vec<u8>,
    pub(super) took: Duration,
}

/// The reason why a program has no output that counts.
#[derive(Debug)]
pub(super) enum ProgramError {
    /// It cannot be started.
    NotStarted {
        program: String,
        source: io::Error,
    },
    /// It has not ended in time.
    TimedOut {
        after: Duration,
    },
    /// It has ended, and a process that it started has not.
    LeftOpen,
    TooMuch,
    /// It failed. The end of its stderr has the reason.
    Failed {
        status: ExitStatus,
        stderr: String,
    },
    /// Its output cannot be read.
    Unreadable(io::Error),
    Interrupted,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::NotStarted { program, source } => write!(f, "the program `{program}` cannot be started: {source}"),
            ProgramError::TimedOut { after } => {
                let seconds = after.as_secs();
                write!(f, "the program did not end within {seconds}s, and was killed; `timeout` sets another time")
            }
            ProgramError::LeftOpen => f.write_str(
                "the program ended, and a process that it started held its output open: it has to wait for its processes",
            ),
            ProgramError::TooMuch => write!(f, "the program printed more than {MAX_OUTPUT} bytes"),
            ProgramError::Failed { status, stderr } => {
                write!(f, "the program failed ({status})")?;
                let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
                lines.try_for_each(|line| write!(f, "\n{line}"))
            }
            ProgramError::Unreadable(error) => write!(f, "the output of the program cannot be read: {error}"),
            ProgramError::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// The variables of every program. Others can be secrets, such as tokens and passwords of databases.
const ENVIRONMENT: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TERM",
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
];

/// Runs the program of an evaluation with an input. All its processes are killed at the end; outside of Linux, those that
/// left its process group are not.
pub(super) async fn run(evaluation: &ConfiguredEvaluation, input: &[u8]) -> Result<Ran, ProgramError> {
    let started = Instant::now();
    let mut running = Running::start(evaluation, input.to_vec())?;
    let ended = tokio::select! {
        ended = timeout_at(started + evaluation.timeout, running.finish()) => {
            ended.unwrap_or(Err(ProgramError::TimedOut { after: evaluation.timeout }))
        }
        () = interrupted() => Err(ProgramError::Interrupted),
    };
    let took = started.elapsed();
    running.kill().await;
    let (output, status) = ended?;
    if !status.success() {
        return Err(ProgramError::Failed { status, stderr: running.stderr().await });
    }
    Ok(Ran { output, took })
}

/// Waits until the user or the system ends the command.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                result = tokio::signal::ctrl_c() => drop(result),
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

struct Running {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    #[cfg(target_os = "linux")]
    before: descendants::Before,
    writer: JoinHandle<()>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Running {
    fn start(evaluation: &ConfiguredEvaluation, input: Vec<u8>) -> Result<Running, ProgramError> {
        let mut command = Command::new(&evaluation.program);
        command.args(&evaluation.arguments).current_dir(&evaluation.folder).kill_on_drop(true).env_clear();
        for name in ENVIRONMENT.into_iter().chain(evaluation.environment.iter().map(String::as_str)) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        #[cfg(target_os = "linux")]
        let before = descendants::Before::now();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        let not_started = |source| {
            let program = evaluation.program.display().to_string();
            ProgramError::NotStarted { program, source }
        };
        let mut child = command.spawn().map_err(not_started)?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let writer = tokio::spawn(async move {
            // A program may end without reading its input.
            if let Some(mut stdin) = stdin {
                stdin.write_all(&input).await.ok();
            }
        });
        let stderr = tokio::spawn(async move {
            match stderr {
                Some(stderr) => end_of(stderr).await,
                None => Vec::new(),
            }
        });
        Ok(Running {
            #[cfg(unix)]
            group: child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())),
            #[cfg(target_os = "linux")]
            before,
            child,
            writer,
            stderr,
        })
    }

    /// Returns the output and the status, once the program has ended and closed its output.
    async fn finish(&mut self) -> Result<(Vec<u8>, ExitStatus), ProgramError> {
        let stdout = self.child.stdout.take();
        let mut reading = std::pin::pin!(async {
            let mut output = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut output).await?;
            }
            Ok(output)
        });
        let read = tokio::select! {
            biased;
            read = &mut reading => read,
            _ = self.child.wait() => match timeout(GRACE, reading).await {
                Ok(read) => read,
                Err(_) => return Err(ProgramError::LeftOpen),
            },
        };
        let output: Vec<u8> = read.map_err(ProgramError::Unreadable)?;
        if output.len() > MAX_OUTPUT {
            return Err(ProgramError::TooMuch);
        }
        let status = self.child.wait().await.map_err(ProgramError::Unreadable)?;
        Ok((output, status))
    }

    async fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        self.child.kill().await.ok();
        #[cfg(target_os = "linux")]
        self.before.kill_new();
        self.writer.abort();
    }

    /// Returns the end of stderr, without the rest of a process that left the group.
    async fn stderr(&mut self) -> String {
        let read = timeout(GRACE, &mut self.stderr).await;
        self.stderr.abort();
        let bytes = read.ok().and_then(Result::ok).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.writer.abort();
        self.stderr.abort();
    }
}

async fn end_of(mut stderr: impl AsyncRead + Unpin) -> Vec<u8> {
    let (mut end, mut buffer) = (Vec::new(), [0; 4096]);
    // The rest is read too, so that the program can go on.
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        end.extend_from_slice(&buffer[..read]);
        let surplus = end.len().saturating_sub(MAX_STDERR);
        end.drain(..surplus);
    }
    end
}

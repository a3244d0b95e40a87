//! Servers under measurement: how each is started, and what the system says it has used.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_setaffinity};

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Promptshelf,
    Bare,
    Rmcp,
    TypeScript,
    Python,
    FastMcp,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] =
        [Kind::Bare, Kind::Promptshelf, Kind::Rmcp, Kind::Python, Kind::FastMcp, Kind::TypeScript];

    /// What tables and `--peers` call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Promptshelf => "promptshelf",
            Kind::Bare => "bare",
            Kind::Rmcp => "rmcp",
            Kind::TypeScript => "typescript",
            Kind::Python => "python",
            Kind::FastMcp => "fastmcp",
        }
    }
}

/// Where programs are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    /// The repository.
    pub(crate) root: PathBuf,
    /// What the bench built and installed.
    pub(crate) target: PathBuf,
    /// The release binary.
    pub(crate) promptshelf: PathBuf,
}

impl Programs {
    /// The command that serves a library over HTTP, or on stdio with port 0.
    pub(crate) fn command(&self, kind: Kind, port: u16, listed: (usize, usize), library: &Path) -> Command {
        let peers = self.root.join("bench/peers");
        let python = |venv: &str, script: &str| {
            let mut command = Command::new(self.target.join(venv).join("bin/python"));
            command.arg(peers.join(script));
            command
        };
        let mut command = match kind {
            Kind::Promptshelf => {
                let mut command = Command::new(&self.promptshelf);
                command.arg("serve").arg(library);
                match port {
                    0 => command.arg("--stdio"),
                    port => command.arg("--http").arg(format!("127.0.0.1:{port}")),
                };
                return command;
            }
            Kind::Bare => Command::new(self.target.join("release/bare")),
            Kind::Rmcp => Command::new(self.target.join("release/rmcp")),
            Kind::Python => python("python", "server.py"),
            Kind::FastMcp => python("fastmcp", "fast.py"),
            Kind::TypeScript => {
                let mut command = Command::new("node");
                command.arg(self.target.join("node/server.mjs"));
                command
            }
        };
        command.args([port.to_string(), listed.0.to_string(), listed.1.to_string()]).arg(library);
        command
    }
}

/// A running server. It ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server over HTTP on a core of its own, and waits until it listens.
    pub(crate) fn start(mut command: Command, port: u16, core: Option<usize>, log: &Path) -> Result<Server> {
        let log = fs::File::create(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = on_core(core, || command.spawn().with_context(|| format!("{command:?} cannot be started")))?;
        let mut server = Server { child, port };
        let patience = Instant::now() + Duration::from_secs(120);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("{command:?} ended: {status}");
            }
            if Instant::now() > patience {
                bail!("{command:?} does not listen");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The cores for the server and for the load, where there are two.
pub(crate) fn cores() -> Option<(usize, usize)> {
    let own = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core));
    Some((cores.next()?, cores.next()?))
}

/// Does something on one core, and goes back to where this thread was before.
/// Processes that are started in between stay there.
pub(crate) fn on_core<T>(core: Option<usize>, what: impl FnOnce() -> T) -> T {
    let before = rustix::thread::sched_getaffinity(None).ok();
    if let Some(core) = core {
        pin(core);
    }
    let result = what();
    if let Some(before) = before {
        sched_setaffinity(None, &before).ok();
    }
    result
}

/// Keeps this thread on a core.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // Without the right to, the numbers are noisier, and still in one run.
    sched_setaffinity(None, &set).ok();
}

/// The processor time that a process has used, for itself and in the kernel.
pub(crate) fn cpu(process: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let behind_name = stat.rsplit_once(')').context("no name in /proc/PID/stat")?.1;
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The memory that a process holds, in bytes: now, and at most so far.
pub(crate) fn memory(process: u32) -> Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let read = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    };
    Ok((read("VmRSS:").unwrap_or_default(), read("VmHWM:").unwrap_or_default()))
}

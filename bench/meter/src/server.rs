//! Servers under measurement: starting them, and reading their resource usage.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_setaffinity};

/// A measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Promptshelf,
    /// promptshelf with the same library as a channel of a store.
    Channel,
    /// The same without the origin of each prompt in `_meta`: its responses are those of the folder, byte for byte.
    ChannelWithoutProvenance,
    Bare,
    Rmcp,
    TypeScript,
    Python,
    FastMcp,
}

impl Kind {
    pub(crate) const ALL: [Kind; 8] = [
        Kind::Bare,
        Kind::Promptshelf,
        Kind::Channel,
        Kind::ChannelWithoutProvenance,
        Kind::Rmcp,
        Kind::Python,
        Kind::FastMcp,
        Kind::TypeScript,
    ];

    /// Returns whether this is promptshelf in one of its forms.
    pub(crate) fn is_promptshelf(self) -> bool {
        matches!(self, Kind::Promptshelf | Kind::Channel | Kind::ChannelWithoutProvenance)
    }

    /// Name in tables and for `--peers`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Promptshelf => "promptshelf",
            Kind::Channel => "promptshelf, channel",
            Kind::ChannelWithoutProvenance => "promptshelf, channel without provenance",
            Kind::Bare => "bare",
            Kind::Rmcp => "rmcp",
            Kind::TypeScript => "typescript",
            Kind::Python => "python",
            Kind::FastMcp => "fastmcp",
        }
    }
}

/// Paths of programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    /// The repository.
    pub(crate) root: PathBuf,
    /// Build and install folder of the benchmark.
    pub(crate) target: PathBuf,
    /// The release binary.
    pub(crate) promptshelf: PathBuf,
}

impl Programs {
    /// The command that serves a library over HTTP, or on stdio for port 0.
    pub(crate) fn command(&self, kind: Kind, port: u16, listed: (usize, usize), library: &Path) -> Command {
        let peers = self.root.join("bench/peers");
        let python = |venv: &str, script: &str| {
            let mut command = Command::new(peers.join(venv).join(".venv/bin/python"));
            command.arg(peers.join(script));
            command
        };
        let mut command = match kind {
            Kind::Promptshelf | Kind::Channel | Kind::ChannelWithoutProvenance => {
                let mut command = Command::new(&self.promptshelf);
                match kind {
                    Kind::Promptshelf => command.arg("serve").arg(library),
                    _ => command.arg("serve").arg(store(library)),
                };
                if kind == Kind::ChannelWithoutProvenance {
                    command.arg("--config").arg(self.root.join("bench/meter/without-provenance.toml"));
                }
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
                command.arg(peers.join("server.mjs"));
                command
            }
        };
        command.args([port.to_string(), listed.0.to_string(), listed.1.to_string()]).arg(library);
        command
    }
}

/// The URL of the store with the channel of a library.
pub(crate) fn store(library: &Path) -> String {
    format!("sqlite:{}.db", library.display())
}

/// A running server, killed on drop.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server over HTTP on one core, and waits until it listens.
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
        // The server may have ended on its own.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns a port that was free just now.
pub(crate) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Cores for the server and the load, if there are two.
pub(crate) fn cores() -> Option<(usize, usize)> {
    let own = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core));
    Some((cores.next()?, cores.next()?))
}

/// Runs `what` on one core and restores the thread's affinity. Child processes started inside stay on that core.
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

/// Pins this thread to a core.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // Without permission the results are noisier, but still from one run.
    sched_setaffinity(None, &set).ok();
}

/// CPU time of a process in user and kernel mode.
pub(crate) fn cpu(process: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let behind_name = stat.rsplit_once(')').context("no name in /proc/PID/stat")?.1;
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Current and peak resident memory of a process in bytes.
pub(crate) fn memory(process: u32) -> Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let read = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    };
    Ok((read("VmRSS:").unwrap_or_default(), read("VmHWM:").unwrap_or_default()))
}

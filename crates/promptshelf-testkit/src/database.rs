//! A real PostgreSQL: `initdb` and `postgres` as child processes in a temporary folder.

use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, kill_process};

use crate::PATIENCE;

const INSTALL: &str = "apt-get install --yes postgresql";

/// The settings of a server for tests. The writes of a killed process are in the system's cache, so without
/// `fsync` only a loss of power loses them.
const SETTINGS: &str = "fsync = off\nfull_page_writes = off\nmax_connections = 200\n\
                        shared_buffers = 32MB\nlisten_addresses = '127.0.0.1'\nlogging_collector = off\n\
                        log_min_messages = fatal\nautovacuum = off\n";

/// The user `locked` needs a password; all others of this machine are let in.
const ACCESS: &str = "local all all trust\nhost all locked 127.0.0.1/32 scram-sha-256\n\
                      host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";

/// A running server. It ends with this value, and with the test process in any case.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    process: Mutex<Option<Process>>,
}

/// The server, and the shell that ends it when its stdin is closed, be it by a killed test.
#[derive(Debug)]
struct Process {
    guard: Child,
    stdin: Option<ChildStdin>,
    server: Pid,
}

impl Postgres {
    /// Returns the server that all tests of this process share. Each test makes a database of its own.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    /// Starts a server of its own, for tests that stop or kill it.
    pub fn start() -> Postgres {
        let programs = programs();
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a temporary folder");
        give_to_user(folder.path());
        let data = folder.path().join("data");
        let mut initdb = as_user(&programs.join("initdb"));
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        must(initdb.arg("--pgdata").arg(&data).current_dir(folder.path()));
        append(&data.join("postgresql.conf"), SETTINGS);
        fs::write(data.join("pg_hba.conf"), ACCESS).expect("the folder is writable");
        let mut postgres = Postgres { programs, folder, port: 0, process: Mutex::new(None) };
        // Another process may take the port before the server has it.
        for _ in 0..20 {
            postgres.port = free_port();
            if postgres.try_run() {
                return postgres;
            }
        }
        panic!("the server does not start: {}", postgres.log());
    }

    /// Makes an empty database, and returns its URL.
    pub fn database(&self) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Returns the URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements as the administrator, and returns the rows: a line for each, `|` between columns.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"]);
        psql.args(["--host=127.0.0.1", "--username=postgres", "--port", &self.port.to_string()]);
        let output = must(psql.args(["--dbname", database, "--command", statements]));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Accepts TLS with a certificate and its key, in PEM.
    pub fn use_tls(&self, certificate: &str, key: &str) {
        let data = self.folder.path().join("data");
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = data.join(name);
            fs::write(&path, text).expect("the folder is writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("an own file");
            give_to_user(&path);
        }
        self.sql("postgres", "ALTER SYSTEM SET ssl = on");
        self.sql("postgres", "SELECT pg_reload_conf()");
        let deadline = Instant::now() + PATIENCE;
        while self.sql("postgres", "SHOW ssl") != "on" {
            assert!(Instant::now() < deadline, "no TLS: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts a standby that has all changes so far, and receives later ones by streaming replication.
    pub fn standby(&self) -> Postgres {
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a temporary folder");
        give_to_user(folder.path());
        let mut backup = as_user(&self.programs.join("pg_basebackup"));
        backup.args(["--host=127.0.0.1", "--username=postgres", "--port", &self.port.to_string()]);
        backup.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]);
        must(backup.arg("--pgdata").arg(folder.path().join("data")).current_dir(folder.path()));
        let mut standby = Postgres { programs: self.programs.clone(), folder, port: 0, process: Mutex::new(None) };
        for _ in 0..20 {
            standby.port = free_port();
            if standby.try_run() {
                return standby;
            }
        }
        panic!("the standby does not start: {}", standby.log());
    }

    /// Starts a killed standby on the port of its primary, which is dead, and promotes it.
    #[must_use]
    pub fn promoted_at(mut self, port: u16) -> Postgres {
        self.port = port;
        self.restart();
        assert_eq!(self.sql("postgres", "SELECT pg_promote()"), "t", "{}", self.log());
        self
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server and all its processes as a crash would.
    pub fn kill(&self) {
        let mut process = self.process();
        let running = process.take().expect("the server runs");
        // A server that goes on would begin another process, which is none of those below and keeps the memory.
        kill_process(running.server, Signal::STOP).ok();
        for pid in running.all() {
            kill_process(pid, Signal::KILL).ok();
        }
        running.end();
    }

    /// Starts a killed server again, and waits until it has recovered.
    pub fn restart(&self) {
        let deadline = Instant::now() + PATIENCE;
        // Processes of the killed server end a moment later, and keep its memory until then.
        while !self.try_run() {
            assert!(Instant::now() < deadline, "the server does not start again: {}", self.log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Stops all processes of the server without ending them: connections stay open, and nothing answers.
    pub fn stop(&self) {
        for pid in self.process().as_ref().expect("the server runs").all() {
            kill_process(pid, Signal::STOP).ok();
        }
    }

    /// Lets a stopped server go on.
    pub fn proceed(&self) {
        for pid in self.process().as_ref().expect("the server runs").all() {
            kill_process(pid, Signal::CONT).ok();
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock()
    }

    /// Starts the server, and waits until it accepts connections. Returns whether it does.
    fn try_run(&self) -> bool {
        let folder = self.folder.path();
        fs::remove_file(folder.join("data/postmaster.pid")).ok();
        let postgres = as_user(&self.programs.join("postgres"));
        // The shell waits for a word or the end of its stdin, that is, of this process. It then removes the folder.
        let script = "folder=$1; shift; \"$@\" & server=$!; echo $server; word=; read word; \
                      kill -QUIT $server 2> /dev/null; kill -CONT $server 2> /dev/null; wait; \
                      [ \"$word\" = keep ] || rm -rf \"$folder\"";
        let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).expect("a log");
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(folder).arg(postgres.get_program()).args(postgres.get_args());
        shell.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).args(["-p", &self.port.to_string()]);
        shell.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut guard = shell.spawn().expect("sh can be started");
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(guard.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("the shell prints the number of the process");
        let server = line.trim().parse().ok().and_then(Pid::from_raw).expect("the number of a process");
        let process = Process { stdin: guard.stdin.take(), guard, server };
        let deadline = Instant::now() + PATIENCE;
        let is_ready = loop {
            if self.is_ready() {
                break true;
            }
            if !is_running(server) || Instant::now() > deadline {
                break false;
            }
            thread::sleep(Duration::from_millis(20));
        };
        if is_ready {
            *self.process() = Some(process);
        } else {
            process.end();
        }
        is_ready
    }

    fn is_ready(&self) -> bool {
        let mut ready = Command::new(self.programs.join("pg_isready"));
        ready.args(["--quiet", "--host"]).arg(self.folder.path()).args(["--port", &self.port.to_string()]);
        // The port could be that of another server.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() && ready.status().is_ok_and(|it| it.success())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(process) = self.process().take() {
            process.end();
        }
    }
}

impl Process {
    fn all(&self) -> Vec<Pid> {
        let ps = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().expect("ps lists processes");
        let listed = String::from_utf8_lossy(&ps.stdout);
        let children = listed.lines().filter_map(|line| {
            let mut numbers = line.split_whitespace().map(|number| number.parse().ok().and_then(Pid::from_raw));
            let (child, parent) = (numbers.next()??, numbers.next()??);
            (parent == self.server).then_some(child)
        });
        std::iter::once(self.server).chain(children).collect()
    }

    fn end(mut self) {
        for pid in self.all() {
            kill_process(pid, Signal::CONT).ok();
        }
        if let Some(mut stdin) = self.stdin.take() {
            stdin.write_all(b"keep\n").ok();
        }
        self.guard.wait().ok();
    }
}

/// Whether a process goes on. One that has ended has its number until the shell notices.
fn is_running(process: Pid) -> bool {
    let ps = Command::new("ps").args(["-o", "stat=", "-p", &process.to_string()]).output().expect("ps lists processes");
    let state = String::from_utf8_lossy(&ps.stdout);
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Returns the folder with the programs of the newest installed version, or the one that `PROMPTSHELF_TEST_POSTGRES`
/// names: other versions are tested in this way.
fn programs() -> PathBuf {
    if let Some(folder) = std::env::var_os("PROMPTSHELF_TEST_POSTGRES") {
        return folder.into();
    }
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&in_path);
    let mut debian: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    debian.sort_by_key(|path| {
        let version = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        version.and_then(|version| version.parse::<u32>().ok())
    });
    let mut folders = debian.into_iter().rev().chain(in_path);
    let all = |folder: &PathBuf| ["initdb", "postgres", "pg_isready", "psql"].iter().all(|it| folder.join(it).exists());
    folders.find(all).unwrap_or_else(|| panic!("PostgreSQL is not installed. On Debian: {INSTALL}"))
}

/// Gives a folder to the user of [`as_user`].
pub(crate) fn give_to_user(folder: &Path) {
    if is_root() {
        must(Command::new("chown").args(["-R", "postgres:"]).arg(folder));
    }
}

/// Returns a command that does not run as root, because the servers refuse that.
pub(crate) fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn must(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("initdb makes the file");
    file.write_all(text.as_bytes()).expect("the file is writable");
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

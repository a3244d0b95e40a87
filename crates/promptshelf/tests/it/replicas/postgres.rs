//! PostgreSQL and PgBouncer as child processes.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    os::unix::{fs::chown, process::CommandExt as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU8, Ordering},
};

use promptshelf_testkit::folder::Folder;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection as _, PgConnection};

use super::until;

/// A server with the database `team`, until it is dropped.
pub(crate) struct Postgres {
    folder: Folder,
    address: SocketAddr,
    child: Child,
}

impl Postgres {
    /// Starts a server with an empty database `team`.
    pub(crate) async fn start() -> Postgres {
        let folder = private_folder();
        let data = folder.path().join("data");
        let output = command("initdb")
            .arg("--pgdata")
            .arg(&data)
            .args(["--username=promptshelf", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .output()
            .expect("initdb is installed (on Debian: apt-get install --yes postgresql)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(data.join("pg_hba.conf"), "host all all 127.0.0.0/8 trust\n").expect("a file");
        let address = own_address(5432);
        let child = spawn(&folder, address);
        let database = Postgres { folder, address, child };
        let mut admin = database.connected().await;
        sqlx::query("CREATE DATABASE team").execute(&mut admin).await.expect("a database");
        database
    }

    /// The URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        self.url_at(self.address, database)
    }

    /// The URL of a database through a proxy.
    pub(super) fn url_at(&self, address: SocketAddr, database: &str) -> String {
        format!("postgres://promptshelf@{address}/{database}?sslmode=disable")
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all processes of the server without notice.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("an exit status");
    }

    /// Starts the server again with the same data, at the same address.
    pub(super) async fn restart(&mut self) {
        fs::remove_file(self.folder.path().join("data/postmaster.pid")).ok();
        self.child = spawn(&self.folder, self.address);
        self.connected().await;
    }

    /// Stops all processes: connections stay open, and nothing is answered.
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Starts PgBouncer in transaction mode in front of the server.
    pub(super) async fn pooler(&self) -> Pooler {
        let folder = private_folder();
        let address = own_address(6432);
        let configuration = format!(
            "[databases]\n* = host={} port={} user=promptshelf\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\n\
             auth_type = any\npool_mode = transaction\nunix_socket_dir =\nlogfile = {}/log\n",
            self.address.ip(),
            self.address.port(),
            address.ip(),
            address.port(),
            folder.path().display()
        );
        folder.write("pgbouncer.ini", &configuration);
        let mut pgbouncer = as_server_user(Command::new("pgbouncer"));
        pgbouncer.arg("--quiet").arg(folder.path().join("pgbouncer.ini"));
        pgbouncer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = pgbouncer.spawn().expect("pgbouncer is installed (on Debian: apt-get install --yes pgbouncer)");
        until("PgBouncer", || TcpStream::connect(address).ok().map(drop));
        Pooler { _folder: folder, address, child }
    }

    fn signal(&self, signal: Signal) {
        for id in self.processes() {
            // One of them may have ended in the meantime.
            kill_process(id, signal).ok();
        }
    }

    async fn connected(&self) -> PgConnection {
        let begun = std::time::Instant::now();
        loop {
            match PgConnection::connect(&self.url("postgres")).await {
                Ok(connection) => return connection,
                Err(error) => {
                    let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    assert!(begun.elapsed() < crate::program::PATIENCE, "{error}: {}", log());
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            }
        }
    }

    /// The first process and its children.
    fn processes(&self) -> Vec<Pid> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("a running server");
        let ids = std::iter::once(id.to_string()).chain(children.split_whitespace().map(str::to_owned));
        ids.filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.kill();
        }
    }
}

/// PgBouncer, until it is dropped.
pub(super) struct Pooler {
    _folder: Folder,
    address: SocketAddr,
    child: Child,
}

impl Pooler {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(folder: &Folder, address: SocketAddr) -> Child {
    let log = fs::File::options().create(true).append(true).open(folder.path().join("log")).expect("a log");
    let mut server = command("postgres");
    server.arg("-D").arg(folder.path().join("data")).args(["-p", &address.port().to_string()]);
    for setting in [
        format!("listen_addresses={}", address.ip()),
        "unix_socket_directories=".to_owned(),
        // The machine itself does not fail in these tests.
        "fsync=off".to_owned(),
        "shared_buffers=16MB".to_owned(),
    ] {
        server.args(["-c", &setting]);
    }
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("postgres can be started")
}

/// A program of PostgreSQL, of the newest version on the machine.
fn command(name: &str) -> Command {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.map(|entry| entry.path().join("bin").join(name)).filter(|path| path.exists());
    let version = |path: &PathBuf| path.iter().nth(4).and_then(|version| version.to_str()?.parse::<f32>().ok());
    let newest = versions.max_by(|one, other| version(one).partial_cmp(&version(other)).expect("numbers"));
    as_server_user(Command::new(newest.unwrap_or_else(|| PathBuf::from(name))))
}

/// PostgreSQL and PgBouncer do not run as root: they then run as the user of the package.
fn as_server_user(mut command: Command) -> Command {
    if let Some(user) = server_user() {
        command.uid(user).gid(user_id("-g"));
    }
    // The working directory of the tests may be unreadable for that user.
    command.current_dir("/");
    command
}

fn server_user() -> Option<u32> {
    rustix::process::geteuid().is_root().then(|| user_id("-u"))
}

fn user_id(kind: &str) -> u32 {
    let output = Command::new("id").args([kind, "postgres"]).output().expect("id");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("the user postgres of the package exists")
}

fn private_folder() -> Folder {
    let folder = Folder::empty();
    if let Some(user) = server_user() {
        chown(folder.path(), Some(user), None).expect("an owner");
    }
    folder
}

/// An address of the loopback network that no other test uses: a server has to return to its address, and a free port
/// could be taken in the meantime.
fn own_address(port: u16) -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let next = 100 + NEXT.fetch_add(1, Ordering::SeqCst) % 100;
    SocketAddr::from(([127, next, high, low], port))
}

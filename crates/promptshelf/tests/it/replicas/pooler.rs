//! PgBouncer as a child process.

use std::{
    net::{SocketAddr, TcpStream},
    os::unix::{fs::chown, process::CommandExt as _},
    process::{Child, Command, Stdio},
};

use promptshelf_testkit::{database::Postgres, folder::Folder};

use super::until;

/// PgBouncer in transaction mode, until it is dropped.
pub(super) struct Pooler {
    _folder: Folder,
    address: SocketAddr,
    child: Child,
}

impl Pooler {
    /// Starts it in front of a server.
    pub(super) fn of(database: &Postgres) -> Pooler {
        // An address of the loopback network that no other test uses: PgBouncer does not choose a free port.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let address = SocketAddr::from(([127, 99, high, low], 6432));
        let folder = Folder::empty();
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\n\
             auth_type = any\npool_mode = transaction\nunix_socket_dir =\nlogfile = {}/log\n",
            database.port(),
            address.ip(),
            address.port(),
            folder.path().display()
        );
        folder.write("pgbouncer.ini", &configuration);
        let mut pgbouncer = Command::new("pgbouncer");
        pgbouncer.arg("--quiet").arg(folder.path().join("pgbouncer.ini")).current_dir("/");
        if rustix::process::geteuid().is_root() {
            // It does not run as root.
            let user = user_id("-u");
            chown(folder.path(), Some(user), None).expect("an owner");
            pgbouncer.uid(user).gid(user_id("-g"));
        }
        pgbouncer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = pgbouncer.spawn().expect("pgbouncer is installed (on Debian: apt-get install --yes pgbouncer)");
        until("PgBouncer", || TcpStream::connect(address).ok().map(drop));
        Pooler { _folder: folder, address, child }
    }

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

fn user_id(kind: &str) -> u32 {
    let output = Command::new("id").args([kind, "postgres"]).output().expect("id");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("the user postgres of the package exists")
}

//! PgBouncer in transaction mode in front of a [`Postgres`].

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    PATIENCE,
    database::{Postgres, as_user, free_port, give_to_user},
};

/// A running pooler. Two connections to the server serve all clients. It ends with this value.
#[derive(Debug)]
pub struct Pooler {
    _folder: tempfile::TempDir,
    address: SocketAddr,
    child: Child,
}

impl Pooler {
    /// Starts a pooler in front of a server.
    pub fn start(server: &Postgres) -> Pooler {
        // Another process may take the port before the pooler has it.
        (0..20).find_map(|_| Pooler::try_start(server)).expect("pgbouncer starts")
    }

    fn try_start(server: &Postgres) -> Option<Pooler> {
        let folder = tempfile::Builder::new().prefix("pgbouncer").tempdir().expect("a temporary folder");
        let path = folder.path().display();
        let (port, behind) = (free_port(), server.port());
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={behind} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n\
             unix_socket_dir =\nlogfile = {path}/log\n"
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, configuration).expect("the folder is writable");
        give_to_user(folder.path());
        let mut pgbouncer = as_user("pgbouncer".as_ref());
        pgbouncer.arg("--quiet").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = pgbouncer.spawn().expect("setpriv and pgbouncer can be started");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut pooler = Pooler { _folder: folder, address, child };
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && pooler.child.try_wait().is_ok_and(|status| status.is_none()) {
            if TcpStream::connect(address).is_ok() {
                return Some(pooler);
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

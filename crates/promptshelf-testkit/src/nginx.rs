//! nginx as a child process.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{PATIENCE, folder::Folder};

/// The number of ports that are tried: another process may take a free one first.
const ATTEMPTS: usize = 10;

/// nginx with a configuration of its own, until it is dropped.
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    folder: Folder,
}

impl Nginx {
    /// Starts nginx with the content of its block `http`, in which `LISTEN` stands for the address.
    ///
    /// # Panics
    ///
    /// If nginx is not installed, or refuses the configuration.
    pub fn start(http: &str) -> Nginx {
        for _ in 0..ATTEMPTS {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let address = free.expect("a free port");
            let folder = Folder::empty();
            let path = folder.path().display();
            // Started as root, its workers could not read the folder as another user.
            let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let temporary: String = temporary.iter().map(|name| format!("{name}_temp_path {path}/{name};\n")).collect();
            let http = http.replace("LISTEN", &address.to_string());
            let configuration = format!(
                "{user}\ndaemon off;\npid {path}/pid;\nerror_log {path}/error.log info;\nworker_processes 1;\n\
                 events {{ worker_connections 512; }}\nhttp {{\naccess_log {path}/access.log;\n{temporary}\n{http}\n}}\n"
            );
            fs::write(folder.path().join("nginx.conf"), configuration).expect("a file");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
            command.arg("-e").arg(folder.path().join("error.log"));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn().expect("nginx is installed (on Debian: apt-get install --yes nginx)");
            let mut nginx = Nginx { child, address, folder };
            if nginx.is_listening() {
                return nginx;
            }
            let log = nginx.log();
            assert!(log.contains("Address already in use"), "nginx does not start: {log}");
        }
        panic!("nginx found no free port");
    }

    fn is_listening(&mut self) -> bool {
        let begun = Instant::now();
        while self.child.try_wait().expect("a child").is_none() {
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            assert!(begun.elapsed() < PATIENCE, "nginx does not listen: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The folder of its files, among them `access.log`.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The error log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        // SIGKILL would leave its workers behind.
        if let Some(id) = id {
            rustix::process::kill_process(id, rustix::process::Signal::TERM).ok();
        }
        self.child.wait().ok();
    }
}

//! A repository over ssh, with a real server where one is installed.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use promptshelf_testkit::{folder::executable, git::Repository};
use serde_json::json;

use super::{HELLO, Workplace, eventually, get, names};
use crate::program::Server;

const SSHD: &str = "/usr/sbin/sshd";

/// An ssh server with a host key of its own. It ends with the test.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Sshd {
    /// Starts a server that admits the key `client`, and waits until it listens.
    fn start(folder: &Path, port: u16, host_key: &str) -> Sshd {
        key(folder, host_key);
        let shown = folder.display();
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/{host_key}\nAuthorizedKeysFile {shown}/client.pub\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n"
        );
        let file = folder.join("sshd_config");
        fs::write(&file, settings).expect("a file");
        let log = fs::File::create(folder.join("sshd.log")).expect("a file");
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f"]).arg(&file).stdin(Stdio::null()).stderr(log);
        let mut server = Sshd(command.spawn().expect("sshd starts"));
        let listens = || {
            let ended = server.0.try_wait().expect("a process");
            assert!(ended.is_none(), "{}", fs::read_to_string(folder.join("sshd.log")).unwrap_or_default());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        };
        eventually(listens, |listens| *listens);
        server
    }
}

/// Makes a key, unless it exists, and returns its public part.
fn key(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    if !path.exists() {
        let mut command = Command::new("ssh-keygen");
        let made = command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path).status().expect("ssh-keygen");
        assert!(made.success());
    }
    fs::read_to_string(path.with_extension("pub")).expect("a public key")
}

/// Makes a program `ssh` that trusts the hosts of the test in place of those of the user. Returns its folder.
fn ssh(folder: &Path) -> PathBuf {
    let programs = folder.join("programs");
    let hosts = folder.join("known_hosts");
    let options = format!("-F /dev/null -oUserKnownHostsFile={} -oGlobalKnownHostsFile=/dev/null", hosts.display());
    let script = format!("#!/bin/sh\nPATH=${{PATH#*:}}\nexec ssh {options} \"$@\"\n");
    executable(programs.join("ssh"), script);
    programs
}

#[test]
fn repository_over_ssh_needs_a_key_and_the_known_host() {
    let user = Command::new("id").arg("-un").output().expect("id").stdout;
    let user = String::from_utf8(user).expect("a name").trim().to_owned();
    if !Path::new(SSHD).exists() {
        println!("skipped: {SSHD} is not installed");
        return;
    }
    if user == "root" {
        // sshd needs it when root starts it.
        fs::create_dir_all("/run/sshd").expect("a folder");
    }
    let repository = Repository::new(&[("hello.md", HELLO)]);
    let folder = repository.path();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    key(folder, "client");
    let programs = ssh(folder);
    let url = format!("git+ssh://{user}@127.0.0.1:{port}{}", repository.bare().display());
    let source = |credentials: &str| {
        format!(
            "[[source]]\nname = \"platform\"\nkind = \"git\"\nurl = \"{url}\"\nref = \"main\"\ninterval = \"1s\"\n{credentials}"
        )
    };
    let with_key = source(&format!("credentials = {{ file = \"{}/client\" }}\n", folder.display()));
    let sshd = Sshd::start(folder, port, "host");
    let place = Workplace::new(&[], &with_key);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let serve = |place: &Workplace| {
        let mut command = place.command(&["serve", "--http", "127.0.0.1:0"]);
        command.env("PATH", &path).env_remove("SSH_AUTH_SOCK");
        Server::start(command)
    };
    let problem = |place: &Workplace| place.state("platform")["problem"].as_str().unwrap_or_default().to_owned();

    // A host whose key is not in `known_hosts`.
    let server = serve(&place);
    eventually(|| problem(&place), |problem| problem.contains("the host key is unknown or has changed"));
    let host = key(folder, "host");
    fs::write(folder.join("known_hosts"), format!("[127.0.0.1]:{port} {host}")).expect("a file");
    eventually(|| names(&server), |names| *names == ["platform-hello"]);

    // Without the key.
    let stranger = Workplace::new(&[], &source(""));
    let other = serve(&stranger);
    eventually(|| problem(&stranger), |problem| problem.contains("the server requires valid credentials"));
    drop(other);

    // Another host at the same address: the last good commit stays.
    drop(sshd);
    let other_host = Sshd::start(folder, port, "other-host");
    let text = |server: &Server| {
        get(server, "platform-hello", &json!({}))["result"]["messages"][0]["content"]["text"]
            .as_str()
            .map(str::to_owned)
    };
    repository.commit(&[("hello.md", &HELLO.replace("Hello!", "Changed!"))]);
    let changed = eventually(|| problem(&place), |problem| problem.contains("the host key is unknown or has changed"));
    assert!(!changed.contains("ssh-keygen"), "the commands that ssh proposes trust the new host: {changed}");
    assert_eq!(text(&server).as_deref(), Some("Hello!"));
    drop(other_host);
    let _host = Sshd::start(folder, port, "host");
    eventually(|| text(&server), |text| text.as_deref() == Some("Changed!"));
    eventually(|| problem(&place), String::is_empty);
}

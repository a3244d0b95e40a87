//! Notifications to a service manager, and the health check of a container.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::Signal;

use super::{HELLO, send};
use crate::program::{PATIENCE, Server, ended, library, promptshelf};

#[test]
fn service_manager_is_notified_of_ready_reload_and_stop() {
    let folder = library(&[("hello.md", HELLO)]);
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut command = promptshelf();
    command.args(["serve", "prompts", "--http", "127.0.0.1:0"]).current_dir(folder.path()).env("NOTIFY_SOCKET", &path);
    let mut server = Server::start(command);
    let notification = || {
        let mut bytes = [0; 1_024];
        let length = socket.recv(&mut bytes).expect("a notification");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(notification(), "READY=1\n");
    send(&server.child, Signal::HUP);
    let reloading = notification();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(notification(), "READY=1\n");
    send(&server.child, Signal::TERM);
    assert_eq!(notification(), "STOPPING=1\n");
    assert_eq!(ended(&mut server.child).code(), Some(0));
}

/// The command is read from the container file and run with another port.
#[test]
fn health_check_detects_a_missing_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Containerfile");
    let text = fs::read_to_string(path).expect("the container file");
    let check = text.split_once("HEALTHCHECK").and_then(|(_, rest)| rest.split_once("CMD ")).expect("a health check").1;
    let check: Vec<String> = serde_json::from_str(check.lines().next().expect("a line")).expect("a list of words");
    let mut server = Server::of(&library(&[("hello.md", HELLO)]), &[]);
    let port = server.authority().rsplit(':').next().expect("a port").to_owned();
    let is_healthy = || {
        let words = check.iter().map(|word| word.replace("8080", &port));
        let mut words = words.collect::<Vec<_>>().into_iter();
        assert_eq!(words.next().as_deref(), Some("promptshelf"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_promptshelf"));
        command.args(words).stderr(Stdio::null()).status().expect("a running process").success()
    };
    assert!(is_healthy());
    send(&server.child, Signal::TERM);
    ended(&mut server.child);
    assert!(!is_healthy());
}

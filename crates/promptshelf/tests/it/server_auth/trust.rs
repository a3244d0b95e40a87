//! The issuer's keys: private certificate authorities, keys in a file, the time of fetches, and readiness.

use std::{fs, time::Instant};

use serde_json::json;

use super::{
    LIBRARY, ask,
    issuer::{Authority, Issuer, Key, RESOURCE},
    read,
};
use crate::program::{Folder, PATIENCE, Server, library, promptshelf};

fn command(folder: &Folder, issuer: &str, auth: &str) -> std::process::Command {
    folder.write("server.toml", &format!("[auth]\nissuer = \"{issuer}\"\nresource = \"{RESOURCE}\"\n{auth}"));
    let mut command = promptshelf();
    command.env("PROMPTSHELF_CONFIG", "server.toml").env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
    command.args(["serve", "prompts", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]).current_dir(folder.path());
    command
}

/// The address of the operator's listener.
fn operator(server: &Server) -> &str {
    let (_, url) = server.startup_log.split_once("metrics are served on ").expect("the address of metrics");
    url.split("/metrics").next().expect("a URL")
}

fn get(url: &str) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer = read(agent.get(url).call().expect("the server answers"));
    (answer.status, answer.body)
}

fn public(server: &Server) -> (u16, String) {
    get(&format!("http://{}/readyz", server.authority()))
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn status(server: &Server, token: &str) -> u16 {
    ask(&server.url, token, "prompts/list", &json!({})).status
}

// req: S-320
#[test]
fn private_authority_is_trusted_by_a_file_or_the_environment_and_named_otherwise() {
    let (key, authority) = (Key::elliptic("one"), Authority::new());
    let issuer = Issuer::start_tls(&[&key], &authority);
    let folder = library(LIBRARY);
    folder.write("ca.pem", &authority.pem);

    let server = Server::start(command(&folder, &issuer.url, ""));
    let (code, reason) = get(&format!("{}/readyz", operator(&server)));
    until("the reason", || get(&format!("{}/readyz", operator(&server))).1.contains("`ca-file` in [auth]"));
    assert_eq!(code, 503, "{reason}");
    let (code, shown) = public(&server);
    assert_eq!((code, shown.as_str()), (503, "the keys of the sign-in are missing; the log has the reason\n"));
    assert_eq!(status(&server, &key.sign(&issuer.claims())), 503);
    drop(server);

    let trusting = [command(&folder, &issuer.url, "ca-file = \"ca.pem\"\n"), {
        let mut command = command(&library(LIBRARY), &issuer.url, "");
        command.env("SSL_CERT_FILE", folder.path().join("ca.pem"));
        command
    }];
    for (number, command) in trusting.into_iter().enumerate() {
        if number == 1 {
            folder.write("server.toml", &format!("[auth]\nissuer = \"{}\"\nresource = \"{RESOURCE}\"\n", issuer.url));
        }
        let mut command = command;
        command.current_dir(folder.path());
        let before = issuer.fetches();
        let server = Server::start(command);
        until("readiness", || public(&server).0 == 200);
        assert_eq!(issuer.fetches(), before + 1, "the keys are fetched at the start, without a request");
        assert_eq!(status(&server, &key.sign(&issuer.claims())), 200);
        let (_, metrics) = get(&format!("{}/metrics", operator(&server)));
        assert!(metrics.contains("promptshelf_issuer_keys_age_seconds "), "{metrics}");
        assert!(metrics.contains("promptshelf_issuer_key_fetches_total{outcome=\"ok\"} 1"), "{metrics}");
    }

    folder.write("ca.pem", "no certificate");
    let refused = crate::program::shown(command(&folder, &issuer.url, "ca-file = \"ca.pem\"\n"), "");
    assert!(refused.contains("exit code: 4") && refused.contains("BEGIN CERTIFICATE"), "{refused}");
}

// req: S-321
#[test]
fn keys_come_from_a_file_that_is_read_again() {
    let (old, new) = (Key::elliptic("old"), Key::elliptic("new"));
    let issuer = Issuer::start(&[]);
    let folder = library(LIBRARY);
    let set = |key: &Key| json!({ "keys": [key.public()] }).to_string();
    folder.write("keys.json", &set(&old));
    let server = Server::start(command(&folder, &issuer.url, "jwks-file = \"keys.json\"\n"));
    assert_eq!(public(&server).0, 200);
    let of = |key: &Key| status(&server, &key.sign(&issuer.claims()));
    assert_eq!((of(&old), of(&new)), (200, 401));
    fs::write(folder.path().join("keys.json"), set(&new)).expect("written");
    until("the new key", || of(&new) == 200);
    assert_eq!((of(&old), issuer.fetches()), (401, 0));
    // A file without a key changes nothing.
    fs::write(folder.path().join("keys.json"), "{\"keys\":[]}").expect("written");
    until("the refusal", || server.log.try_iter().any(|line| line.contains("the previous ones stay active")));
    assert_eq!(of(&new), 200);
}

/// The check and the server agree about what the operator may name.
// req: S-321
#[test]
fn keys_on_this_machine_are_fetched_for_an_issuer_elsewhere() {
    let key = Key::elliptic("one");
    let issuer = Issuer::start(&[&key]);
    let folder = library(LIBRARY);
    let server =
        Server::start(command(&folder, "https://id.example", &format!("jwks-uri = \"{}/jwks\"\n", issuer.url)));
    until("readiness", || public(&server).0 == 200);
    let mut claims = issuer.claims();
    claims["iss"] = json!("https://id.example");
    assert_eq!(status(&server, &key.sign(&claims)), 200);
}

// req: S-321
#[cfg(unix)]
#[test]
fn withdrawn_key_is_refused_after_sighup() {
    let (old, new) = (Key::elliptic("old"), Key::elliptic("new"));
    let issuer = Issuer::start(&[&old]);
    let folder = library(LIBRARY);
    let server = Server::start(command(&folder, &issuer.url, ""));
    until("readiness", || public(&server).0 == 200);
    let of = |key: &Key| status(&server, &key.sign(&issuer.claims()));
    assert_eq!(of(&old), 200);
    issuer.publish(&[&new]);
    let id = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(id, rustix::process::Signal::HUP).expect("a running process");
    until("the withdrawal", || of(&old) == 401);
    assert_eq!((of(&new), issuer.fetches()), (200, 2));
}

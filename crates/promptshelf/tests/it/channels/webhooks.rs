//! Events of a store at receivers, from servers that are killed, from replicas, and after a long failure.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use promptshelf_testkit::receiver::{Answer, Receiver, Request};
use serde_json::Value;

#[cfg(target_os = "linux")]
use super::postgres::{Authority, authority};
use super::{BYE, HELLO, Team};
use crate::program::{PATIENCE, Server, ended};

const SECRET: &str = "5d41402abc4b2a76b9719d911017c592";

/// Writes `server.toml` with a webhook.
fn configure(team: &Team, url: &str, more: &str) {
    let webhook = format!("[[webhook]]\nurl = \"{url}\"\nevents = [\"published\", \"rolled-back\"]\n{more}\n");
    team.folder.write("server.toml", &webhook);
    team.folder.write("hook.secret", &format!("{SECRET}\n"));
}

/// The keys of a webhook on this machine.
const LOCAL: &str = "secret = { file = \"hook.secret\" }\nallow-private = true";

fn serve(team: &Team, more: &[&str]) -> Command {
    team.command(&[&["serve", &team.store, "--http", "127.0.0.1:0", "--api", "--config", "server.toml"], more].concat())
}

pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn get(server: &Server, path: &str) -> Value {
    let url = format!("http://{}/api/v1{path}", server.authority());
    let text = ureq::get(&url).call().expect("an answer").body_mut().read_to_string().expect("text");
    serde_json::from_str(&text).expect("JSON")
}

/// Starts a server, and waits until the store knows its webhook.
fn start(team: &Team, more: &[&str]) -> Server {
    let server = Server::start(serve(team, more));
    let one = |queues: Value| queues["items"].as_array().filter(|queues| !queues.is_empty()).map(|_| ());
    until("a known webhook", || one(get(&server, "/webhooks")));
    server
}

fn publish(team: &Team, text: &str) {
    team.write("prompts", &[("hello.md", &format!("{HELLO}{text}\n"))]);
    team.ok(&["publish", "prompts", "-m", text, "--as", "ada"]);
}

/// Waits until nothing is pending.
fn until_delivered(server: &Server) {
    until("an empty outbox", || (get(server, "/webhooks")["items"][0]["pending"] == 0).then_some(()));
}

fn revisions(received: &[Request]) -> Vec<u64> {
    let revision = |request: &Request| {
        let body: Value = serde_json::from_str(&request.body).expect("JSON");
        body["revision"].as_u64().expect("a number")
    };
    received.iter().map(revision).collect()
}

/// Runs the guide's example, and returns whether the signature is genuine.
fn is_genuine(secret: &str, request: &Request) -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src/serving/webhooks.md");
    let page = std::fs::read_to_string(page).expect("the page of the guide");
    let (_, example) = page.split_once("```python\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let program =
        format!("import sys\n{example}\nprint(is_genuine(sys.argv[1], sys.argv[2], sys.stdin.buffer.read()))\n");
    let mut python = Command::new("python3");
    python.args(["-c", &program, secret, &request.headers["x-promptshelf-signature"]]);
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
    child.stdin.take().expect("a pipe").write_all(request.body.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an end");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

// req: S-191, S-194
#[test]
fn killed_server_loses_no_event_and_keeps_their_order() {
    let team = Team::with(&[("hello.md", HELLO), ("bye.md", BYE)]);
    let receiver = Receiver::start([Answer::Hang]);
    configure(&team, &receiver.url(), LOCAL);
    let mut server = start(&team, &[]);
    publish(&team, "Second");
    receiver.wait_for(1);
    server.child.kill().expect("a running process");
    ended(&mut server.child);
    publish(&team, "Third");
    let server = start(&team, &[]);
    let received = receiver.wait_for(3);
    until_delivered(&server);
    assert_eq!(revisions(&receiver.received()), [2, 2, 3]);
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(received[0].headers["idempotency-key"], received[1].headers["idempotency-key"]);
    let answers = [is_genuine(SECRET, &received[2]), is_genuine("another secret", &received[2])];
    assert_eq!(answers, ["True", "False"]);
    let altered = Request { body: received[2].body.replace("Third", "Fourth"), ..received[2].clone() };
    assert_eq!(is_genuine(SECRET, &altered), "False");
}

/// The proxy resolves the name, which this machine need not be able to.
#[test]
fn event_goes_through_the_proxy_where_the_settings_say_so() {
    let team = Team::with(&[("hello.md", HELLO)]);
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = proxy.local_addr().expect("an address");
    let (sender, asked) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in proxy.incoming().flatten() {
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).ok();
            sender.send(line).ok();
        }
    });
    let url = "https://events.nowhere.invalid/hook";
    configure(&team, url, "secret = { file = \"hook.secret\" }\nproxy = true");
    let through = |word: &str| {
        let mut command = serve(&team, &[]);
        command.env("HTTPS_PROXY", format!("http://{address}")).env("NO_PROXY", word);
        Server::start(command)
    };
    let server = through("");
    until("a known webhook", || (get(&server, "/webhooks")["items"][0]["label"].is_string()).then_some(()));
    publish(&team, "Second");
    assert_eq!(asked.recv_timeout(PATIENCE).expect("a request").trim(), "CONNECT events.nowhere.invalid:443 HTTP/1.1");
    drop(server);
    // Without the setting the server asks for the name itself, and no proxy. Another receiver has no pause after failures.
    configure(&team, "https://other.nowhere.invalid/hook", "secret = { file = \"hook.secret\" }");
    let mut server = through("");
    let is_known = |server: &Server| get(server, "/webhooks")["items"].to_string().contains("other.nowhere");
    until("the other webhook", || is_known(&server).then_some(()));
    publish(&team, "Third");
    let mut log = server.startup_log.clone();
    until("a failed delivery", || {
        log.extend(server.log.try_iter());
        log.contains("other.nowhere.invalid").then_some(())
    });
    server.child.kill().expect("a running process");
    assert_eq!(asked.try_iter().count(), 0, "{log}");
}

#[cfg(target_os = "linux")]
#[test]
fn two_replicas_deliver_each_event_once() {
    let team = Team { store: promptshelf_testkit::database::Postgres::shared().database(), ..Team::without_store() };
    team.ok(&["init"]);
    publish(&team, "First");
    let receiver = Receiver::start([]);
    configure(&team, &receiver.url(), LOCAL);
    let replicas = [start(&team, &[]), start(&team, &[])];
    for text in ["Second", "Third", "Fourth"] {
        publish(&team, text);
    }
    team.ok(&["rollback", "--to", "1", "-m", "Back"]);
    receiver.wait_for(4);
    until_delivered(&replicas[0]);
    let received = receiver.received();
    assert_eq!(revisions(&received), [2, 3, 4, 5]);
    let keys: BTreeSet<&str> = received.iter().map(|request| request.headers["idempotency-key"].as_str()).collect();
    assert_eq!(keys.len(), 4);
}

// req: S-192
#[test]
fn dead_letter_is_listed_and_sent_again_on_request() {
    let team = Team::with(&[("hello.md", HELLO)]);
    let receiver = Receiver::start(vec![Answer::Close; 1_000]);
    let url = receiver.url().replace("/hook", "/hook/s3cret?key=s3cret");
    configure(&team, &url, &format!("retry-for = \"1s\"\n{LOCAL}"));
    let server = start(&team, &["--metrics", "127.0.0.1:0"]);
    publish(&team, "Second");
    let letter = until("a dead letter", || get(&server, "/webhooks/dead-letters")["items"].get(0).cloned());
    assert_eq!((&letter["event"], &letter["channel"]), (&"published".into(), &"production".into()));
    assert_eq!(letter["problem"], "the connection ended before an answer");
    assert!(letter["attempts"].as_u64().is_some_and(|attempts| attempts >= 2), "{letter}");
    receiver.answer([]);
    let redelivery = format!("http://{}/api/v1/webhooks/dead-letters/{}/redelivery", server.authority(), letter["id"]);
    assert_eq!(ureq::post(&redelivery).send_empty().expect("an answer").status(), 200);
    until_delivered(&server);
    let (_, metrics) = server.startup_log.split_once("metrics are served on ").expect("metrics");
    let metrics = metrics.split_whitespace().next().expect("a URL").trim_end_matches('"');
    until("the metrics", || {
        let text = ureq::get(metrics).call().expect("metrics").body_mut().read_to_string().expect("text");
        let has = |line: &str| text.lines().any(|one| one == line);
        (has("promptshelf_webhook_deliveries_total{outcome=\"delivered\"} 1")
            && has("promptshelf_webhook_deliveries_total{outcome=\"given-up\"} 1")
            && has("promptshelf_webhook_dead_letters 0"))
        .then_some(())
    });
    let received = receiver.received();
    let last = received.last().expect("a request");
    assert_eq!(last.headers["idempotency-key"], received[0].headers["idempotency-key"]);
    let log: Vec<String> = server.log.try_iter().collect();
    let shown = format!("{}{}{letter}{}", server.startup_log, log.join("\n"), get(&server, "/webhooks"));
    assert!(shown.contains("is a dead letter now") && !shown.contains("s3cret") && !shown.contains(SECRET), "{shown}");
}

/// Accepts TLS with a certificate for `localhost`, and passes each request on to a receiver. Returns the port.
#[cfg(target_os = "linux")]
fn https(certificate: &Authority, receiver: &Receiver) -> u16 {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
    let chain = vec![CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("a key pair");
    let (config, target) = (Arc::new(config), receiver.address());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).expect("a session");
            // A client that refuses the certificate ends the connection.
            pass_on(rustls::StreamOwned::new(session, stream), target).ok();
        }
    });
    port
}

/// Passes a request on, and its answer back.
#[cfg(target_os = "linux")]
fn pass_on(mut client: impl Read + Write, target: SocketAddr) -> std::io::Result<()> {
    let mut request = Vec::new();
    let length = |head: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        line.parse::<usize>().ok()
    };
    loop {
        let mut buffer = [0; 4_096];
        let read = client.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let is_whole = text
            .split_once("\r\n\r\n")
            .is_some_and(|(head, body)| length(&head.to_lowercase()).is_some_and(|length| body.len() >= length));
        if read == 0 || is_whole {
            break;
        }
    }
    let mut receiver = TcpStream::connect(target)?;
    receiver.write_all(&request)?;
    let mut answer = Vec::new();
    receiver.read_to_end(&mut answer)?;
    client.write_all(&answer)?;
    client.flush()
}

// req: S-225
#[cfg(target_os = "linux")]
#[test]
fn receiver_is_verified_with_the_authorities_of_the_system() {
    let team = Team::with(&[("hello.md", HELLO)]);
    let (receiver, known) = (Receiver::start([]), authority());
    let port = https(&known, &receiver);
    team.folder.write("known.pem", &known.authority);
    team.folder.write("other.pem", &authority().authority);
    let serve = |host: &str, authorities: &str| {
        configure(&team, &format!("https://{host}:{port}/hook"), &format!("retry-for = \"1s\"\n{LOCAL}"));
        let mut command = serve(&team, &[]);
        command.env("SSL_CERT_FILE", team.path(authorities)).env_remove("SSL_CERT_DIR");
        let server = Server::start(command);
        until("a known webhook", || {
            let queues = get(&server, "/webhooks");
            let hosts = queues["items"].as_array()?.iter().map(|queue| queue["label"].as_str().unwrap_or_default());
            hosts.into_iter().any(|label| label.contains(host)).then_some(())
        });
        server
    };
    let server = serve("localhost", "known.pem");
    publish(&team, "Second");
    assert_eq!(is_genuine(SECRET, &receiver.wait_for(1)[0]), "True");
    drop(server);
    // Another authority, and a name that the certificate does not have.
    for (number, (host, authorities)) in [("localhost", "other.pem"), ("127.0.0.1", "known.pem")].iter().enumerate() {
        let server = serve(host, authorities);
        publish(&team, &format!("Another {number}"));
        let letter = until("a dead letter", || {
            let letters = get(&server, "/webhooks/dead-letters");
            letters["items"].as_array()?.iter().find(|letter| letter["label"].to_string().contains(host)).cloned()
        });
        assert!(letter["problem"].as_str().is_some_and(|problem| problem.contains("not the expected TLS")), "{letter}");
    }
    assert_eq!(receiver.received().len(), 1, "nothing is sent to others");
}

// req: S-190
#[test]
fn webhooks_without_public_address_secret_or_store_are_refused() {
    let team = Team::with(&[("hello.md", HELLO)]);
    let refused = |url: &str, more: &str| {
        configure(&team, url, more);
        let error = team.fails("4", &["serve", &team.store, "--http", "127.0.0.1:0", "--config", "server.toml"]);
        assert!(!error.contains("s3cret"), "{error}");
        error
    };
    let secret = "secret = { file = \"hook.secret\" }";
    for (url, more, expected) in [
        ("http://hooks.example/s3cret", secret, "expected an https URL; http needs `allow-private = true`"),
        ("https://192.168.0.1/s3cret", secret, "expected a public address"),
        ("https://me:s3cret@hooks.example/", secret, "without user, password and fragment"),
        ("https://hooks.example/s3cret", "", "a webhook needs `secret`"),
        ("https://hooks.example/s3cret", "secret = { file = \"none.secret\" }", "cannot be read"),
        ("https://hooks.example/s3cret", "secret = { file = \"server.toml\" }", "expected at least 16"),
        ("https://hooks.example/s3cret", "retry-for = \"2d\"\nformat = \"slack\"", "a time from 1s to 24h"),
        ("https://hooks.example/s3cret", "format = \"teams\"", "slack"),
    ] {
        let error = refused(url, more);
        // `server.toml` begins with a line of 11 bytes.
        assert!(error.contains(expected), "{url} {more}\n{error}");
    }
    let one = "[[webhook]]\nurl = \"https://hooks.example/\"\nevents = []\nformat = \"slack\"\n";
    team.folder.write("server.toml", &one.repeat(2));
    let error = team.fails("4", &["serve", &team.store, "--http", "127.0.0.1:0", "--config", "server.toml"]);
    assert!(error.contains("expected at least one event") && error.contains("another webhook has this URL"), "{error}");
    configure(&team, "https://hooks.example/s3cret", secret);
    let error = team.fails("4", &["serve", "prompts", "--http", "127.0.0.1:0", "--config", "server.toml"]);
    assert!(error.contains("[[webhook]] needs a store") && error.contains("sqlite:team.db"), "{error}");
}

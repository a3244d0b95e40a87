//! HTTPS: the certificate in use, and the limits of handshakes.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    sync::Arc,
};

use rustix::process::Signal;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, ServerName},
};

use super::{HELLO, Subscription, put, receive, send, until};
use crate::program::{Folder, PATIENCE, Server, ended, library};

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// A certificate with its key.
struct Certificate {
    pem: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Certificate {
    fn new() -> Certificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Certificate { pem: made.cert.pem(), key: made.signing_key.serialize_pem(), der: made.cert.der().clone() }
    }

    fn put_into(&self, folder: &Path) {
        put(folder, "chain.pem", &self.pem);
        put(folder, "key.pem", &self.key);
    }
}

/// Starts a server over HTTPS, and returns the folder of its files with it.
fn server(certificate: &Certificate) -> (Folder, Server) {
    let settings = "[tls]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n";
    let folder = library(&[("hello.md", HELLO), ("../server.toml", settings)]);
    certificate.put_into(folder.path());
    let server = Server::of(&folder, &[]);
    (folder, server)
}

fn authority(server: &Server) -> &str {
    server.url.trim_start_matches("https://").trim_end_matches("/mcp")
}

/// Performs a handshake that trusts these certificates only.
fn connect(server: &Server, trusted: &[&Certificate]) -> std::io::Result<Connection> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.der.clone()).expect("a certificate");
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = TcpStream::connect(authority(server))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    connection.complete_io(&mut stream)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Returns whether the server uses this certificate.
fn uses(server: &Server, certificate: &Certificate) -> bool {
    connect(server, &[certificate]).is_ok()
}

/// Requests the health of the server, and returns the status line.
fn ask(connection: &mut impl ReadWrite) -> String {
    ask_as(connection, "localhost").lines().next().unwrap_or_default().to_owned()
}

/// Requests the health of the server by a host name, and returns the response.
fn ask_as(connection: &mut impl ReadWrite, host: &str) -> String {
    write!(connection, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("the server reads");
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"ok\n") {
        connection.read_exact(&mut byte).expect("the server answers");
        answer.push(byte[0]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

// req: S-6
#[test]
fn https_serves_http_1_only_over_tls() {
    let certificate = Certificate::new();
    let (_folder, server) = server(&certificate);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let mut connection = connect(&server, &[&certificate]).expect("a handshake");
    assert_eq!(connection.conn.alpn_protocol(), Some(b"http/1.1".as_slice()));
    assert_eq!(ask(&mut connection), "HTTP/1.1 200 OK");
    assert_eq!(ask(&mut connection), "HTTP/1.1 200 OK", "the connection stays");
    assert!(!uses(&server, &Certificate::new()));

    let mut plain = TcpStream::connect(authority(&server)).expect("the server listens");
    plain.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the server reads");
    let mut answer = Vec::new();
    // The connection ends with an alert or a reset; no HTTP response is sent.
    plain.read_to_end(&mut answer).ok();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

// req: S-6
#[test]
fn changed_certificate_is_used_and_invalid_one_ignored() {
    let [first, second, third] = [Certificate::new(), Certificate::new(), Certificate::new()];
    let (folder, server) = server(&first);
    let mut open = connect(&server, &[&first]).expect("a handshake");
    assert_eq!(ask(&mut open), "HTTP/1.1 200 OK");

    put(folder.path(), "chain.pem", "no certificate");
    let line = receive(&server, "the previous certificate stays in use");
    assert!(line.contains("expected a PEM certificate in") && line.contains("chain.pem"), "{line}");
    assert!(uses(&server, &first));
    // The certificate is replaced before its key.
    put(folder.path(), "chain.pem", &second.pem);
    let line = receive(&server, "the previous certificate stays in use");
    assert!(line.contains("cannot use the certificate in") && line.contains("with the key"), "{line}");
    assert!(uses(&server, &first) && !uses(&server, &second));
    put(folder.path(), "key.pem", &second.key);
    receive(&server, "certificate reloaded");
    assert!(uses(&server, &second) && !uses(&server, &first));
    assert_eq!(ask(&mut open), "HTTP/1.1 200 OK", "open connections continue");

    fs::remove_file(folder.path().join("key.pem")).expect("a removed file");
    receive(&server, "the previous certificate stays in use");
    third.put_into(folder.path());
    send(&server.child, Signal::HUP);
    until("the third certificate is in use", || uses(&server, &third));
}

#[test]
fn tls_shutdown_ends_subscription_with_its_result() {
    let certificate = Certificate::new();
    let (_folder, mut server) = server(&certificate);
    let mut subscription = Subscription::open(connect(&server, &[&certificate]).expect("a handshake"), "none");
    send(&server.child, Signal::TERM);
    subscription.assert_end();
    let mut rest = Vec::new();
    // Without a TLS `close_notify` this would be an error.
    subscription.0.read_to_end(&mut rest).expect("an orderly end");
    assert!(rest.ends_with(b"0\r\n\r\n"), "{:?}", String::from_utf8_lossy(&rest));
    assert_eq!(ended(&mut server.child).code(), Some(0));
}

// req: S-65
#[test]
fn browsers_are_asked_to_use_tls_only() {
    let certificate = Certificate::new();
    let (folder, server) = server(&certificate);
    let mut connection = connect(&server, &[&certificate]).expect("a handshake");
    let strict = |answer: String| answer.to_lowercase().contains("\r\nstrict-transport-security: max-age=31536000\r\n");
    assert!(strict(ask_as(&mut connection, "prompts.example.com")));
    assert!(!strict(ask_as(&mut connection, "localhost")));
    let settings = "[tls]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\nstrict-transport-security = false\n";
    put(folder.path(), "server.toml", settings);
    receive(&server, "settings reloaded");
    assert!(!strict(ask_as(&mut connection, "prompts.example.com")));
}

// req: S-66
#[test]
fn key_that_every_user_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let certificate = Certificate::new();
    let settings = "[tls]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n";
    for (mode, is_exposed) in [(0o600, false), (0o640, false), (0o644, true), (0o602, true)] {
        let folder = library(&[("hello.md", HELLO), ("../server.toml", settings)]);
        certificate.put_into(folder.path());
        let key = folder.path().join("key.pem");
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("own file");
        let server = Server::of(&folder, &[]);
        let warning = format!("WARN every user of this machine can read or write the key key.pem (mode {mode:03o})");
        let shown = server.startup_log.contains(&warning);
        assert_eq!(shown, is_exposed, "{}", server.startup_log);
        assert!(uses(&server, &certificate));
    }
}

// req: S-7
#[test]
fn unfinished_handshakes_are_limited_for_a_time() {
    let certificate = Certificate::new();
    let (_folder, server) = server(&certificate);
    let mut idle = Vec::new();
    until("an address over its limit is refused", || {
        idle.push(TcpStream::connect(authority(&server)).expect("the server listens"));
        !uses(&server, &certificate)
    });
    assert!(idle.len() >= 32, "{}", idle.len());
    drop(idle);
    until("there is room again", || uses(&server, &certificate));
}

#[test]
fn missing_certificate_fails_the_start() {
    let settings = "[tls]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n";
    let folder = library(&[("hello.md", HELLO), ("../server.toml", settings)]);
    let line = ["serve", "prompts", "--config", "server.toml", "--http", "127.0.0.1:0"];
    let shown = crate::program::run(&folder, &line);
    assert!(shown.starts_with("exit code: 1\n") && shown.contains("the certificate in"), "{shown}");
    fs::write(folder.path().join("server.toml"), "[tls]\nkey = \"key.pem\"\n").expect("written");
    let shown = crate::program::run(&folder, &line);
    assert!(shown.starts_with("exit code: 4\n") && shown.contains("server.toml:2:7: "), "{shown}");
    let shown = crate::program::run(&folder, &["serve", "prompts", "--tls-key", "key.pem"]);
    assert!(shown.starts_with("exit code: 2\n") && shown.contains("both a certificate and its key"), "{shown}");
}

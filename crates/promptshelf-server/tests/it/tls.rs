//! Certificates, reloaded while the server runs.

use std::{error::Error as _, fs, path::PathBuf, sync::Arc};

use promptshelf_server::http::{
    App, Options,
    tls::{Tls, TlsFiles},
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::library;

/// Writes a new certificate and its key.
fn write(files: &TlsFiles) -> CertificateDer<'static> {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(&files.certificate, issued.cert.pem()).expect("a writable folder");
    fs::write(&files.key, issued.signing_key.serialize_pem()).expect("a writable folder");
    issued.cert.der().clone()
}

/// Connects, trusting one certificate only.
async fn connect(port: u16, trusted: &CertificateDer<'static>) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

async fn status_line(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("the server reads");
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.expect("the server answers");
    String::from_utf8_lossy(&head).into_owned()
}

#[tokio::test]
async fn reloaded_certificate_is_used_for_later_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let files = TlsFiles { certificate: path("cert.pem"), key: path("key.pem") };
    let first = write(&files);
    let tls = Tls::open(&files).expect("a certificate");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let app = App::new(&library().build().expect("a library"), &Options::default());
    let serving = tokio::spawn({
        let tls = tls.clone();
        async move { app.serve_tls(listener, &tls, std::future::pending()).await }
    });
    let mut open = connect(port, &first).await.expect("the first certificate");
    assert_eq!(status_line(&mut open).await, "HTTP/1.1 200 OK");

    fs::write(&files.key, "not a key").expect("a writable folder");
    let error = tls.reload(&files).expect_err("no key");
    assert!(error.to_string().contains("key.pem") && error.source().is_some(), "{error}");
    connect(port, &first).await.expect("the first certificate stays in use");

    let second = write(&files);
    tls.reload(&files).expect("a certificate");
    let mut next = connect(port, &second).await.expect("the second certificate");
    assert_eq!(status_line(&mut next).await, "HTTP/1.1 200 OK");
    connect(port, &first).await.expect_err("the first certificate is replaced");
    drop(next);
    let mut rest = Vec::new();
    open.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.expect("still open");
    open.read_to_end(&mut rest).await.ok();
    assert!(String::from_utf8_lossy(&rest).contains("HTTP/1.1 200 OK"));
    serving.abort();
}

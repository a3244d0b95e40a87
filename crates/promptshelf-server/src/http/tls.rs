//! TLS: certificates from PEM files, reloadable while connections are open, and handshakes bounded in
//! time and number.
//!
//! Client certificates and obtaining certificates from an authority (ACME) are deliberately left out.

use std::{
    fmt, io,
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use jiff::{SignedDuration, Timestamp};
use promptshelf_service::{Slots, address_key};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::connections::Handshake;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_HANDSHAKES: u32 = 1_024;
const MAX_HANDSHAKES_PER_ADDRESS: u32 = 64;

/// The PEM files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate of a server. Clones share it, so that one reload applies to all of them.
///
/// ```no_run
/// use promptshelf_server::{
///     Library,
///     http::{App, Options, tls::{Tls, TlsFiles}},
/// };
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let files = TlsFiles { certificate: "cert.pem".into(), key: "key.pem".into() };
/// let tls = Tls::open(&files)?;
/// let library = Library::builder().folder("prompts").build()?;
/// let listener = tokio::net::TcpListener::bind("0.0.0.0:8443").await?;
/// App::new(&library, &Options::default()).serve_tls(listener, &tls, std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<Loaded>>);

struct Loaded {
    config: Arc<ServerConfig>,
    /// `None` if the certificate does not say when it ends.
    expires: Option<Timestamp>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why a certificate cannot be used. The message names the file and includes the cause.
#[derive(Clone, Debug)]
pub struct TlsError {
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl TlsError {
    fn new(message: String) -> TlsError {
        TlsError { message, source: None }
    }

    fn caused_by(self, error: impl std::error::Error + Send + Sync + 'static) -> TlsError {
        TlsError { source: Some(Arc::new(error)), ..self }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

impl Tls {
    /// Reads a certificate and its key. Blocks while the files are read.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read or parsed, or the key does not match the certificate.
    pub fn open(files: &TlsFiles) -> Result<Tls, TlsError> {
        Ok(Tls(Arc::new(ArcSwap::from_pointee(read(files)?))))
    }

    /// Reads the files again, for every later connection; open ones keep the previous certificate.
    ///
    /// # Errors
    ///
    /// As for [`open`](Tls::open); the previous certificate stays in use.
    pub fn reload(&self, files: &TlsFiles) -> Result<(), TlsError> {
        self.0.store(Arc::new(read(files)?));
        Ok(())
    }

    /// Returns when the certificate in use ends.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.0.load().expires
    }

    pub(super) fn handshakes(&self) -> Handshakes {
        let slots = |most| Slots::new(NonZeroU32::new(most));
        Handshakes { tls: self.clone(), all: slots(MAX_HANDSHAKES), per_address: slots(MAX_HANDSHAKES_PER_ADDRESS) }
    }
}

/// The time before the end of a certificate from which each load warns.
const RENEWAL: SignedDuration = SignedDuration::from_hours(14 * 24);

fn read(files: &TlsFiles) -> Result<Loaded, TlsError> {
    let TlsFiles { certificate, key } = files;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable("certificate", certificate, error))?;
    if chain.is_empty() {
        return Err(TlsError::new(format!("expected a PEM certificate in {}, found none", certificate.display())));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("key", key, error))?;
    warn_if_exposed(key);
    let expires = chain.first().and_then(end_of);
    warn_if_ending(certificate, expires, Timestamp::now());
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            TlsError::new(format!("cannot use the certificate in {certificate} with the key in {key}: {error}"))
                .caused_by(error)
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Loaded { config: Arc::new(config), expires })
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}

fn warn_if_ending(certificate: &Path, expires: Option<Timestamp>, now: Timestamp) {
    let (certificate, Some(end)) = (certificate.display(), expires) else { return };
    if end <= now {
        tracing::error!("the certificate in {certificate} ended at {end}: clients refuse it; replace the file");
    } else if end.duration_since(now) < RENEWAL {
        tracing::warn!("the certificate in {certificate} ends soon, at {end}: replace the file before");
    }
}

/// Warns if every user of this machine may read or write the key. A group may: distributions give one to servers.
#[cfg(unix)]
fn warn_if_exposed(key: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(metadata) = std::fs::metadata(key) else { return };
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o006 != 0 {
        let key = key.display();
        tracing::warn!(
            "every user of this machine can read or write the key {key} (mode {mode:03o}); run: chmod o= {key}"
        );
    }
}

/// The permissions of other systems are not checked.
#[cfg(not(unix))]
fn warn_if_exposed(_: &Path) {}

fn unreadable(kind: &str, path: &Path, error: rustls::pki_types::pem::Error) -> TlsError {
    TlsError::new(format!("cannot read the {kind} in {}: {error}", path.display())).caused_by(error)
}

/// TLS handshakes with a bounded number: a client that never continues holds one slot for
/// [`HANDSHAKE_TIMEOUT`].
#[derive(Clone, Debug)]
pub(super) struct Handshakes {
    tls: Tls,
    all: Slots,
    per_address: Slots,
}

impl Handshake for Handshakes {
    type Stream = TlsStream<TcpStream>;

    async fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let (Some(_slot), Some(_own)) = (self.all.take(String::new()), self.per_address.take(address_key(peer.ip())))
        else {
            tracing::debug!(%peer, "refused a connection: too many concurrent handshakes");
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let accepting = TlsAcceptor::from(Arc::clone(&self.tls.0.load().config)).accept(stream);
        let accepted = timeout(HANDSHAKE_TIMEOUT, accepting).await.map_err(io::Error::from).flatten();
        if let Err(error) = &accepted {
            tracing::debug!(%error, %peer, "TLS handshake failed");
        }
        accepted
    }
}

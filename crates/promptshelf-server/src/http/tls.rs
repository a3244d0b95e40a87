//! TLS: certificates from files, which can be replaced while they are in use,
//! and handshakes that are bounded in time and number.
//!
//! What is deliberately not here: certificates of clients, and getting
//! certificates from an authority.

use std::{
    fmt, io,
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use promptshelf_service::{Slots, address_key};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::connections::Handshake;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How many handshakes may be under way, and how many of one address.
const HANDSHAKES: u32 = 1_024;
const HANDSHAKES_OF_ONE: u32 = 64;

/// Where the certificate and its key are, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and after it those that lead to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A certificate that is in use. Clones are the same one.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<ServerConfig>>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why a certificate cannot be used: a sentence that names the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

impl Tls {
    /// Reads a certificate and its key.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read, or they do not belong together.
    pub fn open(files: &TlsFiles) -> Result<Tls, TlsError> {
        Ok(Tls(Arc::new(ArcSwap::from_pointee(read(files)?))))
    }

    /// Takes another certificate for every connection from now on.
    ///
    /// # Errors
    ///
    /// As for [`open`](Tls::open); the one in use stays.
    pub fn reload(&self, files: &TlsFiles) -> Result<(), TlsError> {
        self.0.store(Arc::new(read(files)?));
        Ok(())
    }

    pub(super) fn handshakes(&self) -> Handshakes {
        let slots = |most| Slots::new(NonZeroU32::new(most));
        Handshakes { tls: self.clone(), all: slots(HANDSHAKES), of_one: slots(HANDSHAKES_OF_ONE) }
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let TlsFiles { certificate, key } = files;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable("certificate", certificate, &error))?;
    if chain.is_empty() {
        return Err(TlsError(format!("there is no certificate in {}", certificate.display())));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("key", key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
        .map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            TlsError(format!("the certificate in {certificate} cannot be used with the key in {key}: {error}"))
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn unreadable(what: &str, path: &Path, error: &rustls::pki_types::pem::Error) -> TlsError {
    TlsError(format!("the {what} in {} cannot be read: {error}", path.display()))
}

/// Lets connections shake hands, but not too many at once: whoever begins and
/// never goes on holds a place for [`HANDSHAKE`].
#[derive(Clone, Debug)]
pub(super) struct Handshakes {
    tls: Tls,
    all: Slots,
    of_one: Slots,
}

impl Handshake for Handshakes {
    type Stream = TlsStream<TcpStream>;

    async fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let (Some(_slot), Some(_own)) = (self.all.take(String::new()), self.of_one.take(address_key(peer.ip()))) else {
            tracing::debug!(%peer, "too many handshakes at once");
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let accepting = TlsAcceptor::from(self.tls.0.load_full()).accept(stream);
        let shaken = timeout(HANDSHAKE, accepting).await.map_err(io::Error::from).flatten();
        if let Err(error) = &shaken {
            tracing::debug!(%error, %peer, "a handshake has failed");
        }
        shaken
    }
}

//! A fake authorization server: it publishes keys, counts requests, and signs tokens.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    encoding::AsDer,
    rsa::{KeyPair, KeySize},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use rustls::{ServerConfig, ServerConnection, StreamOwned, pki_types::PrivateKeyDer};
use serde_json::{Value, json};

pub(crate) const RESOURCE: &str = "https://prompts.example/team/mcp";

/// A signing key.
pub(crate) struct Key {
    pub(crate) id: &'static str,
    pub(crate) algorithm: Algorithm,
    pub(crate) secret: EncodingKey,
}

impl Key {
    pub(crate) fn elliptic(id: &'static str) -> Key {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let der = pair.to_pkcs8v1().expect("DER");
        Key { id, algorithm: Algorithm::ES256, secret: EncodingKey::from_ec_der(der.as_ref()) }
    }

    pub(crate) fn rsa(id: &'static str) -> Key {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).expect("DER");
        // In PKCS #8 the key follows a header of 26 bytes.
        Key { id, algorithm: Algorithm::RS256, secret: EncodingKey::from_rsa_der(&der.as_ref()[26..]) }
    }

    pub(crate) fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.secret, self.algorithm).expect("a public half");
        jwk.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(jwk).expect("JSON")
    }

    pub(crate) fn header(&self) -> Header {
        Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.secret).expect("a token")
    }
}

/// The server; it runs until the test process ends.
pub(crate) struct Issuer {
    pub(crate) url: String,
    keys: Arc<Mutex<Value>>,
    pub(crate) fetches: Arc<AtomicUsize>,
    leaked: Arc<AtomicBool>,
    up: Arc<AtomicBool>,
}

/// A private certificate authority, with a certificate for `localhost`.
pub(crate) struct Authority {
    pub(crate) pem: String,
    tls: Arc<ServerConfig>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = parameters.self_signed(&key).expect("a certificate").pem();
        let authority = rcgen::Issuer::new(parameters, key);
        let key = rcgen::KeyPair::generate().expect("a key");
        let leaf = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("parameters");
        let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .expect("a certificate");
        Authority { pem, tls: Arc::new(config) }
    }
}

impl Issuer {
    pub(crate) fn start(keys: &[&Key]) -> Issuer {
        Issuer::serve(keys, None)
    }

    /// Starts an issuer over HTTPS, with a certificate of a private authority.
    pub(crate) fn start_tls(keys: &[&Key], authority: &Authority) -> Issuer {
        Issuer::serve(keys, Some(Arc::clone(&authority.tls)))
    }

    fn serve(keys: &[&Key], tls: Option<Arc<ServerConfig>>) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url = match tls {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let issuer = Issuer {
            url: url.clone(),
            keys: Arc::default(),
            fetches: Arc::default(),
            leaked: Arc::default(),
            up: Arc::new(AtomicBool::new(true)),
        };
        issuer.publish(keys);
        let (keys, up) = (Arc::clone(&issuer.keys), Arc::clone(&issuer.up));
        let (fetches, leaked) = (Arc::clone(&issuer.fetches), Arc::clone(&issuer.leaked));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keys = keys.lock().expect("keys").clone();
                let (marks, up) = ((&*fetches, &*leaked), up.load(Ordering::SeqCst));
                match &tls {
                    Some(tls) => {
                        let session = ServerConnection::new(Arc::clone(tls)).expect("a session");
                        answer(StreamOwned::new(session, stream), &url, &keys, marks, up);
                    }
                    None => answer(stream, &url, &keys, marks, up),
                }
            }
        });
        issuer
    }

    pub(crate) fn publish(&self, keys: &[&Key]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
        *self.keys.lock().expect("keys") = json!({ "keys": keys });
    }

    pub(crate) fn publish_raw(&self, keys: Value) {
        *self.keys.lock().expect("keys") = keys;
    }

    pub(crate) fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::SeqCst);
    }

    /// Returns how often the keys were fetched.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    /// Returns whether any request contained a caller's token.
    pub(super) fn received_token(&self) -> bool {
        self.leaked.load(Ordering::SeqCst)
    }

    /// Returns valid claims.
    pub(crate) fn claims(&self) -> Value {
        json!({
            "iss": self.url, "aud": RESOURCE, "sub": "ada", "iat": now(), "nbf": now(), "exp": now() + 600,
            "scope": "prompts:read", "roles": ["editor"],
        })
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn answer<S: Read + Write>(
    mut stream: S,
    url: &str,
    keys: &Value,
    (fetches, leaked): (&AtomicUsize, &AtomicBool),
    up: bool,
) {
    let mut reader = BufReader::new(&mut stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok();
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    // Requests to the issuer must not contain anything from a caller.
    let head = head.to_ascii_lowercase();
    let leaks =
        head.contains("authorization") || head.contains("cookie") || head.contains("eyj") || first.contains('?');
    if leaks {
        leaked.store(true, Ordering::SeqCst);
    }
    let (status, body) = match first.split(' ').nth(1) {
        _ if !up => (503, json!({})),
        Some("/.well-known/openid-configuration") => (200, json!({ "issuer": url, "jwks_uri": format!("{url}/jwks") })),
        Some("/jwks") => {
            fetches.fetch_add(1, Ordering::SeqCst);
            (200, keys.clone())
        }
        _ => (404, json!({})),
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok();
    stream.flush().ok();
}

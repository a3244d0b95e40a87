//! Arbitrary bytes as the keys of an issuer (JWKS), and as the headers and the body of a webhook.

#![no_main]

use libfuzzer_sys::fuzz_target;
use promptshelf_git::verify_webhook;
use promptshelf_server::http::auth::KeySet;

const HEADERS: [&str; 4] = ["x-hub-signature-256", "x-gitea-signature", "x-gitlab-token", "content-type"];

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<KeySet>();
    }
    let mut parts = bytes.split(|byte| *byte == b'\n');
    let headers: Vec<(&str, &[u8])> = HEADERS.iter().copied().zip(parts.by_ref().take(HEADERS.len())).collect();
    let body = parts.next().unwrap_or_default();
    // Nobody can guess the secret.
    assert!(verify_webhook(b"a secret of 32 bytes, or about it", headers, body).is_err());
});

//! Verification of webhooks: pure functions of the headers and the body.
//!
//! A verified webhook only prompts a fetch: nothing in its body is used, so that the body is not even parsed.

use std::{error::Error, fmt};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// The largest body of a webhook, in bytes. Bound it before it is read.
pub const MAX_WEBHOOK_BYTES: usize = 256 << 10;

const HEADERS: [(&str, Form); 5] = [
    ("x-hub-signature-256", Form::PrefixedHmac),
    ("x-forgejo-signature", Form::Hmac),
    ("x-gitea-signature", Form::Hmac),
    ("x-gogs-signature", Form::Hmac),
    ("x-gitlab-token", Form::Token),
];

#[derive(Clone, Copy)]
enum Form {
    /// `sha256=` and the HMAC-SHA256 of the body in hexadecimal digits.
    PrefixedHmac,
    /// The HMAC-SHA256 of the body in hexadecimal digits.
    Hmac,
    Token,
}

/// Why a webhook is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebhookError {
    /// No header has a signature or a token.
    Unsigned,
    /// The signature or the token is wrong, or a header occurs twice.
    Invalid,
    /// The body is larger than [`MAX_WEBHOOK_BYTES`].
    TooLarge,
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WebhookError::Unsigned => {
                "the webhook has no signature: set the secret at the forge (X-Hub-Signature-256, X-Gitea-Signature or \
                 X-Gitlab-Token)"
            }
            WebhookError::Invalid => "the signature of the webhook is wrong: the secret at the forge is another one",
            WebhookError::TooLarge => "the body of the webhook is larger than 256 KiB",
        })
    }
}

impl Error for WebhookError {}

/// Verifies a webhook of GitHub, Gitea, Forgejo, Gogs (HMAC-SHA256 of the body) or GitLab (a token), in constant time.
///
/// `headers` are pairs of a name and a value, names in any case. All signatures that are present have to be valid:
/// Gitea sends the same one in several headers.
///
/// ```
/// use promptshelf_git::{WebhookError, verify_webhook};
///
/// // Made with `openssl dgst -sha256 -hmac`.
/// let signature = "sha256=cd42114b6facb676e0e6192b1b4226200f3b48faa2e49d4a6ceed772b0b01f0a";
/// let secret = b"secret of the forge";
/// assert_eq!(verify_webhook(secret, [("X-Hub-Signature-256", signature)], b"Hello, World!"), Ok(()));
/// assert_eq!(verify_webhook(secret, [("X-Hub-Signature-256", signature)], b"Hello"), Err(WebhookError::Invalid));
/// ```
///
/// # Errors
///
/// [`WebhookError`]. An empty secret verifies nothing.
pub fn verify_webhook<'h>(
    secret: &[u8],
    headers: impl IntoIterator<Item = (&'h str, impl AsRef<[u8]>)>,
    body: &[u8],
) -> Result<(), WebhookError> {
    if body.len() > MAX_WEBHOOK_BYTES {
        return Err(WebhookError::TooLarge);
    }
    let (mut seen, mut is_valid) = ([false; HEADERS.len()], !secret.is_empty());
    for (name, value) in headers {
        let Some(place) = HEADERS.iter().position(|(known, _)| name.eq_ignore_ascii_case(known)) else { continue };
        is_valid &= !std::mem::replace(&mut seen[place], true);
        is_valid &= is_signature(HEADERS[place].1, secret, value.as_ref(), body);
    }
    match seen.contains(&true) {
        false => Err(WebhookError::Unsigned),
        true if is_valid => Ok(()),
        true => Err(WebhookError::Invalid),
    }
}

fn is_signature(form: Form, secret: &[u8], value: &[u8], body: &[u8]) -> bool {
    let digits = match form {
        Form::Token => return is_same_secret(secret, value),
        Form::PrefixedHmac => value.strip_prefix(b"sha256="),
        Form::Hmac => Some(value),
    };
    let Some(signature) = digits.and_then(decoded) else { return false };
    hmac(secret, body).is_some_and(|mac| mac.verify_slice(&signature).is_ok())
}

/// Compares digests, so that neither the content nor the length of the secret changes the time.
fn is_same_secret(secret: &[u8], value: &[u8]) -> bool {
    let digest = |text: &[u8]| hmac(b"comparison", text).map(|mac| mac.finalize().into_bytes());
    match (digest(secret), digest(value)) {
        (Some(expected), Some(found)) => bool::from(expected.ct_eq(&found)),
        _ => false,
    }
}

fn hmac(key: &[u8], text: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac)
}

/// Decodes 64 hexadecimal digits.
fn decoded(digits: &[u8]) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"secret of the forge";
    const SIGNATURE: &str = "cd42114b6facb676e0e6192b1b4226200f3b48faa2e49d4a6ceed772b0b01f0a";

    fn verify(headers: &[(&str, &str)]) -> Result<(), WebhookError> {
        verify_webhook(SECRET, headers.iter().copied(), b"Hello, World!")
    }

    // req: S-146
    #[test]
    fn signatures_of_all_forges_are_verified() {
        let github = format!("sha256={SIGNATURE}");
        assert_eq!(verify(&[("content-type", "x"), ("X-HUB-Signature-256", &github)]), Ok(()));
        // Gitea and Forgejo send all of these.
        let gitea =
            [("X-Gitea-Signature", SIGNATURE), ("X-Gogs-Signature", SIGNATURE), ("X-Hub-Signature-256", &github)];
        assert_eq!(verify(&gitea), Ok(()));
        assert_eq!(verify(&[("X-Gitlab-Token", "secret of the forge")]), Ok(()));
        let mut forged = gitea;
        forged[1].1 = "00";
        for refused in [
            &forged[..],
            &[("X-Hub-Signature-256", SIGNATURE)],
            &[("X-Hub-Signature-256", &github), ("x-hub-signature-256", &github)],
            &[("X-Gitea-Signature", &SIGNATURE.replace('c', "0"))],
            &[("X-Gitea-Signature", "")],
            &[("X-Gitlab-Token", "secret of the forg")],
            &[("X-Gitlab-Token", "")],
        ] {
            assert_eq!(verify(refused), Err(WebhookError::Invalid), "{refused:?}");
        }
        assert_eq!(verify(&[("X-Hub-Signature", "sha1=x")]), Err(WebhookError::Unsigned));
        assert_eq!(verify_webhook(b"", [("X-Gitlab-Token", "")], b""), Err(WebhookError::Invalid));
        let large = vec![0; MAX_WEBHOOK_BYTES + 1];
        assert_eq!(verify_webhook(SECRET, [("X-Gitlab-Token", SECRET)], &large), Err(WebhookError::TooLarge));
    }
}

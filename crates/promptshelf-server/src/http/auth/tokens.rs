//! Static tokens: random strings of which only the digests are stored.

use std::time::SystemTime;

use base64::Engine as _;
use promptshelf_service::{Identity, Revocation};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::{options::StaticToken, token_error::TokenError};

pub(super) const PREFIX: &str = "psk_";

/// Returns the SHA-256 of a whole token, for [`StaticToken::sha256`]. A token has 256 random bits, so
/// that a slower password hash would add nothing.
///
/// ```
/// use promptshelf_server::http::auth::{digest_of, random_token};
///
/// # fn main() -> std::io::Result<()> {
/// let token = random_token()?;
/// assert!(token.starts_with("psk_"));
/// assert_eq!(digest_of(&token).len(), 32);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn digest_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Generates a token: `psk_` and 256 bits of the operating system's generator as base64url.
///
/// # Errors
///
/// When that generator fails.
pub fn random_token() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(format!("{PREFIX}{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
}

#[derive(Debug)]
pub(super) struct Tokens(Vec<(StaticToken, Revocation)>);

impl Tokens {
    /// Takes over the revocation of each token that is unchanged in `previous`.
    pub(super) fn new(tokens: &[StaticToken], previous: Option<&Tokens>) -> Tokens {
        let with_revocation = |token: &StaticToken| {
            let unchanged = previous.and_then(|previous| previous.0.iter().find(|(known, _)| known == token));
            (token.clone(), unchanged.map(|(_, revocation)| revocation.clone()).unwrap_or_default())
        };
        Tokens(tokens.iter().map(with_revocation).collect())
    }

    /// Revokes every token that has not been taken over into `next`.
    pub(super) fn revoke_except(&self, next: &Tokens) {
        for (token, revocation) in &self.0 {
            if !next.0.iter().any(|(other, its)| other == token && its.same_as(revocation)) {
                revocation.revoke();
            }
        }
    }

    /// Authenticates `token`; `None` if it is unknown. Compares with every digest in constant time, so
    /// that the time reveals nothing about a guess.
    pub(super) fn find(&self, token: &str, now: SystemTime) -> Option<Result<(Identity, Revocation), TokenError>> {
        let digest = digest_of(token);
        let (mut is_found, mut position) = (Choice::from(0), 0_u32);
        for (index, (known, _)) in (0_u32..).zip(&self.0) {
            let is_equal = known.sha256.ct_eq(&digest);
            position.conditional_assign(&index, is_equal);
            is_found |= is_equal;
        }
        if !bool::from(is_found) {
            return None;
        }
        let (known, revocation) = self.0.get(usize::try_from(position).ok()?)?;
        Some(identified(known, revocation, "token".to_owned(), now))
    }
}

/// Returns the caller of a token, unless it has expired. The key of the identity is the issuer and the name.
pub(super) fn identified(
    token: &StaticToken,
    revocation: &Revocation,
    issuer: String,
    now: SystemTime,
) -> Result<(Identity, Revocation), TokenError> {
    if token.expires.is_some_and(|end| end <= now) {
        return Err(TokenError::invalid("expired-token", "The token has expired"));
    }
    let identity = Identity {
        key: format!("{issuer}\n{}", token.name),
        name: token.name.clone(),
        scopes: token.scopes.clone(),
        roles: token.roles.clone(),
        expires: token.expires,
    };
    Ok((identity, revocation.clone()))
}

//! Tokens that the server itself knows: long random words, of which only the
//! digests are kept.

use std::time::SystemTime;

use base64::Engine as _;
use promptshelf_service::{Identity, Revocation};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::Refused;

/// What tokens begin with, so that people and scanners for secrets know them.
const PREFIX: &str = "psk_";

/// A token that is known, and who comes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticToken {
    /// Whose it is.
    pub name: String,
    /// The SHA-256 of the whole token.
    pub sha256: [u8; 32],
    /// What it permits.
    pub scopes: Vec<String>,
    /// What its owner is in the team.
    pub roles: Vec<String>,
    /// When it ends.
    pub expires: Option<SystemTime>,
}

/// The SHA-256 of a token: what is kept of it. A token is random in all of its
/// 256 bits, so that nothing slower is needed against guessing.
#[must_use]
pub fn digest_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A new token.
///
/// # Errors
///
/// When the system has no randomness to give.
pub fn random_token() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(format!("{PREFIX}{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
}

#[derive(Debug)]
pub(super) struct Tokens(Vec<(StaticToken, Revocation)>);

impl Tokens {
    /// Tokens in the place of others: one that was there as it is keeps its standing.
    pub(super) fn new(tokens: &[StaticToken], before: Option<&Tokens>) -> Tokens {
        let standing = |token: &StaticToken| {
            let same = before.and_then(|before| before.0.iter().find(|(known, _)| known == token));
            (token.clone(), same.map(|(_, standing)| standing.clone()).unwrap_or_default())
        };
        Tokens(tokens.iter().map(standing).collect())
    }

    /// Withdraws every token that is not among others as it is.
    pub(super) fn withdraw_but(&self, kept: &Tokens) {
        for (token, standing) in &self.0 {
            if !kept.0.iter().any(|(other, its)| other == token && its.is(standing)) {
                standing.withdraw();
            }
        }
    }

    /// Who comes with a token. Every digest is compared to its end, so that the
    /// time says nothing about how near a guess was.
    pub(super) fn find(&self, token: &str, now: SystemTime) -> Option<Result<(Identity, Revocation), Refused>> {
        let digest = digest_of(token);
        let (mut found, mut place) = (Choice::from(0), 0_u32);
        for (index, (known, _)) in (0_u32..).zip(&self.0) {
            let same = known.sha256.ct_eq(&digest);
            place.conditional_assign(&index, same);
            found |= same;
        }
        if !bool::from(found) {
            return None;
        }
        let (known, standing) = self.0.get(usize::try_from(place).ok()?)?;
        if known.expires.is_some_and(|end| end <= now) {
            return Some(Err(Refused::Invalid("The token has expired")));
        }
        let identity = Identity {
            key: format!("token\n{}", known.name),
            name: known.name.clone(),
            scopes: known.scopes.clone(),
            roles: known.roles.clone(),
            expires: known.expires,
        };
        Some(Ok((identity, standing.clone())))
    }
}

//! Verification of access tokens that are JWTs (RFC 9068): signature, issuer, audience and time.
//!
//! The operator's list and the key decide which algorithms are accepted, never the token. URLs in a
//! token are never fetched.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use promptshelf_service::{Identity, Revocation};
use serde_json::Value;

use super::{
    keys::Keys,
    options::{ASYMMETRIC, IssuerOptions},
    token_error::TokenError,
};

/// Accepted values of the `typ` header of an access token. An ID token has `JWT` as well, but another audience.
const ACCESS_TOKEN_TYPES: &[&str] = &["jwt", "at+jwt", "application/at+jwt", "application/jwt"];

const MAX_CLAIMED: usize = 128;

const MAX_FOUND: usize = 512;

#[derive(Debug)]
pub(super) struct Verifier {
    options: IssuerOptions,
    audiences: Vec<String>,
    pub(super) keys: Keys,
    pub(super) revocation: Revocation,
}

impl Verifier {
    pub(super) fn new(options: &IssuerOptions, resource: Option<&str>) -> Verifier {
        let mut options = options.clone();
        options.algorithms.retain(|algorithm| ASYMMETRIC.contains(algorithm));
        let audiences = match options.audiences.as_slice() {
            [] => resource.map(str::to_owned).into_iter().collect(),
            audiences => audiences.to_vec(),
        };
        let keys = Keys::new(&options);
        Verifier { options, audiences, keys, revocation: Revocation::new() }
    }

    /// Verifies `token` and returns the identity that it proves.
    /// Its key ends with the subject.
    pub(super) async fn verify(&self, token: &str) -> Result<Identity, TokenError> {
        let malformed = TokenError::invalid("malformed-token", "The token is malformed");
        let header = decode_header(token).map_err(|_| malformed)?;
        if !self.options.algorithms.contains(&header.alg) {
            return Err(TokenError::invalid(
                "other-algorithm",
                "The token is signed with an algorithm that is not accepted",
            ));
        }
        let is_access_token = |kind: &String| ACCESS_TOKEN_TYPES.contains(&&*kind.to_ascii_lowercase());
        if header.crit.is_some() || !header.typ.as_ref().is_none_or(is_access_token) {
            return Err(TokenError::invalid(
                "other-type",
                "The token has a type or critical header that is not accepted",
            ));
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let mut validation = Validation::new(header.alg);
        validation.algorithms = vec![header.alg];
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_audience(&self.audiences);
        validation.set_issuer(&[&self.options.issuer]);
        validation.validate_nbf = true;
        validation.validate_exp = true;
        validation.leeway = self.options.leeway.as_secs();
        let claims = decode::<Value>(token, &key, &validation).map_err(|error| token_error(error.kind()))?.claims;
        self.identity(&claims)
    }

    /// Returns what was expected and found of a claim that a refused token has with another value.
    pub(super) fn mismatch(&self, token: &str, code: &str) -> Option<String> {
        let (claim, expected) = match code {
            "other-audience" => ("aud", self.audiences.join(" or ")),
            "other-issuer" => ("iss", self.options.issuer.clone()),
            _ => return None,
        };
        let found = unverified_claims(token)?.get(claim)?.to_string();
        let found = &found[..found.floor_char_boundary(MAX_FOUND)];
        Some(format!("`{claim}` is {found}, expected {expected}"))
    }

    fn identity(&self, claims: &Value) -> Result<Identity, TokenError> {
        // One issuer, as a string: RFC 7519 defines no list.
        if claims["iss"].as_str() != Some(&self.options.issuer) {
            return Err(OTHER_ISSUER);
        }
        let subject = claims["sub"].as_str().filter(|subject| !subject.is_empty());
        let name = find_claim(claims, &self.options.user_claim).and_then(Value::as_str).filter(|name| !name.is_empty());
        let (Some(subject), Some(name)) = (subject, name) else {
            return Err(TokenError::invalid("no-subject", "The token has no subject or no user name"));
        };
        let mut scopes = scopes_of(&claims["scope"]);
        scopes.extend(scopes_of(&claims["scp"]));
        let expires = claims["exp"].as_f64().filter(|seconds| (0.0..1e11).contains(seconds));
        let expires = expires.ok_or(TokenError::invalid("no-expiry", "The token has no expiry time"))?;
        Ok(Identity {
            key: format!("{}\n{subject}", self.options.issuer),
            name: name.to_owned(),
            scopes,
            roles: find_claim(claims, &self.options.roles_claim).map(strings_of).unwrap_or_default(),
            // `exp` is verified to the end of its second, so the identity expires at that end.
            expires: Some(
                SystemTime::UNIX_EPOCH + Duration::from_secs_f64(expires.trunc() + 1.0) + self.options.leeway,
            ),
        })
    }
}

const OTHER_ISSUER: TokenError = TokenError::invalid("other-issuer", "The token is from another issuer");

fn token_error(kind: &ErrorKind) -> TokenError {
    match kind {
        ErrorKind::ExpiredSignature => TokenError::invalid("expired-token", "The token has expired"),
        ErrorKind::ImmatureSignature => TokenError::invalid("early-token", "The token is not valid yet"),
        ErrorKind::InvalidAudience => TokenError::invalid("other-audience", "The token is for another server"),
        ErrorKind::InvalidIssuer => OTHER_ISSUER,
        ErrorKind::MissingRequiredClaim(_) => {
            TokenError::invalid("missing-claim", "The token lacks an issuer, an audience or an expiry time")
        }
        _ => TokenError::invalid("unverified-token", "The token cannot be verified"),
    }
}

/// Returns the name in a token that has not been verified, for records of refusals: the user's name, else the subject.
pub(super) fn claimed_name(token: &str, user_claim: &str) -> Option<String> {
    let claims = unverified_claims(token)?;
    let name = find_claim(&claims, user_claim).and_then(Value::as_str).or_else(|| claims["sub"].as_str())?;
    Some(name.chars().take(MAX_CLAIMED).collect())
}

fn unverified_claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_)) = (parts.next(), parts.next(), parts.next()) else { return None };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

fn find_claim<'c>(claims: &'c Value, path: &str) -> Option<&'c Value> {
    claims.get(path).or_else(|| path.split('.').try_fold(claims, |value, part| value.get(part)))
}

/// Reads scopes: one string with spaces (RFC 9068) or, with some issuers, an array.
fn scopes_of(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        other => strings_of(other),
    }
}

fn strings_of(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

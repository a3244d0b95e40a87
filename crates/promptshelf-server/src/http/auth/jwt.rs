//! Access tokens that are JWTs (RFC 9068): signed by the issuer, for this
//! server, now.
//!
//! Which algorithms are taken is decided by a list of ours and by the key, and
//! never by the token. Nothing that a token points to is fetched.

use std::time::{Duration, SystemTime};

pub use jsonwebtoken::Algorithm;
use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use promptshelf_service::{Identity, Revocation};
use serde_json::Value;

use super::{Refused, keys::Keys};

/// The authorization server whose tokens are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerOptions {
    /// Its issuer identifier, exactly as its metadata says it.
    pub issuer: String,
    /// What tokens for this server have as their audience; empty means the
    /// URL of the resource.
    pub audiences: Vec<String>,
    /// Where its keys are, when that is not to be found out from its metadata.
    pub jwks_uri: Option<String>,
    /// The algorithms that are taken. Symmetric ones never are.
    pub algorithms: Vec<Algorithm>,
    /// By how much clocks may differ.
    pub leeway: Duration,
    /// The claim that rules and records call a caller by.
    pub user_claim: String,
    /// The claim with a caller's roles; dots lead into objects.
    pub roles_claim: String,
}

impl IssuerOptions {
    /// An authorization server with what is usual.
    #[must_use]
    pub fn new(issuer: impl Into<String>) -> IssuerOptions {
        IssuerOptions {
            issuer: issuer.into(),
            audiences: Vec::new(),
            jwks_uri: None,
            algorithms: ASYMMETRIC.to_vec(),
            leeway: Duration::from_secs(60),
            user_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
        }
    }
}

/// Algorithms whose verification needs no secret.
const ASYMMETRIC: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Types that an access token says it has. An ID token says `JWT` as well, but
/// has another audience.
const TYPES: &[&str] = &["jwt", "at+jwt", "application/at+jwt", "application/jwt"];

#[derive(Debug)]
pub(super) struct Verifier {
    options: IssuerOptions,
    audiences: Vec<String>,
    keys: Keys,
    /// Of everybody who has come with a token of this issuer.
    pub(super) standing: Revocation,
}

impl Verifier {
    pub(super) fn new(options: &IssuerOptions, resource: Option<&str>) -> Verifier {
        let mut options = options.clone();
        options.algorithms.retain(|algorithm| ASYMMETRIC.contains(algorithm));
        let audiences = match options.audiences.as_slice() {
            [] => resource.map(str::to_owned).into_iter().collect(),
            named => named.to_vec(),
        };
        let keys = Keys::new(&options.issuer, options.jwks_uri.as_deref());
        Verifier { options, audiences, keys, standing: Revocation::new() }
    }

    /// Who comes with a token.
    pub(super) async fn verify(&self, token: &str) -> Result<Identity, Refused> {
        let malformed = Refused::Invalid("The token is malformed");
        let header = decode_header(token).map_err(|_| malformed)?;
        if !self.options.algorithms.contains(&header.alg) {
            return Err(Refused::Invalid("The token is signed with an algorithm that is not taken"));
        }
        let is_typed = |kind: &String| TYPES.contains(&&*kind.to_ascii_lowercase());
        if header.crit.is_some() || !header.typ.as_ref().is_none_or(is_typed) {
            return Err(Refused::Invalid("The token is of a kind that is not taken"));
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
        let claims = decode::<Value>(token, &key, &validation).map_err(|error| refusal(error.kind()))?.claims;
        self.identity(&claims)
    }

    fn identity(&self, claims: &Value) -> Result<Identity, Refused> {
        // One issuer, and as text: what a list of them would mean nobody says.
        if claims["iss"].as_str() != Some(&self.options.issuer) {
            return Err(Refused::Invalid("The token is from another issuer"));
        }
        let subject = claims["sub"].as_str().filter(|subject| !subject.is_empty());
        let name = follow(claims, &self.options.user_claim).and_then(Value::as_str).filter(|name| !name.is_empty());
        let (Some(subject), Some(name)) = (subject, name) else {
            return Err(Refused::Invalid("The token does not say whose it is"));
        };
        let mut scopes = words(&claims["scope"]);
        scopes.extend(words(&claims["scp"]));
        let expires = claims["exp"].as_f64().filter(|seconds| (0.0..1e11).contains(seconds));
        let expires = expires.ok_or(Refused::Invalid("The token does not say when it ends"))?;
        Ok(Identity {
            key: format!("{}\n{subject}", self.options.issuer),
            name: name.to_owned(),
            scopes,
            roles: follow(claims, &self.options.roles_claim).map(items).unwrap_or_default(),
            // To the end of its last second, as it is verified.
            expires: Some(
                SystemTime::UNIX_EPOCH + Duration::from_secs_f64(expires.trunc() + 1.0) + self.options.leeway,
            ),
        })
    }
}

fn refusal(kind: &ErrorKind) -> Refused {
    Refused::Invalid(match kind {
        ErrorKind::ExpiredSignature => "The token has expired",
        ErrorKind::ImmatureSignature => "The token is not valid yet",
        ErrorKind::InvalidAudience => "The token is for another server",
        ErrorKind::InvalidIssuer => "The token is from another issuer",
        ErrorKind::MissingRequiredClaim(_) => "The token does not say whom it is from or for, or when it ends",
        _ => "The token cannot be verified",
    })
}

/// A claim by its name, or by its path where none has the whole name.
fn follow<'c>(claims: &'c Value, path: &str) -> Option<&'c Value> {
    claims.get(path).or_else(|| path.split('.').try_fold(claims, |value, part| value.get(part)))
}

/// Scopes are one text with spaces, or, with some issuers, a list.
fn words(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        other => items(other),
    }
}

fn items(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

//! Options of the sign-in: what operators configure.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

pub use jsonwebtoken::Algorithm;

use super::{keys::KeySet, shared_tokens::SharedTokens};

/// Options of the sign-in. The default accepts no token at all.
///
/// ```
/// use promptshelf_server::http::auth::{IssuerOptions, SignIn, SignInOptions};
///
/// let mut options = SignInOptions::default();
/// options.resource = Some("https://prompts.example.com/mcp".to_owned());
/// options.issuer = Some(IssuerOptions::new("https://id.example.com"));
/// let sign_in = SignIn::new(options);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SignInOptions {
    /// The exact URL under which clients reach the MCP endpoint.
    pub resource: Option<String>,
    /// Static tokens, configured on this server.
    pub tokens: Vec<StaticToken>,
    /// The authorization server whose access tokens are accepted.
    pub issuer: Option<IssuerOptions>,
    /// Scopes that every request needs.
    pub required_scopes: Vec<String>,
    /// Scopes that clients can request from the authorization server.
    pub scopes_supported: Vec<String>,
    /// The narrower scopes that each broader scope includes.
    pub implies: BTreeMap<String, Vec<String>>,
    /// Subjects and names of callers whose tokens are refused, compared by [`identity`](promptshelf_core::identity).
    pub blocked_subjects: Vec<String>,
    /// Tokens that several servers share, such as those of a store.
    pub shared_tokens: Option<SharedTokens>,
    /// The public OAuth client ID of the page. Without it, people paste a token into the page.
    pub page_client_id: Option<String>,
}

/// A static token, known by its digest, and the caller that it authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticToken {
    /// The caller's name.
    pub name: String,
    /// The SHA-256 of the whole token, as [`digest_of`](super::digest_of) returns it.
    pub sha256: [u8; 32],
    /// The scopes that the token grants.
    pub scopes: Vec<String>,
    /// The caller's roles.
    pub roles: Vec<String>,
    /// The time at which the token expires, if it does.
    pub expires: Option<SystemTime>,
}

/// An authorization server whose access tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerOptions {
    /// The issuer identifier, exactly as in the server's metadata.
    pub issuer: String,
    /// The audiences of tokens for this server; empty means the URL of the resource.
    pub audiences: Vec<String>,
    /// The URL of the issuer's keys, when it is not to be discovered from the issuer's metadata.
    pub jwks_uri: Option<String>,
    /// The issuer's keys, when they are not to be fetched.
    pub keys: Option<KeySet>,
    /// Certificate authorities that are trusted for the issuer in addition to the system's, as PEM.
    pub(super) ca_certificates: Option<Vec<u8>>,
    /// The signature algorithms that are accepted. Symmetric ones are always refused.
    pub algorithms: Vec<Algorithm>,
    /// The accepted difference between clocks. 60 seconds by default.
    pub leeway: Duration,
    /// The claim that names the caller in access rules and audit records. `sub` by default.
    pub user_claim: String,
    /// The claim with the caller's roles, `roles` by default; dots lead into objects.
    pub roles_claim: String,
}

impl IssuerOptions {
    /// Sets certificate authorities that are trusted for the issuer in addition to the system's.
    ///
    /// # Errors
    ///
    /// A text that has no certificates as PEM.
    pub fn trust(&mut self, pem: Vec<u8>) -> Result<(), String> {
        super::fetch::client(Some(&pem), &self.issuer)?;
        self.ca_certificates = Some(pem);
        Ok(())
    }

    /// Creates options for `issuer` with the usual claims and every asymmetric algorithm.
    #[must_use]
    pub fn new(issuer: impl Into<String>) -> IssuerOptions {
        IssuerOptions {
            issuer: issuer.into(),
            audiences: Vec::new(),
            jwks_uri: None,
            keys: None,
            ca_certificates: None,
            algorithms: ASYMMETRIC.to_vec(),
            leeway: Duration::from_secs(60),
            user_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
        }
    }
}

/// Algorithms whose verification needs no secret.
pub(super) const ASYMMETRIC: &[Algorithm] = &[
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
